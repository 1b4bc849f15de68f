"""How nodes were bought: in which reservation, Capacity Block or market each runs, and what a cluster reserved."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from cluster_contract.tags import NODE_GROUP_TAG
from rehearsal.checks.check import Check, Deployment, Facts
from rehearsal.checks.owners import counts, launches, owners
from rehearsal.node_groups import ON_DEMAND
from rehearsal.templates import Resource, of_type

_ALL_SPOT = {"OnDemandBaseCapacity": 0, "OnDemandPercentageAboveBaseCapacity": 0}


def _bought(deployment: Deployment) -> Facts:
    count = counts(deployment)
    return {name: _of_group(deployment, owner, count.get(name, 0)) for name, owner in owners(deployment).items()}


def _of_group(deployment: Deployment, owner: Resource, count: int) -> dict[str, Any]:
    data = next(data for _, data in launches(deployment, owner))
    distribution = owner.properties.get("MixedInstancesPolicy", {}).get("InstancesDistribution", {})
    is_fleet = owner.type == "AWS::EC2::SpotFleet"
    market = str(data.get("InstanceMarketOptions", {}).get("MarketType", ON_DEMAND))
    if is_fleet or "SPOT" in _said_markets(owner) or _ALL_SPOT.items() <= distribution.items():
        market = "spot"
    facts = {
        "bought_from": _bought_from(deployment, _reserved(deployment, owner, data), market, count),
        "spot_fleet": owner.id if is_fleet else None,
    }
    # Segments are of several markets.
    return facts if "DistributionSegments" in distribution else {**facts, "market": market}


def _said_markets(owner: Resource) -> set[Any]:
    """Return the market that a group of EKS or AWS PCS names."""
    return {owner.properties.get(name) for name in ("CapacityType", "PurchaseOption")}


def _reserved(deployment: Deployment, owner: Resource, data: Mapping[str, Any]) -> list[str]:
    """Return the ids of the reservations and blocks that nodes run in, in turn."""
    target: dict[str, Any] = {}
    for place in (owner.properties, data):
        target |= place.get("CapacityReservationSpecification", {}).get("CapacityReservationTarget", {})
    groups = {f"{one.id}.Arn": one for one in of_type(deployment.resources, "AWS::ResourceGroups::Group")}
    members = [
        arn
        for group in target.get("CapacityReservationResourceGroupArns", ())
        for arn in groups[group].properties["Resources"]
    ]
    named = (*target.get("CapacityReservationIds", ()), target.get("CapacityReservationId"), *members)
    return [str(one).rpartition("/")[2] for one in named if one]


def _bought_from(deployment: Deployment, sources: list[str], market: str, count: int) -> dict[str, int]:
    """Return how many nodes run in each reservation or block, filled in turn, and how many in the market."""
    taken, ec2 = {}, deployment.client("ec2")
    for source in sources:
        (given,) = ec2.describe_capacity_reservations(CapacityReservationIds=[source])["CapacityReservations"]
        taken[source] = min(count, given["TotalInstanceCount"])
        count -= taken[source]
    return {source: number for source, number in sorted({**taken, market: count}.items()) if number}


def _made(deployment: Deployment) -> Facts:
    return {
        one.tags[NODE_GROUP_TAG]: {
            "id": one.id,
            "instances": one.properties["InstanceCount"],
            "match_criteria": one.properties["InstanceMatchCriteria"],
            "platform": one.properties["InstancePlatform"],
            # Elsewhere, EC2 would find too little of it close together.
            "placement_group": one.properties.get("PlacementGroupArn", "").rpartition("/")[2] or None,
            "ends": _moment(one.properties.get("EndDate")),
        }
        for one in of_type(deployment.resources, "AWS::EC2::CapacityReservation", "Custom::CapacityReservation")
    }


def _moment(text: str | None) -> str | None:
    return None if text is None else datetime.fromisoformat(text).isoformat()


PURCHASES = Check(
    "purchase of",
    _bought,
    lambda deployment: {
        group["name"]: group for group in deployment.found["node_groups"] if not group.get("on_hyperpod")
    },
)
RESERVATIONS = Check(
    "reservation of",
    _made,
    lambda deployment: {
        group["name"]: group["reservation"] for group in deployment.found["node_groups"] if group["reservation"]
    },
)
