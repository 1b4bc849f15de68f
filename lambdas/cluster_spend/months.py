"""What a cluster has cost in a month of UTC: each second is counted once, whatever fails in between."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from cluster_common.packed_ids import pack, unpack
from cluster_common.times import parse_time, time_text
from cluster_spend.charges import Charge, Item, added, unit_seconds
from cluster_spend.prices import Prices

LISTED = timedelta(minutes=10)
"""How long EC2 is relied on to list an instance that is terminated, with its tags: AWS says "a short while".

https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/terminating-instances.html
"""

_MICRO = Decimal(1_000_000)
_SECONDS_OF_AN_HOUR = 3600
_DECEMBER = 12


@dataclass(frozen=True, kw_only=True)
class LastRun:
    """What the last run saw that EC2 may not return to the next one.

    Attributes:
        running: The node groups of the instances that ran, by their ids.
        ended: The ids of instances that were counted when they had ended at a time that EC2 does not return.
        held: How many instances reservations held, by their ids.
    """

    running: Mapping[str, str] = field(default_factory=dict)
    ended: frozenset[str] = frozenset()
    held: Mapping[str, int] = field(default_factory=dict)

    def to_values(self) -> dict[str, Any]:
        """Return it as the state table keeps it."""
        running: dict[str, list[str]] = {}
        for node, node_group in sorted(self.running.items()):
            running.setdefault(node_group, []).append(node)
        packed = {node_group: list(pack(nodes)) for node_group, nodes in running.items()}
        return {"running": packed, "ended": list(pack(self.ended)), "held": dict(self.held)}

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> "LastRun":
        """Read what `to_values` wrote."""
        running = values.get("running", {})
        return cls(
            running={node: node_group for node_group, nodes in running.items() for node in unpack(nodes)},
            ended=frozenset(unpack(values["ended"])),
            held={id_: int(count) for id_, count in values.get("held", {}).items()},
        )


@dataclass(frozen=True, kw_only=True)
class Month:
    """What is counted of one month.

    Attributes:
        since: From when on it is counted.
        through: Until when everything is counted.
        spent: What was spent, in micro-dollars, by node group and kind.
        unpriced: The seconds of units that no price is known of yet, by what is billed.
        gap: For how long instances may have ended that no run has seen.
        last: What the last run saw.
    """

    since: datetime
    through: datetime
    spent: Mapping[tuple[str, str], int] = field(default_factory=dict)
    unpriced: Mapping[Item, Decimal] = field(default_factory=dict)
    gap: timedelta = timedelta(0)
    last: LastRun = field(default_factory=LastRun)

    @property
    def name(self) -> str:
        """Its name, such as `2026-11`."""
        return month_name(self.since)

    @property
    def end(self) -> datetime:
        """When it ends."""
        return month_end(self.since)

    @property
    def usd(self) -> Decimal:
        """What was spent, in USD."""
        return sum(self.spent.values()) / _MICRO

    def to_values(self) -> dict[str, Any]:
        """Return it as the state table keeps it."""
        return {
            "since": time_text(self.since),
            "through": time_text(self.through),
            "spent": {"|".join(key): micro for key, micro in sorted(self.spent.items())},
            "unpriced": {str(item): seconds for item, seconds in sorted(self.unpriced.items())},
            "gap_seconds": int(self.gap.total_seconds()),
            **self.last.to_values(),
        }

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> "Month":
        """Read what `to_values` wrote.

        Raises:
            ValueError, KeyError, TypeError, AttributeError: It is something else.
        """
        spent = ((key.rpartition("|"), int(micro)) for key, micro in values["spent"].items())
        return cls(
            since=parse_time(values["since"]),
            through=parse_time(values["through"]),
            spent={(group, kind): micro for (group, _, kind), micro in spent},
            unpriced={Item.parse(key): Decimal(seconds) for key, seconds in values["unpriced"].items()},
            gap=timedelta(seconds=int(values["gap_seconds"])),
            last=LastRun.from_values(values),
        )


def month_start(moment: datetime) -> datetime:
    """Return when the month of a time began, in UTC."""
    return moment.astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)


def month_end(moment: datetime) -> datetime:
    """Return when the month of a time ends, in UTC."""
    start = month_start(moment)
    if start.month == _DECEMBER:
        return start.replace(year=start.year + 1, month=1)
    return start.replace(month=start.month + 1)


def month_name(moment: datetime) -> str:
    """Return the name of the month of a time, such as `2026-11`."""
    return f"{moment.astimezone(UTC):%Y-%m}"


def spans(through: datetime, now: datetime) -> Iterator[tuple[datetime, datetime]]:
    """Yield the time between two moments, cut where months end; nothing where the first is not before the second."""
    start = through
    while start < now:
        end = min(month_end(start), now)
        yield start, end
        start = end


def counted(
    month: Month, charges: Sequence[Charge], until: datetime, prices: Prices, *, gap: timedelta = timedelta(0)
) -> Month:
    """Count what is billed in a month until a time. What has no price is kept until it has one.

    Args:
        month: What was counted of the month.
        charges: What is billed.
        until: Until when.
        prices: What is known of prices.
        gap: For how long of it instances may have ended unseen.
    """
    seconds = added(month.unpriced, unit_seconds(charges, month.through, until))
    known = prices.known({item.price for item in seconds})
    spent = Counter(dict(month.spent))
    for item, count in seconds.items():
        if item.price in known:
            spent[item.node_group, item.kind.value] += micro_dollars(known[item.price].usd, count)
    unpriced = {item: count for item, count in seconds.items() if item.price not in known}
    return replace(month, through=until, spent=dict(spent), unpriced=unpriced, gap=month.gap + gap)


def micro_dollars(usd_an_hour: Decimal, seconds: Decimal) -> int:
    """Return what so many seconds cost, in micro-dollars."""
    exact = usd_an_hour * seconds * _MICRO / _SECONDS_OF_AN_HOUR
    return int(exact.quantize(Decimal(1), rounding=ROUND_HALF_UP))


def gap_between(through: datetime, now: datetime) -> timedelta:
    """Return for how long instances may have ended that EC2 lists no more."""
    return max(now - through - LISTED, timedelta(0))
