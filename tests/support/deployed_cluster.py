"""A cluster of constructs on the local AWS: straight to its CloudFormation, without the CDK CLI.

Nodes are started by the deployed power function's own code.
"""

import io
import json
import zipfile
from collections.abc import Iterable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, Protocol

from aws_cdk import App, Environment, Stack

from cdk_training_cluster import TrainingCluster, instance_type_info
from cdk_training_cluster_file import ClusterFile
from cdk_training_cluster_stacks.cluster import ClusterStack
from cdk_training_cluster_stacks.foundation import FoundationStack
from cluster_contract.tags import CLUSTER_TAG, NODE_GROUP_TAG
from cluster_plans import BUCKET, EKS, EKS_GROUP, SUBNET, VPC
from local_aws import LocalAws
from local_aws.functions import DeployedFunction
from rehearsal import readback
from rehearsal.instance_types import description
from rehearsal.node_groups import node_groups
from synthesis import ZONE

_NOW = timedelta()


class Plan(Protocol):
    """What makes a cluster, such as a `ClusterPlan`."""

    def make(self, stack: Stack, cluster_name: str = "pod") -> TrainingCluster:
        """Make the cluster."""


def prepare(aws: LocalAws, types: Iterable[str]) -> None:
    """Put there instance types, and the network and bucket that some clusters name."""
    aws.client("s3").create_bucket(Bucket=BUCKET)
    vpcs = aws.client("ec2").describe_vpcs(Filters=[{"Name": "vpc-id", "Values": [VPC]}])["Vpcs"]
    if not vpcs:
        aws.add_network(vpc_id=VPC, subnet_id=SUBNET, availability_zone=ZONE)
        ec2 = aws.client("ec2")
        second = ec2.create_subnet(VpcId=VPC, CidrBlock="10.0.1.0/24", AvailabilityZone="us-east-1a")["Subnet"]
        aws.add_eks_cluster(
            EKS.rpartition("/")[2], subnet_ids=[SUBNET, second["SubnetId"]], security_group_id=EKS_GROUP
        )
    for name in sorted(set(types)):
        aws.add_instance_type(description(instance_type_info(name)))


class Deployed:
    """A cluster on a local AWS; its stack has its name."""

    def __init__(self, aws: LocalAws, directory: Path, name: str) -> None:
        self.aws, self._directory, self._name = aws, directory, name
        self._deployed: Any = None

    def deploy(self, plan: Plan) -> None:
        """Make the stack, or change it if there is something to change, as the CDK CLI does."""
        template = _synthesized(plan, self._directory, self.aws, self._name)
        if template == self._deployed:
            return
        self._deployed = template
        publish(self.aws, self._directory / "cdk.out", "Sample")
        what: Any = {
            "StackName": self._name,
            "TemplateBody": json.dumps(template),
            "Capabilities": ["CAPABILITY_IAM"],
        }
        if self.exists:
            self._cloudformation.update_stack(**what)
        else:
            self._cloudformation.create_stack(**what)

    def destroy(self) -> None:
        self._cloudformation.delete_stack(StackName=self._name)

    @property
    def failures(self) -> list[str]:
        events = self._cloudformation.get_paginator("describe_stack_events").paginate(StackName=self._name)
        return [
            f"{event['LogicalResourceId']}: {event['ResourceStatusReason']}"
            for event in events.search("StackEvents[]")
            if event["ResourceStatus"].endswith("_FAILED")
        ]

    @property
    def exists(self) -> bool:
        stacks = self._cloudformation.describe_stacks()["Stacks"]
        return any(stack["StackName"] == self._name for stack in stacks)

    @property
    def status(self) -> str:
        return str(readback.stacks(self.aws.client, [self._name])[self._name]["status"])

    def say(self, action: str, later: timedelta = _NOW, **words: Any) -> dict[str, dict[str, Any]]:
        """Call the deployed power function and return what it says of the node groups, by name."""
        functions = readback.functions(self.aws.client, self._name, self.aws.account, self.aws.region)
        ((configuration, code),) = (one for one in functions if one[0]["Handler"].startswith("cluster_power."))
        function = DeployedFunction(configuration, code, self._directory, self.aws.environment())
        said = function({"action": action, **words}, later=later, alias="" if action == "tick" else "operate")
        return {group["node_group"]: group for group in said["node_groups"]}

    @property
    def groups(self) -> dict[str, dict[str, Any]]:
        """The node groups, by name."""
        return {group["name"]: group for group in node_groups(self.aws.client, self._name)}

    def nodes(self, group: str) -> list[dict[str, Any]]:
        """The running nodes of a node group."""
        filters = [
            {"Name": f"tag:{CLUSTER_TAG}", "Values": [self._name]},
            {"Name": f"tag:{NODE_GROUP_TAG}", "Values": [group]},
            {"Name": "instance-state-name", "Values": ["running"]},
        ]
        pages = self.aws.client("ec2").get_paginator("describe_instances").paginate(Filters=filters)
        return list(pages.search("Reservations[].Instances[]"))

    def own(self) -> set[str]:
        """The ids and names of what the cluster made."""
        resources = readback.stack_resources(self.aws.client, self._name)
        return {resource["PhysicalResourceId"] for resource in resources}

    @property
    def _cloudformation(self) -> Any:
        return self.aws.client("cloudformation")


def deploy_file(cluster: ClusterFile, aws: LocalAws, directory: Path) -> None:
    """Deploy both stacks of a cluster file.

    Args:
        cluster: The cluster file.
        aws: The local AWS of its account; it holds what the file takes for granted.
        directory: Where the cloud assembly is written to.
    """
    app = App(outdir=str(directory))
    foundation = FoundationStack(app, cluster.foundation_stack_name, cluster=cluster)
    ClusterStack(app, cluster.cluster_stack_name, cluster=cluster, foundation=foundation)
    assembly = app.synth()
    for name in (cluster.foundation_stack_name, cluster.cluster_stack_name):
        template = _without_bootstrap(assembly.get_stack_by_name(name).template)
        publish(aws, directory, name)
        aws.client("cloudformation").create_stack(
            StackName=name, TemplateBody=json.dumps(template), Capabilities=["CAPABILITY_IAM"]
        )
        assert readback.stacks(aws.client, [name])[name]["status"] == "CREATE_COMPLETE"


def publish(aws: LocalAws, output: Path, stack: str) -> None:
    """Upload what the CDK CLI would: each asset of a stack but the template."""
    for bucket, key, body in _assets(output, stack):
        aws.client("s3").create_bucket(Bucket=bucket)
        aws.client("s3").put_object(Bucket=bucket, Key=key, Body=body)


def _synthesized(plan: Plan, directory: Path, aws: LocalAws, name: str) -> dict[str, Any]:
    app = App(outdir=str(directory / "cdk.out"))
    stack = Stack(app, "Sample", env=Environment(account=aws.account, region=aws.region))
    plan.make(stack, name)
    return _without_bootstrap(app.synth().get_stack_by_name("Sample").template)


def _without_bootstrap(template: dict[str, Any]) -> dict[str, Any]:
    """Return a template that does not ask whether the account is bootstrapped: nothing here is."""
    del template["Rules"], template["Parameters"]["BootstrapVersion"]
    return template


def _assets(output: Path, stack: str) -> Iterator[tuple[str, str, bytes]]:
    manifest = json.loads((output / f"{stack}.assets.json").read_text())
    for asset in manifest["files"].values():
        source = output / asset["source"]["path"]
        (target,) = asset["destinations"].values()
        if asset["source"]["packaging"] == "zip":
            yield target["bucketName"], target["objectKey"], _zipped(source)
        elif source.suffix == ".zip":
            yield target["bucketName"], target["objectKey"], source.read_bytes()


def _zipped(directory: Path) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for file in sorted(directory.rglob("*")):
            archive.write(file, file.relative_to(directory))
    return packed.getvalue()
