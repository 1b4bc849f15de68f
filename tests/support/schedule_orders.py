"""What docs/schedules.md makes of a node group that others order too: nothing here is the functions' own code."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import pairwise

COUNT = 4
OPERATOR, BUDGET, IDLE, SCHEDULE, POWER = "ana", "cluster_spend", "cluster_idle", "its schedule", "cluster_power"

Span = tuple[datetime, datetime]


def spans(minutes: Sequence[tuple[datetime, bool]]) -> list[Span]:
    """Return when windows are open, of those that both start and end in some minutes."""
    edges = [(moment, now) for (_, before), (moment, now) in pairwise(minutes) if before != now]
    return [(start, end) for (start, opens), (end, _) in pairwise(edges) if opens]


@dataclass(frozen=True, kw_only=True)
class Standing:
    """What was ordered last.

    Attributes:
        nodes: How many nodes it gives: all, some, or none.
        word: `running`, `stopped` or `limited`.
        by: Who ordered it.
        since: When.
    """

    nodes: int
    word: str
    by: str
    since: datetime


class ExpectedGroup:
    """One node group with a schedule, of which each order and each look at the clock is told.

    Attributes:
        last: What was ordered last. None: the group is new.
        warned: The end of the last stop that was warned of, and when that was. None: none was.
    """

    def __init__(self, opened: Sequence[Span], warning: timedelta, *, stops: bool) -> None:
        """Begin with a new group.

        Args:
            opened: When windows are open.
            warning: How long before a stop jobs are warned.
            stops: Whether the schedule stops nodes at the end of a window.
        """
        self._opened, self._warning, self._stops = opened, warning, stops
        self.last: Standing | None = None
        self.warned: tuple[datetime, datetime] | None = None

    def command(self, action: str, by: str, now: datetime) -> None:
        """Take an order."""
        last = self.last
        assert last is not None
        new = Standing(nodes=0, word="stopped", by=by, since=now)
        waits = last.word == "stopped" and last.by in {SCHEDULE, IDLE}
        if action == "start":
            told = self.warned is not None and self.warned[1] >= last.since
            if last.word != "running" or told:
                self.last = Standing(nodes=COUNT, word="running", by=by, since=now)
        elif action == "limit":
            if last.word == "running" or waits:
                self.last = replace(new, word="limited", nodes=last.nodes)
        elif by == IDLE:
            if last.word == "limited":
                self.last = replace(last, nodes=0, since=now if last.nodes else last.since)
            elif last.word == "running":
                self.last = new
        elif last.word != "stopped" or waits:
            self.last = new

    def look(self, now: datetime, *, lives: bool) -> None:
        """Let the schedule act, and then warn.

        Args:
            now: The time.
            lives: Whether a node of the group lives.
        """
        inside = next((one for one in self._opened if one[0] <= now < one[1]), None)
        last = self.last
        if last is None:
            by, word = (POWER, "running") if inside else (SCHEDULE, "stopped")
            self.last = Standing(nodes=COUNT if inside else 0, word=word, by=by, since=now)
        elif last.word == "stopped":
            if inside is not None and self._starts(last, inside, now):
                self.last = Standing(nodes=COUNT, word="running", by=SCHEDULE, since=now)
        elif self._is_over(last, inside, now, lives=lives):
            stopped = Standing(nodes=0, word="stopped", by=SCHEDULE, since=now)
            self.last = stopped if last.word == "running" else replace(last, nodes=0, since=now)
        self._warn(inside, now)

    def _starts(self, last: Standing, inside: Span, now: datetime) -> bool:
        start, end = inside
        if last.by not in {SCHEDULE, IDLE} or (last.by == IDLE and last.since >= start):
            return False
        is_missed, is_near = now - start > self._warning, end - now <= self._warning
        return not (self._stops and is_missed and is_near)

    def _end(self, inside: Span | None, now: datetime) -> datetime:
        return inside[1] if inside else max(end for _, end in self._opened if end <= now)

    def _warning_of(self, end: datetime, last: Standing) -> datetime | None:
        """Return when it was warned of a stop; what is ordered after the end needs a warning of its own."""
        if self.warned is None or self.warned[0] != end or (last.since >= end and last.since > self.warned[1]):
            return None
        return self.warned[1]

    def _is_wanted(self, last: Standing, end: datetime) -> bool:
        """Say whether an operator has started it who knew of the stop."""
        warned = self._warning_of(end, last)
        knows = last.since > warned if warned is not None else last.since >= end
        return last.word == "running" and last.by == OPERATOR and knows

    def _is_over(self, last: Standing, inside: Span | None, now: datetime, *, lives: bool) -> bool:
        end = self._end(inside, now)
        if not self._stops or not last.nodes or now < end or self._is_wanted(last, end):
            return False
        warned = self._warning_of(end, last)
        if not lives:
            return True
        if warned is None:
            return False
        started_late = last.by == SCHEDULE and last.since >= end - self._warning and warned < end
        return started_late or now >= warned + self._warning

    def _warn(self, inside: Span | None, now: datetime) -> None:
        last, end = self.last, self._end(inside, now)
        if last is None or not last.nodes or not self._stops or now < end - self._warning:
            return
        if self._warning_of(end, last) is None and not self._is_wanted(last, end):
            self.warned = (end, now)
