"""A small legal cluster of AWS PCS in the network of the local AWS's tests."""

import copy
from typing import Any

from local_aws_scene import ROLE, Template, imported

IMAGE = "/aws/service/pcs/ami/dlami-base-ubuntu2404/x86_64/latest/ami-id"
USER_DATA = "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=B\n\n--B--\n"


def _id(name: str) -> dict[str, Any]:
    return {"Fn::GetAtt": [name, "Id"]}


def cgroup_settings(**given: str) -> list[dict[str, str]]:
    return [{"ParameterName": name, "ParameterValue": value} for name, value in given.items()]


def settings(**given: str) -> dict[str, Any]:
    return {"SlurmCustomSettings": cgroup_settings(**given)}


def pcs_cluster() -> Template:
    """A cluster with one compute node group, of which Slurm launches nodes, in one queue."""
    role = copy.deepcopy(ROLE)
    statement = {"Effect": "Allow", "Action": "pcs:RegisterComputeNodeGroupInstance", "Resource": "*"}
    policy = {"PolicyName": "join", "PolicyDocument": {"Version": "2012-10-17", "Statement": [statement]}}
    role["Properties"] |= {"Path": "/aws-pcs/", "Policies": [policy]}
    interface = {"DeviceIndex": 0, "Groups": [imported("Group")], "DeleteOnTermination": True}
    return {
        "Parameters": {"Image": {"Type": "AWS::SSM::Parameter::Value<AWS::EC2::Image::Id>", "Default": IMAGE}},
        "Resources": {
            "NodeRole": role,
            "NodeProfile": {"Type": "AWS::IAM::InstanceProfile", "Properties": {"Roles": [{"Ref": "NodeRole"}]}},
            "Launch": {
                "Type": "AWS::EC2::LaunchTemplate",
                "Properties": {
                    "LaunchTemplateData": {
                        "ImageId": {"Ref": "Image"},
                        "UserData": {"Fn::Base64": USER_DATA},
                        "NetworkInterfaces": [interface],
                    }
                },
            },
            "Slurm": {
                "Type": "AWS::PCS::Cluster",
                "Properties": {
                    "Size": "SMALL",
                    "Scheduler": {"Type": "SLURM", "Version": "25.11"},
                    "Networking": {"SubnetIds": [imported("Subnet")], "SecurityGroupIds": [imported("Group")]},
                    "SlurmConfiguration": {
                        "Accounting": {"Mode": "STANDARD"},
                        "ScaleDownIdleTimeInSeconds": 600,
                        "CgroupCustomSettings": cgroup_settings(ConstrainDevices="yes", ConstrainRAMSpace="yes"),
                        **settings(JobRequeue="1"),
                    },
                },
            },
            "Nodes": {
                "Type": "AWS::PCS::ComputeNodeGroup",
                "Properties": {
                    "Name": "workers",
                    "ClusterId": _id("Slurm"),
                    "SubnetIds": [imported("Subnet")],
                    "IamInstanceProfileArn": {"Fn::GetAtt": ["NodeProfile", "Arn"]},
                    "CustomLaunchTemplate": {
                        "TemplateId": {"Ref": "Launch"},
                        "Version": {"Fn::GetAtt": ["Launch", "LatestVersionNumber"]},
                    },
                    "InstanceConfigs": [{"InstanceType": "g6.48xlarge"}],
                    "ScalingConfiguration": {"MinInstanceCount": 0, "MaxInstanceCount": 4},
                    "PurchaseOption": "ONDEMAND",
                    "SlurmConfiguration": settings(Weight="1"),
                    "Tags": {"owner": "template"},
                },
            },
            "Logs": {"Type": "AWS::Logs::LogGroup"},
            "Source": {
                "Type": "AWS::Logs::DeliverySource",
                "Properties": {
                    "Name": {"Ref": "AWS::StackName"},
                    "LogType": "PCS_JOBCOMP_LOGS",
                    "ResourceArn": {"Fn::GetAtt": ["Slurm", "Arn"]},
                },
            },
            "Destination": {
                "Type": "AWS::Logs::DeliveryDestination",
                "Properties": {
                    "Name": {"Ref": "AWS::StackName"},
                    "DestinationResourceArn": {"Fn::GetAtt": ["Logs", "Arn"]},
                },
            },
            "Delivery": {
                "Type": "AWS::Logs::Delivery",
                "DependsOn": "Source",
                "Properties": {
                    "DeliverySourceName": {"Ref": "AWS::StackName"},
                    "DeliveryDestinationArn": {"Fn::GetAtt": ["Destination", "Arn"]},
                },
            },
            "Queue": {
                "Type": "AWS::PCS::Queue",
                "Properties": {
                    "Name": "main",
                    "ClusterId": _id("Slurm"),
                    "ComputeNodeGroupConfigurations": [{"ComputeNodeGroupId": _id("Nodes")}],
                    "SlurmConfiguration": settings(Default="YES"),
                },
            },
        },
    }
