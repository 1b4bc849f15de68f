"""One table of what an escape hatch can break: where each rule finds it, and where it cannot know."""

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from cdk_training_cluster.tags import NODE_GROUP_TAG
from cdk_training_cluster.template_rules import RULES, TemplateRule, broken_rules

ABSENT = None
PARAMETER = {"Ref": "Parameter"}
IMPORT = {"Fn::ImportValue": "elsewhere"}
CONDITION = {"Fn::If": ["Production", "a", {"Ref": "AWS::NoValue"}]}
NO_VALUE = {"Ref": "AWS::NoValue"}

Template = dict[str, Any]
Changes = dict[str, Any]
Found = dict[str, list[str]]
MakeTemplate = Callable[[str, Changes], Template]

CONFIG = "Fleet.SpotFleetRequestConfigData"
DATA = "Launch.LaunchTemplateData"
TARGET = f"{DATA}.CapacityReservationSpecification.CapacityReservationTarget"
RESERVED = "Nodes.CapacityReservationSpecification"
IDS = f"{RESERVED}.CapacityReservationTarget.CapacityReservationIds"
ARNS = f"{RESERVED}.CapacityReservationTarget.CapacityReservationResourceGroupArns"
SHARES = "Nodes.MixedInstancesPolicy.InstancesDistribution"
SPOT_SHARE = f"{SHARES}.OnDemandPercentageAboveBaseCapacity"
SEGMENTS = f"{SHARES}.DistributionSegments"
KINDS = f"{SEGMENTS}.0.TargetCapacityTypes"
NAMED = {"LaunchTemplateId": {"Ref": "Launch"}, "Version": "1"}
TRUST = "AssumeRolePolicyDocument"
WARM = {
    "Type": "AWS::AutoScaling::WarmPool",
    "Properties": {"AutoScalingGroupName": {"Ref": "Nodes"}, "MaxGroupPreparedCapacity": 1},
}
POOL_CONFIGURATION = "Pool.Configuration"
SUBNET = {"Type": "AWS::EC2::Subnet", "Properties": {"AvailabilityZone": "us-east-1b"}}

# The rule, what is changed, in which legal template, and where it is found: the first change, if that is not said.
WRONG: list[tuple[str, str, Changes] | tuple[str, str, Changes, str]] = [
    # Capacity Blocks
    ("blockPlacementGroup", "block", {"Nodes.PlacementGroup": {"Ref": "Placement"}}),
    ("blockPlacementGroup", "block", {"Nodes.PlacementGroup": IMPORT}),
    ("blockPlacementGroup", "block", {f"{DATA}.Placement.GroupName": "mine"}),
    ("blockPlacementGroup", "block", {f"{DATA}.Placement.GroupId": "pg-1"}),
    (
        "blockMixedGroup",
        "block",
        {
            "Nodes.MixedInstancesPolicy": {"LaunchTemplate": {"LaunchTemplateSpecification": NAMED}},
            "Nodes.LaunchTemplate": ABSENT,
        },
    ),
    ("blockMinimum", "block", {"Nodes.MinSize": "1"}),
    ("blockTarget", "block", {TARGET: ABSENT}, f"{DATA}.InstanceMarketOptions.MarketType"),
    ("blockMarket", "block", {f"{DATA}.InstanceMarketOptions": ABSENT}, TARGET),
    ("blockMarket", "on demand", {f"{TARGET}.CapacityReservationId": "cr-1"}, TARGET),
    # Markets and placement groups
    ("marketOptionsInMixedGroup", "spot", {f"{DATA}.InstanceMarketOptions": {"MarketType": "spot"}}),
    ("marketOptionsInMixedGroup", "spot", {"Arm.LaunchTemplateData.InstanceMarketOptions": {"MarketType": "spot"}}),
    ("marketOptionsInMixedGroup", "spot", {f"{DATA}.InstanceMarketOptions": PARAMETER}),
    ("spotAllocationStrategy", "spot", {f"{SHARES}.SpotAllocationStrategy": "priceCapacityOptimized"}),
    ("twoPlacementGroups", "on demand", {f"{DATA}.Placement.GroupName": "mine"}),
    ("twoPlacementGroups", "on demand", {f"{DATA}.Placement.GroupName": {"Ref": "Other"}}),
    (
        "spotInterruption",
        "on demand",
        {
            f"{DATA}.InstanceMarketOptions.SpotOptions.InstanceInterruptionBehavior": "stop",
            f"{DATA}.InstanceMarketOptions.MarketType": "spot",
            "Pool": ABSENT,
        },
    ),
    ("twoPlacementGroups", "reservation", {f"{DATA}.Placement.GroupName": {"Ref": "Other"}}),
    # Reservations
    ("reservationPlacementGroup", "reservation", {"Nodes.PlacementGroup": "other"}),
    ("reservationPlacementGroup", "reservation", {"Nodes.PlacementGroup": {"Ref": "Other"}}),
    (
        "reservationPlacementGroup",
        "reservation",
        {f"{DATA}.Placement.GroupName": {"Ref": "Other"}, "Nodes.PlacementGroup": ABSENT},
    ),
    (
        "reservationPlacementGroup",
        "reservation",
        {"Nodes.PlacementGroup": "a", "Booked.PlacementGroupArn": "arn:aws:ec2:us-east-1:1:placement-group/b"},
    ),
    ("reservationStrategy", "reservation", {"Placement.Strategy": "spread"}),
    ("reservationStrategy", "prioritized", {"Placement.Strategy": "partition"}),
    ("reservationFallback", "reservation", {f"{RESERVED}.CapacityReservationPreference": ABSENT}),
    ("reservationFallback", "reservation", {f"{RESERVED}.CapacityReservationPreference": "default"}),
    (
        "reservationFallback",
        "reservation",
        {f"{RESERVED}.CapacityReservationPreference": "capacity-reservations-first"},
    ),
    ("reservationUnused", "reservation", {f"{RESERVED}.CapacityReservationPreference": "none"}),
    (
        "reservationUnused",
        "reservation",
        {f"{RESERVED}.CapacityReservationPreference": "none", IDS: ABSENT, ARNS: ["arn:1"], "Booked": ABSENT},
    ),
    ("reservationTarget", "reservation", {IDS: ["cr-1", "cr-2"], "Booked": ABSENT}),
    ("reservationTarget", "reservation", {ARNS: ["arn:1", "arn:2"], IDS: ABSENT, "Booked": ABSENT}),
    ("reservationType", "reservation", {"Booked.InstanceType": "p5e.48xlarge"}),
    ("reservationType", "reservation", {f"{DATA}.InstanceType": "p5e.48xlarge"}, "Booked.InstanceType"),
    ("reservationTenancy", "reservation", {"Booked.Tenancy": "dedicated"}),
    ("reservationTenancy", "reservation", {f"{DATA}.Placement.Tenancy": "dedicated"}, "Booked.Tenancy"),
    ("reservationEnd", "reservation", {"Booked.EndDate": ABSENT}),
    ("reservationEnd", "reservation", {"Booked.EndDateType": "unlimited"}, "Booked.EndDate"),
    ("reservationCount", "reservation", {"Booked.InstanceCount": 3}),
    ("reservationCount", "reservation", {"Booked.InstanceCount": 0, "Nodes.MaxSize": PARAMETER}),
    ("reservationCount", "reservation", {"Nodes.MaxSize": "5"}, "Booked.InstanceCount"),
    ("resourceGroupConfiguration", "prioritized", {POOL_CONFIGURATION: ABSENT}),
    ("resourceGroupConfiguration", "prioritized", {f"{POOL_CONFIGURATION}.1.Type": "Other"}, POOL_CONFIGURATION),
    ("resourceGroupConfiguration", "prioritized", {f"{POOL_CONFIGURATION}.0": ABSENT}, POOL_CONFIGURATION),
    ("resourceGroupConfiguration", "prioritized", {f"{POOL_CONFIGURATION}.1": ABSENT}, POOL_CONFIGURATION),
    (
        "resourceGroupConfiguration",
        "prioritized",
        {f"{POOL_CONFIGURATION}.1.Parameters": ABSENT},
        POOL_CONFIGURATION,
    ),
    (
        "resourceGroupConfiguration",
        "prioritized",
        {f"{POOL_CONFIGURATION}.1.Parameters.0.Values": ["AWS::EC2::Host"]},
        POOL_CONFIGURATION,
    ),
    # Reservations of the template, and who launches into them
    ("reservationUntargeted", "reservation", {RESERVED: ABSENT}, "Booked.InstanceMatchCriteria"),
    ("reservationUntargeted", "reservation", {IDS: [{"Ref": "Other"}]}, "Booked.InstanceMatchCriteria"),
    ("reservationUntargeted", "prioritized", {"Pool.Resources": ABSENT}, "Booked.InstanceMatchCriteria"),
    (
        "reservationUntargeted",
        "prioritized",
        {"Pool.Resources": ["arn:aws:ec2:us-east-1:1:capacity-reservation/cr-1"]},
        "Booked.InstanceMatchCriteria",
    ),
    (
        "reservationZone",
        "reservation",
        {"Booked.AvailabilityZone": "us-east-1a", "Nodes.VPCZoneIdentifier": [{"Ref": "Subnet"}], "Subnet": SUBNET},
    ),
    (
        "reservationZone",
        "prioritized",
        {"Nodes.AvailabilityZones": ["us-east-1a", "us-east-1c"], "Nodes.VPCZoneIdentifier": ABSENT},
        "Booked.AvailabilityZone",
    ),
    ("reservationOpen", "reservation", {"Booked.InstanceMatchCriteria": "open"}),
    ("reservationOpen", "prioritized", {"Booked.InstanceMatchCriteria": ABSENT}),
    ("reservationNoPlacementGroup", "reservation", {"Booked.PlacementGroupArn": ABSENT}),
    (
        "reservationNoPlacementGroup",
        "prioritized",
        {"Booked.PlacementGroupArn": ABSENT, "Nodes.PlacementGroup": "other", KINDS: ["on-demand"]},
    ),
    # Distribution segments
    ("segmentList", "prioritized", {SEGMENTS: [{"TargetCapacityTypes": ["on-demand"]}] * 2}),
    ("segmentList", "prioritized", {SEGMENTS: []}),
    ("segmentTypes", "prioritized", {KINDS: ABSENT}),
    ("segmentTypes", "prioritized", {KINDS: []}),
    ("segmentTypes", "prioritized", {KINDS: ["capacity-block", "spot"]}),
    ("segmentTypes", "prioritized", {KINDS: ["capacity-block", "capacity-block"]}),
    ("segmentOrder", "prioritized", {KINDS: ["on-demand", "on-demand-capacity-reservation"]}),
    ("segmentTarget", "prioritized", {ARNS: ABSENT, "Booked": ABSENT}),
    ("segmentTarget", "prioritized", {ARNS: ["arn:1", "arn:2"], "Booked": ABSENT}),
    ("segmentTarget", "prioritized", {IDS: ["cr-1"]}),
    ("segmentPreference", "prioritized", {f"{RESERVED}.CapacityReservationPreference": "capacity-reservations-only"}),
    ("segmentPreference", "prioritized", {f"{RESERVED}.CapacityReservationPreference": ABSENT}),
    ("segmentMarket", "prioritized", {f"{DATA}.InstanceMarketOptions": {"MarketType": "spot"}}),
    ("segmentMarket", "prioritized", {"Arm.LaunchTemplateData.InstanceMarketOptions": {"MarketType": "spot"}}),
    ("segmentMarket", "prioritized", {f"{DATA}.InstanceMarketOptions": {"SpotOptions": {"MaxPrice": "1"}}}),
    ("segmentStrategy", "prioritized", {f"{SHARES}.OnDemandAllocationStrategy": "lowest-price"}),
    ("segmentShares", "prioritized", {f"{SHARES}.OnDemandBaseCapacity": 0}),
    ("segmentShares", "prioritized", {f"{SHARES}.OnDemandPercentageAboveBaseCapacity": 100}),
    ("segmentSpot", "prioritized", {f"{SHARES}.SpotAllocationStrategy": "lowest-price"}),
    ("segmentSpot", "prioritized", {f"{SHARES}.SpotInstancePools": 2}),
    ("segmentSpot", "prioritized", {f"{SHARES}.SpotMaxPrice": "1"}),
    ("segmentWarmPool", "prioritized", {"Warm": WARM}, "Warm.AutoScalingGroupName"),
    (
        "segmentWarmPool",
        "prioritized",
        {"Warm": WARM, f"{DATA}.InstanceMarketOptions.MarketType": "capacity-block"},
        "Warm.AutoScalingGroupName",
    ),
    ("segmentPlacementGroup", "prioritized", {"Nodes.PlacementGroup": {"Ref": "Placement"}}),
    ("segmentPlacementGroup", "prioritized", {f"{DATA}.Placement.GroupName": {"Ref": "Placement"}}),
    ("reservationPlacementGroup", "prioritized", {"Nodes.PlacementGroup": {"Ref": "Other"}, KINDS: ["on-demand"]}),
    # Spot Fleets
    ("fleetAllocationStrategy", "fleet", {f"{CONFIG}.AllocationStrategy": "price-capacity-optimized"}),
    ("fleetType", "fleet", {f"{CONFIG}.Type": "request"}),
    ("fleetTarget", "fleet", {f"{CONFIG}.TargetCapacity": 1}),
    ("fleetTags", "fleet", {f"{CONFIG}.TagSpecifications.0.ResourceType": "instance"}),
    ("fleetRole", "fleet", {f"Role.{TRUST}.Statement.0.Principal.Service": "ec2.amazonaws.com"}, f"Role.{TRUST}"),
    (
        "fleetInterruption",
        "fleet",
        {f"{CONFIG}.InstanceInterruptionBehavior": "stop", f"{DATA}.Placement.GroupName": "mine"},
    ),
    ("fleetImage", "fleet", {f"{DATA}.ImageId": "resolve:ssm:/images/mine"}),
    ("fleetMarketOptions", "fleet", {f"{DATA}.InstanceMarketOptions": {"MarketType": "spot"}}),
    ("fleetInterface", "fleet", {f"{DATA}.NetworkInterfaces.1.NetworkInterfaceId": "eni-1"}),
    # Sizes, updates and warm pools
    ("templateSize", "on demand", {f"{DATA}.UserData": "x" * 1_000_000}, "Nodes.Properties"),
    ("templateSize", "fleet", {f"{DATA}.UserData": "x" * 1_000_000}, "Fleet.Properties"),
    ("groupSize", "on demand", {"Nodes.MinSize": "1"}),
    ("groupSize", "spot", {"Nodes.MinSize": 1}),
    (
        "groupSize",
        "prioritized",
        {"Nodes.MinSize": "1", f"{DATA}.InstanceMarketOptions.MarketType": "capacity-block"},
    ),
    ("groupSize", "block", {"Nodes.DesiredCapacity": "4"}),
    ("groupUpdatePolicy", "on demand", {"Nodes!UpdatePolicy": ABSENT}),
    ("groupUpdatePolicy", "on demand", {"Nodes!UpdatePolicy.AutoScalingScheduledAction": {}}),
    (
        "groupUpdatePolicy",
        "on demand",
        {"Nodes!UpdatePolicy.AutoScalingScheduledAction.IgnoreUnmodifiedGroupSizeProperties": "false"},
    ),
    ("launchTemplateVersion", "on demand", {"Nodes.LaunchTemplate.Version": "$Latest"}),
    (
        "launchTemplateVersion",
        "spot",
        {
            "Nodes.MixedInstancesPolicy.LaunchTemplate.Overrides.1.LaunchTemplateSpecification.Version": "$Default",
        },
    ),
    (
        "launchTemplateVersion",
        "fleet",
        {f"{CONFIG}.LaunchTemplateConfigs.0.LaunchTemplateSpecification.Version": "$Latest"},
    ),
    ("warmPoolSize", "on demand", {"Pool.MaxGroupPreparedCapacity": ABSENT}),
    ("warmPoolSize", "on demand", {"Pool.MaxGroupPreparedCapacity": -1}),
    ("hookTimeout", "on demand", {"Hook.HeartbeatTimeout": 7201}),
    ("hookTimeout", "on demand", {"Hook.HeartbeatTimeout": "29"}),
    ("warmPoolSpot", "spot", {"Warm": WARM}, "Warm.AutoScalingGroupName"),
    ("warmPoolSpot", "on demand", {f"{DATA}.InstanceMarketOptions.MarketType": "spot"}, "Pool.AutoScalingGroupName"),
    ("warmPoolSpot", "spot", {SPOT_SHARE: 99, "Warm": WARM}, "Warm.AutoScalingGroupName"),
    ("warmPoolBlock", "block", {"Warm": WARM}, "Warm.AutoScalingGroupName"),
    # Interfaces
    ("interfacePrimary", "on demand", {f"{DATA}.NetworkInterfaces.0.InterfaceType": "efa-only"}),
    ("interfacePrimary", "fleet", {f"{DATA}.NetworkInterfaces.0.NetworkCardIndex": 1}, f"{DATA}.NetworkInterfaces"),
    ("interfacePrimary", "on demand", {f"{DATA}.NetworkInterfaces.0.DeviceIndex": "2"}, f"{DATA}.NetworkInterfaces"),
    ("interfaceDevice", "on demand", {f"{DATA}.NetworkInterfaces.1.DeviceIndex": 0}),
    (
        "interfaceDevice",
        "fleet",
        {f"{DATA}.NetworkInterfaces.1.DeviceIndex": ABSENT, f"{DATA}.NetworkInterfaces.1.NetworkCardIndex": "0"},
    ),
    ("interfaceSecurityGroups", "on demand", {f"{DATA}.SecurityGroupIds": ["sg-1"]}),
    ("interfaceSecurityGroups", "fleet", {f"{DATA}.SecurityGroups": IMPORT}),
    ("interfacePublicAddress", "on demand", {f"{DATA}.NetworkInterfaces.0.AssociatePublicIpAddress": True}),
    ("interfacePublicAddress", "fleet", {f"{DATA}.NetworkInterfaces.0.AssociatePublicIpAddress": False}),
    ("interfaceSubnet", "on demand", {f"{DATA}.NetworkInterfaces.1.SubnetId": IMPORT}),
]

# What breaks nothing, or nothing that can be known before the deployment.
RIGHT: list[tuple[str, Changes]] = [
    # What AWS allows, close to what it does not
    ("reservation", {"Nodes.PlacementGroup": ABSENT}),
    ("reservation", {"Booked.PlacementGroupArn": ABSENT, "Nodes.PlacementGroup": ABSENT}),
    (
        "reservation",
        {"Booked.AvailabilityZone": ABSENT, "Nodes.VPCZoneIdentifier": [{"Ref": "Subnet"}], "Subnet": SUBNET},
    ),
    (
        "reservation",
        {"Nodes.AvailabilityZones": ["us-east-1a", "us-east-1b"], "Nodes.VPCZoneIdentifier": ABSENT},
    ),
    # A reservation that a launch template names, that nobody named yet, and that somebody else made
    (
        "reservation",
        {
            RESERVED: {"CapacityReservationPreference": "default"},
            f"{TARGET}.CapacityReservationId": {"Ref": "Booked"},
        },
    ),
    ("reservation", {RESERVED: ABSENT, "Booked.InstanceMatchCriteria": "open"}),
    ("reservation", {RESERVED: ABSENT, "Booked.TagSpecifications": ABSENT}),
    (
        "prioritized",
        {
            "Foreign": {"Type": "AWS::EC2::LaunchTemplate", "Properties": {}},
            "Foreign.LaunchTemplateData.CapacityReservationSpecification.CapacityReservationTarget": {
                "CapacityReservationResourceGroupArn": {"Fn::GetAtt": ["Pool", "Arn"]}
            },
        },
    ),
    ("reservation", {"Booked.InstanceCount": 5}),
    ("reservation", {"Booked.InstanceCount": 1, "Nodes.MaxSize": PARAMETER}),
    ("reservation", {"Booked.InstanceType": "p5e.48xlarge", f"{DATA}.InstanceType": "p5e.48xlarge"}),
    (
        "reservation",
        {
            "Placement.GroupName": "mine",
            "Nodes.PlacementGroup": "mine",
            "Booked.PlacementGroupArn": {"Fn::Sub": "arn:${AWS::Partition}:ec2:r:1:placement-group/${Placement}"},
        },
    ),
    (
        "block",
        {
            f"{TARGET}.CapacityReservationId": ABSENT,
            RESERVED: {
                "CapacityReservationPreference": "default",
                "CapacityReservationTarget": {"CapacityReservationIds": ["cr-1"]},
            },
        },
    ),
    ("block", {f"{TARGET}.CapacityReservationId": ABSENT, f"{TARGET}.CapacityReservationResourceGroupArn": "arn:1"}),
    ("block", {f"{TARGET}.CapacityReservationId": ABSENT, ARNS: ["arn:1"]}),
    ("on demand", {f"{DATA}.Placement.GroupName": {"Ref": "Placement"}}),
    ("on demand", {"Nodes.PlacementGroup": ABSENT, f"{DATA}.Placement.GroupName": "mine"}),
    ("on demand", {f"{DATA}.ImageId": "resolve:ssm:/images/mine"}),
    ("on demand", {f"{DATA}.NetworkInterfaces": ABSENT, f"{DATA}.SecurityGroupIds": ["sg-1"]}),
    (
        "on demand",
        {f"{DATA}.NetworkInterfaces": [{"DeviceIndex": 0, "AssociatePublicIpAddress": True}]},
    ),
    ("on demand", {"Nodes.VPCZoneIdentifier": ABSENT, f"{DATA}.NetworkInterfaces.0.SubnetId": "subnet-1"}),
    ("on demand", {"Nodes.DesiredCapacity": "0"}),
    ("on demand", {"Pool.AutoScalingGroupName": "another", "Pool.MaxGroupPreparedCapacity": ABSENT}),
    ("prioritized", {KINDS: ["on-demand-capacity-reservation"], "Nodes.PlacementGroup": {"Ref": "Placement"}}),
    ("prioritized", {f"{SHARES}.OnDemandAllocationStrategy": ABSENT}),
    ("prioritized", {f"{DATA}.InstanceMarketOptions": {"MarketType": "capacity-block"}}),
    ("prioritized", {f"{DATA}.InstanceMarketOptions": {"MarketType": "interruptible-capacity-reservation"}}),
    ("prioritized", {KINDS: ["interruptible-capacity-reservation"]}),
    ("fleet", {f"{CONFIG}.Type": ABSENT, f"{CONFIG}.InstanceInterruptionBehavior": ABSENT}),
    ("fleet", {f"{CONFIG}.InstanceInterruptionBehavior": "stop"}),
    ("fleet", {f"{DATA}.Placement.GroupName": "mine"}),
    ("fleet", {f"{DATA}.NetworkInterfaces.0.SubnetId": "subnet-1"}),
    ("on demand", {"Hook.HeartbeatTimeout": 30}),
    ("on demand", {"Hook.HeartbeatTimeout": 7200}),
    ("on demand", {f"{DATA}.Placement.GroupId": "pg-1"}),
    ("on demand", {f"{DATA}.Placement.GroupId": {"Fn::GetAtt": ["Placement", "GroupId"]}}),
    ("reservation", {"Booked.Tenancy": "dedicated", f"{DATA}.Placement.Tenancy": "dedicated"}),
    ("reservation", {"Booked.EndDateType": "unlimited", "Booked.EndDate": ABSENT}),
    ("fleet", {f"{CONFIG}.IamFleetRole": "arn:aws:iam::123456789012:role/mine"}),
    ("on demand", {f"{DATA}.SecurityGroupIds": []}),
    ("on demand", {f"{DATA}.NetworkInterfaces.1.DeviceIndex": 0, f"{DATA}.NetworkInterfaces.1.NetworkCardIndex": 1}),
    ("on demand", {f"{DATA}.NetworkInterfaces.0.NetworkCardIndex": ABSENT}),
    ("on demand", {f"{DATA}.NetworkInterfaces.0.InterfaceType": "efa"}),
    ("spot", {SPOT_SHARE: 100, "Warm": WARM}),
    ("spot", {SPOT_SHARE: ABSENT, "Warm": WARM}),
    # No value is no value
    ("block", {"Nodes.PlacementGroup": NO_VALUE}),
    ("spot", {f"{DATA}.InstanceMarketOptions": NO_VALUE}),
    ("on demand", {f"{DATA}.SecurityGroupIds": NO_VALUE}),
    # Only the deployment knows
    ("block", {"Nodes.PlacementGroup": CONDITION}),
    ("block", {f"{DATA}.InstanceMarketOptions.MarketType": PARAMETER, "Nodes.PlacementGroup": "mine"}),
    ("block", {"Nodes.LaunchTemplate": {"LaunchTemplateId": IMPORT}, "Nodes.PlacementGroup": "mine"}),
    ("block", {"Nodes.LaunchTemplate": CONDITION, "Nodes.MinSize": PARAMETER}),
    ("block", {"Nodes.MixedInstancesPolicy": CONDITION}),
    ("block", {TARGET: CONDITION}),
    ("block", {"Nodes.MinSize": PARAMETER}),
    ("on demand", {TARGET: CONDITION}),
    ("on demand", {f"{DATA}.Placement.GroupName": PARAMETER}),
    ("on demand", {f"{DATA}.Placement.GroupName": "mine", "Nodes.PlacementGroup": IMPORT}),
    ("on demand", {f"{DATA}.Placement.GroupName": "mine", "Placement.GroupName": PARAMETER}),
    ("on demand", {f"{DATA}.SecurityGroupIds": CONDITION}),
    ("on demand", {f"{DATA}.NetworkInterfaces": CONDITION, f"{DATA}.SecurityGroupIds": ["sg-1"]}),
    ("on demand", {f"{DATA}.NetworkInterfaces.0.AssociatePublicIpAddress": CONDITION}),
    ("on demand", {f"{DATA}.NetworkInterfaces.0.SubnetId": CONDITION}),
    ("on demand", {f"{DATA}.NetworkInterfaces.0.InterfaceType": PARAMETER}),
    ("on demand", {f"{DATA}.NetworkInterfaces.0.DeviceIndex": PARAMETER}),
    ("on demand", {f"{DATA}.NetworkInterfaces.0": CONDITION}),
    ("on demand", {"Nodes.MinSize": PARAMETER, "Nodes.DesiredCapacity": PARAMETER}),
    ("on demand", {"Nodes!UpdatePolicy": {"Fn::If": ["Production", {}, {}]}}),
    (
        "on demand",
        {"Nodes!UpdatePolicy.AutoScalingScheduledAction.IgnoreUnmodifiedGroupSizeProperties": PARAMETER},
    ),
    ("on demand", {"Nodes.LaunchTemplate.Version": PARAMETER}),
    ("on demand", {"Pool.MaxGroupPreparedCapacity": PARAMETER}),
    ("reservation", {"Nodes.PlacementGroup": PARAMETER}),
    ("reservation", {"Nodes.PlacementGroup": "other", "Booked.PlacementGroupArn": IMPORT}),
    ("reservation", {"Nodes.PlacementGroup": "other", IDS: [PARAMETER]}),
    ("reservation", {f"{RESERVED}.CapacityReservationPreference": PARAMETER}),
    ("reservation", {f"{RESERVED}.CapacityReservationPreference": CONDITION}),
    ("reservation", {IDS: PARAMETER}),
    ("reservation", {IDS: CONDITION}),
    ("reservation", {RESERVED: ABSENT, TARGET: CONDITION}),
    ("reservation", {RESERVED: ABSENT, "Booked.InstanceMatchCriteria": PARAMETER}),
    ("reservation", {"Booked.InstanceMatchCriteria": PARAMETER, "Booked.PlacementGroupArn": CONDITION}),
    (
        "reservation",
        {"Booked.AvailabilityZone": PARAMETER, "Nodes.VPCZoneIdentifier": [{"Ref": "Subnet"}], "Subnet": SUBNET},
    ),
    (
        "reservation",
        {
            "Booked.AvailabilityZone": "us-east-1a",
            "Nodes.VPCZoneIdentifier": [{"Ref": "Subnet"}, IMPORT],
            "Subnet": SUBNET,
        },
    ),
    ("reservation", {"Nodes.AvailabilityZones": [PARAMETER], "Nodes.VPCZoneIdentifier": ABSENT}),
    ("reservation", {"Booked.InstanceType": PARAMETER, "Booked.InstanceCount": PARAMETER}),
    ("reservation", {"Nodes.MaxSize": PARAMETER, f"{DATA}.InstanceType": PARAMETER}),
    ("reservation", {"Booked.Tenancy": PARAMETER, "Booked.EndDateType": PARAMETER}),
    ("reservation", {"Booked.Tenancy": "dedicated", f"{DATA}.Placement.Tenancy": PARAMETER}),
    ("reservation", {"Placement.Strategy": PARAMETER}),
    ("on demand", {"Hook.HeartbeatTimeout": PARAMETER}),
    ("fleet", {f"Role.{TRUST}": CONDITION}),
    ("fleet", {f"Role.{TRUST}.Statement.0.Principal.Service": PARAMETER}),
    ("spot", {f"{DATA}.InstanceMarketOptions": CONDITION, f"{SHARES}.SpotAllocationStrategy": PARAMETER}),
    ("spot", {"Warm": WARM, SPOT_SHARE: PARAMETER}),
    ("block", {"Warm": WARM, f"{DATA}.InstanceMarketOptions.MarketType": PARAMETER}),
    ("prioritized", {SEGMENTS: PARAMETER, f"{SHARES}.OnDemandAllocationStrategy": PARAMETER}),
    ("prioritized", {SEGMENTS: CONDITION, f"{SHARES}.OnDemandBaseCapacity": 0, "Warm": WARM}),
    ("spot", {SEGMENTS: CONDITION, f"{DATA}.InstanceMarketOptions": {"MarketType": "spot"}}),
    ("spot", {SEGMENTS: CONDITION, "Warm": WARM}),
    ("prioritized", {f"{DATA}.InstanceMarketOptions": PARAMETER}),
    ("prioritized", {f"{DATA}.InstanceMarketOptions": {"MarketType": PARAMETER}}),
    ("prioritized", {f"{SEGMENTS}.0": CONDITION}),
    ("prioritized", {KINDS: [PARAMETER, PARAMETER]}),
    ("prioritized", {RESERVED: CONDITION}),
    ("prioritized", {"Pool.Resources": PARAMETER}),
    ("prioritized", {"Pool.Resources": [IMPORT]}),
    ("prioritized", {KINDS: PARAMETER, "Nodes.PlacementGroup": {"Ref": "Placement"}}),
    ("prioritized", {ARNS: PARAMETER, f"{RESERVED}.CapacityReservationPreference": PARAMETER}),
    ("prioritized", {f"{SHARES}.OnDemandBaseCapacity": CONDITION, f"{SHARES}.SpotMaxPrice": CONDITION}),
    ("prioritized", {POOL_CONFIGURATION: CONDITION}),
    ("prioritized", {f"{POOL_CONFIGURATION}.0": CONDITION}),
    ("prioritized", {f"{POOL_CONFIGURATION}.1.Parameters": CONDITION}),
    ("prioritized", {f"{POOL_CONFIGURATION}.1.Parameters.0.Values": PARAMETER}),
    ("prioritized", {ARNS: [IMPORT], POOL_CONFIGURATION: ABSENT}),
    ("fleet", {f"{CONFIG}.AllocationStrategy": PARAMETER, f"{CONFIG}.Type": PARAMETER}),
    ("fleet", {f"{CONFIG}.TargetCapacity": PARAMETER}),
    ("fleet", {f"{CONFIG}.TagSpecifications.0.ResourceType": PARAMETER}),
    ("fleet", {f"{CONFIG}.InstanceInterruptionBehavior": PARAMETER, f"{DATA}.Placement.GroupName": "mine"}),
    ("fleet", {f"{CONFIG}.InstanceInterruptionBehavior": "stop", f"{DATA}.Placement.GroupName": CONDITION}),
    ("fleet", {f"{DATA}.ImageId": PARAMETER, f"{DATA}.InstanceMarketOptions": CONDITION}),
    ("fleet", {f"{DATA}.NetworkInterfaces.1.NetworkInterfaceId": CONDITION}),
    ("fleet", {f"{CONFIG}.LaunchTemplateConfigs": CONDITION, f"{DATA}.ImageId": "resolve:ssm:/images/mine"}),
]


def found(made: Template, rules: Sequence[TemplateRule] = RULES) -> Found:
    return {
        rule.id: [f"{place.logical_id}.{place.location.removeprefix('Properties.')}" for place in places]
        for rule, places in broken_rules(made, rules, size=len(json.dumps(made)))
    }


def expected(row: Sequence[Any]) -> Found:
    update_policy = "Nodes.UpdatePolicy.AutoScalingScheduledAction.IgnoreUnmodifiedGroupSizeProperties"
    place = row[3] if len(row) > 3 else next(iter(row[2]))
    return {row[0]: [update_policy if "!" in place else place]}


def _name(row: Sequence[Any]) -> str:
    return f"{row[0]}: {', '.join(row[2] if len(row) > 2 else row[1])}"


@pytest.mark.parametrize("kind", ["on demand", "reservation", "block", "spot", "fleet", "prioritized"])
def test_what_the_library_makes_breaks_no_rule(template: MakeTemplate, kind: str) -> None:
    assert found(template(kind, {})) == {}


@pytest.mark.parametrize("row", WRONG, ids=_name)
def test_a_wrong_template_breaks_its_rule_in_its_place_and_no_other(
    template: MakeTemplate, row: Sequence[Any]
) -> None:
    assert found(template(row[1], row[2])) == expected(row)


@pytest.mark.parametrize("row", WRONG, ids=_name)
def test_a_condition_where_the_mistake_was_breaks_no_rule(template: MakeTemplate, row: Sequence[Any]) -> None:
    decisive, *others = row[2].items()
    assert row[0] not in found(template(row[1], dict([(decisive[0], CONDITION), *others])))


@pytest.mark.parametrize("row", RIGHT, ids=_name)
def test_what_is_allowed_or_not_known_breaks_no_rule(template: MakeTemplate, row: tuple[str, Changes]) -> None:
    assert found(template(row[0], row[1])) == {}


@pytest.mark.parametrize(("kind", "tags"), [("spot", "Nodes.Tags"), ("fleet", f"{CONFIG}.TagSpecifications.0.Tags")])
def test_what_the_library_did_not_make_is_left_alone(template: MakeTemplate, kind: str, tags: str) -> None:
    wrong = {f"{DATA}.InstanceMarketOptions": {"MarketType": "spot"}}
    assert len(found(template(kind, wrong))) == 1
    assert found(template(kind, {**wrong, tags: [{"Key": "somebody-elses", "Value": "workers"}]})) == {}


def test_a_fleet_may_carry_its_tags_at_the_top(template: MakeTemplate) -> None:
    tags = [{"Key": NODE_GROUP_TAG, "Value": "workers"}]
    changes = {"Fleet.Tags": tags, f"{CONFIG}.TagSpecifications": ABSENT, f"{CONFIG}.Type": "request"}
    assert found(template("fleet", changes)) == {"fleetType": [f"{CONFIG}.Type"]}


@pytest.mark.parametrize("taken", RULES, ids=lambda rule: rule.id)
def test_without_any_one_rule_something_wrong_is_not_found(template: MakeTemplate, taken: TemplateRule) -> None:
    others = [rule for rule in RULES if rule is not taken]
    missed = [row for row in WRONG if found(template(row[1], row[2]), others) != expected(row)]
    assert {row[0] for row in missed} == {taken.id}
