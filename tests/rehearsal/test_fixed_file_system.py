"""A changed template beside a deployed file system: it changes in place, or nothing changes."""

import json
from typing import Any

from aws_cdk import App, DefaultStackSynthesizer, Environment, Stack

from cdk_training_cluster import ClusterNetwork, TrainingFileSystem
from local_aws import LocalAws
from synthesis import ZONE


def _template(**settings: Any) -> str:
    app = App(analytics_reporting=False)
    region = Environment(region="us-east-1")
    plain = DefaultStackSynthesizer(generate_bootstrap_version_rule=False)
    stack = Stack(app, "files", env=region, synthesizer=plain)
    network = ClusterNetwork(stack, "Network", availability_zone=ZONE)
    TrainingFileSystem(stack, "FileSystem", network=network, **settings)
    return json.dumps(app.synth().get_stack_by_name("files").template)


def _request(template: str) -> dict[str, Any]:
    return {"StackName": "files", "TemplateBody": template, "Capabilities": ["CAPABILITY_IAM"]}


class _Files:
    def __init__(self, aws: LocalAws) -> None:
        self._aws, self._formation = aws, aws.client("cloudformation")

    def create(self, **settings: Any) -> dict[str, Any]:
        self._formation.create_stack(**_request(_template(**settings)))
        return self.described()

    def update(self, **settings: Any) -> str:
        """Return the reasons of the failures, or nothing."""
        before = self._events()
        self._formation.update_stack(**_request(_template(**settings)))
        events = self._events()
        failed = [each for each in events[: len(events) - len(before)] if each["ResourceStatus"].endswith("_FAILED")]
        return "; ".join(f"{each['LogicalResourceId']}: {each['ResourceStatusReason']}" for each in failed)

    def _events(self) -> list[dict[str, Any]]:
        pages = self._formation.get_paginator("describe_stack_events").paginate(StackName="files")
        return list(pages.search("StackEvents[]"))

    def described(self) -> dict[str, Any]:
        (one,) = self._aws.client("fsx").describe_file_systems()["FileSystems"]
        return dict(one)

    def is_at(self, status: str) -> bool:
        return str(self._formation.describe_stacks(StackName="files")["Stacks"][0]["StackStatus"]) == status


def test_what_can_change_changes_in_place_and_the_rest_fails_before_fsx_is_asked(aws: LocalAws) -> None:
    files = _Files(aws)
    first = files.create()

    assert files.update(storage_capacity_gib=4800, throughput_mbps_per_tib=500, data_compression_type="NONE") == ""
    grown = files.described()
    assert grown["FileSystemId"] == first["FileSystemId"]
    assert (grown["StorageCapacity"], grown["LustreConfiguration"]["PerUnitStorageThroughput"]) == (4800, 500)

    # CloudFormation would make an empty file system of the one, and FSx ignore the other.
    for fixed in ({"deployment_type": "SCRATCH_2"}, {"efa_enabled": True, "storage_capacity_gib": 19200}):
        reasons = files.update(**fixed)
        assert "/training-cluster/files/FileSystem/fixed-settings already exists in stack" in reasons
        assert "FileSystemResource" not in reasons
        assert files.is_at("UPDATE_ROLLBACK_COMPLETE")
        assert files.described() == grown

    # What only the deployed file system can tell is refused by FSx.
    shrunk = files.update(storage_capacity_gib=2400, throughput_mbps_per_tib=500, data_compression_type="NONE")
    assert "must be greater than the current storage capacity 4800" in shrunk
    assert files.described() == grown


def test_a_stack_of_before_the_parameter_gets_one_and_keeps_its_file_system(aws: LocalAws) -> None:
    older = json.loads(_template())
    (name,) = (each for each, made in older["Resources"].items() if made["Type"] == "AWS::SSM::Parameter")
    del older["Resources"][name]
    for resource in older["Resources"].values():
        if name in resource.get("DependsOn", ()):
            resource["DependsOn"].remove(name)
    aws.client("cloudformation").create_stack(**_request(json.dumps(older)))
    files = _Files(aws)
    first = files.described()
    assert files.update() == ""
    assert files.described() == first
    assert "already exists" in files.update(copy_tags_to_backups=True)
