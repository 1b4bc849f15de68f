"""Write the price book from the AWS Price List and the history of Spot prices, with your credentials.

    python scripts/generate_prices.py                                      # Spot prices of every enabled region
    python scripts/generate_prices.py --region us-east-1 --region us-west-2

It needs pricing:GetProducts, ec2:DescribeSpotPriceHistory and, without --region, ec2:DescribeRegions. The Price List
has the On-Demand prices of all regions. What AWS gives no price for is left out, and is unknown from then on; items
that this library cannot find in the Price List keep the price they have.
"""

import argparse
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from cdk_training_cluster.instance_types import AcceleratorKind, all_instance_types
from cdk_training_cluster.orchestrators.eks.settings import SystemNodes
from cdk_training_cluster.orchestrators.slurm.settings import LoginNodes
from cdk_training_cluster.prices import UNITS, ByRegion, PriceBook, committed_prices
from cdk_training_cluster.prices.files import contract_text, snapshot_text
from cdk_training_cluster_cli.core.session import aws_session
from cdk_training_cluster_cli.money.prices.price_list import on_demand_prices, unit_prices
from cdk_training_cluster_cli.money.prices.spot_market import spot_market
from cluster_contract.price_list import REGION

if TYPE_CHECKING:
    import boto3

_PROJECT = Path(__file__).parents[1]
SNAPSHOT = _PROJECT / "constructs/cdk_training_cluster/prices/snapshot.json"
CONTRACT = _PROJECT / "lambdas/cluster_contract/prices.json"
_TRAINING = {AcceleratorKind.GPU, AcceleratorKind.NEURON}


def training_types() -> tuple[str, ...]:
    """Return the types with GPUs or Neuron devices, and the default types of the orchestrators' own nodes."""
    nodes = (info.name for info in all_instance_types() if any(each.kind in _TRAINING for each in info.accelerators))
    return (*nodes, SystemNodes().instance_type, LoginNodes().instance_type)


def asked(
    session: "boto3.Session", types: Sequence[str], regions: Sequence[str], now: datetime
) -> tuple[PriceBook, list[str]]:
    """Return what AWS says, and of what the Price List has several prices: these are unknown.

    Args:
        session: The user's credentials.
        types: The instance types.
        regions: The regions whose Spot prices are asked for; none for every one that the account has enabled.
        now: The time.
    """
    wanted = sorted(regions) or sorted(
        region["RegionName"]
        for region in session.client("ec2", region_name=REGION).describe_regions()["Regions"]
        if "RegionName" in region
    )
    pricing = session.client("pricing", region_name=REGION)
    markets = [spot_market(session.client("ec2", region_name=region), region, types, now) for region in wanted]
    on_demand, units = on_demand_prices(pricing, types), [unit_prices(pricing, item) for item in UNITS]
    book = PriceBook(
        on_demand=on_demand.prices,
        units=ByRegion(entry for each in units for entry in each.prices.items()),
        spot=ByRegion(entry for market in markets for entry in market.ranges.items()),
    )
    return book, [f"{name} in {region}" for each in (on_demand, *units) for name, region in each.several]


def refreshed(before: PriceBook, found: PriceBook) -> PriceBook:
    """Put what AWS said in place of what was there; units that it said nothing of stay.

    Args:
        before: The book that was there.
        found: What AWS said.

    Raises:
        ValueError: It has no On-Demand price at all.
    """
    if not found.on_demand.items():
        raise ValueError("the Price List has no On-Demand price of any type; the files stay as they are")
    units = PriceBook(units=before.units).updated(PriceBook(units=found.units)).units
    return PriceBook(on_demand=found.on_demand, spot=found.spot, units=units)


def main(arguments: list[str] | None = None) -> int:
    """Write the price book; return the exit status.

    Args:
        arguments: The command line. Default: - this process's
    """
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--region", action="append", default=[], help="a region to ask for Spot prices (repeatable)")
    options = parser.parse_args(arguments)
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - nothing else of this module needs it

    before = committed_prices()
    try:
        session = aws_session("make prices")
        found, several = asked(session, training_types(), options.region, datetime.now(UTC))
        book = refreshed(before, found)
    except (BotoCoreError, ClientError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    SNAPSHOT.write_text(snapshot_text(book), encoding="utf-8")
    CONTRACT.write_text(contract_text(book), encoding="utf-8")
    for what, old, new in (
        ("On-Demand prices", before.on_demand, book.on_demand),
        ("Spot prices", before.spot, book.spot),
        ("unit prices", before.units, book.units),
    ):
        print(f"{what}: {len(new.items())}, before {len(old.items())}")
    for each in several:
        print(f"unknown, since the Price List has several prices: {each}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
