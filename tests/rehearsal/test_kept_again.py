"""A kept file system is used again: the real CDK CLI imports its network, and the new stack lets nodes reach it."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import App, Environment, Stack
from aws_cdk import aws_ec2 as ec2

from cdk_training_cluster import ClusterNetwork, ClusterState, TrainingFileSystem
from local_aws import LocalAws
from rehearsal.cdk_cli import CdkCli
from synthesis import ZONE

_STACK = "storage"


def _app(directory: Path, aws: LocalAws, kept: dict[str, str] | None = None) -> None:
    """Synthesize a stack with a network, a table, and a file system: a new one, or one that was kept."""
    app = App(outdir=str(directory), analytics_reporting=False)
    stack = Stack(app, _STACK, env=Environment(account=aws.account, region=aws.region))
    network = ClusterNetwork(stack, "Network", availability_zone=ZONE)
    ClusterState(stack, "State")
    if kept is None:
        TrainingFileSystem(stack, "FileSystem", network=network, storage_capacity_gib=1200)
    else:
        group = ec2.SecurityGroup.from_security_group_id(stack, "FileSystemGroup", kept["FileSystemSecurityGroup"])
        TrainingFileSystem.from_attributes(
            stack,
            "FileSystem",
            network=network,
            file_system_id=kept["FileSystem"],
            mount_name=kept["mount_name"],
            security_group=group,
        )
    app.synth()


def _ids(aws: LocalAws) -> dict[str, str]:
    """Return the physical ids of the stack's resources, by their logical ids without the hash."""
    resources: list[Any] = aws.client("cloudformation").describe_stack_resources(StackName=_STACK)["StackResources"]
    return {each["LogicalResourceId"][:-8]: each["PhysicalResourceId"] for each in resources}


@pytest.mark.sweep("test-local-aws")
def test_what_a_destroyed_stack_has_kept_comes_under_a_new_one(tmp_path: Path) -> None:
    with LocalAws(tmp_path / "local-aws.log") as aws:
        cdk = CdkCli(
            environment=aws.environment(),
            cluster_file=tmp_path,
            output=tmp_path / "cdk.out",
            log=tmp_path / "cdk.log",
            account=aws.account,
            region=aws.region,
            synthesized=True,
        )
        cdk.bootstrap()
        _app(cdk.output, aws)
        cdk.deploy(_STACK)
        before, fsx = _ids(aws), aws.client("fsx")
        (system,) = fsx.describe_file_systems()["FileSystems"]
        cdk.destroy(_STACK)

        mapping = tmp_path / "kept.json"
        kept = {**before, "mount_name": system["LustreConfiguration"]["MountName"]}
        _app(cdk.output, aws, kept)
        printed = subprocess.run(
            ["training-cluster", "import-map", str(cdk.output / f"{_STACK}.template.json")],
            env={**aws.environment(), "PATH": os.environ["PATH"]},
            capture_output=True,
            text=True,
            check=True,
        )
        assert f"left out: AWS::FSx::FileSystem {before['FileSystem']}\n" in printed.stderr
        mapping.write_text(printed.stdout)
        cdk.take_over(_STACK, mapping)
        cdk.deploy(_STACK)

        after = _ids(aws)
        found = {name for name in after if after[name] == before.get(name)}
        assert {"NetworkVpc", "NetworkNodeSubnet", "NetworkS3Endpoint", "State"} <= found
        assert "NetworkNodeSubnetDefaultRoute" in after
        assert [each["FileSystemId"] for each in fsx.describe_file_systems()["FileSystems"]] == [before["FileSystem"]]
        rules = aws.client("ec2").describe_security_group_rules(
            Filters=[{"Name": "group-id", "Values": [before["FileSystemSecurityGroup"]]}]
        )["SecurityGroupRules"]
        peers = {rule.get("ReferencedGroupInfo", {}).get("GroupId") for rule in rules}
        assert after["NetworkSecurityGroup"] in peers

        cdk.destroy(_STACK)
        assert [each["FileSystemId"] for each in fsx.describe_file_systems()["FileSystems"]] == [before["FileSystem"]]
        assert aws.client("ec2").describe_vpcs(VpcIds=[before["NetworkVpc"]])["Vpcs"]
