"""How long accelerators have worked without a new checkpoint: a pure function of what was measured and the time.

Missing data is neither idle nor work: a period of which nothing was measured counts as no work.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from cluster_contract.idle import PERIOD

# The newest period has only begun, and what nodes report of the one before arrives within it.
_LATEST_PERIODS = 2


@dataclass(frozen=True, kw_only=True)
class Work:
    """What accelerators did since the newest checkpoint.

    Attributes:
        minutes: For how many minutes they have worked.
        goes_on: Whether they work now.
    """

    minutes: int
    goes_on: bool

    @property
    def at_risk(self) -> int:
        """The minutes of work that would be lost now; 0 while no accelerator works, as after a stop."""
        return self.minutes if self.goes_on else 0


def work_since(
    checkpoint: datetime | None, points: Iterable[tuple[datetime, float]], *, now: datetime, below: float
) -> Work:
    """Return how long accelerators have worked since the newest checkpoint.

    Args:
        checkpoint: When the newest complete checkpoint was written. None: there is none.
        points: When each period starts, and how busy the busiest accelerator was in it, in percent.
        now: The time.
        below: Below how many percent an accelerator does not work.
    """
    worked = {start for start, utilization in points if utilization >= below}
    # Whole periods: one that goes on, or in which the checkpoint was written, is not counted.
    since = [start for start in worked if start + PERIOD <= now and (checkpoint is None or start >= checkpoint)]
    newest = max(worked, default=None)
    return Work(
        minutes=len(since) * (PERIOD // timedelta(minutes=1)),
        goes_on=newest is not None and now - newest <= (_LATEST_PERIODS + 1) * PERIOD,
    )
