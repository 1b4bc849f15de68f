"""How often a run saves: from what a checkpoint costs and how often nodes fail, both measured.

Too often loses time to saving, too seldom loses work to failures. Young's interval sqrt(2 * cost * time between
failures) has the least loss where the cost is small, and Daly's terms mend it where it is not.

Sources: Young, https://doi.org/10.1145/361147.361115; Daly, https://doi.org/10.1016/j.future.2004.11.016.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

FIRST_SECONDS = 60.0
"""When the first checkpoint is due: it shows early that saving works, and what it costs."""

LEAST_SECONDS = 60.0
MOST_SECONDS = 3600.0

RANK_HOURS_PER_FAILURE = 8 * 1024.0
"""What is taken for true before the run has seen a failure: one in 8 hours at 1,024 GPUs.

https://arxiv.org/abs/2410.21680
"""


@dataclass(frozen=True, kw_only=True)
class History:
    """What a run has gone through, as its newest checkpoint tells it.

    Attributes:
        failures: How often it started again without having ended by itself or for a drain.
        rank_hours: The hours that its ranks have run, added up.
    """

    failures: int = 0
    rank_hours: float = 0.0

    def seconds_between_failures(self, world_size: int) -> float:
        """Return how long the run is expected to go on until a rank fails.

        The run's own failures count beside one that is taken for true (`RANK_HOURS_PER_FAILURE`), so that neither a
        first failure nor the lack of one turns the answer over.

        Args:
            world_size: How many ranks the run has.
        """
        return 3600 * (RANK_HOURS_PER_FAILURE + self.rank_hours) / (1 + self.failures) / world_size


def best_interval(cost: float, between_failures: float) -> float:
    """Return the seconds between two checkpoints that lose the least time.

    Args:
        cost: The seconds that a checkpoint keeps the job from training.
        between_failures: The mean seconds between two failures of the job.
    """
    if cost >= 2 * between_failures:
        return between_failures
    part = cost / (2 * between_failures)
    return math.sqrt(2 * cost * between_failures) * (1 + math.sqrt(part) / 3 + part / 9) - cost


class Cadence:
    """Says when the next periodic checkpoint is due; one rank asks it, and the others follow.

    Args:
        history: What the run has gone through.
        world_size: How many ranks the run has.
        clock: Returns seconds that never go back.
    """

    def __init__(self, history: History, world_size: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._history = history
        self._world_size = world_size
        self._clock = clock
        self._started = self._last = clock()
        self.interval = FIRST_SECONDS

    def due(self) -> bool:
        """Return whether the interval has passed since the last checkpoint."""
        return self._clock() - self._last >= self.interval

    def history(self) -> History:
        """Return what the run has gone through until now."""
        hours = self._world_size * (self._clock() - self._started) / 3600
        return History(failures=self._history.failures, rank_hours=self._history.rank_hours + hours)

    def saved(self) -> None:
        """Begin the next interval."""
        self._last = self._clock()

    def again(self) -> None:
        """Let the next checkpoint be due in a minute: this one was not written."""
        self._last = self._clock() - self.interval + LEAST_SECONDS

    def measured(self, *, stall: float, writing: float) -> None:
        """Set the interval from what the last checkpoint cost.

        It is at least a minute and twice what writing takes, so that storage is idle for half of the time, and at
        most an hour.

        Args:
            stall: The seconds that the job waited.
            writing: The seconds until the checkpoint was durable.
        """
        best = best_interval(stall, self.history().seconds_between_failures(self._world_size))
        self.interval = min(max(best, LEAST_SECONDS, 2 * writing), max(MOST_SECONDS, 2 * writing))
