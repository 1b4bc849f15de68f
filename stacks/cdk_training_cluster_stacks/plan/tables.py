"""A plan as tables of texts: the same for a terminal and for Markdown."""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from cdk_training_cluster_stacks.plan.report import Plan, per_day

_UNKNOWN = "unknown"
_REGIONS_SHOWN = 6
_TYPES_SHOWN = 12
_SCORES_SHOWN = 10
_CENTS_BELOW = 1000


@dataclass(frozen=True, kw_only=True)
class PlanTable:
    """A table of texts.

    Attributes:
        title: What it shows.
        headings: The headings of its columns.
        rows: Its rows.
        numbers: The positions of columns that hold numbers.
    """

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: tuple[int, ...] = ()


def usd(amount: Decimal | None) -> str:
    """Write an amount as people read it: cents where they matter.

    Args:
        amount: US dollars. None: unknown.
    """
    if amount is None:
        return _UNKNOWN
    if 0 < amount < Decimal("0.01"):
        return "< 0.01"
    return f"{amount:,.0f}" if amount >= _CENTS_BELOW else f"{amount:,.2f}"


def tables(plan: Plan) -> Iterator[PlanTable]:
    """Yield the tables of a plan, each of which has rows.

    Args:
        plan: The plan.
    """
    found = (_costs(plan), _hardware(plan), _options(plan), _regions(plan), _zones(plan), _scores(plan), _works(plan))
    yield from (table for table in found if table.rows)


def notes(plan: Plan) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield what is said beside the tables: a heading and its sentences.

    Args:
        plan: The plan.
    """
    unknown = tuple(f"{line.key}: {line.basis}" for line in plan.unknown)
    if unknown:
        yield "Unknown, and in no sum", unknown
    yield "Know before paying", plan.warnings
    yield "Assumed", tuple(_assumed(plan))
    yield (
        "Prices from",
        tuple(f"{source.address}, {age}{f'. {source.note}' if source.note else ''}" for source, age in plan.sources),
    )


def _costs(plan: Plan) -> PlanTable:
    hours = plan.assumptions.hours
    rows = [
        (
            line.key,
            *_amounts(line.run(hours), hours),
            line.what if line.per_hour is None else f"{line.what}: {line.basis}",
        )
        for line in plan.lines
    ]
    missing = ", ".join(line.key for line in plan.unknown)
    if missing:
        rows.append(("known so far", *_amounts(plan.known, hours), f"{missing} not included: unknown"))
    if not missing or plan.total is None:
        rows.append(("total", *_amounts(plan.total, hours), "all of these"))
    rows.append(
        (
            "with contingency",
            *_amounts(plan.with_contingency, hours),
            f"{plan.assumptions.contingency_percent:f} % for restarts and failures, assumed",
        )
    )
    return PlanTable(
        title=f"{plan.name} in {plan.availability_zone}, {hours:,f} hours, in USD",
        headings=("Line", "Hour", "Day", "Run", "What"),
        rows=tuple(rows),
        numbers=(1, 2, 3),
    )


def _amounts(run: Decimal | None, hours: Decimal) -> tuple[str, str, str]:
    if run is None:
        return (_UNKNOWN,) * 3
    return usd(run / hours), usd(per_day(run / hours)), usd(run)


def _hardware(plan: Plan) -> PlanTable:
    hardware = plan.hardware
    rows = [
        (
            each.group,
            f"{each.nodes} x {each.instance_type}",
            each.accelerators,
            f"{each.memory_gib:,.0f}",
            _gbps(each.efa_gbps),
            _gbps(None if each.efa_gbps is None else each.efa_gbps * each.nodes),
        )
        for each in hardware.groups
    ]
    if len(rows) > 1:
        devices = f"{hardware.accelerator_count:,} accelerators"
        rows.append(("all", "", devices, f"{hardware.memory_gib:,.0f}", "", _gbps(hardware.efa_gbps)))
    speed, each_has = hardware.file_system_gb_per_second, hardware.file_system_gb_per_second_per_accelerator
    title = f"{hardware.accelerator_count:,} accelerators"
    if speed is not None:
        share = "" if each_has is None else f", {each_has:.3f} GB/s for each accelerator"
        title += f"; file system {speed:,.2f} GB/s{share}"
    return PlanTable(
        title=title,
        headings=("Group", "Nodes", "Accelerators of a node", "Memory GiB", "EFA Gbps", "of all nodes"),
        rows=tuple(rows),
        numbers=(3, 4, 5),
    )


def _gbps(speed: Decimal | None) -> str:
    return _UNKNOWN if speed is None else f"{speed.normalize():,f}" if speed else "none"


def _options(plan: Plan) -> PlanTable:
    return PlanTable(
        title="The same nodes, bought otherwise: USD for the run, nodes alone",
        headings=("Way", "Hours", "USD", "What to know"),
        rows=tuple(
            (each.name, f"{each.hours:,.0f}", _range(each.low, each.high), each.note) for each in plan.options
        ),
        numbers=(1, 2),
    )


def _range(low: Decimal | None, high: Decimal | None) -> str:
    if low is None or high is None:
        return _UNKNOWN
    return usd(low) if low == high else f"{usd(low)} to {usd(high)}"


def _regions(plan: Plan) -> PlanTable:
    shown = plan.regions[:_REGIONS_SHOWN]
    rest = len(plan.regions) - len(shown)
    return PlanTable(
        title="Regions, by the nodes' On-Demand price: USD for the run" + (f" ({rest} more)" if rest else ""),
        headings=("Region", "On-Demand", "Spot, with interruptions"),
        rows=tuple((each.region, usd(each.on_demand), _range(each.spot_low, each.spot_high)) for each in shown),
        numbers=(1, 2),
    )


def _zones(plan: Plan) -> PlanTable:
    return PlanTable(
        title="Spot Instances now, by zone: USD an hour",
        headings=("Zone", "Type", "USD"),
        rows=tuple((each.zone, each.instance_type, f"{each.usd:f}") for each in plan.zones),
        numbers=(2,),
    )


def _scores(plan: Plan) -> PlanTable:
    return PlanTable(
        title="Spot placement scores of all nodes in one zone: 10 is likeliest; below three types EC2 scores low",
        headings=("Group", "Region", "Zone", "Score"),
        rows=tuple(
            (group, each.region, each.zone_id, str(each.score)) for group, each in plan.scores[:_SCORES_SHOWN]
        ),
        numbers=(3,),
    )


def _works(plan: Plan) -> PlanTable:
    assumptions = plan.assumptions
    if assumptions.parameters is None or assumptions.tokens is None:
        return PlanTable(title="", headings=(), rows=())
    return PlanTable(
        title=(
            f"Types, by USD for {assumptions.parameters:.3g} parameters and {assumptions.tokens:.3g} tokens at "
            f"{assumptions.utilization_percent:f} % of the peak, On-Demand in {plan.region}"
        ),
        headings=("Type", "USD an hour", "Peak TFLOPS", "Node-hours", "USD"),
        rows=tuple(
            (
                each.instance_type,
                usd(each.usd_per_hour),
                f"{each.peak_tflops:,.0f}",
                f"{each.node_hours:,.0f}",
                usd(each.usd),
            )
            for each in plan.works[:_TYPES_SHOWN]
        ),
        numbers=(1, 2, 3, 4),
    )


def _assumed(plan: Plan) -> Iterator[str]:
    yield (
        "a month has 730 hours; a GB of a volume or file system is billed as a GiB; taxes, support and free tiers "
        "are left out"
    )
    if plan.works:
        sources = sorted({each.source for each in plan.works})
        yield (
            "training takes 6 FLOPs for each parameter and token (https://arxiv.org/abs/2001.08361); "
            f"peaks are dense BF16 of {'; '.join(sources)}"
        )
    for name, price in sorted(plan.assumptions.prices.items()):
        yield f"you state ${price:f} for {name}"
