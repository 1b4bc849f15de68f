"""A small legal Spot Fleet in the network of the local AWS's tests."""

import copy
from typing import Any

from local_aws_scene import NODES, Template, imported, interface

FLEET_TYPES = ("g5.48xlarge", "g6e.48xlarge")
ZONE = "us-east-1b"

FLEET_ROLE: dict[str, Any] = {
    "Type": "AWS::IAM::Role",
    "Properties": {
        "AssumeRolePolicyDocument": {
            "Statement": [
                {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": "spotfleet.amazonaws.com"}}
            ]
        },
        "ManagedPolicyArns": [
            {"Fn::Sub": "arn:${AWS::Partition}:iam::aws:policy/service-role/AmazonEC2SpotFleetTaggingRole"}
        ],
    },
}


def in_subnet(device: int, kind: str) -> dict[str, Any]:
    """An interface as a fleet's launch template has it: with its subnet, and without the number of the first card."""
    made = {"SubnetId": imported("Subnet"), **interface(0, device, kind)}
    del made["NetworkCardIndex"]
    return made


def spot_fleet(target: int = 0) -> Template:
    """A fleet of type maintain over two types, empty unless told otherwise."""
    launch = copy.deepcopy(NODES["Resources"]["Launch"])
    launch["Properties"]["LaunchTemplateData"] |= {
        "InstanceType": FLEET_TYPES[0],
        "NetworkInterfaces": [in_subnet(0, "interface"), in_subnet(1, "efa-only")],
    }
    return {
        "Parameters": copy.deepcopy(NODES["Parameters"]),
        "Resources": {
            "FleetRole": copy.deepcopy(FLEET_ROLE),
            "Launch": launch,
            "Fleet": {
                "Type": "AWS::EC2::SpotFleet",
                "Properties": {
                    "SpotFleetRequestConfigData": {
                        "Type": "maintain",
                        "TargetCapacity": target,
                        "AllocationStrategy": "priceCapacityOptimized",
                        "IamFleetRole": {"Fn::GetAtt": ["FleetRole", "Arn"]},
                        "InstanceInterruptionBehavior": "terminate",
                        "ExcessCapacityTerminationPolicy": "noTermination",
                        "ReplaceUnhealthyInstances": True,
                        "SpotMaintenanceStrategies": {"CapacityRebalance": {"ReplacementStrategy": "launch"}},
                        "LaunchTemplateConfigs": [
                            {
                                "LaunchTemplateSpecification": {
                                    "LaunchTemplateId": {"Ref": "Launch"},
                                    "Version": {"Fn::GetAtt": ["Launch", "LatestVersionNumber"]},
                                },
                                "Overrides": [{"InstanceType": kind} for kind in FLEET_TYPES],
                            }
                        ],
                        "TagSpecifications": [
                            {"ResourceType": "spot-fleet-request", "Tags": [{"Key": "cluster", "Value": "test"}]}
                        ],
                    }
                },
            },
        },
    }


def fleet_config(template: Template) -> dict[str, Any]:
    """The fleet's request in a template, to be changed."""
    config: dict[str, Any] = template["Resources"]["Fleet"]["Properties"]["SpotFleetRequestConfigData"]
    return config
