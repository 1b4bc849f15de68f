"""What an On-Demand Instance costs an hour, from `prices.json`, which names its source and date.

The list is the part of the price book (`cdk_training_cluster.prices`) that functions need: a snapshot, for planning.
`make prices` refreshes it. A price that it lacks is unknown, not zero.
"""

import json
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, cast

_NEAREST_KNOWN = "us-east-1"


@cache
def on_demand_prices() -> Mapping[str, Mapping[str, float]]:
    """Return the prices in USD an hour, by instance type and region."""
    return cast(Mapping[str, Mapping[str, float]], on_demand_document()["on_demand"])


def on_demand_document(parse_float: Callable[[str], Any] = float) -> Mapping[str, Any]:
    """Return all of `prices.json`: the prices, with their source and date.

    Args:
        parse_float: What makes a number of a price. Default: - `float`
    """
    text = Path(__file__).with_name("prices.json").read_text(encoding="utf-8")
    return cast(Mapping[str, Any], json.loads(text, parse_float=parse_float))


def nearest_price(instance_type: str, region: str) -> tuple[float | None, str]:
    """Return what an instance costs an hour, in USD, and the region whose price that is.

    Args:
        instance_type: Its type.
        region: The region it runs in; where that region's price is not known it is us-east-1's. None: neither is.
    """
    found = ((on_demand_price(instance_type, place), place) for place in (region, _NEAREST_KNOWN))
    return next((each for each in found if each[0] is not None), (None, region))


def on_demand_price(instance_type: str, region: str) -> float | None:
    """Return what an instance costs an hour, in USD. None: the list does not have it.

    Args:
        instance_type: Its type.
        region: The region it runs in.
    """
    return on_demand_prices().get(instance_type, {}).get(region)
