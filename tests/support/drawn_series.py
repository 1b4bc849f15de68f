"""Series of points, drawn as text."""

from datetime import UTC, datetime, timedelta

from cluster_contract.idle import PERIOD
from cluster_idle.evidence import Series

NOW = datetime(2026, 11, 2, 12, 2, tzinfo=UTC)
TICK = timedelta(minutes=5)
CURRENT = datetime(2026, 11, 2, 12, 0, tzinfo=UTC)
"""The start of the period that is not over."""

_VALUES = {"_": 0.0, "a": 4.9, "T": 5.0, "B": 87.0, "n": float("nan"), "m": -1.0}


def series(drawn: str, *, scale: float = 1, status: str = "Complete") -> Series:
    """Return a series from text: one character a period, the current one last.

    Args:
        drawn: `_` is idle, `a` just below the usual threshold, `T` on it, `B` busy, `n` no number, `m` below zero,
            and `.` no point.
        scale: What each value is multiplied by.
        status: What CloudWatch says of the series.
    """
    first = CURRENT - (len(drawn) - 1) * PERIOD
    return Series(
        points=tuple(
            (first + number * PERIOD, _VALUES[letter] * scale) for number, letter in enumerate(drawn) if letter != "."
        ),
        status=status,
    )
