"""What a cluster has cost, as values that a program can read."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from statistics import median

from cdk_training_cluster.prices import PriceBook
from cdk_training_cluster_cli.money.costs.advice import GroupNodes, advice
from cdk_training_cluster_cli.money.costs.usage import Usage
from cluster_contract.bill import USD_A_REQUEST, Bill
from cluster_contract.daily_costs import Trend, levels, next_days, spike_days, trend


@dataclass(frozen=True, kw_only=True)
class Spike:
    """A day that cost far more than the days around it.

    Attributes:
        day: The day.
        amount: What it cost, without negative lines.
        limit: Above which amount it is a spike.
        item: The item that was furthest above its own median.
        above: By how much that item was above it.
    """

    day: date
    amount: Decimal
    limit: Decimal
    item: str
    above: Decimal


@dataclass(frozen=True, kw_only=True)
class Shift:
    """The day since which days have another level.

    Attributes:
        day: The day.
        before: The median of the days of the level before.
        after: The median of the days since.
    """

    day: date
    before: Decimal
    after: Decimal


@dataclass(frozen=True, kw_only=True)
class CostReport:
    """What a cluster has cost.

    Attributes:
        name: The cluster's name.
        region: Its region.
        bill: What it was billed in the days that are shown.
        days: What each day cost.
        spike_limit: Above which amount a day of the last level is a spike. None: there are too few days.
        spikes: The spikes.
        shift: Since when the days have their last level. None: since the first.
        trend: How the days change. None: there are too few days.
        month_to_date: What the month has cost up to the last day.
        month_forecast: What the month will cost if days go on as the last seven did. None: there are too few days.
        usage: What the nodes did. None: unknown.
        advice: What would have cost less.
        unknown: What was not answered, and why.
    """

    name: str
    region: str
    bill: Bill
    days: tuple[tuple[date, Decimal], ...]
    spike_limit: Decimal | None
    spikes: tuple[Spike, ...]
    shift: Shift | None
    trend: Trend | None
    month_to_date: Decimal
    month_forecast: Decimal | None
    usage: Usage | None
    advice: tuple[str, ...]
    unknown: tuple[str, ...] = ()

    @property
    def total(self) -> Decimal:
        """What the days cost together."""
        return sum((amount for _, amount in self.days), Decimal(0))

    @property
    def idle_cost(self) -> Decimal | None:
        """What idle nodes cost, at the mean price of a node-hour. None: unknown, or above what was billed."""
        nodes = [each for each in self.bill.charges if each.hours is not None and not each.is_unused]
        hours = sum((each.hours or Decimal(0) for each in nodes), Decimal(0))
        if self.usage is None or self.usage.idle_share is None or not hours or self.usage.idle_node_hours > hours:
            return None
        return self.usage.idle_node_hours * sum((each.amount for each in nodes), Decimal(0)) / hours

    def values(self) -> dict[str, object]:
        """Return the report by names, with its sums, for programs."""
        return {
            **vars(self),
            "total": self.total,
            "by_item": self.bill.by_item(),
            "idle_share": None if self.usage is None else self.usage.idle_share,
            "idle_cost": self.idle_cost,
            "requests_usd": self.bill.requests * USD_A_REQUEST,
        }


def first_of_month(day: date) -> date:
    """Return the first day of a day's month.

    Args:
        day: The day.
    """
    return day.replace(day=1)


def make_report(
    name: str,
    region: str,
    *,
    bill: Bill,
    usage: Usage | None,
    groups: Sequence[GroupNodes],
    book: PriceBook,
    start: date,
    unknown: Sequence[str] = (),
) -> CostReport:
    """Return what a cluster has cost.

    Args:
        name: The cluster's name.
        region: Its region.
        bill: What it was billed, from the first of the month or the first day shown, whichever is earlier.
        usage: What its nodes did. None: unknown.
        groups: Its node groups.
        book: The prices of other types.
        start: The first day shown.
        unknown: What was not answered, and why. Default: - all was
    """
    # Days before the first charge are no days at 0; AWS still adds to yesterday, which is therefore forecast.
    shown, today = bill.since(max(start, bill.first_charged)), bill.end
    month, yesterday = first_of_month(today), today - timedelta(days=1)
    days = shown.by_day()
    used = list(shown.used_by_day().items())
    amounts = [amount for _, amount in used]
    found = levels(amounts)
    this_month = {day: amount for day, amount in bill.by_day().items() if day >= month}
    spent = sum(this_month.values(), Decimal(0))
    days_left = (first_of_month(month + timedelta(days=31)) - today).days + (yesterday in this_month)
    left = next_days(amounts[:-1], days_left)
    return CostReport(
        name=name,
        region=region,
        bill=shown,
        days=tuple(days.items()),
        spike_limit=found[-1].limit if found else None,
        spikes=tuple(
            _spike(shown, *used[position], next(each.limit for each in found if position < each.end))
            for position in spike_days(amounts)
        ),
        shift=Shift(day=used[found[-1].start][0], before=found[-2].amount, after=found[-1].amount)
        if found[1:]
        else None,
        trend=trend(amounts[:-1]),
        month_to_date=spent,
        month_forecast=None if left is None else max(spent, spent - this_month.get(yesterday, Decimal(0)) + left),
        usage=usage,
        advice=tuple(advice(shown, usage, groups, region, book)),
        unknown=tuple(unknown),
    )


def _spike(bill: Bill, day: date, amount: Decimal, limit: Decimal) -> Spike:
    above = {}
    for item in bill.by_item():
        days = bill.used_by_day(item.__eq__)
        above[item] = days[day] - median(days.values())
    item = max(sorted(above), key=lambda each: above[each])
    return Spike(day=day, amount=amount, limit=limit, item=item, above=above[item])
