"""When the budget acts: a pure decision, and what it remembers of its acts in a month."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import Enum, auto
from typing import Any

from cluster_common.times import parse_time, time_text
from cluster_contract.spend import OnExceed, SpendFunctionSettings

_WHOLE = 100

# How many runs have tried to stop what was pending before another warning is sent.
_RUNS = 3


class Step(Enum):
    """What the budget does in a run."""

    NOTHING = auto()
    """The dollars have reached no amount that it has not acted on, or a warning is not over."""

    WARN = auto()
    """An amount is reached: people are warned of the stop."""

    STOP = auto()
    """The warning is over: node groups are stopped."""

    LIMIT = auto()
    """An amount is reached: node groups get no new nodes."""

    CALL_OFF = auto()
    """People were warned of a stop, and the budget was raised since: nothing is stopped."""


@dataclass(frozen=True, kw_only=True)
class Acts:
    """What the budget has done in a month. It acts once on each amount; a budget that is raised has new amounts.

    Attributes:
        done: The highest amount in USD that it has acted on to the end.
        usd: The amount that a warning was sent for. Only with `stop_at`.
        stop_at: When the warning is over. None: there is no warning.
        pending: The node groups that are still to be stopped.
        untold: The node groups that were stopped or limited without a message yet.
    """

    done: Decimal = Decimal()
    usd: Decimal = Decimal()
    stop_at: datetime | None = None
    pending: tuple[str, ...] = ()
    untold: tuple[str, ...] = ()

    def to_values(self) -> dict[str, Any]:
        """Return it as the state table keeps it."""
        stop_at = "" if self.stop_at is None else time_text(self.stop_at)
        told = {"done": self.done, "usd": self.usd, "stop_at": stop_at}
        return {**told, "pending": list(self.pending), "untold": list(self.untold)}

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> "Acts":
        """Read what `to_values` wrote.

        Raises:
            ValueError, KeyError, TypeError, ArithmeticError: It is something else.
        """
        return cls(
            done=Decimal(values["done"]),
            usd=Decimal(values["usd"]),
            stop_at=parse_time(values["stop_at"]) if values["stop_at"] else None,
            pending=tuple(values["pending"]),
            untold=tuple(values["untold"]),
        )


NO_ACTS = Acts()
"""What the budget has done before it does anything."""


def amounts(settings: SpendFunctionSettings) -> list[Decimal]:
    """Return the amounts in USD at which the budget acts: the whole of it, and each threshold above."""
    shares = {_WHOLE, *(share for share in settings.thresholds if share > _WHOLE)}
    budget = Decimal(str(settings.monthly_usd))
    return [budget * Decimal(str(share)) / _WHOLE for share in sorted(shares)]


def reached(settings: SpendFunctionSettings, usd: Decimal) -> Decimal:
    """Return the highest amount that some dollars have reached; zero: none."""
    return max((amount for amount in amounts(settings) if usd >= amount), default=Decimal())


def next_step(settings: SpendFunctionSettings, acts: Acts, usd: Decimal, now: datetime) -> Step:
    """Decide what the budget does.

    Args:
        settings: The function's settings.
        acts: What it has done this month.
        usd: What the cluster has cost this month, as far as prices are known.
        now: The time.
    """
    amount = reached(settings, usd)
    if settings.on_exceed is OnExceed.NO_NEW_NODES:
        return Step.LIMIT if amount > acts.done else Step.NOTHING
    if settings.on_exceed is OnExceed.NOTIFY:
        return Step.CALL_OFF if acts.stop_at is not None else Step.NOTHING
    if acts.stop_at is None:
        return Step.WARN if amount > acts.done else Step.NOTHING
    if amount < acts.usd:
        return Step.CALL_OFF
    if now < acts.stop_at:
        return Step.NOTHING
    # What a tag keeps stays pending; then a higher amount is another reason to warn.
    return Step.WARN if amount > acts.usd and now >= acts.stop_at + _RUNS * settings.tick else Step.STOP
