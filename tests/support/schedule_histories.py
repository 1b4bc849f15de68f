"""Drawn schedules and what a wall clock makes of them, minute by minute: nothing here is the functions' own code.

The clocks are those of Python's zoneinfo. A schedule is drawn as numbers, from which both its text and its meaning
follow, so that no text is read here.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from random import Random
from zoneinfo import ZoneInfo

from cluster_contract.schedule import ScheduleSettings

MINUTE = timedelta(minutes=1)
_DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")

# Where clocks change in these days: by an hour, by half an hour, at midnight, in the other half of the year, never.
_CHANGES = {
    "Europe/Berlin": (date(2026, 3, 29), date(2026, 10, 25)),
    "America/New_York": (date(2026, 3, 8), date(2026, 11, 1)),
    "Australia/Lord_Howe": (date(2026, 4, 5), date(2026, 10, 4)),
    "America/Santiago": (date(2026, 4, 4), date(2026, 9, 5)),
    "Africa/Cairo": (date(2026, 4, 24), date(2026, 10, 29)),
    "Asia/Kathmandu": (date(2026, 6, 1),),
    "UTC": (date(2026, 2, 28), date(2028, 2, 28)),
}


@dataclass(frozen=True, kw_only=True)
class Drawn:
    """One window: on which days it starts and stops, at which times of day, by which clock.

    Attributes:
        starts: The days of the week on which it starts, with Monday as 0.
        stops: Those on which it stops.
        start: The minute of the day.
        stop: Likewise.
        zone: The time zone.
        is_cron: Whether its text is two cron expressions.
    """

    starts: frozenset[int]
    stops: frozenset[int]
    start: int
    stop: int
    zone: str
    is_cron: bool

    def __str__(self) -> str:
        if not self.is_cron:
            days = ",".join(_DAYS[one] for one in sorted(self.starts))
            return f"{days} {_clock(self.start)}-{_clock(self.stop)} {self.zone}"
        start, stop = (
            f"{minute % 60} {minute // 60} * * {','.join(str((one + 1) % 7) for one in sorted(days))}"
            for minute, days in ((self.start, self.starts), (self.stop, self.stops))
        )
        return f"{start} to {stop} {self.zone}"


@dataclass(frozen=True, kw_only=True)
class DrawnSchedule:
    """A schedule, and the days around which it is looked at.

    Attributes:
        windows: Its windows, all by one clock.
        holidays: The days on which none starts.
        around: The day in the middle.
    """

    windows: tuple[Drawn, ...]
    holidays: tuple[date, ...]
    around: date

    @property
    def settings(self) -> ScheduleSettings:
        """The settings that the function gets."""
        return ScheduleSettings(
            windows=tuple(map(str, self.windows)), holidays=tuple(one.isoformat() for one in self.holidays)
        )

    def open_minutes(self, days: int) -> Iterator[tuple[datetime, bool]]:
        """Yield each minute of days before and after the middle, and whether a window is open then.

        A time of day has come at the first minute at which the clock shows it or a later one.
        """
        moment = datetime(self.around.year, self.around.month, self.around.day, tzinfo=UTC) - timedelta(days=days + 9)
        first, end = moment + timedelta(days=9), moment + timedelta(days=9 + 2 * days)
        zone = ZoneInfo(self.windows[0].zone)
        reached = moment.astimezone(zone).replace(tzinfo=None) - MINUTE
        is_open = [False] * len(self.windows)
        while moment < end:
            shown = moment.astimezone(zone).replace(tzinfo=None)
            while reached < shown:
                reached += MINUTE
                for number, window in enumerate(self.windows):
                    is_open[number] = _after(window, reached, self.holidays, is_open=is_open[number])
            if moment >= first:
                yield moment, any(is_open)
            moment += MINUTE


def _after(window: Drawn, local: datetime, holidays: tuple[date, ...], *, is_open: bool) -> bool:
    minute, day = local.hour * 60 + local.minute, local.weekday()
    if minute == window.stop and day in window.stops:
        is_open = False
    if minute == window.start and day in window.starts and local.date() not in holidays:
        is_open = True
    return is_open


def draw_schedule(seed: int) -> DrawnSchedule:
    """Draw a schedule, mostly with times at which clocks change."""
    draw = Random(seed)  # noqa: S311 (a drawn history)
    zone = draw.choice(list(_CHANGES))
    around = draw.choice(_CHANGES[zone])
    windows = tuple(_draw_window(draw, zone) for _ in range(draw.choice([1, 1, 2])))
    holidays = tuple(around + timedelta(days=number) for number in range(-3, 4) if draw.random() < 0.1)
    return DrawnSchedule(windows=windows, holidays=holidays, around=around)


def _draw_window(draw: Random, zone: str) -> Drawn:
    start, stop = draw.sample([0, 30, 59, 60, 90, 119, 120, 121, 135, 150, 180, 480, 1200, 1410, 1439], 2)
    starts = frozenset(draw.sample(range(7), draw.randint(1, 7)))
    if draw.random() < 0.5:
        shift = 1 if stop < start else 0
        stops = frozenset((one + shift) % 7 for one in starts)
        return Drawn(starts=starts, stops=stops, start=start, stop=stop, zone=zone, is_cron=False)
    stops = frozenset(draw.sample(range(7), draw.randint(1, 7)))
    return Drawn(starts=starts, stops=stops, start=start, stop=stop, zone=zone, is_cron=True)


def _clock(minute: int) -> str:
    return f"{minute // 60:02}:{minute % 60:02}"
