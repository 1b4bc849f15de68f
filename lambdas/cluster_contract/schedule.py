"""When a node group is to run: the windows of a schedule, and its edges before and after a moment.

A window is a text such as `weekdays 08:00-20:00 Europe/Berlin`, or two cron expressions, `0 8 * * 1-5 to
0 20 * * 1-5 Europe/Berlin`. Its times are those of a wall clock in an IANA time zone: an edge is the first moment at
which that clock shows the time or a later one, so that a time that daylight saving time skips or repeats is one edge.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from enum import StrEnum
from typing import Annotated

from cluster_contract.codec import Within
from cluster_contract.cron import WEEKDAYS, Cron

MAX_WINDOW = timedelta(days=7)
"""The longest that a node group runs before an end."""

_NEAR, _FAR = timedelta(days=16), timedelta(days=400)
"""How far edges are looked for: first where those of most schedules are, then where those of all are."""

_MINUTE = timedelta(minutes=1)
_DAY = timedelta(days=1)
_LAST_MINUTE = 59
_RANGE = 2
_ALIASES: Mapping[str, str] = {"daily": "sun-sat", "weekdays": "mon-fri", "weekends": "sat-sun"}
_WORDS = re.compile(r"(?P<days>\S+) (?P<begin>\d\d?:\d\d)-(?P<end>\d\d?:\d\d) (?P<zone>\S+)")
_CRONS = re.compile(r"(?P<start>\S+(?: \S+){4}) to (?P<stop>\S+(?: \S+){4}) (?P<zone>\S+)")
_FORM = (
    "a window must be days, times and an IANA time zone, such as weekdays 08:00-20:00 Europe/Berlin, or two cron "
    "expressions, such as 0 8 * * 1-5 to 0 20 * * 1-5 Europe/Berlin"
)


class ScheduleEnd(StrEnum):
    """What the end of a window does."""

    STOP = "stop"
    """The node group is stopped, after a warning."""

    IDLE = "idle"
    """Nothing: the node group runs until the idle function stops it."""


@dataclass(frozen=True, kw_only=True)
class ScheduleSettings:
    """A schedule, as the power function takes it.

    Attributes:
        windows: The windows, each as text.
        holidays: Dates such as 2026-12-25 on which, in a window's time zone, it does not start.
        end: What the end of a window does.
        warning: How long before a stop the alert topic is notified.
    """

    windows: tuple[str, ...]
    holidays: tuple[str, ...] = ()
    end: ScheduleEnd = ScheduleEnd.STOP
    warning: Annotated[timedelta, Within(minimum=0)] = timedelta(minutes=15)

    def __str__(self) -> str:
        ends = ", then until it is idle" if self.end is ScheduleEnd.IDLE else ""
        holidays = f", but not on {', '.join(self.holidays)}" if self.holidays else ""
        return f"{' and '.join(self.windows)}{ends}{holidays}"


@dataclass(frozen=True, order=True)
class Span:
    """A stretch of time in which a schedule lets a node group run: from its start edge to its end edge."""

    start: datetime
    end: datetime


@dataclass(frozen=True, kw_only=True)
class Moment:
    """Where a moment is in a schedule.

    Attributes:
        inside: Whether it is in a window.
        last: The last edge at or before it. None: there is none within 400 days.
        next: The first edge after it. None: likewise.
        next_end: The first end edge after it. None: likewise.
    """

    inside: bool
    last: datetime | None
    next: datetime | None
    next_end: datetime | None


@dataclass(frozen=True)
class Window:
    """One window: when it starts and stops, by the wall clock of a time zone.

    Attributes:
        text: The window as it was written.
        start: When it starts.
        stop: When it stops: at the first match after a start.
        zone: The time zone.
    """

    text: str
    start: Cron
    stop: Cron
    zone: tzinfo

    @classmethod
    def parse(cls, text: str, zone: Callable[[str], tzinfo]) -> "Window":
        """Read a window.

        Args:
            text: The window.
            zone: Returns the time zone of a name.

        Raises:
            ValueError: It is none; the message is a sentence.
        """
        one_spaced = " ".join(text.split())
        words, crons = _WORDS.fullmatch(one_spaced), _CRONS.fullmatch(one_spaced)
        if words is not None:
            start, stop = _crons(words["days"].lower(), words["begin"], words["end"])
            return cls(one_spaced, start, stop, zone(words["zone"]))
        if crons is None:
            raise ValueError(f"{_FORM}, got {text!r}")
        return cls(one_spaced, Cron.parse(crons["start"]), Cron.parse(crons["stop"]), zone(crons["zone"]))

    def local_spans(self, first: date, last: date) -> Iterator[tuple[datetime, datetime | None]]:
        """Yield the local starts on these days, each with its stop. None: it has none within the longest window."""
        for day in _days(first, last):
            for start in self.start.on(day):
                stops = (
                    stop for later in _days(day, day + MAX_WINDOW) for stop in self.stop.on(later) if stop > start
                )
                yield start, next(stops, None)


class Timetable:
    """The windows of a schedule together."""

    def __init__(self, schedule: ScheduleSettings, zone: Callable[[str], tzinfo]) -> None:
        """Read a schedule's windows.

        Args:
            schedule: The schedule.
            zone: As for `Window.parse`.

        Raises:
            ValueError: A window is none.
        """
        self.windows = [Window.parse(text, zone) for text in schedule.windows]
        self._holidays = frozenset(map(date.fromisoformat, schedule.holidays))

    def spans_of(self, window: Window, first: date, last: date) -> list[Span]:
        """Return when one window that starts on these days is open; days are those of its time zone."""
        return [
            Span(first_moment(start, window.zone), first_moment(stop, window.zone))
            for start, stop in window.local_spans(first, last)
            if stop is not None and start.date() not in self._holidays
        ]

    def spans(self, first: date, last: date) -> list[Span]:
        """Return when any window that starts on these days is open; windows that touch are one."""
        joined: list[Span] = []
        for span in sorted(span for window in self.windows for span in self.spans_of(window, first, last)):
            if joined and span.start <= joined[-1].end:
                joined[-1] = Span(joined[-1].start, max(span.end, joined[-1].end))
            elif span.start < span.end:
                joined.append(span)
        return joined

    def at(self, now: datetime) -> Moment:
        """Say where a moment is."""
        moment = self._at(now, _NEAR)
        return moment if moment.last and moment.next_end else self._at(now, _FAR)

    def _at(self, now: datetime, reach: timedelta) -> Moment:
        spans = self.spans((now - reach).date(), (now + reach).date())
        edges = sorted(edge for span in spans for edge in (span.start, span.end))
        return Moment(
            inside=any(span.start <= now < span.end for span in spans),
            last=max((edge for edge in edges if edge <= now), default=None),
            next=min((edge for edge in edges if edge > now), default=None),
            next_end=min((span.end for span in spans if span.end > now), default=None),
        )


def first_moment(local: datetime, zone: tzinfo) -> datetime:
    """Return the first moment, in UTC, at which a zone's wall clock shows a time or a later one."""
    moment = local.replace(tzinfo=zone).astimezone(UTC)
    if _shown(moment, zone) == local:
        return moment
    # The clock skips it: the moment of the jump is between the readings by the offsets before and after it.
    before = local.replace(tzinfo=zone, fold=1).astimezone(UTC)
    while moment - before > _MINUTE:
        middle = before + (moment - before) // _MINUTE // 2 * _MINUTE
        before, moment = (middle, moment) if _shown(middle, zone) < local else (before, middle)
    return moment


def _shown(moment: datetime, zone: tzinfo) -> datetime:
    return moment.astimezone(zone).replace(tzinfo=None)


def _days(first: date, last: date) -> Iterator[date]:
    return (first + number * _DAY for number in range((last - first).days + 1))


def _crons(days: str, begin: str, end: str) -> tuple[Cron, Cron]:
    """Return when a window of days and times starts and stops; one that ends before it begins ends a day later."""
    start_minute, end_minute = _minute_of_day(begin), _minute_of_day(end)
    if start_minute == end_minute or start_minute == _minute_of_day("24:00"):
        raise ValueError(f"a window must end after it starts, got {begin}-{end}: for whole days write 00:00-24:00")
    starts = ",".join(map(str, sorted(_weekdays(days))))
    start = Cron.parse(f"{start_minute % 60} {start_minute // 60} * * {starts}")
    shift = 1 if end_minute <= start_minute or end_minute == _minute_of_day("24:00") else 0
    weekdays = ",".join(str((day + shift) % 7) for day in sorted(start.weekdays))
    return start, Cron.parse(f"{end_minute % 60} {end_minute // 60 % 24} * * {weekdays}")


def _weekdays(days: str) -> set[int]:
    """Return the days of a week that words name, with Sunday as 0; a range may go on into the next week."""
    found = set[int]()
    for part in _ALIASES.get(days, days).split(","):
        ends = part.split("-")
        if len(ends) > _RANGE or any(end not in WEEKDAYS for end in ends):
            names = ", ".join((*WEEKDAYS[1:], WEEKDAYS[0]))
            raise ValueError(
                f"the days of a window must be {', '.join(_ALIASES)}, or some of {names} such as mon-thu or mon,wed, "
                f"got {days}"
            )
        first, last = WEEKDAYS.index(ends[0]), WEEKDAYS.index(ends[-1])
        found.update((first + shift) % 7 for shift in range((last - first) % 7 + 1))
    return found


def _minute_of_day(text: str) -> int:
    hour, minute = (int(part) for part in text.split(":"))
    if minute > _LAST_MINUTE or hour * 60 + minute > 24 * 60:
        raise ValueError(f"the times of a window must be from 00:00 to 24:00, got {text}")
    return hour * 60 + minute
