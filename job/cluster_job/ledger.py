"""Which seconds of a run were training, and what they cost: the one place where Goodput and LostSeconds are defined.

- A step is **kept** when it is done for the first time; a step that is done again after a restart is not.
- **Kept seconds** are the time of kept steps, each at most twice the median step. So what a slow loader, a checkpoint
  or a hang adds to a step beyond that is lost.
- **LostSeconds** is every other second since the last report: setting up, compiling, waiting, redoing steps, and
  the whole time between two processes of the run, when nothing reported. A pause after the run's last step, one of
  more than an hour after a drain, and any of more than a day, are taken for a stop on purpose: neither lost nor paid.
- **Goodput** is the share of kept seconds in the last hour, 0 to 1, or since the run began. The published
  "effective training time" is the same share of a whole run; `goodput_of_run` is that.
- **Cost** is elapsed time x nodes x the price of a node, lost seconds included: nodes are billed while they wait. A
  pause of more than an hour after a failure is lost, but not paid: the nodes are taken for stopped.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median

HOUR = 3600.0
STOPPED_ON_PURPOSE = 24 * HOUR
LONGEST_PAUSE = HOUR
_MOST_OF_A_STEP = 2.0
_RECENT_STEPS = 100


@dataclass(frozen=True, kw_only=True)
class Totals:
    """What is remembered of a run from one process to the next.

    Attributes:
        at: When it was written, in seconds since 1970.
        highest_step: The highest step that was done. -1: none was.
        kept_seconds: The seconds that count as training.
        lost_seconds: Those that do not.
        cost_usd: What the run has cost. None: the price of a node is unknown.
        finished: Whether the last step is done.
        ended: Whether the process ended in order: after the last step, or for a drain.
        hour: The periods of the last hour, each as its end, its seconds and those that were kept. So the Goodput of
            a run whose processes start again and again is known, too.
    """

    at: float
    highest_step: int = -1
    kept_seconds: float = 0.0
    lost_seconds: float = 0.0
    cost_usd: float | None = None
    finished: bool = False
    ended: bool = False
    hour: Sequence[Sequence[float]] = ()

    @property
    def goodput_of_run(self) -> float | None:
        """The share of kept seconds since the run began. None: no time has passed."""
        elapsed = self.kept_seconds + self.lost_seconds
        return self.kept_seconds / elapsed if elapsed else None


@dataclass(frozen=True, kw_only=True)
class Period:
    """What happened between two reports.

    Attributes:
        seconds: How long it was.
        lost_seconds: Its seconds that were not kept.
        goodput: The share of kept seconds in the last hour.
        is_whole_hour: Whether so much time has passed; of less, setting up is a large part.
        steps: How many steps were done, redone ones included.
        step_seconds: The median time of a step. None: too few steps were done yet.
    """

    seconds: float
    lost_seconds: float
    goodput: float
    is_whole_hour: bool
    steps: int
    step_seconds: float | None


class Ledger:
    """Counts the seconds and dollars of a run, over the restarts of its processes."""

    def __init__(self, now: float, before: Totals | None = None) -> None:
        """Go on where an earlier process of the run ended.

        Args:
            now: The time, in seconds since 1970.
            before: What that process remembered. Default: - the run begins.
        """
        totals = before or Totals(at=now)
        pause = now - totals.at
        if totals.finished or pause > (LONGEST_PAUSE if totals.ended else STOPPED_ON_PURPOSE):
            totals, pause = replace(totals, at=now), 0.0
        self.totals = replace(totals, finished=False, ended=False)
        self._unpaid = pause if pause > LONGEST_PAUSE else 0.0
        self._recent: deque[float] = deque(maxlen=_RECENT_STEPS)
        self._open: list[tuple[float, bool]] = []
        self._hour = deque((end, length, useful) for end, length, useful in totals.hour)
        self._highest = totals.highest_step
        self._last_end = now

    @property
    def step_seconds(self) -> float | None:
        """The median time of the last steps. None: no step was done."""
        return median(self._recent) if self._recent else None

    def is_training(self, now: float) -> bool:
        """Return whether a step goes on, and for no longer than is kept of it.

        Args:
            now: The time, in seconds since 1970.
        """
        usual = self.step_seconds
        return usual is not None and now - self._last_end <= _MOST_OF_A_STEP * usual

    def step_done(self, now: float, step: int, seconds: float) -> None:
        """Count a step.

        Args:
            now: The time, in seconds since 1970.
            step: Its number.
            seconds: How long it took, from the end of the step before it.
        """
        self._recent.append(seconds)
        self._open.append((seconds, step > self._highest))
        self._highest = max(self._highest, step)
        self._last_end = now

    def close_period(self, now: float, *, usd_per_hour: float | None = None) -> Period:
        """Return what happened since the last report, and remember it.

        The step that is being done is left to the next report, with as much of its time as may be kept.

        Args:
            now: The time, in seconds since 1970.
            usd_per_hour: What all nodes of the run cost in an hour. None: it is unknown.
        """
        steps, self._open = self._open, []
        usual = self.step_seconds
        limit = _MOST_OF_A_STEP * (usual or 0.0)
        end = max(self.totals.at, self._last_end, now - limit)
        seconds = end - self.totals.at
        kept = min(sum(min(took, limit) for took, is_new in steps if is_new), seconds)
        self._hour.append((end, seconds, kept))
        goodput, of_seconds = self._goodput(end)
        self.totals = replace(
            self.totals,
            at=end,
            highest_step=self._highest,
            kept_seconds=self.totals.kept_seconds + kept,
            lost_seconds=self.totals.lost_seconds + seconds - kept,
            cost_usd=self._cost(seconds - self._unpaid, usd_per_hour),
            hour=[[round(one, 1) for one in each] for each in self._hour],
        )
        self._unpaid = 0.0
        return Period(
            seconds=seconds,
            lost_seconds=seconds - kept,
            goodput=goodput,
            is_whole_hour=of_seconds >= HOUR,
            steps=len(steps),
            step_seconds=usual,
        )

    def finish(self, *, complete: bool) -> None:
        """Remember that the process ends in order.

        Args:
            complete: Whether the last step is done, so that what follows is not lost.
        """
        self.totals = replace(self.totals, finished=complete, ended=True)

    def _cost(self, seconds: float, usd_per_hour: float | None) -> float | None:
        if usd_per_hour is None:
            return self.totals.cost_usd
        return (self.totals.cost_usd or 0.0) + usd_per_hour * seconds / HOUR

    def _goodput(self, now: float) -> tuple[float, float]:
        """Return the share of kept seconds in the last hour, and of how many seconds it is."""
        while self._hour and self._hour[0][0] <= now - HOUR:
            self._hour.popleft()
        seconds = kept = 0.0
        for end, length, useful in self._hour:
            # Of a period that began before the last hour the part counts that lies within it.
            part = min(1.0, (end - (now - HOUR)) / length) if length else 0.0
            seconds, kept = seconds + length * part, kept + useful * part
        return (kept / seconds if seconds else 0.0), seconds
