"""What Spot Instances cost now, by type and Availability Zone."""

from collections.abc import Collection
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from cluster_common.times import time_text
from cluster_spend.prices import Figure, spot_price_name

if TYPE_CHECKING:
    from mypy_boto3_ec2.client import EC2Client

_SOURCE = "https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeSpotPriceHistory.html"


def spot_prices(client: "EC2Client", pools: Collection[tuple[str, str]], now: datetime) -> dict[str, Figure]:
    """Return the prices of Spot Instances by name; what EC2 has no price for is left out.

    Args:
        client: The client of EC2.
        pools: Their types and Availability Zones.
        now: The time; EC2 answers with the prices that hold then.
    """
    if not pools:
        return {}
    types: list[Any] = sorted({instance_type for instance_type, _ in pools})  # any that EC2 has
    pages = client.get_paginator("describe_spot_price_history").paginate(
        InstanceTypes=types,
        ProductDescriptions=["Linux/UNIX"],
        Filters=[{"Name": "availability-zone", "Values": sorted({zone for _, zone in pools})}],
        StartTime=now,
        EndTime=now,
    )
    latest: dict[str, tuple[datetime, Figure]] = {}
    for page in pages:
        for raw in page["SpotPriceHistory"]:
            name = spot_price_name(str(raw.get("InstanceType", "")), raw.get("AvailabilityZone", ""))
            figure = Figure(usd=Decimal(raw["SpotPrice"]), source=_SOURCE, as_of=time_text(now))
            if name not in latest or latest[name][0] < raw["Timestamp"]:
                latest[name] = (raw["Timestamp"], figure)
    return {name: figure for name, (_, figure) in latest.items()}
