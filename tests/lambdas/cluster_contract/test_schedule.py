"""When windows are open, by wall clocks that daylight saving time changes."""

import re
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from cluster_contract.schedule import ScheduleSettings, Timetable, Window
from cluster_contract.time_zones import time_zone, time_zone_names

# Berlin and New York change by an hour in both directions, Lord Howe Island by half of one.
ZONES = ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe")
STEP = timedelta(minutes=10)
YEAR = (datetime(2026, 1, 1, tzinfo=UTC), datetime(2027, 1, 1, tzinfo=UTC))


_WHEEL = next((Path(__file__).parents[3] / "lambdas/cluster_power").glob("tzdata-*.whl"))
zone_of = partial(time_zone, _WHEEL)


def test_the_wheel_is_the_pinned_tzdata_and_has_every_time_zone_that_it_names() -> None:
    assert f"tzdata-{version('tzdata')}-" in _WHEEL.name
    assert [name for name in time_zone_names(_WHEEL) if zone_of(name).key != name] == []
    with pytest.raises(KeyError):
        zone_of("Europe/Atlantis")


def table(*windows: str, holidays: tuple[str, ...] = ()) -> Timetable:
    return Timetable(ScheduleSettings(windows=windows, holidays=holidays), zone=zone_of)


@cache
def clock(zone: str) -> list[tuple[datetime, list[tuple[str, datetime]]]]:
    """Return what `watched` yields."""
    return [(moment, [(f"{local:%H:%M}", local) for local in new]) for moment, new in watched(zone)]


def watched(zone: str) -> Iterator[tuple[datetime, list[datetime]]]:
    """Yield each moment of the year with what a wall clock comes to show at it, of all that it has not shown yet."""
    moment, highest = YEAR[0] - STEP, (YEAR[0] - STEP).astimezone(zone_of(zone)).replace(tzinfo=None)
    while (moment := moment + STEP) < YEAR[1]:
        shown, new = moment.astimezone(zone_of(zone)).replace(tzinfo=None), list[datetime]()
        while highest < shown:
            highest += STEP
            new.append(highest)
        yield moment, new


times = st.integers(0, 143).map(lambda number: f"{number // 6:02}:{number % 6}0")
# Half of all begin or end where a clock is changed.
changed = st.sampled_from(["01:30", "02:00", "02:10", "02:30", "02:50", "03:00"])
some_days = st.lists(st.integers(0, 6), min_size=1, max_size=7, unique=True)


@given(st.sampled_from(ZONES), some_days, times | changed, times | changed, st.sampled_from(YEAR).map(datetime.date))
@settings(deadline=None, max_examples=25)
def test_a_window_is_open_when_a_wall_clock_that_is_watched_all_year_says_so(
    zone: str, days: list[int], begin: str, end: str, holiday: date
) -> None:
    assume(begin != end)
    names = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
    found = table(f"{','.join(names[day] for day in days)} {begin}-{end} {zone}", holidays=(holiday.isoformat(),))
    is_open, edges = False, list[datetime]()
    for moment, new in clock(zone):
        before = is_open
        for shown, local in new:
            if shown == end:
                is_open = False
            if shown == begin and local.weekday() in days and local.date() != holiday:
                is_open = True
        edges += [moment] if is_open is not before else []

    spans = found.spans(YEAR[0].date() - timedelta(days=8), YEAR[1].date())
    all_edges = [edge for span in spans for edge in (span.start, span.end)]

    # The watcher knows nothing of the year before.
    began = YEAR[0] + timedelta(days=8)
    assert [edge for edge in all_edges if began <= edge < YEAR[1]] == [edge for edge in edges if edge >= began]


@pytest.mark.parametrize(
    ("window", "edges"),
    [
        # The clock goes from 02:00 to 03:00 at 01:00 UTC, and in autumn from 03:00 to 02:00 at 01:00 UTC.
        ("sun 02:30-04:00 Europe/Berlin", ["2026-03-29 01:00", "2026-03-29 02:00"]),
        ("sun 02:30-04:00 Europe/Berlin", ["2026-10-25 00:30", "2026-10-25 03:00"]),
        ("sat 20:00-02:30 Europe/Berlin", ["2026-03-28 19:00", "2026-03-29 01:00"]),
        ("sat 20:00-02:30 Europe/Berlin", ["2026-10-24 18:00", "2026-10-25 00:30"]),
        ("sun 02:10-05:00 Australia/Lord_Howe", ["2026-10-03 15:30", "2026-10-03 18:00"]),
        ("weekends 00:00-24:00 UTC", ["2026-10-24 00:00", "2026-10-26 00:00"]),
        ("fri-mon 08:00-09:00 UTC", ["2026-10-26 08:00", "2026-10-26 09:00"]),
        ("0 20 * * 5 to 0 6 * * 1 America/New_York", ["2026-10-31 00:00", "2026-11-02 11:00"]),
        ("30 */6 1-7 oct,nov mon to 45 */6 * * * UTC", ["2026-10-01 00:30", "2026-10-01 00:45"]),
        ("0 0 15 10 * to 0 0 * * * UTC", ["2026-10-15 00:00", "2026-10-16 00:00"]),
        ("0 12 29 2 * to 0 13 * * * UTC", ["2028-02-29 12:00", "2028-02-29 13:00"]),
    ],
)
def test_edges_of_one_window(window: str, edges: list[str]) -> None:
    start, end = (datetime.fromisoformat(f"{edge}+00:00") for edge in edges)

    inside = table(window).at(start)

    assert (inside.inside, inside.last, inside.next) == (True, start, end)
    assert (table(window).at(end).inside, table(window).at(end).last) == (False, end)
    assert not table(window).at(start - timedelta(minutes=1)).inside


def test_windows_that_touch_are_one_and_holidays_have_no_start() -> None:
    found = table("mon-thu 20:00-24:00 UTC", "daily 00:00-06:00 UTC", holidays=("2026-11-03",))
    moment = found.at(datetime(2026, 11, 2, 21, tzinfo=UTC))  # a Monday

    assert moment.next == datetime(2026, 11, 3, tzinfo=UTC)
    assert found.at(datetime(2026, 11, 3, 21, tzinfo=UTC)).next == datetime(2026, 11, 4, tzinfo=UTC)
    assert found.at(datetime(2026, 11, 4, 21, tzinfo=UTC)).next == datetime(2026, 11, 5, 6, tzinfo=UTC)


@pytest.mark.parametrize(
    ("window", "sentence"),
    [
        (
            "daily 8-9 UTC",
            "a window must be days, times and an IANA time zone, such as weekdays 08:00-20:00 Europe/Berlin, or two "
            "cron expressions, such as 0 8 * * 1-5 to 0 20 * * 1-5 Europe/Berlin, got 'daily 8-9 UTC'",
        ),
        (
            "workdays 08:00-09:00 UTC",
            "the days of a window must be daily, weekdays, weekends, or some of mon, tue, wed, thu, fri, sat, sun "
            "such as mon-thu or mon,wed, got workdays",
        ),
        (
            "weekdays,sat 08:00-09:00 UTC",
            "the days of a window must be daily, weekdays, weekends, or some of mon, tue, wed, thu, fri, sat, sun "
            "such as mon-thu or mon,wed, got weekdays,sat",
        ),
        (
            "daily 08:00-08:00 UTC",
            "a window must end after it starts, got 08:00-08:00: for whole days write 00:00-24:00",
        ),
        ("daily 08:00-24:01 UTC", "the times of a window must be from 00:00 to 24:00, got 24:01"),
        (
            "0 25 * * * to 0 9 * * * UTC",
            "the hour of a cron expression must be *, numbers from 0 to 23, ranges such as 0-23 and steps such as "
            "*/2, with commas between, got '25'",
        ),
    ],
)
def test_what_is_no_window_is_refused(window: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        Window.parse(window, zone_of)
