"""A sample of legal clusters that uses every way to buy: each deploys to the local AWS, starts, stops and goes.

The stacks go straight to the local CloudFormation, without the CDK CLI; the nodes are started by the deployed power
function's own code.
"""

import io
import json
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import App, DefaultStackSynthesizer, Environment, Stack, Tags
from aws_cdk import aws_ec2 as ec2
from hypothesis import HealthCheck, Phase, settings
from hypothesis import given as drawn

from cdk_training_cluster import instance_type_info
from cluster_contract.tags import CLUSTER_TAG, NODE_GROUP_TAG
from cluster_plans import BUCKET, OWN, SAMPLE, SUBNET, VPC, ClusterPlan, Given, Sample, Where
from cluster_strategies import legal_clusters
from local_aws import LocalAws
from local_aws.functions import DeployedFunction
from rehearsal import readback
from rehearsal.instance_types import description
from synthesis import ZONE

_HOUR = timedelta(hours=1)
_STACK, _CLUSTER = "sample", "pod"

# Reservations are raised, launched into and counted one after another.
_TICKS = 4


@contextmanager
def running_aws(directory: Path, types: Iterable[str]) -> Iterator[LocalAws]:
    """Run a local AWS that has these instance types, and the network and bucket that some clusters name."""
    with LocalAws(directory / "local-aws.log") as running:
        running.client("s3").create_bucket(Bucket=BUCKET)
        running.add_network(vpc_id=VPC, subnet_id=SUBNET, availability_zone=ZONE)
        for name in sorted(set(types)):
            running.add_instance_type(description(instance_type_info(name)))
        yield running


def _types(plans: Iterable[ClusterPlan]) -> Iterator[str]:
    return (name for plan in plans for group in plan.groups for name in group["instance_types"])


@pytest.fixture(scope="module")
def aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalAws]:
    with running_aws(tmp_path_factory.mktemp("sample"), _types(one.plan for one in SAMPLE.values())) as running:
        yield running


class Deployed:
    """A cluster on the local AWS."""

    def __init__(self, aws: LocalAws, directory: Path) -> None:
        self.aws, self._directory = aws, directory

    def deploy(self, plan: ClusterPlan, tags: Mapping[str, str] | None = None) -> None:
        """Make the stack, or change it."""
        template, assets = _synthesized(plan, self._directory, self.aws, tags)
        for bucket, key, body in assets:
            self.aws.client("s3").create_bucket(Bucket=bucket)
            self.aws.client("s3").put_object(Bucket=bucket, Key=key, Body=body)
        what: Any = {
            "StackName": _STACK,
            "TemplateBody": json.dumps(template),
            "Capabilities": ["CAPABILITY_IAM"],
        }
        if self.exists:
            self._cloudformation.update_stack(**what)
        else:
            self._cloudformation.create_stack(**what)

    def destroy(self) -> None:
        self._cloudformation.delete_stack(StackName=_STACK)

    @property
    def failures(self) -> list[str]:
        events = self._cloudformation.get_paginator("describe_stack_events").paginate(StackName=_STACK)
        return [
            f"{event['LogicalResourceId']}: {event['ResourceStatusReason']}"
            for event in events.search("StackEvents[]")
            if event["ResourceStatus"].endswith("_FAILED")
        ]

    @property
    def exists(self) -> bool:
        stacks = self._cloudformation.describe_stacks()["Stacks"]
        return any(stack["StackName"] == _STACK for stack in stacks)

    def say(self, action: str) -> dict[str, dict[str, Any]]:
        """Call the deployed power function and return what it says of the node groups, by name."""
        functions = readback.functions(self.aws.client, _STACK, self.aws.account, self.aws.region)
        ((configuration, code),) = (one for one in functions if one[0]["Handler"].startswith("cluster_power."))
        function = DeployedFunction(configuration, code, self._directory, self.aws.environment())
        alias = "" if action == "tick" else "operate"
        said = function({"action": action, **({"reason": "the sample"} if alias else {})}, alias=alias)
        return {group["node_group"]: group for group in said["node_groups"]}

    def nodes(self, group: str) -> list[dict[str, Any]]:
        """The running nodes of a node group."""
        filters = [
            {"Name": f"tag:{CLUSTER_TAG}", "Values": [_CLUSTER]},
            {"Name": f"tag:{NODE_GROUP_TAG}", "Values": [group]},
            {"Name": "instance-state-name", "Values": ["running"]},
        ]
        pages = self.aws.client("ec2").get_paginator("describe_instances").paginate(Filters=filters)
        return list(pages.search("Reservations[].Instances[]"))

    def own(self) -> set[str]:
        """The ids and names of what the cluster made."""
        resources = readback.stack_resources(self.aws.client, _STACK)
        return {resource["PhysicalResourceId"] for resource in resources}

    def written(self) -> str:
        """What the function has written down of stopped node groups."""
        name = next(one for one in self.own() if "Stopped" in one)
        return str(self.aws.client("ssm").get_parameter(Name=name)["Parameter"]["Value"])

    @property
    def _cloudformation(self) -> Any:
        return self.aws.client("cloudformation")


def _synthesized(
    plan: ClusterPlan, directory: Path, aws: LocalAws, tags: Mapping[str, str] | None
) -> tuple[dict[str, Any], Iterator[tuple[str, str, bytes]]]:
    app = App(outdir=str(directory / "cdk.out"))
    stack = Stack(
        app,
        "Sample",
        env=Environment(account=aws.account, region=aws.region),
        synthesizer=DefaultStackSynthesizer(generate_bootstrap_version_rule=False),
    )
    plan.make(stack, _CLUSTER)
    for key, value in (tags or {}).items():
        Tags.of(stack).add(key, value)
    template: dict[str, Any] = app.synth().get_stack_by_name("Sample").template
    return template, _assets(directory / "cdk.out")


def _assets(output: Path) -> Iterator[tuple[str, str, bytes]]:
    """Yield what the CDK CLI would upload: bucket, key and contents of each asset but the template."""
    manifest = json.loads((output / "Sample.assets.json").read_text())
    for asset in manifest["files"].values():
        source = output / asset["source"]["path"]
        (target,) = asset["destinations"].values()
        if asset["source"]["packaging"] == "zip":
            yield target["bucketName"], target["objectKey"], _zipped(source)


def _zipped(directory: Path) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for file in sorted(directory.rglob("*")):
            archive.write(file, file.relative_to(directory))
    return packed.getvalue()


def _give(aws: LocalAws, given: Given) -> None:
    what: dict[str, Any] = {
        "instance_type": given.instance_type,
        "instance_count": given.instance_count,
        "availability_zone": ZONE,
    }
    if given.is_block:
        now = datetime.now(UTC)
        aws.put_capacity_block(given.id, start=now - _HOUR, end=now + 9 * _HOUR, **what)
    else:
        aws.add_capacity_reservation(given.id, placement_group=given.placement_group, **what)


def _where(node: dict[str, Any], own: set[str]) -> Where:
    reservation, place = node.get("CapacityReservationId"), node["Placement"].get("GroupName") or None
    return Where(
        node.get("InstanceLifecycle"), OWN if reservation in own else reservation, OWN if place in own else place
    )


@pytest.mark.parametrize("sample", SAMPLE.values(), ids=list(SAMPLE))
def test_a_legal_cluster_comes_up_as_it_was_bought_and_goes(sample: Sample, aws: LocalAws, tmp_path: Path) -> None:
    for given in sample.given:
        _give(aws, given)
    cluster = Deployed(aws, tmp_path)
    cluster.deploy(sample.plan)
    assert cluster.failures == []
    counts = {group["name"]: group["count"] for group in sample.plan.groups}
    assert {name: len(cluster.nodes(name)) for name in counts} == dict.fromkeys(counts, 0)

    for _ in range(_TICKS):
        said = cluster.say("tick")
    assert {name: (group["in_service"], group["problem"]) for name, group in said.items()} == {
        name: (count, None) for name, count in counts.items()
    }
    own = cluster.own()
    for name, runs in sample.runs.items():
        assert Counter(_where(node, own) for node in cluster.nodes(name)) == runs

    cluster.say("stop")
    assert {name: len(cluster.nodes(name)) for name in counts} == dict.fromkeys(counts, 0)
    cluster.destroy()
    assert not cluster.exists


def test_a_stopped_group_that_is_bought_otherwise_stays_stopped(tmp_path: Path) -> None:
    """The old group is gone before the function sees the new one; `start` brings it up as it is bought now.

    A change of the stack's tags takes away in between what the function has written down.
    """
    workers = {"name": "workers", "instance_types": ["p5.48xlarge"], "count": 2, "call": "on_demand"}
    with running_aws(tmp_path, ["p5.48xlarge"]) as aws:
        cluster = Deployed(aws, tmp_path)
        cluster.deploy(ClusterPlan(groups=(workers,), existing_network=True))
        cluster.say("tick")
        assert len(cluster.nodes("workers")) == 2
        cluster.say("stop")

        otherwise = ClusterPlan(groups=({**workers, "call": "spot"},), existing_network=True)
        cluster.deploy(otherwise, tags={"team": "infra"})
        written = cluster.written()
        said = [cluster.say("tick")["workers"] for _ in range(2)]
        stopped = len(cluster.nodes("workers"))
        cluster.say("start")
        cluster.say("tick")

        assert written == "not written yet"
        assert (stopped, [one["state"] for one in said]) == (0, ["stopped", "stopped"])
        assert [node.get("InstanceLifecycle") for node in cluster.nodes("workers")] == ["spot", "spot"]


def _deployable(group: Mapping[str, Any], aws: LocalAws) -> dict[str, Any]:
    """Put an image of its own that exists into a drawn group that has one, and an end that is not over."""
    changed = dict(group)
    end = group["buy"].get("end")
    if isinstance(end, datetime):
        changed["buy"] = {**group["buy"], "end": end.replace(year=end.year + 10)}
    if group["machine_image"] is not None:
        architecture = instance_type_info(group["instance_types"][0]).architectures[-1]
        filters = [{"Name": "architecture", "Values": [architecture]}]
        image = aws.client("ec2").describe_images(Filters=filters)["Images"][0]["ImageId"]
        changed["machine_image"] = ec2.MachineImage.generic_linux({aws.region: image})
    return changed


def _reserved_before(group: Mapping[str, Any]) -> Iterator[Given]:
    """What a drawn group launches into and does not make."""
    buy, first = group["buy"], group["instance_types"][0]
    reserved = [(one, group["call"] == "capacity_block") for one in (buy.get("capacity_reservation_id"),) if one]
    reserved += [(one, False) for one in buy.get("reservations", ())]
    reserved += [(one, True) for one in buy.get("capacity_blocks", ())]
    for one, is_block in reserved:
        count = buy.get("instance_count") or group["count"]
        yield Given(
            id=one,
            is_block=is_block,
            instance_type=first,
            instance_count=count,
            placement_group=buy.get("placement_group"),
        )


# The same ones each time: what any run draws is linted by the properties of the constructs.
@drawn(legal_clusters(most=3))
@settings(
    max_examples=4,
    derandomize=True,
    deadline=None,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_a_drawn_legal_cluster_deploys_and_goes(tmp_path_factory: pytest.TempPathFactory, plan: ClusterPlan) -> None:
    directory = tmp_path_factory.mktemp("drawn")
    with running_aws(directory, _types([plan])) as aws:
        plan = replace(plan, groups=tuple(_deployable(group, aws) for group in plan.groups))
        for one in {one.id: one for group in plan.groups for one in _reserved_before(group)}.values():
            _give(aws, one)
        cluster = Deployed(aws, directory)
        cluster.deploy(plan)
        failures = cluster.failures
        cluster.destroy()

        assert "\n".join(failures) == ""
        assert not cluster.exists
