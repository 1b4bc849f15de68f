"""The lines of a plan: what each part of a cluster costs, and what that rests on."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time
from decimal import Decimal

from cdk_training_cluster.prices import UNITS, ByRegion, Price, PriceBook, SpotRange
from cdk_training_cluster_cli.money.plan.assumptions import HOURS_OF_A_MONTH, Assumptions
from cdk_training_cluster_cli.money.plan.shape import ClusterShape, GroupShape
from cluster_contract.prices import VOLUME_PRICE, on_demand_price_name, on_demand_type

_ZERO = Decimal(0)
_PERCENT = Decimal(100)
BLOCK_PRICES = "https://aws.amazon.com/ec2/capacityblocks/pricing/"


@dataclass(frozen=True, kw_only=True)
class Line:
    """What a part of a cluster costs.

    Attributes:
        key: Its name, such as `compute.workers`; the part before the point is its kind.
        what: What is billed, as text.
        per_hour: US dollars an hour while all nodes run. None: unknown.
        once: US dollars that come once in a run.
        basis: How the amount comes about, or why it is unknown.
        figures: The prices that it rests on.
        longer: By which factor it is billed for more hours than the run has, because of interruptions, or for fewer,
            because of a schedule.
        units: What it is made of beside nodes of EC2's, by the names of `UNITS` or of On-Demand prices.
    """

    key: str
    what: str
    per_hour: Decimal | None
    once: Decimal = _ZERO
    basis: str
    figures: tuple[Price | SpotRange, ...] = ()
    longer: Decimal = Decimal(1)
    units: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        """`compute`, `storage`, `transfer`, `guardrails` or `orchestrator`."""
        return self.key.partition(".")[0]

    def has_stand_in(self, region: str) -> bool:
        """Say whether it rests on the price of another region.

        Args:
            region: The cluster's region.
        """
        return any(figure.region != region for figure in self.figures)

    def run(self, hours: Decimal) -> Decimal | None:
        """Return what it costs in a run, in US dollars. None: unknown.

        Args:
            hours: How long the run takes.
        """
        return None if self.per_hour is None else self.per_hour * self.longer * hours + self.once


def total(lines: Iterable[Line], hours: Decimal) -> Decimal:
    """Add up what is known of some lines.

    Args:
        lines: The lines.
        hours: How long the run takes.
    """
    return sum((cost for line in lines if (cost := line.run(hours)) is not None), _ZERO)


def compute_lines(
    groups: Sequence[GroupShape], region: str, book: PriceBook, assumptions: Assumptions, *, zone: str | None = None
) -> tuple[Line, ...]:
    """Return a line for each node group, as it is bought.

    Args:
        groups: The node groups.
        region: The region they run in.
        book: The prices.
        assumptions: What the plan assumes.
        zone: The zone whose Spot prices these are. Default: - those of the region's zones
    """
    return tuple(compute_line(group, region, book, assumptions, zone=zone) for group in groups)


def compute_line(
    group: GroupShape, region: str, book: PriceBook, assumptions: Assumptions, *, zone: str | None = None
) -> Line:
    """Return what a node group costs, as it is bought; of several types, what the dearest costs.

    Args:
        group: The node group.
        region: The region it runs in.
        book: The prices.
        assumptions: What the plan assumes.
        zone: The zone whose Spot prices these are. Default: - those of the region's zones
    """
    key, names = f"compute.{group.name}", group.priced_as
    what = f"{group.count} x {' or '.join(names)}, {group.capacity.describe()}"
    if group.capacity.usage_classes == ("capacity-block",):
        basis = f"a block is paid for when it is bought, see {BLOCK_PRICES}; state what it cost: --cost {key}=USD"
        return Line(key=key, what=what, per_hour=None, basis=basis)
    if group.capacity.uses_spot:
        return _spot_line(group, region, book, assumptions, key=key, what=what, zone=zone)
    elsewhere = () if group.sold_by_ec2 else tuple(map(on_demand_price_name, names))
    missing = unpriced(names, region, book.on_demand)
    if missing:
        unknown = f"the On-Demand price of {' and '.join(missing)} in {region} is unknown"
        basis = f"{unknown}: --price {missing[0]}=USD states one"
        return Line(key=key, what=what, per_hour=None, basis=basis, units=elsewhere)
    prices = [price for name in names if (price := book.on_demand.get(name, region)) is not None]
    dearest = max(prices, key=lambda price: price.usd)
    prepaid = "; nodes in a Capacity Block are counted at that price too, but are paid for beforehand"
    also = prepaid if group.capacity.block_ids else ""
    return Line(
        key=key,
        what=what,
        per_hour=group.count * dearest.usd,
        basis=f"{group.count} x ${dearest.usd:f}{also}{_at_times(group)}",
        figures=(dearest,),
        longer=group.share,
        units=elsewhere,
    )


def unpriced(names: Sequence[str], region: str, figures: ByRegion[Price] | ByRegion[SpotRange]) -> list[str]:
    """Return the types without a figure in a region.

    Args:
        names: The types.
        region: The region.
        figures: The figures.
    """
    return [name for name in names if figures.get(name, region) is None]


def _spot_line(
    group: GroupShape,
    region: str,
    book: PriceBook,
    assumptions: Assumptions,
    *,
    key: str,
    what: str,
    zone: str | None,
) -> Line:
    """Price Spot at the highest price that was seen in the region of a type, but at no more than the group pays."""
    names = group.priced_as
    missing = unpriced(names, region, book.spot)
    ranges = [each for name in names if (each := book.spot.get(name, region)) is not None]
    if not ranges:
        types = " and ".join(missing)
        unknown = f"the Spot price of {types} in {region} is unknown; ask with --live, or"
        basis = unknown if zone is None else f"EC2 has no Spot price of {types} in {zone};"
        return Line(key=key, what=what, per_hour=None, basis=f"{basis} state --cost {key}=USD")
    dearest = max(ranges, key=lambda each: each.high)
    limit = group.capacity.max_price_text
    usd = dearest.high if limit is None else min(dearest.high, Decimal(limit))
    low, place = min(each.low for each in ranges), zone or region
    seen = f"Spot was ${low:f}{f' to ${dearest.high:f}' if low < dearest.high else ''} in {place}"
    percent = assumptions.interruption_percent
    without = f", without {' and '.join(missing)}, whose Spot price is unknown" if missing else ""
    return Line(
        key=key,
        what=what,
        per_hour=group.count * usd,
        basis=f"{group.count} x ${usd:f}; {seen}{without}; {percent:f} % longer for interruptions, assumed"
        f"{_at_times(group)}",
        figures=(dearest,),
        longer=(1 + percent / _PERCENT) * group.share,
    )


def _at_times(group: GroupShape) -> str:
    jobs = "; at most: its nodes run only while jobs need them" if group.runs_for_jobs else ""
    if group.hours_a_month is None:
        return jobs
    return f"; {group.hours_a_month} of {HOURS_OF_A_MONTH} hours a month, by its schedule{jobs}"


def units_line(
    key: str,
    what: str,
    *,
    region: str,
    book: PriceBook,
    an_hour: Mapping[str, Decimal] | None = None,
    once: Mapping[str, Decimal] | None = None,
    note: str = "",
) -> Line:
    """Return what costs so many units of the price book.

    Args:
        key: The line's name.
        what: What is billed, as text.
        region: The region.
        book: The prices.
        an_hour: How many units an hour takes, by the names of `UNITS`.
        once: How many units come once in a run.
        note: What else to know of it.
    """
    running, single = ({item: count for item, count in (each or {}).items() if count} for each in (an_hour, once))
    found = {item: book.units.nearest(item, region) for item in (*running, *single)}
    prices = {item: price for item, price in found.items() if price is not None}
    missing = sorted(set(found) - set(prices))
    if missing:
        basis = f"no price is known: --price {missing[0]}=USD states one"
        return Line(key=key, what=what, per_hour=None, basis=basis, units=tuple(found))
    rates = [f"${price.usd:f}{_elsewhere(price, region)} per {price.unit}" for price in prices.values()]
    return Line(
        key=key,
        what=what,
        per_hour=sum((count * prices[item].usd for item, count in running.items()), _ZERO),
        once=sum((count * prices[item].usd for item, count in single.items()), _ZERO),
        basis=" + ".join(rates) + note,
        figures=tuple(prices.values()),
        units=tuple(found),
    )


def orchestrator_lines(shape: ClusterShape, book: PriceBook, *, today: date, hours: Decimal) -> Iterator[Line]:
    """Yield what the orchestrator that runs jobs bills beside its nodes.

    Args:
        shape: The cluster.
        book: The prices.
        today: The day on which the run begins, in UTC.
        hours: How long the run takes.
    """
    for item, count in shape.orchestrator_units.items():
        start = shape.billing_starts.get(item)
        part = Decimal(1) if start is None else _part_after(start, today, hours)
        if not part:
            continue
        instance_type = on_demand_type(item)
        if instance_type is not None:
            yield _own_nodes_line(instance_type, count, shape.region, book)
        elif item == VOLUME_PRICE:
            what = f"gp3, {count * HOURS_OF_A_MONTH:,.0f} GiB on the orchestrator's own nodes"
            yield units_line("orchestrator.root-volumes", what, region=shape.region, book=book, an_hour={item: count})
        else:
            key, what = f"orchestrator.{item}", f"{count:f} x {UNITS[item].what}"
            note = "" if start is None or part == 1 else f"; from {start.date()} on"
            line = units_line(key, what, region=shape.region, book=book, an_hour={item: count}, note=note)
            yield replace(line, longer=part)


def _part_after(start: datetime, today: date, hours: Decimal) -> Decimal:
    """Return the part of a run that begins today after which something is billed."""
    before = Decimal(int((start - datetime.combine(today, time(), UTC)).total_seconds())) / 3600
    return max(min((hours - before) / hours, Decimal(1)), _ZERO)


def _own_nodes_line(instance_type: str, count: Decimal, region: str, book: PriceBook) -> Line:
    key, what = (
        f"orchestrator.{instance_type}",
        f"{count:f} x {instance_type}, the orchestrator's own nodes, on demand",
    )
    price = book.on_demand.nearest(instance_type, region)
    if price is None:
        basis = f"no price is known: --price {instance_type}=USD states one"
        return Line(key=key, what=what, per_hour=None, basis=basis, units=(on_demand_price_name(instance_type),))
    basis = f"{count:f} x ${price.usd:f}{_elsewhere(price, region)}"
    return Line(
        key=key,
        what=what,
        per_hour=count * price.usd,
        basis=basis,
        figures=(price,),
        units=(on_demand_price_name(instance_type),),
    )


def with_stated_costs(lines: Sequence[Line], assumptions: Assumptions) -> tuple[Line, ...]:
    """Put the costs that a user states in place of the computed ones.

    Args:
        lines: The lines.
        assumptions: The costs.

    Raises:
        ValueError: A cost names no line.
    """
    keys = [line.key for line in lines]
    for key in assumptions.costs:
        if key not in keys:
            raise ValueError(f"--cost names a line of the plan: {', '.join(keys)}; got {key!r}")
    return tuple(
        line
        if line.key not in assumptions.costs
        else replace(line, per_hour=_ZERO, once=assumptions.costs[line.key], basis="stated for the run", figures=())
        for line in lines
    )


def _elsewhere(price: Price, region: str) -> str:
    return "" if price.region == region else "*"
