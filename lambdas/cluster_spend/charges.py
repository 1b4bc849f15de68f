"""What is billed by the hour, and how much of it in a span of time: arithmetic that asks nothing of AWS."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import NamedTuple

from cluster_contract.spend import SpendKind

_SEPARATOR = "|"


class Item(NamedTuple):
    """One thing on the bill.

    Attributes:
        node_group: The node group that it is for. Empty: the whole cluster.
        kind: What kind of charge it is.
        price: The name of its price.
    """

    node_group: str
    kind: SpendKind
    price: str

    def __str__(self) -> str:
        return _SEPARATOR.join(self)

    @classmethod
    def parse(cls, text: str) -> "Item":
        """Read what `str` wrote."""
        node_group, kind, price = text.rsplit(_SEPARATOR, 2)
        return cls(node_group, SpendKind(kind), price)


@dataclass(frozen=True, kw_only=True, slots=True)
class Charge:
    """A number of units that are billed for each hour from one time until another.

    Attributes:
        item: What is billed.
        units: How many units an hour.
        start: Since when.
        end: Until when, also where that is still to come. None: no end is known.
    """

    item: Item
    units: Decimal
    start: datetime
    end: datetime | None = None


def unit_seconds(charges: Iterable[Charge], start: datetime, end: datetime) -> dict[Item, Decimal]:
    """Return how many seconds of how many units are billed in a span of time.

    Args:
        charges: What is billed.
        start: When the span begins.
        end: When it ends.
    """
    found: defaultdict[Item, Decimal] = defaultdict(Decimal)
    for charge in charges:
        first, last = max(charge.start, start), end if charge.end is None else min(charge.end, end)
        if last > first and charge.units:
            found[charge.item] += charge.units * int((last - first).total_seconds())
    return dict(found)


def units_now(charges: Iterable[Charge], now: datetime) -> dict[Item, Decimal]:
    """Return how many units are billed an hour now.

    Args:
        charges: What is billed.
        now: The time.
    """
    found: defaultdict[Item, Decimal] = defaultdict(Decimal)
    for charge in charges:
        if charge.start <= now and (charge.end is None or charge.end > now) and charge.units:
            found[charge.item] += charge.units
    return dict(found)


def added(first: Mapping[Item, Decimal], second: Mapping[Item, Decimal]) -> dict[Item, Decimal]:
    """Return the sums of two counts."""
    return {item: first.get(item, Decimal()) + second.get(item, Decimal()) for item in {**first, **second}}
