"""A changed template beside a deployed file system: it changes in place, or nothing changes."""

import json
from typing import Any

from aws_cdk import App, DefaultStackSynthesizer, Environment, Stack

from cdk_training_cluster import ClusterNetwork, TrainingFileSystem
from local_aws import LocalAws
from synthesis import ZONE


class _Files:
    """A stack with a file system, in the local AWS that other tests have file systems in, too."""

    def __init__(self, aws: LocalAws, name: str) -> None:
        self._aws, self._formation, self._name = aws, aws.client("cloudformation"), name

    def template(self, **settings: Any) -> dict[str, Any]:
        app = App(analytics_reporting=False)
        region = Environment(region="us-east-1")
        plain = DefaultStackSynthesizer(generate_bootstrap_version_rule=False)
        stack = Stack(app, self._name, env=region, synthesizer=plain)
        network = ClusterNetwork(stack, "Network", availability_zone=ZONE)
        TrainingFileSystem(stack, "FileSystem", network=network, **settings)
        return dict(app.synth().get_stack_by_name(self._name).template)

    def create(self, template: dict[str, Any]) -> dict[str, Any]:
        self._formation.create_stack(**self._request(template))
        return self.described()

    def update(self, **settings: Any) -> str:
        """Return the reasons of the failures, or nothing."""
        before = self._events()
        self._formation.update_stack(**self._request(self.template(**settings)))
        events = self._events()
        failed = [each for each in events[: len(events) - len(before)] if each["ResourceStatus"].endswith("_FAILED")]
        return "; ".join(f"{each['LogicalResourceId']}: {each['ResourceStatusReason']}" for each in failed)

    def _request(self, template: dict[str, Any]) -> dict[str, Any]:
        return {
            "StackName": self._name,
            "TemplateBody": json.dumps(template),
            "Capabilities": ["CAPABILITY_IAM"],
        }

    def _events(self) -> list[dict[str, Any]]:
        pages = self._formation.get_paginator("describe_stack_events").paginate(StackName=self._name)
        return list(pages.search("StackEvents[]"))

    def described(self) -> dict[str, Any]:
        resources = self._formation.describe_stack_resources(StackName=self._name)["StackResources"]
        ids = [each["PhysicalResourceId"] for each in resources if each["ResourceType"] == "AWS::FSx::FileSystem"]
        (one,) = self._aws.client("fsx").describe_file_systems(FileSystemIds=ids)["FileSystems"]
        return dict(one)

    def is_at(self, status: str) -> bool:
        return str(self._formation.describe_stacks(StackName=self._name)["Stacks"][0]["StackStatus"]) == status


def test_what_can_change_changes_in_place_and_the_rest_fails_before_fsx_is_asked(aws: LocalAws) -> None:
    files = _Files(aws, "files")
    first = files.create(files.template(log_level="WARN_ONLY"))

    assert files.update(storage_capacity_gib=4800, throughput_mbps_per_tib=500, data_compression_type="NONE") == ""
    grown = files.described()
    assert grown["FileSystemId"] == first["FileSystemId"]
    assert (grown["StorageCapacity"], grown["LustreConfiguration"]["PerUnitStorageThroughput"]) == (4800, 500)
    assert grown["LustreConfiguration"]["LogConfiguration"] == {"Level": "DISABLED"}  # what is taken away is off

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
    files = _Files(aws, "older-files")
    older = files.template()
    (name,) = (each for each, made in older["Resources"].items() if made["Type"] == "AWS::SSM::Parameter")
    del older["Resources"][name]
    for resource in older["Resources"].values():
        if name in resource.get("DependsOn", ()):
            resource["DependsOn"].remove(name)
    first = files.create(older)
    assert files.update() == ""
    assert files.described() == first
    assert "already exists" in files.update(copy_tags_to_backups=True)
