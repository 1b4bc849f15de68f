"""One local AWS for all tests of a run, a network, a small legal node group, and stacks to try them in."""

import copy
import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from local_aws import LocalAws

Template = dict[str, Any]

X86_IMAGE = "/aws/service/deeplearning/ami/x86_64/base-oss-nvidia-driver-gpu-amazon-linux-2023/latest/ami-id"

ROLE: dict[str, Any] = {
    "Type": "AWS::IAM::Role",
    "Properties": {
        "AssumeRolePolicyDocument": {
            "Statement": [
                {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": "ec2.amazonaws.com"}}
            ]
        },
        "ManagedPolicyArns": [{"Fn::Sub": "arn:${AWS::Partition}:iam::aws:policy/AmazonSSMManagedInstanceCore"}],
    },
}

NETWORK: Template = {
    "Resources": {
        "Vpc": {"Type": "AWS::EC2::VPC", "Properties": {"CidrBlock": "10.0.0.0/16", "EnableDnsSupport": True}},
        "Subnet": {
            "Type": "AWS::EC2::Subnet",
            "Properties": {
                "VpcId": {"Ref": "Vpc"},
                "CidrBlock": "10.0.0.0/20",
                "AvailabilityZone": "us-east-1b",
            },
        },
        "Group": {
            "Type": "AWS::EC2::SecurityGroup",
            "Properties": {
                "GroupDescription": "EFA",
                "VpcId": {"Ref": "Vpc"},
                "SecurityGroupEgress": [{"IpProtocol": "-1", "CidrIp": "0.0.0.0/0"}],
            },
        },
        "GroupIn": {
            "Type": "AWS::EC2::SecurityGroupIngress",
            "Properties": {
                "GroupId": {"Ref": "Group"},
                "IpProtocol": "-1",
                "SourceSecurityGroupId": {"Ref": "Group"},
            },
        },
        "GroupOut": {
            "Type": "AWS::EC2::SecurityGroupEgress",
            "Properties": {
                "GroupId": {"Ref": "Group"},
                "IpProtocol": "-1",
                "DestinationSecurityGroupId": {"Ref": "Group"},
            },
        },
        "Closed": {
            "Type": "AWS::EC2::SecurityGroup",
            "Properties": {"GroupDescription": "nothing in", "VpcId": {"Ref": "Vpc"}},
        },
        "Bucket": {"Type": "AWS::S3::Bucket"},
        "Role": ROLE,
        "Profile": {"Type": "AWS::IAM::InstanceProfile", "Properties": {"Roles": [{"Ref": "Role"}]}},
    },
    "Outputs": {
        **{
            name: {"Value": {"Ref": name}, "Export": {"Name": f"test-{name}"}}
            for name in ("Vpc", "Subnet", "Group", "Closed", "Bucket")
        },
        "Profile": {"Value": {"Fn::GetAtt": ["Profile", "Arn"]}, "Export": {"Name": "test-Profile"}},
    },
}


def imported(name: str) -> dict[str, str]:
    return {"Fn::ImportValue": f"test-{name}"}


def interface(card: int, device: int, kind: str) -> dict[str, Any]:
    return {
        "NetworkCardIndex": card,
        "DeviceIndex": device,
        "InterfaceType": kind,
        "Groups": [imported("Group")],
        "DeleteOnTermination": True,
    }


NODES: Template = {
    "Parameters": {
        "Image": {"Type": "AWS::SSM::Parameter::Value<AWS::EC2::Image::Id>", "Default": X86_IMAGE},
        "Count": {"Type": "Number", "Default": 4},
    },
    "Resources": {
        "Placement": {"Type": "AWS::EC2::PlacementGroup", "Properties": {"Strategy": "cluster"}},
        "Launch": {
            "Type": "AWS::EC2::LaunchTemplate",
            "Properties": {
                "LaunchTemplateData": {
                    "ImageId": {"Ref": "Image"},
                    "InstanceType": "p4de.24xlarge",
                    "IamInstanceProfile": {"Arn": imported("Profile")},
                    "UserData": {"Fn::Base64": "#!/bin/bash"},
                    "MetadataOptions": {"HttpTokens": "required", "HttpPutResponseHopLimit": 2},
                    "BlockDeviceMappings": [
                        {
                            "DeviceName": "/dev/xvda",
                            "Ebs": {"VolumeSize": 200, "VolumeType": "gp3", "Encrypted": True},
                        }
                    ],
                    "NetworkInterfaces": [
                        interface(0, 0, "interface"),
                        interface(0, 1, "efa-only"),
                        *(interface(card, 0, "efa-only") for card in (1, 2, 3)),
                    ],
                    "TagSpecifications": [
                        {"ResourceType": "instance", "Tags": [{"Key": "part", "Value": "node"}]},
                        {"ResourceType": "volume", "Tags": [{"Key": "part", "Value": "disk"}]},
                    ],
                }
            },
        },
        "Nodes": {
            "Type": "AWS::AutoScaling::AutoScalingGroup",
            "UpdatePolicy": {"AutoScalingScheduledAction": {"IgnoreUnmodifiedGroupSizeProperties": True}},
            "Properties": {
                "MinSize": "0",
                "MaxSize": {"Ref": "Count"},
                "PlacementGroup": {"Ref": "Placement"},
                "VPCZoneIdentifier": [imported("Subnet")],
                "LaunchTemplate": {
                    "LaunchTemplateId": {"Ref": "Launch"},
                    "Version": {"Fn::GetAtt": ["Launch", "LatestVersionNumber"]},
                },
                "Tags": [{"Key": "owner", "Value": "template", "PropagateAtLaunch": True}],
            },
        },
        "Files": {
            "Type": "AWS::FSx::FileSystem",
            "Properties": {
                "FileSystemType": "LUSTRE",
                "StorageCapacity": 1200,
                "SubnetIds": [imported("Subnet")],
                "SecurityGroupIds": [imported("Group")],
                "LustreConfiguration": {
                    "DeploymentType": "PERSISTENT_2",
                    "PerUnitStorageThroughput": 125,
                    "DataCompressionType": "LZ4",
                },
            },
        },
        "Link": {
            "Type": "AWS::FSx::DataRepositoryAssociation",
            "Properties": {
                "FileSystemId": {"Ref": "Files"},
                "FileSystemPath": "/data",
                "DataRepositoryPath": {"Fn::Join": ["", ["s3://", imported("Bucket"), "/tokens/"]]},
                "S3": {"AutoImportPolicy": {"Events": ["NEW", "CHANGED", "DELETED"]}},
            },
        },
    },
    "Outputs": {"Mount": {"Value": {"Fn::GetAtt": ["Files", "LustreMountName"]}}},
}


_NUMBERS = itertools.count()
"""Numbers for the names of stacks, unique in a process and its local AWS."""


@dataclass
class Stacks:
    """Creates, changes and reads stacks; deletes what a test leaves."""

    aws: LocalAws
    _made: list[str] = field(default_factory=list)

    @property
    def api(self) -> Any:
        return self.aws.client("cloudformation")

    def create(self, template: Template, **more: Any) -> str:
        name = f"stack-{next(_NUMBERS)}"
        self._made.append(name)
        self.api.create_stack(
            StackName=name, TemplateBody=json.dumps(template), Capabilities=["CAPABILITY_NAMED_IAM"], **more
        )
        return name

    def update(self, name: str, template: Template, **more: Any) -> None:
        self.api.update_stack(
            StackName=name, TemplateBody=json.dumps(template), Capabilities=["CAPABILITY_NAMED_IAM"], **more
        )

    def described(self, name: str) -> dict[str, Any]:
        stack: dict[str, Any] = self.api.describe_stacks(StackName=name)["Stacks"][0]
        return stack

    def status(self, name: str) -> str:
        return str(self.described(name)["StackStatus"])

    def events(self, name: str) -> list[dict[str, Any]]:
        pages = self.api.get_paginator("describe_stack_events").paginate(StackName=name)
        return [event for page in pages for event in page["StackEvents"]][::-1]

    def reasons(self, name: str) -> dict[str, str]:
        """Return why resources failed, by logical id."""
        return {
            event["LogicalResourceId"]: event["ResourceStatusReason"]
            for event in self.events(name)
            if event["ResourceStatus"].endswith("_FAILED")
        }

    def physical_ids(self, name: str) -> dict[str, str]:
        resources = self.api.describe_stack_resources(StackName=name)["StackResources"]
        return {resource["LogicalResourceId"]: resource["PhysicalResourceId"] for resource in resources}

    def clean_up(self) -> None:
        living = {stack["StackName"]: stack for stack in self.api.describe_stacks()["Stacks"]}
        for name in reversed(self._made):
            if name in living and living[name]["EnableTerminationProtection"]:
                self.api.update_termination_protection(StackName=name, EnableTerminationProtection=False)
            self.api.delete_stack(StackName=name)


@pytest.fixture(scope="session")
def aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalAws]:
    with LocalAws(tmp_path_factory.mktemp("local-aws") / "log.txt") as running:
        running.client("cloudformation").create_stack(
            StackName="network", TemplateBody=json.dumps(NETWORK), Capabilities=["CAPABILITY_IAM"]
        )
        yield running


@pytest.fixture
def stacks(aws: LocalAws) -> Iterator[Stacks]:
    made = Stacks(aws)
    yield made
    made.clean_up()


@pytest.fixture
def nodes() -> Template:
    """A small legal template: a node group, a file system and a link, in the network's VPC."""
    return copy.deepcopy(NODES)
