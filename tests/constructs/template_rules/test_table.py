"""The table of rules itself: every row has its document, and says what it says word for word."""

import re

import pytest

from cdk_training_cluster.template_rules import RULES, TemplateRule

# What is said of each rule, and how it is mended.
TEXTS = {
    "blockPlacementGroup": (
        "A group that launches into a Capacity Block must have no placement group, neither as PlacementGroup nor as "
        "Placement of its launch template: blocks do not support them",
        "Take the placement group away: EC2 puts the instances of a block close together by itself",
    ),
    "blockMixedGroup": (
        "A group whose launch template has InstanceMarketOptions.MarketType capacity-block must have no "
        "MixedInstancesPolicy, unless it has DistributionSegments",
        "Name the launch template as LaunchTemplate, or use Capacity.prioritized()",
    ),
    "blockMinimum": (
        "MinSize of a group that launches into a Capacity Block must be 0: before the block starts, and after its "
        "end, nothing can be launched",
        "Leave MinSize at 0: the power function starts the nodes when the block starts",
    ),
    "blockTarget": (
        "InstanceMarketOptions.MarketType capacity-block must stand beside a CapacityReservationTarget that names "
        "the block",
        "Name the block's reservation, or use Capacity.capacity_block()",
    ),
    "blockMarket": (
        "CapacityReservationTarget of a launch template must stand beside InstanceMarketOptions.MarketType "
        "capacity-block, or its group must say what happens when the reservation is full, with "
        "CapacityReservationPreference",
        "For a Capacity Block, name the market too; for a reservation, use Capacity.from_reservation(), which names "
        "it on the group",
    ),
    "marketOptionsInMixedGroup": (
        "A launch template of a group with a MixedInstancesPolicy must have no InstanceMarketOptions: Auto Scaling "
        "calls it an incompatible launch template",
        "Take InstanceMarketOptions away, and say in InstancesDistribution how much is Spot",
    ),
    "spotAllocationStrategy": (
        "SpotAllocationStrategy of an Auto Scaling group must be one of capacity-optimized, "
        "capacity-optimized-prioritized, lowest-price, price-capacity-optimized: with hyphens, unlike a Spot Fleet's",
        "Write price-capacity-optimized",
    ),
    "spotInterruption": (
        "SpotOptions.InstanceInterruptionBehavior of a launch template must be terminate in a placement group: EC2 "
        "launches no Spot Instance there that is to stop or hibernate",
        "Leave InstanceInterruptionBehavior out",
    ),
    "twoPlacementGroups": (
        "PlacementGroup of a group and Placement of its launch template must not name different placement groups: "
        "the group's takes precedence, and the other means nothing",
        "Name the placement group on the group alone",
    ),
    "reservationPlacementGroup": (
        "The placement group that a group launches into must be the one that its reservation was made in "
        "(PlacementGroupArn): elsewhere, its capacity cannot be used",
        "Name the reservation's placement group, or none",
    ),
    "reservationStrategy": (
        "Strategy of the placement group that a reservation is made in (PlacementGroupArn) must be cluster: EC2 "
        "reserves in no other",
        "Set Strategy to cluster, or use Placement.NONE",
    ),
    "reservationFallback": (
        "CapacityReservationPreference must be capacity-reservations-only where CapacityReservationIds are named: "
        "any other silently launches On-Demand Instances, which are billed beside the reservation",
        "Set CapacityReservationPreference to capacity-reservations-only",
    ),
    "reservationUnused": (
        "CapacityReservationPreference must not be none where a CapacityReservationTarget is named",
        "Set CapacityReservationPreference to capacity-reservations-only",
    ),
    "reservationTarget": (
        "CapacityReservationTarget must name a single reservation or a single resource group of reservations",
        "Make a node group for each reservation, or use Capacity.prioritized()",
    ),
    "reservationType": (
        "InstanceType of a reservation must be that of the nodes which are launched into it: only instances of the "
        "reserved type fit",
        "Reserve the type of the node group",
    ),
    "reservationTenancy": (
        "Tenancy of a reservation must be that of the nodes which are launched into it (Placement.Tenancy of the "
        "launch template): only instances of the reserved tenancy fit",
        "Leave both Tenancy and Placement.Tenancy out",
    ),
    "reservationEnd": (
        "EndDate of a reservation must stand beside EndDateType limited, and be left out beside EndDateType "
        "unlimited",
        "Say when it ends with Capacity.reservation(end=…)",
    ),
    "reservationCount": (
        "InstanceCount of a reservation must be at least 1, and as many as MaxSize (or DesiredCapacity) of all "
        "groups that launch into it: the rest could never start",
        "Reserve as many instances as the node groups count",
    ),
    "resourceGroupConfiguration": (
        "Configuration of a resource group of reservations must have AWS::EC2::CapacityReservationPool, and "
        "AWS::ResourceGroups::Generic with allowed-resource-types AWS::EC2::CapacityReservation",
        "Give both entries: without them nothing can be launched into the group",
    ),
    "reservationUntargeted": (
        "A reservation of a node group with InstanceMatchCriteria targeted must be named by an Auto Scaling group or "
        "a launch template: otherwise it is billed unused, and the nodes run On-Demand, billed beside it",
        "Name it in CapacityReservationIds of the group, beside CapacityReservationPreference "
        "capacity-reservations-only, or take the AWS::EC2::CapacityReservation away",
    ),
    "reservationZone": (
        "AvailabilityZone of a reservation must be one that its group launches in: what is reserved in a zone cannot "
        "be used in another",
        "Reserve in the zone of the group's subnet",
    ),
    "reservationOpen": (
        "InstanceMatchCriteria of a reservation that a group launches into should be targeted: an open one, which is "
        "the default, is taken by any other instance of the account that fits as well",
        "Set InstanceMatchCriteria to targeted",
    ),
    "reservationNoPlacementGroup": (
        "A reservation should be made in the placement group that its group launches into (PlacementGroupArn): "
        "otherwise EC2 may find too little of it close together, or launch a part of the nodes",
        "Leave PlacementGroupArn as the library makes it, or use Placement.NONE",
    ),
    "segmentList": (
        "DistributionSegments must have exactly one list of TargetCapacityTypes",
        "Put all capacity types into one list, the most wanted first",
    ),
    "segmentTypes": (
        "TargetCapacityTypes must be at least one of on-demand-capacity-reservation, capacity-block, "
        "interruptible-capacity-reservation, on-demand, and none of them twice",
        "Name what the nodes are bought from; for Spot Instances, make a node group with Capacity.spot()",
    ),
    "segmentOrder": (
        "on-demand must be the last of TargetCapacityTypes",
        "Put on-demand last, or leave it out",
    ),
    "segmentTarget": (
        "A group with DistributionSegments must target one resource group of reservations, in "
        "CapacityReservationResourceGroupArns, and nothing else",
        "Name the ARN of one resource group that holds all reservations and blocks",
    ),
    "segmentPreference": (
        "CapacityReservationPreference of a group with DistributionSegments must be default",
        "Set CapacityReservationPreference to default: the segments say what is preferred",
    ),
    "segmentStrategy": (
        "OnDemandAllocationStrategy of a group with DistributionSegments must be prioritized",
        "Set OnDemandAllocationStrategy to prioritized",
    ),
    "segmentShares": (
        "A group with DistributionSegments must have neither OnDemandBaseCapacity nor "
        "OnDemandPercentageAboveBaseCapacity",
        "Take it away: the segments say where On-Demand comes",
    ),
    "segmentSpot": (
        "A group with DistributionSegments must have no SpotAllocationStrategy, SpotInstancePools or SpotMaxPrice: "
        "it launches no Spot Instances",
        "Take it away, and make a node group with Capacity.spot() for Spot Instances",
    ),
    "segmentMarket": (
        "A launch template of a group with DistributionSegments must have no InstanceMarketOptions but those of "
        "MarketType capacity-block or interruptible-capacity-reservation: the group launches no Spot Instances",
        "Take InstanceMarketOptions away, and make a node group with Capacity.spot() for Spot Instances",
    ),
    "segmentWarmPool": (
        "A group with DistributionSegments must have no warm pool",
        "Take the AWS::AutoScaling::WarmPool away",
    ),
    "segmentPlacementGroup": (
        "A group with capacity-block among its TargetCapacityTypes must have no placement group, neither as "
        "PlacementGroup nor as Placement of its launch template: blocks do not support them",
        "Take the placement group away, or the capacity blocks",
    ),
    "fleetAllocationStrategy": (
        "AllocationStrategy of a Spot Fleet must be one of capacityOptimized, capacityOptimizedPrioritized, "
        "diversified, lowestPrice, priceCapacityOptimized: without hyphens, unlike an Auto Scaling group's",
        "Write priceCapacityOptimized",
    ),
    "fleetType": (
        "Type of a Spot Fleet must be maintain: no other can be modified, so its size could not be set",
        "Leave Type at maintain",
    ),
    "fleetTarget": (
        "TargetCapacity of a Spot Fleet must be 0: a deployment would launch that many, and every later one that "
        "changes the fleet would do so again, even while the cluster is stopped",
        "Leave TargetCapacity at 0: the power function sets it to the node group's count",
    ),
    "fleetTags": (
        "ResourceType in TagSpecifications of a Spot Fleet must be spot-fleet-request",
        "Tag instances in the launch template",
    ),
    "fleetRole": (
        "The role of a Spot Fleet (IamFleetRole) must be one that spotfleet.amazonaws.com may assume",
        "Leave the role as the library makes it",
    ),
    "fleetInterruption": (
        "InstanceInterruptionBehavior of a Spot Fleet must be terminate where its launch template names a placement "
        "group: EC2 launches no Spot Instance there that is to stop or hibernate",
        "Leave InstanceInterruptionBehavior at terminate",
    ),
    "fleetImage": (
        "ImageId in a Spot Fleet's launch template must be an image's id: a Spot Fleet does not resolve resolve:ssm:"
        " parameters",
        "Use ec2.MachineImage.from_ssm_parameter(), which CloudFormation resolves",
    ),
    "fleetMarketOptions": (
        "A Spot Fleet's launch template must have no InstanceMarketOptions: the fleet itself requests Spot "
        "Instances, with its own price and interruption behavior",
        "Take InstanceMarketOptions away",
    ),
    "fleetInterface": (
        "A Spot Fleet's launch template must have no NetworkInterfaceId: each instance needs its own",
        "Take NetworkInterfaceId away",
    ),
    "templateSize": (
        "The template of a stack with node groups must not be larger than 1 MB (1,000,000 bytes): CloudFormation "
        "takes no larger one",
        "Use fewer node groups, or fewer instance types in each, in one cluster, or make a second cluster in a stack "
        "of its own",
    ),
    "groupSize": (
        "MinSize and DesiredCapacity of a group must not be above 0: the deployment would wait for the nodes, and be"
        " rolled back where EC2 has no capacity",
        "Leave both alone: the power function brings the group to its size afterwards",
    ),
    "groupUpdatePolicy": (
        "UpdatePolicy of a group must have AutoScalingScheduledAction.IgnoreUnmodifiedGroupSizeProperties true: "
        "without it every deployment that changes the group sets its sizes anew, and stops or starts nodes",
        "Leave the UpdatePolicy as the library makes it",
    ),
    "launchTemplateVersion": (
        "Version of a launch template must be a number, such as its LatestVersionNumber: CloudFormation takes "
        "neither $Latest nor $Default",
        "Use launch_template.latest_version_number",
    ),
    "warmPoolSize": (
        "A warm pool must have a MaxGroupPreparedCapacity: without it Auto Scaling launches as many nodes as MaxSize"
        " allows, at once",
        "Give MaxGroupPreparedCapacity, as WarmPool(size=…) does",
    ),
    "hookTimeout": (
        "HeartbeatTimeout of a lifecycle hook must be from 30 to 7200 seconds",
        "Let a longer start record a heartbeat",
    ),
    "warmPoolSpot": (
        "A group that launches Spot Instances must have no warm pool",
        "Take the AWS::AutoScaling::WarmPool away",
    ),
    "warmPoolBlock": (
        "A group that launches into a Capacity Block must have no warm pool",
        "Take the AWS::AutoScaling::WarmPool away",
    ),
    "interfacePrimary": (
        "NetworkInterfaces of a launch template must have the primary one, with NetworkCardIndex 0 and DeviceIndex "
        "0, and its InterfaceType must not be efa-only",
        "Leave the first interface as the library makes it",
    ),
    "interfaceDevice": (
        "NetworkInterfaces of a launch template must each have a DeviceIndex of its own on their network card",
        "Leave NetworkCardIndex and DeviceIndex as the library makes them",
    ),
    "interfaceSecurityGroups": (
        "SecurityGroupIds of a launch template must be left out beside NetworkInterfaces: security groups cannot be "
        "in both places",
        "Name security groups in Groups of each interface",
    ),
    "interfacePublicAddress": (
        "AssociatePublicIpAddress must be left out where a launch template has more than one of NetworkInterfaces: "
        "EC2 refuses it, whether true or false",
        "Take it away, and give the nodes a NAT gateway",
    ),
    "interfaceSubnet": (
        "SubnetId of an interface must be left out in a launch template of an Auto Scaling group: VPCZoneIdentifier "
        "of the group decides",
        "Take SubnetId away, and set VPCZoneIdentifier",
    ),
}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_a_rule_says_what_must_be_and_how_to_mend_it(rule: TemplateRule) -> None:
    assert (rule.description, rule.fix) == TEXTS[rule.id]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_a_rule_names_the_document_that_states_it(rule: TemplateRule) -> None:
    assert re.fullmatch(r"https://docs\.aws\.amazon\.com/[\w/.-]+\.html(#[\w-]+)?", rule.source)


def test_every_rule_has_an_id_of_its_own() -> None:
    ids = [rule.id for rule in RULES]
    assert sorted(ids) == sorted(TEXTS)
    assert all(re.fullmatch(r"[a-z][a-zA-Z]+", name) for name in ids)
