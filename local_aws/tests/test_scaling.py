"""How nodes come up: with all that their launch template says, or short, with the reason told."""

from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from local_aws import LocalAws
from local_aws_scene import Stacks, Template, imported

TYPE, ZONE = "p4de.24xlarge", "us-east-1b"
SHORT = (
    "Could not launch On-Demand Instances. InsufficientInstanceCapacity - We currently do not have sufficient "
    "p4de.24xlarge capacity in the Availability Zone you requested (us-east-1b). Our system will be working on "
    "provisioning additional capacity. You can currently get p4de.24xlarge capacity by not specifying an "
    "Availability Zone in your request or choosing us-east-1a, us-east-1c, us-east-1d, us-east-1e, us-east-1f. "
    "Launching EC2 instance failed."
)


@pytest.fixture
def group(aws: LocalAws, stacks: Stacks, nodes: Template) -> Iterator[str]:
    """The name of an empty group that may have four nodes."""
    yield stacks.physical_ids(stacks.create(nodes))["Nodes"]
    aws.set_capacity(TYPE, ZONE, available=None)


def _instances(aws: LocalAws, group: str) -> list[dict[str, Any]]:
    filters = [
        {"Name": "tag:aws:autoscaling:groupName", "Values": [group]},
        {"Name": "instance-state-name", "Values": ["running"]},
    ]
    pages = aws.client("ec2").get_paginator("describe_instances").paginate(Filters=filters)
    return [i for page in pages for r in page["Reservations"] for i in r["Instances"]]


def _scale(aws: LocalAws, group: str, size: int) -> None:
    aws.client("autoscaling").set_desired_capacity(AutoScalingGroupName=group, DesiredCapacity=size)


def _activities(aws: LocalAws, group: str) -> list[dict[str, Any]]:
    answer = aws.client("autoscaling").describe_scaling_activities(AutoScalingGroupName=group)
    activities: list[dict[str, Any]] = answer["Activities"]
    return activities


def test_a_node_has_every_interface_group_tag_and_volume_of_its_template(aws: LocalAws, group: str) -> None:
    _scale(aws, group, 2)
    first, second = _instances(aws, group)
    interfaces = [
        (
            interface["Attachment"]["NetworkCardIndex"],
            interface["Attachment"]["DeviceIndex"],
            interface["InterfaceType"],
            "PrivateIpAddress" in interface,
        )
        for interface in first["NetworkInterfaces"]
    ]
    assert interfaces == [
        (0, 0, "interface", True),
        (0, 1, "efa-only", False),
        (1, 0, "efa-only", False),
        (2, 0, "efa-only", False),
        (3, 0, "efa-only", False),
    ]
    assert all(len(interface["Groups"]) == 1 for interface in first["NetworkInterfaces"])
    assert first["PrivateIpAddress"] != second["PrivateIpAddress"]
    (described,) = aws.client("autoscaling").describe_auto_scaling_groups(AutoScalingGroupNames=[group])[
        "AutoScalingGroups"
    ]
    assert [instance["LaunchTemplate"]["Version"] for instance in described["Instances"]] == ["1", "1"]
    assert first["Placement"]["GroupName"] == described["PlacementGroup"]
    assert first["Placement"]["AvailabilityZone"] == ZONE
    assert ":instance-profile/" in first["IamInstanceProfile"]["Arn"]
    assert first["MetadataOptions"]["HttpTokens"] == "required"
    assert first["RootDeviceName"] == "/dev/xvda"
    tags = {tag["Key"]: tag["Value"] for tag in first["Tags"]}
    stack = {key: tags.pop(key) for key in list(tags) if key.startswith("aws:cloudformation:")}
    assert stack == {
        tag["Key"]: tag["Value"] for tag in described["Tags"] if tag["Key"].startswith("aws:cloudformation:")
    }
    assert tags == {
        "part": "node",
        "owner": "template",
        "aws:autoscaling:groupName": group,
        "aws:ec2launchtemplate:id": described["LaunchTemplate"]["LaunchTemplateId"],
        "aws:ec2launchtemplate:version": "1",
    }
    (mapping,) = first["BlockDeviceMappings"]
    (volume,) = aws.client("ec2").describe_volumes(VolumeIds=[mapping["Ebs"]["VolumeId"]])["Volumes"]
    assert (volume["Size"], volume["VolumeType"], volume["Encrypted"]) == (200, "gp3", True)
    assert volume["Tags"] == [{"Key": "part", "Value": "disk"}]


@pytest.mark.parametrize("other", [False, True], ids=["the same", "another"])
def test_a_groups_placement_group_takes_precedence_over_its_launch_templates(
    aws: LocalAws, stacks: Stacks, nodes: Template, other: bool
) -> None:
    nodes["Resources"]["Other"] = {"Type": "AWS::EC2::PlacementGroup", "Properties": {"Strategy": "spread"}}
    data = nodes["Resources"]["Launch"]["Properties"]["LaunchTemplateData"]
    data["Placement"] = {"GroupName": {"Ref": "Other" if other else "Placement"}}
    ids = stacks.physical_ids(stacks.create(nodes))
    _scale(aws, ids["Nodes"], 1)
    (instance,) = _instances(aws, ids["Nodes"])
    assert instance["Placement"]["GroupName"] == ids["Placement"]


def test_a_size_beyond_the_bounds_is_refused(aws: LocalAws, group: str) -> None:
    with pytest.raises(ClientError, match="New SetDesiredCapacity value 5 is above max value 4"):
        _scale(aws, group, 5)
    _scale(aws, group, 1)
    with pytest.raises(ClientError, match="ResourceInUse"):
        aws.client("autoscaling").delete_auto_scaling_group(AutoScalingGroupName=group)


def test_groups_are_described_by_their_names_or_by_filters_but_not_by_both(aws: LocalAws, group: str) -> None:
    with pytest.raises(ClientError, match="cannot be used together"):
        aws.client("autoscaling").describe_auto_scaling_groups(
            AutoScalingGroupNames=[group], Filters=[{"Name": "tag:a", "Values": ["b"]}]
        )


def test_missing_capacity_leaves_a_group_short_with_awss_words_and_fills_it_later(aws: LocalAws, group: str) -> None:
    aws.set_capacity(TYPE, ZONE, available=1)
    _scale(aws, group, 4)
    assert len(_instances(aws, group)) == 1
    failed = _activities(aws, group)[0]
    assert (failed["StatusCode"], failed["StatusMessage"]) == ("Failed", SHORT)
    aws.set_capacity(TYPE, ZONE, available=None)
    assert len(_instances(aws, group)) == 4


def test_a_subnet_without_room_fails_the_launch(aws: LocalAws, stacks: Stacks, nodes: Template) -> None:
    nodes["Resources"]["Small"] = {
        "Type": "AWS::EC2::Subnet",
        "Properties": {"VpcId": imported("Vpc"), "CidrBlock": "10.0.255.0/28"},
    }
    nodes["Resources"]["Nodes"]["Properties"] |= {"VPCZoneIdentifier": [{"Ref": "Small"}], "MaxSize": "20"}
    group = stacks.physical_ids(stacks.create(nodes))["Nodes"]
    _scale(aws, group, 12)
    assert len(_instances(aws, group)) == 11
    assert "There are not enough free addresses in subnet" in _activities(aws, group)[0]["StatusMessage"]


def test_cloudformation_waits_for_the_size_and_rolls_back_when_capacity_is_missing(
    aws: LocalAws, stacks: Stacks, nodes: Template
) -> None:
    aws.set_capacity(TYPE, ZONE)
    nodes["Resources"]["Nodes"]["Properties"]["DesiredCapacity"] = "2"
    name = stacks.create(nodes)
    aws.set_capacity(TYPE, ZONE, available=None)
    assert stacks.status(name) == "ROLLBACK_COMPLETE"
    assert "Group did not stabilize." in stacks.reasons(name)["Nodes"]
    assert SHORT in stacks.reasons(name)["Nodes"]


def test_run_instances_follows_the_same_rules(aws: LocalAws, group: str) -> None:
    (described,) = aws.client("autoscaling").describe_auto_scaling_groups(AutoScalingGroupNames=[group])[
        "AutoScalingGroups"
    ]
    ec2, template = aws.client("ec2"), {"LaunchTemplateId": described["LaunchTemplate"]["LaunchTemplateId"]}
    with pytest.raises(ClientError, match=r"\(InvalidAMIID\.NotFound\)"):
        ec2.run_instances(LaunchTemplate=template, ImageId="ami-0123456789abcdef0", MinCount=1, MaxCount=1)
    interfaces = [{"DeviceIndex": 0, "SubnetId": described["VPCZoneIdentifier"], "DeleteOnTermination": True}]
    answer = ec2.run_instances(LaunchTemplate=template, NetworkInterfaces=interfaces, MinCount=2, MaxCount=2)
    assert [len(instance["NetworkInterfaces"]) for instance in answer["Instances"]] == [1, 1]
    aws.set_capacity(TYPE, ZONE)
    with pytest.raises(ClientError, match=r"\(InsufficientInstanceCapacity\)"):
        ec2.run_instances(LaunchTemplate=template, NetworkInterfaces=interfaces, MinCount=1, MaxCount=1)
    ec2.terminate_instances(InstanceIds=[instance["InstanceId"] for instance in answer["Instances"]])
