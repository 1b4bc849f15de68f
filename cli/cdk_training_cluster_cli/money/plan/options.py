"""Other ways to buy the same: how much each costs for the run, in the cluster's region and in others."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Decimal

from cdk_training_cluster import instance_type_info
from cdk_training_cluster.prices import PriceBook
from cdk_training_cluster_cli.money.plan.assumptions import Assumptions
from cdk_training_cluster_cli.money.plan.lines import unpriced
from cdk_training_cluster_cli.money.plan.shape import GroupShape
from cdk_training_cluster_cli.money.plan.work import peak_tflops

_PERCENT = Decimal(100)
HOURS_OF_A_YEAR = Decimal(8760)
SPOT = "Spot"
TRAINIUM = ("trn1.32xlarge", "trn2.48xlarge")


@dataclass(frozen=True, kw_only=True)
class Option:
    """A way to buy all nodes of a cluster.

    Attributes:
        name: The way.
        hours: How long the same work takes.
        low: What the nodes cost for the run at least, in US dollars. None: unknown.
        high: What they cost at most.
        note: What to know of it, or why it is unknown.
    """

    name: str
    hours: Decimal
    low: Decimal | None
    high: Decimal | None
    note: str


@dataclass(frozen=True, kw_only=True)
class RegionPrice:
    """What the nodes cost in a region.

    Attributes:
        region: The region.
        on_demand: US dollars for the run, On-Demand. None: unknown.
        spot_low: The lowest for Spot Instances, the interruptions' overhead included. None: unknown.
        spot_high: The highest.
    """

    region: str
    on_demand: Decimal | None
    spot_low: Decimal | None
    spot_high: Decimal | None


def on_demand_rate(groups: Sequence[GroupShape], region: str, book: PriceBook) -> Decimal | None:
    """Return what all nodes cost an hour On-Demand in just that region, on average where schedules stop them.

    Of several types, the dearest counts.

    Args:
        groups: The node groups.
        region: The region.
        book: The prices.
    """
    rates = []
    for group in groups:
        prices = [book.on_demand.get(info.name, region) for info in group.instance_types]
        known = [price.usd for price in prices if price is not None]
        if len(known) < len(prices):
            return None
        rates.append(group.count * max(known) * group.share)
    return sum(rates, Decimal(0))


def spot_rates(groups: Sequence[GroupShape], region: str, book: PriceBook) -> tuple[Decimal, Decimal] | None:
    """Return what all nodes cost an hour as Spot Instances, likewise, at the lowest and at the highest known price.

    None: the price of a type is unknown, or a group takes no Spot Instances.

    Args:
        groups: The node groups.
        region: The region.
        book: The prices.
    """
    low = high = Decimal(0)
    if not all(group.takes_spot for group in groups):
        return None
    for group in groups:
        ranges = [book.spot.get(info.name, region) for info in group.instance_types]
        known = [each for each in ranges if each is not None]
        if not known:
            return None
        low += group.count * min(each.low for each in known) * group.share
        high += group.count * max(each.high for each in known) * group.share
    return low, high


def options(groups: Sequence[GroupShape], region: str, book: PriceBook, assumptions: Assumptions) -> Iterator[Option]:
    """Yield the ways to buy the same types that their orchestrator takes, side by side.

    Args:
        groups: The node groups.
        region: The region.
        book: The prices.
        assumptions: What the plan assumes.
    """
    hours, rate = assumptions.hours, on_demand_rate(groups, region, book)
    cost = None if rate is None else rate * hours
    names = tuple(dict.fromkeys(info.name for group in groups for info in group.instance_types))
    missing = unpriced(names, region, book.on_demand)
    unknown = f"the On-Demand price of {' and '.join(missing)} in {region} is unknown"
    yield _for("On-Demand", hours, cost, unknown if rate is None else "no promise that it can be had")
    if all(group.takes_spot for group in groups):
        yield _spot(groups, region, book, assumptions)
    always = on_demand_rate([replace(group, hours_a_month=None) for group in groups], region, book)
    note = unknown if always is None else f"the On-Demand price, used or not: ${always:,.2f} for each idle hour"
    yield _for("Capacity Reservation", hours, None if always is None else always * hours, note)
    percent = assumptions.savings_plan_percent
    saved = None if rate is None or percent is None else rate * (1 - percent / _PERCENT)
    saved_cost = None if saved is None else saved * hours
    yield _for("Savings Plan", hours, saved_cost, _savings_plan_note(percent, saved, unknown))
    prepaid = "paid for beforehand, at a price of the moment, where AWS sells blocks of these types"
    yield _for("Capacity Block", hours, None, prepaid)
    yield from trainium(groups, region, book, assumptions)


def _spot(groups: Sequence[GroupShape], region: str, book: PriceBook, assumptions: Assumptions) -> Option:
    names = tuple(dict.fromkeys(info.name for group in groups for info in group.instance_types))
    no_spot, spot = unpriced(names, region, book.spot), spot_rates(groups, region, book)
    hours = assumptions.hours * (1 + assumptions.interruption_percent / _PERCENT)
    return Option(
        name=SPOT,
        hours=hours,
        low=None if spot is None else spot[0] * hours,
        high=None if spot is None else spot[1] * hours,
        note=f"the Spot price of {' and '.join(no_spot)} in {region} is unknown"
        if spot is None
        else f"{assumptions.interruption_percent:f} % longer: interruptions, assumed"
        + ("; lowest to highest price" if spot[0] < spot[1] else "")
        + (f"; without {' and '.join(no_spot)}, whose price is unknown" if no_spot else ""),
    )


def trainium(
    groups: Sequence[GroupShape], region: str, book: PriceBook, assumptions: Assumptions
) -> Iterator[Option]:
    """Yield as many Trainium nodes as compute as much at most as the cluster's nodes, for each generation.

    Args:
        groups: The node groups.
        region: The region.
        book: The prices.
        assumptions: What the plan assumes.
    """
    peaks = [(group, peak_tflops(group.instance_types[0])) for group in groups]
    known = [group.count * peak[0] for group, peak in peaks if peak is not None]
    for name in TRAINIUM:
        own, price = peak_tflops(instance_type_info(name)), book.on_demand.get(name, region)
        if own is None or any(name == group.instance_types[0].name for group in groups):
            continue
        if len(known) < len(peaks) or price is None:
            why = "the peak of a type is not known" if price is not None else f"no price is known in {region}"
            yield _for(name, assumptions.hours, None, why)
            continue
        nodes = (sum(known, Decimal(0)) / own[0]).to_integral_value(rounding=ROUND_CEILING)
        # They run as long as the nodes that they stand for.
        busy = sum((tflops * group.share for tflops, (group, _) in zip(known, peaks, strict=True)), Decimal(0))
        cost = nodes * price.usd * assumptions.hours * (busy / sum(known) if known else 1)
        note = f"the same peak, {own[0]:,f} TFLOPS a node; needs a model on Neuron"
        yield _for(f"{nodes:f} x {name}", assumptions.hours, cost, note)


def _for(name: str, hours: Decimal, usd: Decimal | None, note: str) -> Option:
    """Return an option of one price."""
    return Option(name=name, hours=hours, low=usd, high=usd, note=note)


def _savings_plan_note(percent: Decimal | None, saved: Decimal | None, unknown: str) -> str:
    if percent is None:
        return "its rate is not given: --savings-plan"
    if saved is None:
        return unknown
    used = HOURS_OF_A_YEAR * (1 - percent / _PERCENT)
    return (
        f"this run's share at {percent:f} % off, stated; a year is committed at least: "
        f"${saved * HOURS_OF_A_YEAR:,.0f}, which pays from {used:,.0f} hours of use"
    )


def regions(
    groups: Sequence[GroupShape], own: str, book: PriceBook, assumptions: Assumptions
) -> tuple[RegionPrice, ...]:
    """Return the cluster's region and those where the On-Demand price of every type is known, the cheapest first.

    Args:
        groups: The node groups.
        own: The cluster's region.
        book: The prices.
        assumptions: What the plan assumes.
    """
    slower = 1 + assumptions.interruption_percent / _PERCENT
    names = {info.name for group in groups for info in group.instance_types}
    found = []
    for region in sorted(priced_somewhere(groups, book) | {own}):
        rate = on_demand_rate(groups, region, book)
        spot = None if unpriced(tuple(names), region, book.spot) else spot_rates(groups, region, book)
        if rate is not None or region == own:
            found.append(
                RegionPrice(
                    region=region,
                    on_demand=None if rate is None else rate * assumptions.hours,
                    spot_low=None if spot is None else spot[0] * assumptions.hours * slower,
                    spot_high=None if spot is None else spot[1] * assumptions.hours * slower,
                )
            )
    return tuple(sorted(found, key=lambda each: (each.on_demand is None, each.on_demand or 0, each.region)))


def priced_somewhere(groups: Sequence[GroupShape], book: PriceBook) -> set[str]:
    """Return the regions where the On-Demand price of at least one type is known.

    Args:
        groups: The node groups.
        book: The prices.
    """
    names = {info.name for group in groups for info in group.instance_types}
    return {region for name in names for region in book.on_demand.regions(name)}
