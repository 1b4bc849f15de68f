"""A plan as tables of texts: the same for a terminal and for Markdown."""

from collections.abc import Iterator
from decimal import Decimal

from cdk_training_cluster_cli.core.output import UNKNOWN, Table, usd
from cdk_training_cluster_cli.money.plan.options import SPOT
from cdk_training_cluster_cli.money.plan.report import Plan, per_day

_YOURS = " (yours)"
_REGIONS_SHOWN = 6
_TYPES_SHOWN = 12
_SCORES_SHOWN = 10
_SHOWN_BRIEFLY = 3
_KINDS = {
    "compute": "all node groups",
    "storage": "all storage",
    "transfer": "all transfer",
    "guardrails": "metrics, alarms and functions",
    "orchestrator": "the orchestrator that runs jobs",
}
_WORDS = ((12, "trillion"), (9, "billion"), (6, "million"))


def tables(plan: Plan, *, brief: bool = False) -> Iterator[Table]:
    """Yield the tables of a plan.

    Args:
        plan: The plan.
        brief: Whether only the nodes' lines, known ways to buy and the first regions, zones and types are wanted.
    """
    yield _costs(plan, brief=brief)
    yield _hardware(plan)
    yield _options(plan, brief=brief)
    for table, most in ((_regions, _REGIONS_SHOWN), (_zones, None), (_scores, _SCORES_SHOWN), (_works, _TYPES_SHOWN)):
        yield table(plan, _SHOWN_BRIEFLY if brief and most is not None else most)


def _costs(plan: Plan, *, brief: bool) -> Table:
    hours = plan.assumptions.hours
    rows = [
        (
            line.key,
            *_amounts(line.run(hours), hours),
            line.what if line.per_hour is None else f"{line.what}: {line.basis}",
        )
        for line in plan.lines
        if line.kind == "compute" or not brief
    ]
    for kind, run in plan.by_kind().items():
        if kind == "compute" and len(rows) == 1:
            continue
        unknown = ", ".join(line.key for line in plan.unknown if line.kind == kind)
        mark = "*" if any(line.kind == kind and line.has_stand_in(plan.region) for line in plan.lines) else ""
        what = f"{unknown} not included: unknown" if unknown else _KINDS[kind]
        rows.append((kind, *_amounts(run, hours), f"{what}{mark}"))
    missing = ", ".join(line.key for line in plan.unknown)
    if missing:
        what = "without what is unknown, below" if brief else f"{missing} not included: unknown"
        rows.append(("known so far", *_amounts(plan.known, hours), what))
    if not missing or plan.total is None:
        rows.append(("total", *_amounts(plan.total, hours), "all of these"))
    rows.append(
        (
            "with contingency",
            *_amounts(plan.with_contingency, hours),
            f"{plan.assumptions.contingency_percent:f} % for restarts, failures: assumed",
        )
    )
    return Table(
        title=f"{plan.name} in {plan.availability_zone}, {hours:,f} hours, in USD",
        headings=("Line", "Hour", "Day", "Run", "What"),
        rows=tuple(rows),
        numbers=(1, 2, 3),
        bold=frozenset((*_KINDS, "known so far", "total")),
    )


def _amounts(run: Decimal | None, hours: Decimal) -> tuple[str, str, str]:
    if run is None:
        return (UNKNOWN,) * 3
    return usd(run / hours), usd(per_day(run / hours)), usd(run)


def _hardware(plan: Plan) -> Table:
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
    return Table(
        title=title,
        headings=("Group", "Nodes", "Each has", "Memory GiB", "EFA Gbps", "all nodes"),
        rows=tuple(rows),
        numbers=(3, 4, 5),
    )


def _gbps(speed: Decimal | None) -> str:
    return UNKNOWN if speed is None else f"{speed.normalize():,f}" if speed else "none"


def _options(plan: Plan, *, brief: bool) -> Table:
    shown = [each for each in plan.options if each.low is not None or not brief]
    return Table(
        title="The same nodes, bought otherwise: USD for the run, nodes alone"
        + _more(len(plan.options) - len(shown)),
        headings=("Way", "Hours", "USD", "What to know"),
        rows=tuple((each.name, f"{each.hours:,.0f}", _range(each.low, each.high), each.note) for each in shown),
        numbers=(1, 2),
    )


def _range(low: Decimal | None, high: Decimal | None) -> str:
    if low is None or high is None:
        return UNKNOWN
    return usd(low) if low == high else f"{usd(low)} to {usd(high)}"


def _regions(plan: Plan, most: int | None) -> Table:
    own = [each for each in plan.regions[most:] if each.region == plan.region]
    shown = (*plan.regions[:most], *own)
    rest = len(plan.regions) - len(shown)
    rows = [(each.region, usd(each.on_demand), _range(each.spot_low, each.spot_high)) for each in shown]
    columns = 3 if any(each.name == SPOT for each in plan.options) else 2
    return Table(
        title="Regions, by the nodes' On-Demand price: USD for the run" + _more(rest),
        headings=("Region", "On-Demand", "Spot, with interruptions")[:columns],
        rows=tuple(row[:columns] for row in rows),
        numbers=tuple(range(1, columns)),
    )


def _zones(plan: Plan, _: int | None) -> Table:
    return Table(
        title="Spot Instances now, by zone: USD an hour",
        headings=("Zone", "Id", "Type", "USD"),
        rows=tuple(
            (
                f"{each.zone}{_YOURS if each.zone == plan.availability_zone else ''}",
                each.zone_id,
                each.instance_type,
                f"{each.usd:f}",
            )
            for each in plan.zones
        ),
        numbers=(3,),
    )


def _scores(plan: Plan, most: int | None) -> Table:
    yours = {each.zone_id for each in plan.zones if each.zone == plan.availability_zone and each.zone_id}
    others = [scored for scored in plan.scores[most:] if scored[1].region == plan.region]
    shown = (*plan.scores[:most], *others)
    return Table(
        title="Spot placement scores of all nodes in one zone: 10 is likeliest; below three types EC2 scores low"
        + _more(len(plan.scores) - len(shown)),
        headings=("Group", "Region", "Zone", "Score"),
        rows=tuple(
            (group, each.region, f"{each.zone_id}{_YOURS if each.zone_id in yours else ''}", str(each.score))
            for group, each in shown
        ),
        numbers=(3,),
    )


def _works(plan: Plan, most: int | None) -> Table:
    assumptions = plan.assumptions
    if assumptions.parameters is None or assumptions.tokens is None:
        return Table(title="", headings=(), rows=())
    own = {each.instance_type for each in plan.hardware.groups}
    others = [each for each in plan.works[most:] if each.instance_type in own or each.usd is None]
    shown = (*plan.works[:most], *others)
    rest = len(plan.works) - len(shown)
    return Table(
        title=(
            f"Types, by USD for {_count(assumptions.parameters)} parameters and {_count(assumptions.tokens)} tokens "
            f"at {assumptions.utilization_percent:f} % of the peak, On-Demand in {plan.region}{_more(rest)}"
        ),
        headings=("Type", "USD an hour", "Peak TFLOPS", "Node-hours", "USD"),
        rows=tuple(
            (
                each.instance_type,
                usd(each.usd_per_hour),
                _whole(each.peak_tflops),
                _whole(each.node_hours),
                usd(each.usd),
            )
            for each in shown
        ),
        numbers=(1, 2, 3, 4),
    )


def _more(rest: int) -> str:
    return f" ({rest} more)" if rest else ""


def _whole(number: Decimal | None) -> str:
    return UNKNOWN if number is None else f"{number:,.0f}"


def _count(number: Decimal) -> str:
    """Write a large number as people say it: 70 billion."""
    word = next(((power, word) for power, word in _WORDS if number >= 10**power), None)
    return f"{number:,f}" if word is None else f"{(number / 10 ** word[0]).normalize():,f} {word[1]}"
