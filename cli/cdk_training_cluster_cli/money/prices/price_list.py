"""Asks the AWS Price List for On-Demand prices and unit prices.

https://docs.aws.amazon.com/awsaccountbilling/latest/aboutv2/using-price-list-query-api.html
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING

from cdk_training_cluster.prices import UNITS, ByRegion, Price, Source
from cluster_contract.listings import UNIT_LISTINGS, Listing, on_demand_listing
from cluster_contract.price_list import ADDRESS

if TYPE_CHECKING:
    from mypy_boto3_pricing import PricingClient

_Found = tuple[str, str, Decimal, date | None]


@dataclass(frozen=True, kw_only=True)
class Listed:
    """What the Price List says.

    Attributes:
        prices: The prices, by name and region.
        several: The names and regions that it has more than one price for, so that it is unknown which holds.
    """

    prices: ByRegion[Price]
    several: tuple[tuple[str, str], ...] = ()


def on_demand_prices(client: "PricingClient", instance_types: Sequence[str]) -> Listed:
    """Return what instances cost an hour, by region.

    Args:
        client: The Price List.
        instance_types: Their types.
    """
    found = [each for name in instance_types for each in _found(client, name, on_demand_listing(name))]
    return _by_region(found, "instance-hour")


def unit_prices(client: "PricingClient", item: str, region: str | None = None) -> Listed:
    """Return what a unit costs, by region. Empty: this library does not know how the list names it.

    Args:
        client: The Price List.
        item: One of the names of `UNITS`.
        region: The one region that is asked for. Default: - all
    """
    listing = UNIT_LISTINGS.get(item)
    return (
        Listed(prices=ByRegion())
        if listing is None
        else _by_region(_found(client, item, listing, region), UNITS[item].unit)
    )


def _found(client: "PricingClient", name: str, listing: Listing, region: str | None = None) -> Iterator[_Found]:
    """Yield name, region, price and date of an item's products."""
    for page in client.get_paginator("get_products").paginate(**listing.request(region)):
        yield from ((name, *each) for each in listing.prices(page["PriceList"]))


def _by_region(found: Iterable[_Found], unit: str) -> Listed:
    """Return one price a region, and where there are several."""
    prices: dict[tuple[str, str], set[Decimal]] = {}
    dates: set[date] = set()
    for name, region, usd, day in found:
        prices.setdefault((name, region), set()).add(usd)
        if day is not None:
            dates.add(day)
    # Of several dates the oldest is true of all.
    source = Source(address=ADDRESS, as_of=min(dates, default=None))
    return Listed(
        prices=ByRegion(
            (name, Price(usd=next(iter(each)), unit=unit, region=region, source=source))
            for (name, region), each in prices.items()
            if len(each) == 1
        ),
        several=tuple(sorted(key for key, each in prices.items() if len(each) > 1)),
    )
