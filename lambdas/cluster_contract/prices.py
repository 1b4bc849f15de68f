"""What On-Demand Instances and other units cost, from `prices.json`, which names sources and dates.

The list is the part of the price book (`cdk_training_cluster.prices`) that functions need: a snapshot, for planning.
`make prices` refreshes it. A price that it lacks is unknown, not zero.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any, cast

NEAREST_KNOWN = "us-east-1"
"""The region whose price stands in where that of a region is not known; what shows it says so."""


VOLUME_PRICE = "ebs-gp3"
"""The name of the price of a root volume."""

_ON_DEMAND = "on-demand "


def on_demand_price_name(instance_type: str) -> str:
    """Return the name of the price of an On-Demand Instance.

    Args:
        instance_type: Its type.
    """
    return _ON_DEMAND + instance_type


def on_demand_type(name: str) -> str | None:
    """Return the instance type of a name that `on_demand_price_name` made. None: it is another's.

    Args:
        name: The name of a price.
    """
    return name.removeprefix(_ON_DEMAND) if name.startswith(_ON_DEMAND) else None


@cache
def on_demand_prices() -> Mapping[str, Mapping[str, float]]:
    """Return the prices in USD an hour, by instance type and region."""
    return cast(Mapping[str, Mapping[str, float]], price_document()["on_demand"])


@cache
def price_document(parse_float: Callable[[str], Any] = float) -> Mapping[str, Any]:
    """Return all of `prices.json`: the prices, with their source and date.

    Args:
        parse_float: What makes a number of a price. Default: - `float`
    """
    text = Path(__file__).with_name("prices.json").read_text(encoding="utf-8")
    return cast(Mapping[str, Any], json.loads(text, parse_float=parse_float))


def on_demand_price(instance_type: str, region: str) -> float | None:
    """Return what an instance costs an hour, in USD. None: the list does not have it.

    Args:
        instance_type: Its type.
        region: The region it runs in.
    """
    return on_demand_prices().get(instance_type, {}).get(region)


@dataclass(frozen=True, kw_only=True)
class UnitPrice:
    """What a unit costs.

    Attributes:
        usd: US dollars.
        region: The region whose price it is.
        source: The address that it was read at.
        as_of: The day on which it held. Empty: the source gives none.
    """

    usd: Decimal
    region: str
    source: str
    as_of: str


def unit_price(name: str, region: str) -> UnitPrice | None:
    """Return what a unit costs in a region, or in the one that stands in for it. None: it is not known anywhere.

    Args:
        name: The unit's name in the price book, such as `ebs-gp3`.
        region: The region.
    """
    known = _unit_prices().get(name, {})
    for each in (region, NEAREST_KNOWN, *sorted(known)):
        if each in known:
            return known[each]
    return None


@cache
def _unit_prices() -> Mapping[str, Mapping[str, UnitPrice]]:
    found: dict[str, dict[str, UnitPrice]] = {}
    for group in price_document()["units"]:
        for name, regions in group["prices"].items():
            for region, usd in regions.items():
                price = UnitPrice(usd=Decimal(usd), region=region, source=group["source"], as_of=group["as_of"] or "")
                found.setdefault(name, {})[region] = price
    return found
