"""Asks EC2 what Spot Instances cost now, and how likely it is that there are any."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING

from cdk_training_cluster.prices import ByRegion, Source, SpotRange

if TYPE_CHECKING:
    from mypy_boto3_ec2 import EC2Client

ADDRESS = "https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeSpotPriceHistory.html"
MAX_REGIONS = 10
"""How many regions GetSpotPlacementScores takes; botocore's model of EC2 says so too."""

# `us-east-1b`; the names of Local and Wavelength Zones go on: `us-east-1-atl-2a`.
_ZONE_OF_A_REGION = re.compile(r"[a-z]+(?:-[a-z]+)+-\d[a-z]")


@dataclass(frozen=True, kw_only=True)
class ZonePrice:
    """What a Spot Instance costs in a zone.

    Attributes:
        instance_type: Its type.
        zone: The zone's name, as the account has it.
        usd: US dollars an hour.
        zone_id: The zone's id, which placement scores name; empty where EC2 did not say it.
    """

    instance_type: str
    zone: str
    usd: Decimal
    zone_id: str = ""


@dataclass(frozen=True, kw_only=True)
class PlacementScore:
    """How likely EC2 calls it that so many Spot Instances can be had.

    Attributes:
        region: The region.
        zone_id: The zone.
        score: 1 to 10; no promise, and only of the moment.
    """

    region: str
    zone_id: str
    score: int


@dataclass(frozen=True, kw_only=True)
class SpotMarket:
    """What Spot Instances cost in a region.

    Attributes:
        region: The region.
        zones: By type and zone, sorted; Local Zones are left out.
        ranges: By type.
    """

    region: str
    zones: tuple[ZonePrice, ...]
    ranges: ByRegion[SpotRange]


def spot_market(client: "EC2Client", region: str, instance_types: Sequence[str], now: datetime) -> SpotMarket:
    """Return what Spot Instances of some types cost in a region now.

    Args:
        client: EC2 in that region.
        region: The region.
        instance_types: The types.
        now: The time; EC2 answers with the prices that hold then.
    """
    latest: dict[tuple[str, str], tuple[datetime, Decimal, str]] = {}
    pages = client.get_paginator("describe_spot_price_history").paginate(
        InstanceTypes=list(instance_types),  # type: ignore[arg-type]  # any type that EC2 has
        ProductDescriptions=["Linux/UNIX"],
        StartTime=now,
        EndTime=now,
    )
    for page in pages:
        for entry in page["SpotPriceHistory"]:
            key = (str(entry["InstanceType"]), entry["AvailabilityZone"])
            seen = (entry["Timestamp"], Decimal(entry["SpotPrice"]), entry.get("AvailabilityZoneId", key[1]))
            if _ZONE_OF_A_REGION.fullmatch(key[1]) and (key not in latest or latest[key][0] < seen[0]):
                latest[key] = seen
    source = Source(address=ADDRESS, as_of=now.date())
    ranges = []
    for name in sorted({name for name, _ in latest}):
        entries = [(usd, zone_id) for (each, _), (_, usd, zone_id) in latest.items() if each == name]
        ranges.append(
            (
                name,
                SpotRange(
                    low=min(entries)[0],
                    high=max(entries)[0],
                    zones=tuple(sorted(zone_id for _, zone_id in entries)),
                    region=region,
                    source=source,
                ),
            )
        )
    zones = [
        ZonePrice(instance_type=name, zone=zone, usd=usd, zone_id=zone_id)
        for (name, zone), (_, usd, zone_id) in sorted(latest.items())
    ]
    return SpotMarket(region=region, zones=tuple(zones), ranges=ByRegion(ranges))


def placement_scores(
    client: "EC2Client", regions: Sequence[str], instance_types: Sequence[str], nodes: int
) -> tuple[PlacementScore, ...]:
    """Return how likely it is that so many Spot Instances can be had in one zone, the likeliest first.

    EC2 scores fewer than three types low: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/how-sps-works.html

    Args:
        client: EC2 in any region.
        regions: The regions, at most `MAX_REGIONS`.
        instance_types: The types.
        nodes: How many nodes there are to be.
    """
    pages = client.get_paginator("get_spot_placement_scores").paginate(
        InstanceTypes=list(instance_types),
        TargetCapacity=nodes,
        TargetCapacityUnitType="units",
        SingleAvailabilityZone=True,
        RegionNames=list(regions),
    )
    scores = [
        PlacementScore(region=each["Region"], zone_id=each.get("AvailabilityZoneId", ""), score=each["Score"])
        for page in pages
        for each in page["SpotPlacementScores"]
    ]
    return tuple(sorted(scores, key=lambda each: (-each.score, each.region, each.zone_id)))
