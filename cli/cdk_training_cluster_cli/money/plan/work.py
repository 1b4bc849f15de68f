"""What useful work costs: the FLOPs that training a model needs, and what each type sustains for a dollar.

Training a dense transformer takes about 6 FLOPs for each parameter and token: https://arxiv.org/abs/2001.08361.
Peaks are dense BF16, from the vendors' documents in `peaks.json`; an accelerator without one is unknown.
"""

import json
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from importlib import resources

from cdk_training_cluster import InstanceTypeInfo
from cdk_training_cluster.instance_types import all_instance_types
from cdk_training_cluster.prices import PriceBook
from cdk_training_cluster_cli.money.plan.assumptions import Assumptions

_FLOPS_OF_A_PARAMETER_AND_TOKEN = 6
_FLOPS_OF_A_TERAFLOP = Decimal(10) ** 12
_SECONDS_OF_AN_HOUR = 3600
_PERCENT = Decimal(100)


@dataclass(frozen=True, kw_only=True)
class Peak:
    """What an accelerator computes at most.

    Attributes:
        tflops: Dense BF16 TFLOPS of one.
        source: The vendor's document.
    """

    tflops: Decimal
    source: str


@dataclass(frozen=True, kw_only=True)
class Work:
    """What a model costs on a type.

    Attributes:
        instance_type: The type.
        region: The region whose price it is.
        usd_per_hour: What a node costs an hour, On-Demand. None: unknown.
        peak_tflops: What all accelerators of a node compute at most. None: unknown.
        node_hours: How many hours of one node the model takes. None: the peak is unknown.
        usd: What that costs. None: the price or the peak is unknown.
        source: Where the peak is written. None: it is unknown.
    """

    instance_type: str
    region: str
    usd_per_hour: Decimal | None
    peak_tflops: Decimal | None
    node_hours: Decimal | None
    usd: Decimal | None
    source: str | None


@cache
def peaks() -> dict[str, Peak]:
    """Return the peaks that are known, by accelerator."""
    text = resources.files(__package__).joinpath("peaks.json").read_text(encoding="utf-8")
    document = json.loads(text, parse_float=Decimal, parse_int=Decimal)
    return {name: Peak(tflops=each["tflops"], source=each["source"]) for name, each in document.items()}


def peak_tflops(info: InstanceTypeInfo) -> tuple[Decimal, str] | None:
    """Return what a node computes at most and the source. None: the peak of an accelerator is unknown.

    Args:
        info: Its type.
    """
    found = [(peaks().get(each.name), each) for each in info.accelerators]
    if not found or any(peak is None or each.fraction != 1 for peak, each in found):
        return None
    known = [(peak, each.count) for peak, each in found if peak is not None]
    return sum((peak.tflops * count for peak, count in known), Decimal(0)), known[0][0].source


def works(region: str, book: PriceBook, assumptions: Assumptions, own: Collection[str]) -> tuple[Work, ...]:
    """Return what a model costs on the cluster's types and on each whose price and peak are known, cheapest first.

    Args:
        region: The region.
        book: The prices.
        assumptions: The model, and how much of a peak its training sustains.
        own: The cluster's types.
    """
    if assumptions.parameters is None or assumptions.tokens is None:
        return ()
    flops = _FLOPS_OF_A_PARAMETER_AND_TOKEN * assumptions.parameters * assumptions.tokens
    found = []
    for info in all_instance_types():
        price, peak = book.on_demand.get(info.name, region), peak_tflops(info)
        if (price is not None and peak is not None) or info.name in own:
            utilization = assumptions.utilization_percent / _PERCENT
            sustained = None if peak is None else peak[0] * _FLOPS_OF_A_TERAFLOP * utilization
            hours = None if sustained is None else flops / sustained / _SECONDS_OF_AN_HOUR
            found.append(
                Work(
                    instance_type=info.name,
                    region=region,
                    usd_per_hour=None if price is None else price.usd,
                    peak_tflops=None if peak is None else peak[0],
                    node_hours=hours,
                    usd=None if hours is None or price is None else hours * price.usd,
                    source=None if peak is None else peak[1],
                )
            )
    return tuple(sorted(found, key=lambda each: (each.usd is None, each.usd or 0, each.instance_type)))


def left_out(region: str, book: PriceBook, own: Collection[str]) -> Iterator[str]:
    """Yield which other types with accelerators are not compared, and why.

    Args:
        region: The region.
        book: The prices.
        own: The cluster's types, which are compared anyway.
    """
    others = [info for info in all_instance_types() if info.accelerators and info.name not in own]
    no_peak = {each.name for info in others if peak_tflops(info) is None for each in info.accelerators}
    no_price = [
        info.name
        for info in others
        if peak_tflops(info) is not None and book.on_demand.get(info.name, region) is None
    ]
    if no_price:
        yield f"types left out, because their price in {region} is unknown: {', '.join(sorted(no_price))}"
    if no_peak:
        yield f"accelerators whose types are left out, because their peak is unknown: {', '.join(sorted(no_peak))}"
