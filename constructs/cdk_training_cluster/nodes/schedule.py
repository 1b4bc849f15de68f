"""When a node group runs: windows by the wall clock of a time zone."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from difflib import get_close_matches
from functools import cache
from itertools import combinations, pairwise
from typing import Annotated
from zoneinfo import ZoneInfo

from aws_cdk import Duration

from cdk_training_cluster.core.times import to_duration, to_time
from cdk_training_cluster.functions.assets import function_source
from cdk_training_cluster.validation.bounds import Minutes
from cdk_training_cluster.validation.checks import shown
from cdk_training_cluster.validation.kinds import checked
from cdk_training_cluster.validation.rule import refuse
from cluster_contract.schedule import MAX_WINDOW, ScheduleEnd, ScheduleSettings, Timetable, Window
from cluster_contract.time_zones import time_zone as contract_zone
from cluster_contract.time_zones import time_zone_names

SCHEDULE_WARNING = Minutes(minimum=5, maximum=240)

# Two years, of which one is a leap year: what a schedule does in them it does in all.
_FIRST, _LAST = date(2028, 1, 1), date(2029, 12, 31)
_HOURS_A_MONTH = 730


@checked
@dataclass(frozen=True, kw_only=True)
class Schedule:
    """Say when a node group runs: the power function starts its nodes with a window and stops them at its end.

    A window is a text such as `weekdays 08:00-20:00 Europe/Berlin`: days (`daily`, `weekdays`, `weekends`,
    `mon,wed`, `mon-thu`), times and an IANA time zone; one that ends before it begins ends on the next day. Or it is
    two cron expressions of five fields, of its start and of its end: `0 20 * * 5 to 0 6 * * 1 Europe/Berlin`.
    Windows may touch and must not overlap. A node group runs at most 7 days without an end.

    A schedule starts only what it has stopped itself, or the idle function before the window. What an operator or the
    budget has stopped stays stopped, and an operator's start holds until the next end. docs/schedules.md has the
    table.

    Attributes:
        windows: The windows. An empty list is no schedule, for a group of a cluster that has one.
        holidays: Dates such as `2026-12-25` on which, in its time zone, no window starts. Default: - none.
        end: What the end of a window does: `ScheduleEnd.IDLE` stops nothing, and leaves that to the idle function.
            Default: - `ScheduleEnd.STOP`.
        warning: How long before it stops nodes the alert topic is notified: 5 minutes to 4 hours.
            Default: - 15 minutes.

    Raises:
        ValueError: A window or a date is wrong, or windows overlap; every reason, a line each.
    """

    windows: Sequence[str] = field(kw_only=False)
    holidays: Sequence[str] = ()
    end: ScheduleEnd = ScheduleEnd.STOP
    warning: Annotated[Duration, SCHEDULE_WARNING] = field(
        default_factory=lambda: to_duration(ScheduleSettings.warning)
    )

    def __post_init__(self) -> None:
        """Check the windows, each by itself and all together."""
        wrong = {"windows": list(self._wrong_windows()), "holidays": list(self._wrong_holidays())}
        refuse(wrong)
        refuse({"windows": self._wrong_together()})

    @property
    def is_off(self) -> bool:
        """Whether there is no window."""
        return not self.windows

    @property
    def settings(self) -> ScheduleSettings:
        """The schedule as the power function takes it."""
        return ScheduleSettings(
            windows=tuple(" ".join(text.split()) for text in self.windows),
            holidays=tuple(sorted(set(self.holidays))),
            end=self.end,
            warning=to_time(self.warning),
        )

    @property
    def hours_a_month(self) -> float:
        """For how many hours of a month of 730 the windows are open, over two years without holidays."""
        spans = self._timetable(with_holidays=False).spans(_FIRST, _LAST)
        hours = sum((span.end - span.start for span in spans), timedelta()) / timedelta(hours=1)
        return hours / ((_LAST - _FIRST).days + 1) / 24 * _HOURS_A_MONTH

    def _timetable(self, *, with_holidays: bool = True) -> Timetable:
        holidays = self.settings.holidays if with_holidays else ()
        return Timetable(ScheduleSettings(windows=self.settings.windows, holidays=holidays), zone=time_zone)

    def _wrong_windows(self) -> Iterator[str]:
        for text in self.windows:
            try:
                window = Window.parse(text, zone=time_zone)
            except ValueError as error:
                yield f"windows: {error}"
            else:
                yield from _wrong(window)

    def _wrong_holidays(self) -> Iterator[str]:
        for text in self.holidays:
            try:
                is_date = date.fromisoformat(text).isoformat() == text
            except ValueError:
                is_date = False
            if not is_date:
                yield f"holidays must be dates such as 2026-12-25, got {shown(text)}"

    def _wrong_together(self) -> Iterator[str]:
        timetable = self._timetable(with_holidays=False)
        for one, other in combinations(timetable.windows, 2):
            spans = sorted(span for window in (one, other) for span in timetable.spans_of(window, _FIRST, _LAST))
            clash = next((later for earlier, later in pairwise(spans) if later.start < earlier.end), None)
            if clash is not None:
                local = f"{clash.start.astimezone(one.zone):%A %H:%M}"
                yield f"windows must not overlap, got {one.text} and {other.text}, both open on {local}: join them"
                return
        if any(span.end - span.start > MAX_WINDOW for span in timetable.spans(_FIRST, _LAST)):
            yield (
                f"windows must leave a gap at least every {MAX_WINDOW.days} days, got {' and '.join(self.windows)}: "
                "leave the schedule out for a group that always runs"
            )


def _wrong(window: Window) -> Iterator[str]:
    """Say what is wrong with the starts and ends of a window."""
    spans = list(window.local_spans(_FIRST, _LAST))
    lonely = next((start for start, stop in spans if stop is None), None)
    again = next((later for (_, stop), (later, _) in pairwise(spans) if stop is not None and later < stop), None)
    if {start.year for start, _ in spans} != {_FIRST.year, _LAST.year}:
        starts = "starts in leap years only" if spans else "never starts"
        yield f"windows must start at least once a year, got {window.text}, which {starts}"
    elif lonely is not None:
        yield (
            f"windows must end within {MAX_WINDOW.days} days of their start, got {window.text}, whose start on "
            f"{_written(lonely)} no end follows"
        )
    elif again is not None:
        yield (
            f"windows must end before they start again, got {window.text}, which starts again on {_written(again)}: "
            "write two windows, or fewer starts"
        )


def _written(local: datetime) -> str:
    return f"{local:%A, %d %B, at %H:%M}"


@cache
def time_zone(name: str) -> ZoneInfo:
    """Return an IANA time zone, from the data that the power function has.

    Args:
        name: The time zone's name.

    Raises:
        ValueError: There is none of that name; the message names the nearest.
    """
    wheel = next((function_source("cluster_power").root / "cluster_power").glob("tzdata-*.whl"))
    names = time_zone_names(wheel)
    if name not in names:
        by_lower = {each.lower(): each for each in names}
        near = [by_lower[each] for each in get_close_matches(name.lower(), by_lower, n=3)]
        places = [each for each in names if name and each.rpartition("/")[2].lower() == name.lower()]
        mend = " or ".join(dict.fromkeys([*places, *near])) or "a name such as Europe/Berlin, America/New_York or UTC"
        raise ValueError(f"a time zone must be an IANA name, got {name}: write {mend}")
    return contract_zone(wheel, name)
