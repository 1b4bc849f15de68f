"""A small legal template with an EKS cluster and a node group, in the network of the local AWS's tests."""

import copy
from typing import Any

from local_aws_scene import Template, imported, interface

_USER_DATA = (
    'MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary="//"\n\n--//\n'
    'Content-Type: text/x-shellscript; charset="utf-8"\n\n#!/bin/bash\n--//--\n'
)


def _role(service: str) -> dict[str, Any]:
    trusted = {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": service}}
    return {"Type": "AWS::IAM::Role", "Properties": {"AssumeRolePolicyDocument": {"Statement": [trusted]}}}


_TEMPLATE: Template = {
    "Resources": {
        "ClusterRole": _role("eks.amazonaws.com"),
        "NodeRole": _role("ec2.amazonaws.com"),
        "Placement": {"Type": "AWS::EC2::PlacementGroup", "Properties": {"Strategy": "cluster"}},
        "Second": {
            "Type": "AWS::EC2::Subnet",
            "Properties": {
                "VpcId": imported("Vpc"),
                "CidrBlock": "10.0.255.0/28",
                "AvailabilityZone": "us-east-1a",
            },
        },
        "Cluster": {
            "Type": "AWS::EKS::Cluster",
            "Properties": {
                "Name": "pod",
                "Version": "1.36",
                "RoleArn": {"Fn::GetAtt": ["ClusterRole", "Arn"]},
                "AccessConfig": {"AuthenticationMode": "API"},
                "KubeSchedulerConfig": {
                    "NodeResourcesFit": {
                        "ScoringStrategy": {
                            "Type": "MostAllocated",
                            "Resources": [{"Name": "nvidia.com/gpu", "Weight": 10}],
                        }
                    }
                },
                "ResourcesVpcConfig": {
                    "EndpointPrivateAccess": True,
                    "EndpointPublicAccess": False,
                    "SubnetIds": [imported("Subnet"), {"Ref": "Second"}],
                },
            },
        },
        "Cni": {
            "Type": "AWS::EKS::Addon",
            "Properties": {"AddonName": "vpc-cni", "ClusterName": {"Ref": "Cluster"}},
        },
        "Admin": {
            "Type": "AWS::EKS::AccessEntry",
            "Properties": {
                "ClusterName": {"Ref": "Cluster"},
                "PrincipalArn": "arn:aws:iam::123456789012:user/alice",
                "AccessPolicies": [
                    {
                        "AccessScope": {"Type": "cluster"},
                        "PolicyArn": "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy",
                    }
                ],
            },
        },
        "Launch": {
            "Type": "AWS::EC2::LaunchTemplate",
            "Properties": {
                "LaunchTemplateData": {
                    "UserData": {"Fn::Base64": _USER_DATA},
                    "Placement": {"GroupName": {"Ref": "Placement"}},
                    "NetworkInterfaces": [
                        interface(0, 0, "interface"),
                        interface(0, 1, "efa-only"),
                        *(interface(card, 0, "efa-only") for card in (1, 2, 3)),
                    ],
                    "TagSpecifications": [
                        {
                            "ResourceType": "instance",
                            "Tags": [{"Key": "cdk-training-cluster:node-group", "Value": "workers"}],
                        }
                    ],
                }
            },
        },
        "Nodes": {
            "Type": "AWS::EKS::Nodegroup",
            "Properties": {
                "ClusterName": {"Ref": "Cluster"},
                "NodeRole": {"Fn::GetAtt": ["NodeRole", "Arn"]},
                "Subnets": [imported("Subnet")],
                "AmiType": "AL2023_x86_64_NVIDIA",
                "InstanceTypes": ["p4de.24xlarge"],
                "LaunchTemplate": {
                    "Id": {"Ref": "Launch"},
                    "Version": {"Fn::GetAtt": ["Launch", "LatestVersionNumber"]},
                },
                "ScalingConfig": {"MinSize": 0, "DesiredSize": 0, "MaxSize": 4},
                "Labels": {"cdk-training-cluster/node-group": "workers"},
                "Taints": [{"Key": "nvidia.com/gpu", "Value": "present", "Effect": "NO_SCHEDULE"}],
                "NodeRepairConfig": {"Enabled": True},
                "Tags": {"cdk-training-cluster:node-group": "workers"},
            },
        },
    },
}


def eks_template() -> Template:
    """Return the template, which a test may change."""
    return copy.deepcopy(_TEMPLATE)
