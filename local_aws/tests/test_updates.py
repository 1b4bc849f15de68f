"""What an update does: in place, by replacement, not at all, or undone."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

from local_aws import LocalAws
from local_aws_scene import Stacks, Template, imported
from spot_scene import fleet_config, spot_fleet


def _group(aws: LocalAws, name: str) -> dict[str, Any]:
    answer = aws.client("autoscaling").describe_auto_scaling_groups(AutoScalingGroupNames=[name])
    group: dict[str, Any] = answer["AutoScalingGroups"][0]
    return group


def _sizes(aws: LocalAws, name: str) -> tuple[int, int, int]:
    group = _group(aws, name)
    return group["MinSize"], group["MaxSize"], group["DesiredCapacity"]


def _bare(template: Template) -> Template:
    """Leave the file system out: these tests are about the group."""
    for name in ("Files", "Link"):
        del template["Resources"][name]
    del template["Outputs"]
    return template


def test_a_group_changes_in_place_and_keeps_its_nodes_and_the_tags_of_others(
    aws: LocalAws, stacks: Stacks, nodes: Template
) -> None:
    name = stacks.create(_bare(nodes))
    before = stacks.physical_ids(name)
    scaling = aws.client("autoscaling")
    scaling.set_desired_capacity(AutoScalingGroupName=before["Nodes"], DesiredCapacity=2)
    scaling.create_or_update_tags(
        Tags=[
            {
                "ResourceId": before["Nodes"],
                "ResourceType": "auto-scaling-group",
                "Key": "stopped-by",
                "Value": "operator",
                "PropagateAtLaunch": False,
            }
        ]
    )
    running = {instance["InstanceId"] for instance in _group(aws, before["Nodes"])["Instances"]}

    nodes["Resources"]["Launch"]["Properties"]["LaunchTemplateData"]["UserData"] = {"Fn::Base64": "#!/bin/sh"}
    nodes["Resources"]["Nodes"]["Properties"]["Tags"][0]["Value"] = "changed"
    stacks.update(name, nodes)

    assert stacks.status(name) == "UPDATE_COMPLETE"
    assert stacks.physical_ids(name) == before
    group = _group(aws, before["Nodes"])
    assert group["LaunchTemplate"]["Version"] == "2"
    assert {instance["InstanceId"] for instance in group["Instances"]} == running
    assert {tag["Key"]: tag["Value"] for tag in group["Tags"]} == {
        "owner": "changed",
        "stopped-by": "operator",
        "aws:cloudformation:stack-id": stacks.described(name)["StackId"],
        "aws:cloudformation:stack-name": name,
        "aws:cloudformation:logical-id": "Nodes",
    }


@pytest.mark.parametrize("key", ["aws:cloudformation:stack-id", "AWS:cloudformation:stack-id"])
def test_nobody_else_writes_the_tags_of_cloudformation_on_a_group(
    aws: LocalAws, stacks: Stacks, nodes: Template, key: str
) -> None:
    group = stacks.physical_ids(stacks.create(_bare(nodes)))["Nodes"]
    before = _group(aws, group)["Tags"]
    scaling = aws.client("autoscaling")
    tag = {"ResourceId": group, "ResourceType": "auto-scaling-group", "Key": key, "Value": "other"}
    template = _group(aws, group)["LaunchTemplate"]["LaunchTemplateId"]
    other = {"AutoScalingGroupName": "other", "MinSize": 0, "MaxSize": 0, "AvailabilityZones": ["us-east-1b"]}
    other["LaunchTemplate"] = {"LaunchTemplateId": template, "Version": "1"}

    requests: tuple[Callable[[], object], ...] = (
        lambda: scaling.create_or_update_tags(Tags=[{**tag, "PropagateAtLaunch": False}]),
        lambda: scaling.delete_tags(Tags=[tag]),
        lambda: scaling.create_auto_scaling_group(**other, Tags=[{**tag, "ResourceId": "other"}]),
    )
    for request in requests:
        with pytest.raises(ClientError, match="reserved for internal use"):
            request()

    assert _group(aws, group)["Tags"] == before


def test_sizes_that_the_template_did_not_change_are_left_alone(
    aws: LocalAws, stacks: Stacks, nodes: Template
) -> None:
    name = stacks.create(_bare(nodes))
    group = stacks.physical_ids(name)["Nodes"]
    aws.client("autoscaling").update_auto_scaling_group(
        AutoScalingGroupName=group, MinSize=1, MaxSize=3, DesiredCapacity=2
    )
    nodes["Resources"]["Nodes"]["Properties"] |= {"HealthCheckGracePeriod": 600, "DefaultInstanceWarmup": 0}
    stacks.update(name, nodes)
    assert _sizes(aws, group) == (1, 3, 2)
    assert _group(aws, group)["DefaultInstanceWarmup"] == 0
    stacks.update(name, nodes, Parameters=[{"ParameterKey": "Count", "ParameterValue": "6"}])
    assert _sizes(aws, group) == (1, 6, 2)


def test_a_create_only_change_replaces_the_resource_and_all_that_hangs_on_it(
    aws: LocalAws, stacks: Stacks, nodes: Template
) -> None:
    name = stacks.create(_bare(nodes))
    before = stacks.physical_ids(name)
    nodes["Resources"]["Placement"]["Properties"]["Tags"] = [{"Key": "a", "Value": "b"}]
    stacks.update(name, nodes)
    after = stacks.physical_ids(name)
    assert stacks.status(name) == "UPDATE_COMPLETE"
    assert after["Placement"] != before["Placement"]
    assert after["Nodes"] == before["Nodes"]
    assert _group(aws, after["Nodes"])["PlacementGroup"] == after["Placement"]
    with pytest.raises(ClientError, match=r"InvalidPlacementGroup\.Unknown"):
        aws.client("ec2").describe_placement_groups(GroupNames=[before["Placement"]])


def test_a_replaced_file_system_is_kept_when_its_policy_says_so(
    aws: LocalAws, stacks: Stacks, nodes: Template
) -> None:
    files = nodes["Resources"]["Files"]
    files["UpdateReplacePolicy"] = "Retain"
    name = stacks.create(nodes)
    before = stacks.physical_ids(name)
    files["Properties"]["FileSystemTypeVersion"] = "2.15"
    stacks.update(name, nodes)
    after = stacks.physical_ids(name)
    assert after["Files"] != before["Files"]
    assert after["Link"] != before["Link"]
    fsx = aws.client("fsx")
    kept = fsx.describe_file_systems(FileSystemIds=[before["Files"]])["FileSystems"]
    assert [file_system["Lifecycle"] for file_system in kept] == ["AVAILABLE"]
    fsx.delete_file_system(FileSystemId=before["Files"])


def test_a_failed_update_brings_back_what_was_there(aws: LocalAws, stacks: Stacks, nodes: Template) -> None:
    name = stacks.create(_bare(nodes))
    before = stacks.physical_ids(name)
    outputs = stacks.described(name).get("Outputs")
    wrong = json.loads(json.dumps(nodes))
    wrong["Resources"]["Placement"]["Properties"]["Strategy"] = "spread"
    wrong["Resources"]["Topic"] = {"Type": "AWS::SNS::Topic"}
    wrong["Resources"]["Nodes"]["Properties"]["HealthCheckGracePeriod"] = 600
    wrong["Resources"]["Nodes"]["DependsOn"] = "Topic"
    wrong["Resources"]["Launch"]["Properties"]["LaunchTemplateData"]["InstanceType"] = "p9.48xlarge"
    stacks.update(name, wrong)

    assert stacks.status(name) == "UPDATE_ROLLBACK_COMPLETE"
    assert list(stacks.reasons(name)) == ["Nodes"]
    assert "Invalid value 'p9.48xlarge' for InstanceType." in stacks.reasons(name)["Nodes"]
    assert stacks.physical_ids(name) == before
    assert stacks.described(name).get("Outputs") == outputs
    group = _group(aws, before["Nodes"])
    assert group["HealthCheckGracePeriod"] == 300
    assert group["PlacementGroup"] == before["Placement"]
    assert not any(f":{name}-" in topic["TopicArn"] for topic in aws.client("sns").list_topics()["Topics"])

    nodes["Resources"]["Nodes"]["Properties"]["HealthCheckGracePeriod"] = 900
    stacks.update(name, nodes)
    assert stacks.status(name) == "UPDATE_COMPLETE"


def test_a_resource_with_a_name_of_its_own_is_not_replaced(stacks: Stacks) -> None:
    template: Template = {
        "Resources": {"Role": {"Type": "AWS::IAM::Role", "Properties": {"RoleName": "own-name", "Path": "/a/"}}}
    }
    role = template["Resources"]["Role"]["Properties"]
    role["AssumeRolePolicyDocument"] = {"Statement": []}
    name = stacks.create(template)
    role["Path"] = "/b/"
    stacks.update(name, template)
    assert stacks.status(name) == "UPDATE_ROLLBACK_COMPLETE"
    assert "cannot update a stack when a custom-named resource requires replacing" in stacks.reasons(name)["Role"]


def test_an_export_in_use_is_neither_changed_nor_taken_away(stacks: Stacks) -> None:
    exporting: Template = {
        "Resources": {"Topic": {"Type": "AWS::SNS::Topic"}, "Other": {"Type": "AWS::SNS::Topic"}},
        "Outputs": {"Arn": {"Value": {"Ref": "Topic"}, "Export": {"Name": "shared-topic"}}},
    }
    exporter = stacks.create(exporting)
    importing: Template = {
        "Resources": {
            "Queue": {"Type": "AWS::SQS::Queue", "Properties": {"Tags": [{"Key": "topic", "Value": "x"}]}},
        }
    }
    importing["Resources"]["Queue"]["Properties"]["Tags"][0]["Value"] = {"Fn::ImportValue": "shared-topic"}
    importer = stacks.create(importing)

    exporting["Outputs"]["Arn"]["Value"] = {"Ref": "Other"}
    stacks.update(exporter, exporting)
    assert stacks.status(exporter) == "UPDATE_ROLLBACK_COMPLETE"
    assert (
        f"Export shared-topic cannot be updated as it is in use by {importer}"
        == stacks.described(exporter)["StackStatusReason"]
    )
    del exporting["Outputs"]
    stacks.update(exporter, exporting)
    assert (
        f"Export shared-topic cannot be deleted as it is in use by {importer}"
        == stacks.described(exporter)["StackStatusReason"]
    )
    with pytest.raises(ClientError, match=f"Export shared-topic cannot be deleted as it is in use by {importer}"):
        stacks.api.delete_stack(StackName=exporter)
    stacks.api.delete_stack(StackName=importer)
    stacks.api.delete_stack(StackName=exporter)
    assert exporter not in [stack["StackName"] for stack in stacks.api.describe_stacks()["Stacks"]]


def test_an_export_name_can_be_taken_once(stacks: Stacks) -> None:
    name = stacks.create(
        {
            "Resources": {"Topic": {"Type": "AWS::SNS::Topic"}},
            "Outputs": {"Vpc": {"Value": imported("Vpc"), "Export": {"Name": "test-Vpc"}}},
        }
    )
    assert stacks.status(name) == "ROLLBACK_COMPLETE"
    assert "Export with name test-Vpc is already exported by stack network." in str(stacks.events(name))


@pytest.mark.parametrize(
    ("desired", "ends"), [(2, "UPDATE_ROLLBACK_FAILED"), (1, "UPDATE_COMPLETE")], ids=["short", "lowered"]
)
def test_an_update_that_touches_a_group_waits_for_its_nodes_and_so_does_the_rollback(
    aws: LocalAws, stacks: Stacks, nodes: Template, desired: int, ends: str
) -> None:
    name = stacks.create(_bare(nodes))
    group = stacks.physical_ids(name)["Nodes"]
    aws.set_capacity("p4de.24xlarge", "us-east-1b", available=1)
    aws.client("autoscaling").set_desired_capacity(AutoScalingGroupName=group, DesiredCapacity=desired)
    nodes["Resources"]["Nodes"]["Properties"]["Tags"][0]["Value"] = "changed"
    stacks.update(name, nodes)
    aws.set_capacity("p4de.24xlarge", "us-east-1b", available=None)
    assert stacks.status(name) == ends
    assert ("Group did not stabilize." in stacks.reasons(name).get("Nodes", "")) is (desired == 2)


def test_a_table_with_other_keys_is_another_table_and_a_kept_one_stays(aws: LocalAws, stacks: Stacks) -> None:
    def template(key: str) -> Template:
        table = {
            "AttributeDefinitions": [{"AttributeName": key, "AttributeType": "S"}],
            "KeySchema": [{"AttributeName": key, "KeyType": "HASH"}],
            "BillingMode": "PAY_PER_REQUEST",
        }
        kept = {"DeletionPolicy": "Retain", "UpdateReplacePolicy": "Retain"}
        return {"Resources": {"Items": {"Type": "AWS::DynamoDB::Table", **kept, "Properties": table}}}

    name = stacks.create(template("part"))
    before = stacks.physical_ids(name)["Items"]
    stacks.update(name, template("moment"))
    after = stacks.physical_ids(name)["Items"]
    assert before != after
    stacks.api.delete_stack(StackName=name)
    assert {before, after} <= set(aws.client("dynamodb").list_tables()["TableNames"])


def test_a_condition_above_that_changes_nothing_replaces_nothing(stacks: Stacks) -> None:
    template = spot_fleet()
    name = stacks.create(template)
    before = stacks.physical_ids(name)
    fleet = template["Resources"]["Fleet"]["Properties"]
    template["Conditions"] = {"Always": {"Fn::Equals": ["a", "a"]}}
    fleet["SpotFleetRequestConfigData"] = {"Fn::If": ["Always", fleet_config(template), {"Ref": "AWS::NoValue"}]}
    stacks.update(name, template)
    assert stacks.reasons(name) == {}
    assert stacks.physical_ids(name) == before
