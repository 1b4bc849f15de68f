"""A sample of legal clusters that uses every way to buy: each deploys to the local AWS, starts, stops and goes.

So do clusters that are drawn, with each orchestrator.

The stacks go straight to the local CloudFormation, without the CDK CLI; the nodes are started by the deployed power
function's own code.
"""

import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import aws_ec2 as ec2
from hypothesis import HealthCheck, Phase, assume, settings
from hypothesis import given as drawn
from hypothesis import strategies as st

from cdk_training_cluster import instance_type_info
from cluster_plans import ORCHESTRATORS, OWN, SAMPLE, ClusterPlan, Given, Sample, Where
from cluster_strategies import legal_clusters
from deployed_cluster import Deployed, prepare
from local_aws import LocalAws
from synthesis import ZONE

_HOUR = timedelta(hours=1)

# Reservations are raised, launched into and counted one after another.
_TICKS = 4

_WITH_EVERY_CHANGE = ("what is reserved first", "slurm")


def _types(plans: Iterable[ClusterPlan]) -> Iterator[str]:
    return (name for plan in plans for group in plan.groups for name in group["instance_types"])


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


@pytest.mark.parametrize(
    "sample",
    [
        pytest.param(sample, id=name, marks=() if name in _WITH_EVERY_CHANGE else pytest.mark.sweep)
        for name, sample in SAMPLE.items()
    ],
)
def test_a_legal_cluster_comes_up_as_it_was_bought_and_goes(sample: Sample, aws: LocalAws, tmp_path: Path) -> None:
    prepare(aws, _types([sample.plan]))
    for given in sample.given:
        _give(aws, given)
    cluster = Deployed(aws, tmp_path, "pod")
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

    cluster.say("stop", reason="the sample")
    assert {name: len(cluster.nodes(name)) for name in counts} == dict.fromkeys(counts, 0)
    cluster.destroy()
    assert not cluster.exists


def test_a_stopped_group_that_is_bought_otherwise_stays_stopped(aws: LocalAws, tmp_path: Path) -> None:
    """The old group is gone before the function sees the new one; `start` brings it up as it is bought now."""
    workers = {"name": "workers", "instance_types": ["p5.48xlarge"], "count": 2, "call": "on_demand"}
    prepare(aws, ["p5.48xlarge"])
    cluster = Deployed(aws, tmp_path, "stopped")
    cluster.deploy(ClusterPlan(groups=(workers,), existing_network=True))
    cluster.say("tick")
    assert len(cluster.nodes("workers")) == 2
    cluster.say("stop", reason="the sample")

    otherwise = ClusterPlan(groups=({**workers, "call": "spot"},), existing_network=True)
    cluster.deploy(otherwise)
    said = [cluster.say("tick")["workers"] for _ in range(2)]
    stopped = len(cluster.nodes("workers"))
    cluster.say("start", reason="the sample")
    cluster.say("tick")

    assert (stopped, [one["state"] for one in said]) == (0, ["stopped", "stopped"])
    assert [node.get("InstanceLifecycle") for node in cluster.nodes("workers")] == ["spot", "spot"]
    cluster.destroy()


def _deployable(group: Mapping[str, Any], aws: LocalAws) -> dict[str, Any]:
    """Put an image of the account into a drawn group that has one of its own, and an end that is not over."""
    changed = dict(group)
    end = group["buy"].get("end")
    if isinstance(end, datetime):
        changed["buy"] = {**group["buy"], "end": end.replace(year=end.year + 10)}
    if group["machine_image"] is not None:
        architecture = instance_type_info(group["instance_types"][0]).architectures[-1]
        filters = [{"Name": "architecture", "Values": [architecture]}]
        image = f"ami-{zlib.crc32(architecture.encode()):08x}"
        if not aws.client("ec2").describe_images(Owners=["self"], Filters=filters)["Images"]:
            aws.add_image(image, architecture=architecture, root_device_name="/dev/xvda")
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


# One kind of orchestrator with every change; what any run draws is linted by the properties of the constructs.
@pytest.mark.parametrize(
    "orchestrator",
    [
        pytest.param(orchestrator, marks=() if orchestrator in _WITH_EVERY_CHANGE else pytest.mark.sweep)
        for orchestrator in ORCHESTRATORS
    ],
)
@drawn(data=st.data())
@settings(
    max_examples=1,
    derandomize=True,
    deadline=None,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_a_drawn_legal_cluster_deploys_and_goes(
    aws: LocalAws, tmp_path_factory: pytest.TempPathFactory, orchestrator: str, data: st.DataObject
) -> None:
    plan = data.draw(legal_clusters(most=3)).for_orchestrator(orchestrator)
    assume(plan.groups and not plan.problems())
    prepare(aws, _types([plan]))
    plan = replace(plan, groups=tuple(_deployable(group, aws) for group in plan.groups))
    for one in {one.id: one for group in plan.groups for one in _reserved_before(group)}.values():
        _give(aws, one)
    cluster = Deployed(aws, tmp_path_factory.mktemp("drawn"), f"drawn-{orchestrator.replace('_', '-')}")
    cluster.deploy(plan)
    failures = cluster.failures
    cluster.destroy()

    assert "\n".join(failures) == ""
    assert not cluster.exists
