"""The report of a week of a cluster's bill beside the four weeks before."""

from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal

from cluster_contract.bill import UNUSED, USD_A_REQUEST, Bill
from cluster_contract.daily_costs import MIN_DAYS, levels, spike_days, trend

WEEK = 7
DAYS = 5 * WEEK
_ITEMS = 8


def report_text(cluster: str, bill: Bill) -> str:
    """Return the report of the last week of a bill.

    Args:
        cluster: The cluster's name.
        bill: What it was billed in `DAYS` days, of which the last seven are the week.
    """
    return "\n".join(_lines(cluster, bill)) + "\n"


def _lines(cluster: str, bill: Bill) -> Iterator[str]:
    week = bill.since(bill.end - timedelta(days=WEEK))
    # Days before the first charge are no days at 0.
    amounts = [amount for day, amount in bill.by_day().items() if day >= bill.first_charged]
    total, before = sum(amounts[-WEEK:], Decimal(0)), amounts[:-WEEK]
    yield f"{cluster} was billed {_usd(total)} {bill.currency} from {week.start} to {bill.end - timedelta(days=1)}."
    if len(before) >= MIN_DAYS:
        mean = sum(before, Decimal(0)) / len(before) * WEEK
        yield f"The {len(before)} days before cost {_usd(mean)} {bill.currency} a week in the mean."
    else:
        yield f"Nothing was billed before {bill.first_charged} in these {DAYS} days: no week to compare with."
    yield ""
    items = list(week.by_item().items())
    for item, amount in items[:_ITEMS]:
        yield f"{_usd(amount):>14}  {item}"
    if items[_ITEMS:]:
        rest = sum((amount for _, amount in items[_ITEMS:]), Decimal(0))
        yield f"{_usd(rest):>14}  {len(items) - _ITEMS} more"
    yield ""
    yield from _changes(bill)
    line = trend(amounts)
    if line is not None and line.clear:
        slope = line.per_day * WEEK
        yield f"The days {'rise' if slope > 0 else 'fall'} by {_usd(abs(slope))} {bill.currency} a week."
    for item, amount in items:
        if item.endswith(UNUSED) and amount > 0:
            yield f"No node ran in reserved {item.removesuffix(UNUSED)} that cost {_usd(amount)} {bill.currency}."
    yield (
        "Credits, refunds and taxes are left out. For the idle share and for what would have cost less, run: "
        "training-cluster costs with the cluster file."
    )
    yield f"Cost Explorer bills this report at ${bill.requests * USD_A_REQUEST}."


def _changes(bill: Bill) -> Iterator[str]:
    """Yield the spikes of the week, and the level that began in it."""
    used = [each for each in bill.used_by_day().items() if each[0] >= bill.first_charged]
    amounts, first = [amount for _, amount in used], len(used) - WEEK
    found = levels(amounts)
    for position in spike_days(amounts):
        limit = next(each.limit for each in found if position < each.end)
        if position >= first:
            day, amount = used[position]
            yield f"{day} was a spike: it cost {_usd(amount)} {bill.currency}, above the limit of {_usd(limit)}."
    if found[1:] and found[-1].start >= first:
        before, after = found[-2:]
        day = used[after.start][0]
        yield f"Since {day} a day costs {_usd(after.amount)} {bill.currency}, and {_usd(before.amount)} before."


def _usd(amount: Decimal) -> str:
    return f"{amount:,.2f}"
