"""What an On-Demand Instance costs an hour, from `prices.json`, which names its source and date.

The list is the part of the price book (`cdk_training_cluster.prices`) that functions need: a snapshot, for planning.
`make prices` refreshes it. A price that it lacks is unknown, not zero.
"""

import json
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, cast


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


def on_demand_price(instance_type: str, region: str) -> float | None:
    """Return what an instance costs an hour, in USD. None: the list does not have it.

    Args:
        instance_type: Its type.
        region: The region it runs in.
    """
    return on_demand_prices().get(instance_type, {}).get(region)
