"""Asks the AWS Price List for On-Demand prices and unit prices.

https://docs.aws.amazon.com/awsaccountbilling/latest/aboutv2/using-price-list-query-api.html
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from cdk_training_cluster.prices import UNITS, ByRegion, Price, Source
from cluster_contract.bill import without_region
from cluster_contract.price_list import (
    ADDRESS,
    attributes,
    first_tiers,
    is_on_demand,
    on_demand_fields,
    products_of_regions,
)

if TYPE_CHECKING:
    from mypy_boto3_pricing import PricingClient
    from mypy_boto3_pricing.type_defs import FilterTypeDef

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
    found: list[_Found] = []
    for name in instance_types:
        filters: list[FilterTypeDef] = [
            {"Type": "TERM_MATCH", "Field": field, "Value": value} for field, value in on_demand_fields(name).items()
        ]
        products = _products(client, "AmazonEC2", filters)
        found += _found(name, filter(is_on_demand, products))
    return _by_region(found, "instance-hour")


def unit_prices(client: "PricingClient", item: str, region: str | None = None) -> Listed:
    """Return what a unit costs, by region. Empty: this library does not know how the list names it.

    Args:
        client: The Price List.
        item: One of the names of `UNITS`.
        region: The one region that is asked for. Default: - all
    """
    unit = UNITS[item]
    if unit.service_code is None:
        return Listed(prices=ByRegion())
    wanted = [*unit.attributes, *([(unit.region_field, region)] if region else [])]
    filters: list[FilterTypeDef] = [{"Type": "TERM_MATCH", "Field": field, "Value": value} for field, value in wanted]
    if unit.usage_type:
        filters.append({"Type": "CONTAINS", "Field": "usagetype", "Value": unit.usage_type})
    products = [
        each
        for each in _products(client, unit.service_code, filters)
        if not unit.usage_type or without_region(attributes(each).get("usagetype", "")) == unit.usage_type
    ]
    return _by_region(_found(item, products), unit.unit)


def _products(
    client: "PricingClient", service_code: str, filters: "Sequence[FilterTypeDef]"
) -> Iterator[Mapping[str, Any]]:
    pages = client.get_paginator("get_products").paginate(
        ServiceCode=service_code, FormatVersion="aws_v1", Filters=filters
    )
    for page in pages:
        yield from products_of_regions(page["PriceList"])


def _found(name: str, products: Iterable[Mapping[str, Any]]) -> Iterator[_Found]:
    """Yield name, region, price and date of products."""
    yield from ((name, *each) for product in products for each in first_tiers(product))


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
