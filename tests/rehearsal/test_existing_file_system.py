"""A cluster file that names a file system which its destroyed foundation has kept, on the local AWS."""

import json
from pathlib import Path
from typing import Any

from aws_cdk import App, DefaultStackSynthesizer

from cdk_training_cluster_file import read_cluster_file
from cdk_training_cluster_stacks.cluster import ClusterStack
from cdk_training_cluster_stacks.foundation import FoundationStack
from deployed_cluster import prepare, publish
from local_aws import LocalAws
from rehearsal import readback

_FILE = """\
name: pod
availability_zone: us-east-1b
termination_protection: false
node_groups: [{name: workers, instance_types: [g5.xlarge], count: 1, image: latest}]
"""
_STACKS = ("pod-foundation", "pod-cluster")


class _Account:
    def __init__(self, aws: LocalAws, directory: Path) -> None:
        self._aws, self._directory, self._deployments = aws, directory, 0
        self._formation = aws.client("cloudformation")

    def deploy(self, text: str, stacks: tuple[str, ...] = _STACKS) -> dict[str, str]:
        """Deploy stacks of a cluster file, and return the ids of the foundation's resources."""
        self._deployments += 1
        (self._directory / "cluster.yaml").write_text(_FILE + text)
        file = read_cluster_file(self._directory / "cluster.yaml")
        app = App(
            outdir=str(self._directory / f"cdk.out.{self._deployments}"),
            default_stack_synthesizer=DefaultStackSynthesizer(generate_bootstrap_version_rule=False),
        )
        file = file.model_copy(update={"account": self._aws.account})
        foundation = FoundationStack(app, file.foundation_stack_name, cluster=file)
        ClusterStack(app, file.cluster_stack_name, cluster=file, foundation=foundation)
        assembly = app.synth()
        for name in stacks:
            publish(self._aws, Path(assembly.directory), name)
            what: Any = {
                "StackName": name,
                "TemplateBody": json.dumps(assembly.get_stack_by_name(name).template),
                "Capabilities": ["CAPABILITY_IAM"],
            }
            deployed = [each["StackName"] for each in self._formation.describe_stacks()["Stacks"]]
            (self._formation.update_stack if name in deployed else self._formation.create_stack)(**what)
        found = readback.stack_resources(self._aws.client, "pod-foundation")
        return {each["LogicalResourceId"][:-8]: each["PhysicalResourceId"] for each in found}

    def destroy(self, *stacks: str) -> None:
        for name in stacks:
            self._formation.delete_stack(StackName=name)

    def statuses(self) -> list[str]:
        return [readback.stacks(self._aws.client, [name])[name]["status"] for name in _STACKS]

    def reasons(self) -> str:
        pages = self._formation.get_paginator("describe_stack_events").paginate(StackName="pod-foundation")
        return "; ".join(filter(None, pages.search("StackEvents[].ResourceStatusReason")))


def _file_systems(aws: LocalAws) -> set[str]:
    """The account's file systems; other tests have left some."""
    return {each["FileSystemId"] for each in aws.client("fsx").describe_file_systems()["FileSystems"]}


def test_a_kept_file_system_is_used_and_linked_by_another_file(aws: LocalAws, tmp_path: Path) -> None:
    prepare(aws, ["g5.xlarge"])
    account, fsx = _Account(aws, tmp_path), aws.client("fsx")
    linked = "datasets: [{file_system_path: /data, bucket: %s}]\ncheckpoints: {exported: {%s}}\n"
    before = _file_systems(aws)
    made = account.deploy("file_system: {}\ndatasets: [{file_system_path: /data}]\ncheckpoints: {}\n")
    (system,) = (each for each in fsx.describe_file_systems()["FileSystems"] if each["FileSystemId"] not in before)
    here = [{"Name": "file-system-id", "Values": [system["FileSystemId"]]}]
    account.destroy(*reversed(_STACKS))
    # Links go with their stack; the file system stays.
    assert not fsx.describe_data_repository_associations(Filters=here)["Associations"]

    mount_name = json.dumps(system["LustreConfiguration"]["MountName"])  # Unquoted, one of eight digits is a number.
    existing = f"file_system_id: {system['FileSystemId']}, mount_name: {mount_name}"
    group = f", security_group_id: {made['FileSystemSecurityGroup']}"
    network = f"network: {{vpc_id: {system['VpcId']}, subnet_id: {system['SubnetIds'][0]}}}\n"
    links = linked % (made["Datasets"], f"bucket: {made['CheckpointsBucket']}")
    after = account.deploy(f"{network}file_system: {{existing: {{{existing}{group}}}}}\n{links}")

    assert account.statuses() == ["CREATE_COMPLETE"] * 2
    assert {"FileSystem", "FileSystemfixed-settings", "NetworkVpc"} & after.keys() == set()
    assert _file_systems(aws) - before == {system["FileSystemId"]}
    associations = fsx.describe_data_repository_associations(Filters=here)["Associations"]
    assert {each["FileSystemPath"]: each["Lifecycle"] for each in associations} == {
        "/data": "AVAILABLE",
        "/checkpoints": "AVAILABLE",
    }
    rules = aws.client("ec2").describe_security_group_rules(
        Filters=[{"Name": "group-id", "Values": [made["FileSystemSecurityGroup"]]}]
    )["SecurityGroupRules"]
    peers = {rule.get("ReferencedGroupInfo", {}).get("GroupId") for rule in rules}
    assert after["NetworkSecurityGroup"] in peers
    assert (tmp_path / "cdk.out.2" / "pod-cluster.template.json").read_text().count(system["FileSystemId"])

    account.destroy(*reversed(_STACKS))
    assert _file_systems(aws) - before == {system["FileSystemId"]}


def test_the_foundation_that_made_it_takes_it_back_without_new_rules(aws: LocalAws, tmp_path: Path) -> None:
    account, fsx, only = _Account(aws, tmp_path), aws.client("fsx"), _STACKS[:1]
    before = _file_systems(aws)
    made = account.deploy("file_system: {}\n", only)
    (system,) = (each for each in fsx.describe_file_systems()["FileSystems"] if each["FileSystemId"] not in before)
    account.deploy("", only)
    mount_name = json.dumps(system["LustreConfiguration"]["MountName"])  # Unquoted, one of eight digits is a number.
    existing = f"file_system_id: {system['FileSystemId']}, mount_name: {mount_name}"

    account.deploy(
        f"file_system: {{existing: {{{existing}, security_group_id: {made['FileSystemSecurityGroup']}}}}}\n", only
    )
    assert "already exists" in account.reasons()
    after = account.deploy(f"file_system: {{existing: {{{existing}}}}}\n", only)
    assert after["NetworkSecurityGroup"] == made["NetworkSecurityGroup"]
    account.destroy(*only)
