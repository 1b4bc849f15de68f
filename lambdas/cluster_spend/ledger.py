"""The months as the state table keeps them: an item for each, written if no other run has written it since."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from cluster_common.state_table import NO_ITEM, StateItem, StateTable
from cluster_spend import acts
from cluster_spend.charges import Charge, Item
from cluster_spend.listed_prices import NAME
from cluster_spend.months import LastRun, Month, counted, gap_between, month_name, month_start, spans
from cluster_spend.prices import Prices

_KEPT = timedelta(days=400)
# A run whose clock was further ahead than this has counted what is not billed yet.
_MAX_AHEAD = timedelta(hours=1)


class UnreadableMonthError(Exception):
    """Say that the item of a month holds something that this function has not written. Nothing was changed."""


@dataclass(frozen=True, kw_only=True)
class _Kept:
    item: StateItem
    month: Month


class Ledger:
    """Counts what is spent, month by month.

    Attributes:
        prices: The item with what AWS's Price List said.
        acts: The item with what the budget has done.
    """

    def __init__(self, table: StateTable, region: str) -> None:
        """Know the table.

        Args:
            table: The part of the state table that this function writes.
            region: The table's region.
        """
        self._table = table
        self._region = region
        self._kept: dict[str, _Kept] = {}
        self.prices = NO_ITEM
        self.acts = NO_ITEM

    def read(self, now: datetime) -> None:
        """Read the months.

        Args:
            now: The time.

        Raises:
            UnreadableMonthError: The newest of them cannot be read.
        """
        every = self._table.read_all()
        self.prices = every.get(NAME, NO_ITEM)
        self.acts = every.get(acts.NAME, NO_ITEM)
        items = {name: item for name, item in every.items() if name not in (NAME, acts.NAME)}
        if not items:
            return
        # What of the month before has no price yet is counted when it has one.
        for name in {*sorted(items)[-2:], month_name(now)} & items.keys():
            try:
                self._kept[name] = _Kept(item=items[name], month=_month(items[name], now))
            except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError) as error:
                raise UnreadableMonthError(
                    f"the item {name} of the state table {self._table.name} does not hold what the spend function "
                    f"writes: delete it with `{self._table.delete_command(name, self._region)}`; what it counted is "
                    "lost, and the next "
                    "run counts this month again from the instances, reservations and Capacity Blocks that EC2 "
                    "still lists"
                ) from error

    def through(self, now: datetime) -> datetime:
        """Return until when everything is counted; in the first run, when this month began.

        Args:
            now: The time.
        """
        return max((one.month.through for one in self._kept.values()), default=month_start(now))

    @property
    def is_new(self) -> bool:
        """Whether nothing was counted yet."""
        return not self._kept

    def month(self, now: datetime) -> Month:
        """Return what is counted of the month of a time.

        Args:
            now: The time.
        """
        kept = self._kept.get(month_name(now))
        if kept is not None:
            return kept.month
        start = month_start(now)
        return Month(since=now if self.is_new else start, through=start)

    @property
    def unpriced(self) -> set[Item]:
        """What was billed whose price was not known yet, of every month that is read."""
        return {item for one in self._kept.values() for item in one.month.unpriced}

    @property
    def last(self) -> LastRun:
        """What the last run saw."""
        return self._kept[max(self._kept)].month.last if self._kept else LastRun()

    def count(self, charges: Sequence[Charge], now: datetime, prices: Prices, seen: LastRun) -> None:
        """Count what is billed until now, the oldest month first.

        Args:
            charges: What is billed.
            now: The time.
            prices: What is known of prices.
            seen: What this run sees, for the next one.

        Raises:
            StateChangedError: Another run has counted meanwhile; the next one counts what is left.
        """
        for month in [one.month for one in self._kept.values()]:
            priced = counted(month, (), month.through, prices)
            if priced != month:
                self.write(priced)
        first = self.through(now)
        unseen = first if self.is_new else first + gap_between(first, now)
        for start, end in spans(first, now):
            gap = max(min(unseen, end) - start, timedelta(0))
            month = self.month(now if self.is_new else start)
            self.write(replace(counted(month, charges, end, prices, gap=gap), last=seen))

    def write(self, month: Month) -> None:
        """Write a month.

        Args:
            month: The month.

        Raises:
            StateChangedError: Another run has written it since it was read.
        """
        seen = self._kept[month.name].item if month.name in self._kept else NO_ITEM
        item = self._table.write(month.name, month.to_values(), seen=seen, expires=month.end + _KEPT)
        self._kept[month.name] = _Kept(item=item, month=month)


def _month(item: StateItem, now: datetime) -> Month:
    month = Month.from_values(item.values)
    if month.through - now > _MAX_AHEAD:
        raise ValueError(f"through must not lie in the future, got {month.through}")
    return month
