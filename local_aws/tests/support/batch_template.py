"""A small legal template with Batch's compute environment, queue and multi-node job definition."""

import copy
from typing import Any

from local_aws_scene import Template, imported, interface

_USER_DATA = (
    'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="//"\n\n--//\n'
    'Content-Type: text/x-shellscript; charset="utf-8"\n\n#!/bin/bash\n--//--\n'
)
TAG = {"Key": "cdk-training-cluster:node-group", "Value": "workers"}


def _device(number: int) -> dict[str, Any]:
    path = f"/dev/infiniband/uverbs{number}"
    return {"HostPath": path, "ContainerPath": path, "Permissions": ["READ", "WRITE", "MKNOD"]}


_CONTAINER = {
    "Image": "image",
    "Command": ["run"],
    "InstanceType": "p4de.24xlarge",
    "ResourceRequirements": [
        {"Type": kind, "Value": value} for kind, value in (("VCPU", "96"), ("MEMORY", "1000000"), ("GPU", "8"))
    ],
    "LinuxParameters": {"Devices": [_device(number) for number in range(4)], "SharedMemorySize": 65536},
    "Ulimits": [{"Name": "memlock", "SoftLimit": -1, "HardLimit": -1}],
}
_REASONS = (
    "MISCONFIGURATION:COMPUTE_ENVIRONMENT_MAX_RESOURCE",
    "MISCONFIGURATION:JOB_RESOURCE_REQUIREMENT",
    "CAPACITY:INSUFFICIENT_INSTANCE_CAPACITY",
)

_TEMPLATE: Template = {
    "Resources": {
        "Role": {
            "Type": "AWS::IAM::Role",
            "Properties": {
                "AssumeRolePolicyDocument": {
                    "Statement": [
                        {
                            "Effect": "Allow",
                            "Action": "sts:AssumeRole",
                            "Principal": {"Service": "ec2.amazonaws.com"},
                        }
                    ]
                }
            },
        },
        "Profile": {"Type": "AWS::IAM::InstanceProfile", "Properties": {"Roles": [{"Ref": "Role"}]}},
        "Placement": {"Type": "AWS::EC2::PlacementGroup", "Properties": {"Strategy": "cluster"}},
        "Launch": {
            "Type": "AWS::EC2::LaunchTemplate",
            "Properties": {
                "LaunchTemplateData": {
                    "UserData": {"Fn::Base64": _USER_DATA},
                    "NetworkInterfaces": [
                        interface(0, 0, "interface"),
                        interface(0, 1, "efa-only"),
                        *(interface(card, 0, "efa-only") for card in (1, 2, 3)),
                    ],
                    "TagSpecifications": [{"ResourceType": "instance", "Tags": [TAG]}],
                }
            },
        },
        "Environment": {
            "Type": "AWS::Batch::ComputeEnvironment",
            "Properties": {
                "Type": "MANAGED",
                "State": "ENABLED",
                "ReplaceComputeEnvironment": False,
                "UpdatePolicy": {"TerminateJobsOnUpdate": False, "JobExecutionTimeoutMinutes": 60},
                "ComputeResources": {
                    "Type": "EC2",
                    "AllocationStrategy": "BEST_FIT_PROGRESSIVE",
                    "MinvCpus": 0,
                    "MaxvCpus": 192,
                    "InstanceTypes": ["p4de.24xlarge"],
                    "InstanceRole": {"Fn::GetAtt": ["Profile", "Arn"]},
                    "PlacementGroup": {"Ref": "Placement"},
                    "Subnets": [imported("Subnet")],
                    "Ec2Configuration": [{"ImageType": "ECS_AL2023_NVIDIA"}],
                    "LaunchTemplate": {
                        "LaunchTemplateId": {"Ref": "Launch"},
                        "Version": {"Fn::GetAtt": ["Launch", "LatestVersionNumber"]},
                    },
                },
                "Tags": {TAG["Key"]: TAG["Value"]},
            },
        },
        "Shares": {
            "Type": "AWS::Batch::SchedulingPolicy",
            "Properties": {
                "FairsharePolicy": {"ShareDistribution": [{"ShareIdentifier": "research", "WeightFactor": 0.5}]}
            },
        },
        "Queue": {
            "Type": "AWS::Batch::JobQueue",
            "Properties": {
                "Priority": 1,
                "State": "ENABLED",
                "SchedulingPolicyArn": {"Fn::GetAtt": ["Shares", "Arn"]},
                "ComputeEnvironmentOrder": [{"Order": 1, "ComputeEnvironment": {"Ref": "Environment"}}],
                "JobStateTimeLimitActions": [
                    {"Action": "CANCEL", "State": "RUNNABLE", "Reason": reason, "MaxTimeSeconds": 600}
                    for reason in _REASONS
                ],
            },
        },
        "Job": {
            "Type": "AWS::Batch::JobDefinition",
            "Properties": {
                "JobDefinitionName": "train",
                "Type": "multinode",
                "NodeProperties": {
                    "NumNodes": 2,
                    "MainNode": 0,
                    "NodeRangeProperties": [{"TargetNodes": "0:", "Container": _CONTAINER}],
                },
                "RetryStrategy": {"Attempts": 1},
            },
        },
    },
}


def batch_template() -> Template:
    """Return the template, which a test may change."""
    return copy.deepcopy(_TEMPLATE)
