"""Small legal templates for every way to buy reserved capacity, each of a group that wants one node at once."""

import copy
from collections.abc import Sequence
from typing import Any

from local_aws_scene import NODES, Template

TYPE, ZONE = "p4de.24xlarge", "us-east-1b"
RESERVATION_ARN = "arn:${AWS::Partition}:ec2:${AWS::Region}:${AWS::AccountId}:capacity-reservation/"

POOL = [
    {"Type": "AWS::EC2::CapacityReservationPool"},
    {
        "Type": "AWS::ResourceGroups::Generic",
        "Parameters": [{"Name": "allowed-resource-types", "Values": ["AWS::EC2::CapacityReservation"]}],
    },
]


def _group_of_one() -> Template:
    """Return the small legal template without its file system, its group in no placement group and of one node."""
    template = copy.deepcopy(NODES)
    for name in ("Files", "Link"):
        del template["Resources"][name]
    del template["Outputs"]
    nodes = template["Resources"]["Nodes"]["Properties"]
    nodes["DesiredCapacity"] = "1"
    del nodes["PlacementGroup"]
    return template


def group_of(template: Template) -> dict[str, Any]:
    """Return the properties of the template's Auto Scaling group."""
    properties: dict[str, Any] = template["Resources"]["Nodes"]["Properties"]
    return properties


def launch_of(template: Template) -> dict[str, Any]:
    """Return the template's launch data."""
    data: dict[str, Any] = template["Resources"]["Launch"]["Properties"]["LaunchTemplateData"]
    return data


def only(*ids: Any) -> dict[str, Any]:
    """Return what a group says to launch into reservations only."""
    return {
        "CapacityReservationPreference": "capacity-reservations-only",
        "CapacityReservationTarget": {"CapacityReservationIds": list(ids)},
    }


def reservation(**properties: Any) -> dict[str, Any]:
    """Return a Capacity Reservation for two nodes; None takes a property away."""
    settings = {
        "InstanceType": TYPE,
        "InstanceCount": 2,
        "InstancePlatform": "Linux/UNIX",
        "AvailabilityZone": ZONE,
        "InstanceMatchCriteria": "targeted",
        "EndDateType": "unlimited",
        **properties,
    }
    return {
        "Type": "AWS::EC2::CapacityReservation",
        "Properties": {name: value for name, value in settings.items() if value is not None},
    }


def reserved(**properties: Any) -> Template:
    """Return a group that launches into a reservation in no placement group, whose ARN no template can name."""
    template = _group_of_one()
    template["Resources"]["Reserved"] = reservation(**properties)
    group_of(template)["CapacityReservationSpecification"] = only({"Ref": "Reserved"})
    return template


def given(reservation_id: str) -> Template:
    """Return a group in no placement group that launches into a reservation that is there already."""
    template = _group_of_one()
    group_of(template)["CapacityReservationSpecification"] = only(reservation_id)
    return template


def block(reservation_id: str) -> Template:
    """Return a group that launches into a Capacity Block."""
    template = _group_of_one()
    launch_of(template)["InstanceMarketOptions"] = {"MarketType": "capacity-block"}
    launch_of(template)["CapacityReservationSpecification"] = {
        "CapacityReservationTarget": {"CapacityReservationId": reservation_id}
    }
    return template


def mixed(template: Template, **distribution: Any) -> Template:
    """Return the template with a mixed instances policy in the place of its group's launch template."""
    nodes = group_of(template)
    nodes["MixedInstancesPolicy"] = {
        "InstancesDistribution": distribution,
        "LaunchTemplate": {
            "LaunchTemplateSpecification": nodes.pop("LaunchTemplate"),
            "Overrides": [{"InstanceType": TYPE}],
        },
    }
    return template


def spot(**distribution: Any) -> Template:
    """Return a mixed group that is all Spot."""
    template = mixed(
        _group_of_one(),
        OnDemandBaseCapacity=0,
        OnDemandPercentageAboveBaseCapacity=0,
        **{"SpotAllocationStrategy": "price-capacity-optimized", **distribution},
    )
    group_of(template)["CapacityRebalance"] = True
    return template


def segments(
    ids: Sequence[str],
    types: Sequence[str] = ("on-demand-capacity-reservation", "capacity-block", "on-demand"),
    **distribution: Any,
) -> Template:
    """Return a group that takes the capacity types in their order from a resource group of those reservations."""
    template = mixed(
        _group_of_one(),
        OnDemandAllocationStrategy="prioritized",
        DistributionSegments=[{"TargetCapacityTypes": list(types)}],
        **distribution,
    )
    template["Resources"]["Pool"] = {
        "Type": "AWS::ResourceGroups::Group",
        "Properties": {
            "Name": "pool-of-reservations",
            "Configuration": copy.deepcopy(POOL),
            "Resources": [{"Fn::Sub": RESERVATION_ARN + one} for one in ids],
        },
    }
    group_of(template)["CapacityReservationSpecification"] = {
        "CapacityReservationPreference": "default",
        "CapacityReservationTarget": {"CapacityReservationResourceGroupArns": [{"Fn::GetAtt": ["Pool", "Arn"]}]},
    }
    return template
