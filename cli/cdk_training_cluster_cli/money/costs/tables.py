"""What is shown of what a cluster has cost."""

from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal

from cdk_training_cluster_cli.core.output import UNKNOWN, Document, Table, usd
from cdk_training_cluster_cli.money.costs.report import CostReport
from cluster_contract.bill import USD_A_REQUEST
from cluster_contract.daily_costs import MIN_DAYS

_DAYS_SHOWN = 14
_ITEMS_SHOWN = 4
_PERCENT = Decimal(100)
_DAYS_OF_A_WEEK = 7


def document(report: CostReport, *, brief: bool) -> Document:
    """Return what is shown of a report.

    Args:
        report: The report.
        brief: Whether it is for a terminal: with the newest days and the dearest items.
    """
    return Document(
        tables=(_days(report, brief=brief), _items(report), _use(report)),
        notes=(
            ("Spikes and trend", tuple(_changes(report))),
            ("Would have cost less", report.advice),
            ("Know", tuple(_notes(report))),
        ),
        conclusion=_conclusion(report),
    )


def _days(report: CostReport, *, brief: bool) -> Table:
    dearest = list(report.bill.by_item())
    items = dearest[:_ITEMS_SHOWN] if brief else dearest
    by_item = {item: report.bill.by_day(item.__eq__) for item in items}
    spikes = {spike.day for spike in report.spikes}
    days = report.days[-_DAYS_SHOWN:] if brief else report.days
    hidden = len(report.days) - len(days)
    others = brief and len(dearest) > len(items)
    return Table(
        title=f"{report.name} in {report.region}, {report.bill.currency} a day (UTC)"
        + (f", the last {len(days)} of {len(report.days)} days" if hidden else ""),
        headings=("Day", "All", *items, *(["others"] if others else []), ""),
        rows=tuple(
            (
                f"{day:%a} {day}",
                usd(amount),
                *(usd(by_item[item][day]) for item in items),
                *([usd(amount - sum(by_item[item][day] for item in items))] if others else []),
                "spike" if day in spikes else "",
            )
            for day, amount in days
        ),
        numbers=tuple(range(1, len(items) + 2 + others)),
    )


def _items(report: CostReport) -> Table:
    hours: dict[str, Decimal] = {}
    for charge in report.bill.charges:
        if charge.hours is not None:
            hours[charge.item] = hours.get(charge.item, Decimal(0)) + charge.hours
    return Table(
        title=f"By item, {report.bill.currency} in {len(report.days)} days",
        headings=("Item", "All", "Share %", "Node-hours", "each"),
        rows=tuple(
            (
                item,
                usd(amount),
                f"{amount / report.total * _PERCENT:.1f}" if report.total else "",
                f"{hours[item]:,.0f}" if item in hours else "",
                usd(amount / hours[item]) if hours.get(item) else "",
            )
            for item, amount in report.bill.by_item().items()
        ),
        numbers=(1, 2, 3, 4),
    )


def _use(report: CostReport) -> Table:
    groups = () if report.usage is None else report.usage.groups
    return Table(
        title="What accelerators did, percent of their time",
        headings=("Group", "Hours with data", "Average", "Busiest hour", "Highest", "Memory GiB"),
        rows=tuple(
            (
                use.group,
                f"{use.hours:,}",
                *(
                    UNKNOWN if figure is None else f"{figure:.0f}"
                    for figure in (use.average_percent, use.busiest_hour_percent, use.maximum_percent)
                ),
                UNKNOWN if use.memory_mib is None else f"{use.memory_mib / 1024:.0f}",
            )
            for use in groups
        ),
        numbers=(1, 2, 3, 4, 5),
    )


def _changes(report: CostReport) -> Iterator[str]:
    currency = report.bill.currency
    if report.trend is None or report.spike_limit is None:
        yield f"{len(report.days)} days are too few for spikes, trend and forecast: {MIN_DAYS + 1} are needed"
        return
    for spike in report.spikes:
        yield (
            f"{spike.day} cost {usd(spike.amount)} {currency}, above the limit of {usd(spike.limit)}: "
            f"{spike.item} was {usd(spike.above)} above its median"
        )
    if not report.spikes:
        yield f"no day was above {usd(report.spike_limit)} {currency}, the limit of a spike"
    if report.shift is not None:
        yield (
            f"since {report.shift.day} a day costs {usd(report.shift.after)} {currency}, and "
            f"{usd(report.shift.before)} before: another level, no spike"
        )
    if report.trend.clear:
        week = abs(report.trend.per_day * _DAYS_OF_A_WEEK)
        yield f"the days {'rise' if report.trend.per_day > 0 else 'fall'} by {usd(week)} {currency} a week"
    else:
        yield "the days have no clear trend"


def _notes(report: CostReport) -> Iterator[str]:
    usage, cost = report.usage, report.idle_cost
    if usage is not None:
        if usage.idle_share is None:
            yield (
                "the idle share is unknown: the idle stop or the power function reported nothing, or more nodes were "
                "idle than the node groups ran"
            )
        else:
            yield (
                f"nodes were idle for {usage.idle_node_hours:,.0f} of {usage.node_hours:,.0f} node-hours, "
                f"{usage.idle_share * _PERCENT:.0f} %, in {usage.hours:,} hours with data"
                + ("" if cost is None else f": {usd(cost)} {report.bill.currency} at the mean price of a node-hour")
            )
    yield from report.unknown
    yield (
        "AWS adds to the last days for a day or two, and to the month until its bill is final; Savings Plans and "
        "Reserved Instances count by the hours that used them; credits, refunds and taxes are left out"
    )
    requests = report.bill.requests
    yield (
        f"Cost Explorer answered {requests} request{'' if requests == 1 else 's'}, which it bills at "
        f"${USD_A_REQUEST} each: ${requests * USD_A_REQUEST}"
    )


def _conclusion(report: CostReport) -> str:
    last, currency = report.bill.end - timedelta(days=1), report.bill.currency
    days = "day" if len(report.days) == 1 else f"{len(report.days)} days"
    text = f"{usd(report.total)} {currency} in the {days} to {last}"
    if report.month_forecast is None:
        return text
    return (
        f"{text}; {report.bill.end:%B} {usd(report.month_to_date)} so far, {usd(report.month_forecast)} at this rate"
    )
