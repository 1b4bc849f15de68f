"""What a deletion takes along, what it keeps, and what it is refused for."""

import pytest
from botocore.exceptions import ClientError

from local_aws import LocalAws
from local_aws_scene import Stacks, Template, imported


def _topics(aws: LocalAws) -> list[str]:
    return [topic["TopicArn"] for topic in aws.client("sns").list_topics()["Topics"]]


def test_a_placement_group_is_in_use_until_its_nodes_are_terminated(
    aws: LocalAws, stacks: Stacks, nodes: Template
) -> None:
    ec2, scaling = aws.client("ec2"), aws.client("autoscaling")
    ids = stacks.physical_ids(stacks.create(nodes))
    scaling.set_desired_capacity(AutoScalingGroupName=ids["Nodes"], DesiredCapacity=2)
    scaling.set_desired_capacity(AutoScalingGroupName=ids["Nodes"], DesiredCapacity=0)
    with pytest.raises(ClientError, match=r"InvalidPlacementGroup\.InUse"):
        ec2.delete_placement_group(GroupName=ids["Placement"])
    ec2.describe_instances(Filters=[{"Name": "tag:aws:autoscaling:groupName", "Values": [ids["Nodes"]]}])
    ec2.delete_placement_group(GroupName=ids["Placement"])


def test_what_is_retained_outlives_its_stack_and_blocks_what_it_lives_in(aws: LocalAws, stacks: Stacks) -> None:
    kept = {"DeletionPolicy": "Retain", "UpdateReplacePolicy": "Retain"}
    template: Template = {
        "Resources": {
            "Vpc": {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": "10.9.0.0/16"}},
            "Subnet": {
                "Type": "AWS::EC2::Subnet",
                "Properties": {"VpcId": {"Ref": "Vpc"}, "CidrBlock": "10.9.0.0/24"},
            },
            "Group": {
                "Type": "AWS::EC2::SecurityGroup",
                "Properties": {
                    "GroupDescription": "Lustre",
                    "VpcId": {"Ref": "Vpc"},
                    "SecurityGroupIngress": [
                        {"IpProtocol": "tcp", "FromPort": 988, "ToPort": 988, "CidrIp": "10.9.0.0/16"}
                    ],
                },
            },
            "Files": {
                "Type": "AWS::FSx::FileSystem",
                **kept,
                "Properties": {
                    "FileSystemType": "LUSTRE",
                    "StorageCapacity": 1200,
                    "SubnetIds": [{"Ref": "Subnet"}],
                    "SecurityGroupIds": [{"Ref": "Group"}],
                    "LustreConfiguration": {"DeploymentType": "PERSISTENT_2", "PerUnitStorageThroughput": 125},
                },
            },
            "Topic": {"Type": "AWS::SNS::Topic"},
        }
    }
    name = stacks.create(template)
    ids = stacks.physical_ids(name)
    stacks.api.delete_stack(StackName=name)
    assert stacks.status(name) == "DELETE_FAILED"
    assert stacks.described(name)["StackStatusReason"] == (
        "The following resource(s) failed to delete: [Group, Subnet, Vpc]."
    )
    reasons = stacks.reasons(name)
    assert "resource " + ids["Group"] + " has a dependent object" in reasons["Group"]
    assert "Error Code: DependencyViolation" in reasons["Subnet"]
    assert f"The vpc '{ids['Vpc']}' has dependencies and cannot be deleted." in reasons["Vpc"]
    assert ids["Topic"] not in _topics(aws)

    aws.client("fsx").delete_file_system(FileSystemId=ids["Files"])
    stacks.api.delete_stack(StackName=name)
    with pytest.raises(ClientError, match="does not exist"):
        stacks.status(name)
    with pytest.raises(ClientError, match=r"InvalidVpcID\.NotFound"):
        aws.client("ec2").describe_vpcs(VpcIds=[ids["Vpc"]])


def test_a_failed_creation_keeps_what_is_retained(aws: LocalAws, stacks: Stacks) -> None:
    name = stacks.create(
        {
            "Resources": {
                "Kept": {"Type": "AWS::SNS::Topic", "DeletionPolicy": "Retain"},
                "Gone": {"Type": "AWS::SNS::Topic", "DeletionPolicy": "RetainExceptOnCreate"},
                "Wrong": {
                    "Type": "AWS::EC2::Subnet",
                    "DependsOn": ["Kept", "Gone"],
                    "Properties": {"VpcId": imported("Vpc"), "CidrBlock": "192.168.0.0/24"},
                },
            }
        }
    )
    assert stacks.status(name) == "ROLLBACK_COMPLETE"
    (left,) = (topic for topic in _topics(aws) if f":{name}-" in topic)
    assert f"{name}-Kept-" in left
    aws.client("sns").delete_topic(TopicArn=left)
