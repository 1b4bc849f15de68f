"""The table of docs/schedules.md that says who wins, row by row."""

import re
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from cluster_common.power_records import Notice, Order, State
from cluster_common.times import parse_time
from cluster_contract.schedule import ScheduleEnd, ScheduleSettings
from cluster_contract.state import Sender
from cluster_power.schedules import Judgment, judge

PAGE = Path(__file__).parents[3] / "docs/schedules.md"
OPERATOR = "an operator in request 1111"
SCHEDULE, IDLE, BUDGET = Sender.SCHEDULE, Sender.IDLE, Sender.BUDGET
WEEKDAYS = ScheduleSettings(windows=("weekdays 08:00-20:00 UTC",))
OFF_PEAK = ScheduleSettings(windows=WEEKDAYS.windows, end=ScheduleEnd.IDLE)


def at(text: str) -> datetime:
    """Return a time in the week of Monday, 2 November 2026: `3 19:45`."""
    day, time = text.split()
    return parse_time(f"2026-11-{int(day):02}T{time}:00Z")


def ordered(state: State, by: str, since: str, limit: int | None = None) -> Order:
    return Order(state=state, by=by, reason="a reason", since=at(since), limit=limit)


def runs(since: str = "2 08:00") -> Order:
    return ordered(State.RUNNING, OPERATOR, since)


def limited(since: str = "2 09:00", limit: int = 4) -> Order:
    return ordered(State.LIMITED, BUDGET, since, limit)


def stopped(by: str, since: str) -> Order:
    return ordered(State.STOPPED, by, since)


WARNED = Notice(window_end=at("2 20:00"), at=at("2 19:45"))
WARNED_AGAIN = Notice(window_end=at("3 20:00"), at=at("3 19:45"))
NEW, RUNS, LIMITED = "nothing: the group is new", "it runs", "it is limited"
BY_SCHEDULE, BY_IDLE = "its schedule stopped it", "the idle function stopped it"
AFTER_END = "it runs, started by an operator after the end"
INSIDE, OUTSIDE, LATER = "inside a window", "outside", "inside a later window"
END = "at the end, warned"

Case = tuple[Order | None, Notice | None, str]
ROWS: dict[tuple[str, str], Case] = {
    (NEW, INSIDE): (None, None, "2 12:00"),
    (NEW, "outside a window"): (None, None, "2 21:00"),
    (RUNS, INSIDE): (runs(), None, "2 19:44"),
    (RUNS, "15 minutes before the end"): (runs(), None, "2 19:45"),
    (RUNS, END): (runs(), WARNED, "2 20:00"),
    (RUNS, "outside, not warned"): (runs(), None, "2 21:00"),
    (RUNS, "outside, not warned, no node lives"): (runs(), None, "2 21:00"),
    ("it runs, started by a function after the end", OUTSIDE): (
        ordered(State.RUNNING, Sender.POWER, "2 21:00"),
        WARNED,
        "2 22:00",
    ),
    ("it runs, started by an operator after the warning", "at the end"): (runs("2 19:50"), WARNED, "2 20:00"),
    (AFTER_END, OUTSIDE): (runs("2 21:00"), WARNED, "3 03:00"),
    (AFTER_END, "at the next end, warned"): (runs("2 21:00"), WARNED_AGAIN, "3 20:00"),
    ("it runs, with `end: idle`", "at the end"): (runs(), None, "2 20:00"),
    (LIMITED, INSIDE): (limited(), None, "2 12:00"),
    (LIMITED, END): (limited(), WARNED, "2 20:00"),
    ("it is limited since the warning", END): (limited("2 19:50"), WARNED, "2 20:00"),
    ("it is limited after the end", OUTSIDE): (limited("2 20:01"), WARNED, "2 20:02"),
    ("it is limited after the end, and warned", "15 minutes later"): (
        limited("2 20:01"),
        Notice(window_end=at("2 20:00"), at=at("2 20:02")),
        "2 20:17",
    ),
    ("it is limited to 0 nodes", "at the start of a window"): (limited("2 20:00", 0), WARNED, "3 08:00"),
    (BY_SCHEDULE, OUTSIDE): (stopped(SCHEDULE, "2 20:00"), WARNED, "3 07:59"),
    (BY_SCHEDULE, INSIDE): (stopped(SCHEDULE, "2 20:00"), WARNED, "3 08:00"),
    (BY_SCHEDULE, "15 minutes before the end"): (stopped(SCHEDULE, "2 20:00"), WARNED, "3 19:45"),
    (BY_SCHEDULE, "before the end, since the clock went back"): (stopped(SCHEDULE, "2 20:00"), WARNED, "2 19:58"),
    (BY_IDLE, "inside the same window"): (stopped(IDLE, "2 12:00"), None, "2 19:00"),
    (BY_IDLE, OUTSIDE): (stopped(IDLE, "2 12:00"), None, "3 07:59"),
    (BY_IDLE, LATER): (stopped(IDLE, "2 12:00"), None, "3 08:00"),
    ("the idle function stopped it, which was limited", LATER): (limited("2 12:00", 0), None, "3 08:00"),
    ("an operator stopped it", LATER): (stopped(OPERATOR, "2 12:00"), None, "3 08:00"),
    ("the budget stopped it", LATER): (stopped(BUDGET, "2 12:00"), None, "3 08:00"),
}


def written() -> dict[tuple[str, str], str]:
    """Return the rows of the page: what the schedule does, by what is ordered and when."""
    table = PAGE.read_text().partition("| ordered last |")[2].partition("\n\n")[0].splitlines()[2:]
    cells = [re.split(r" *\| *", line.strip("| ")) for line in table]
    return {(order, when): does for order, when, does, _ in cells}


def done(judgment: Judgment, order: Order | None) -> str:
    """Say in the page's words what came of it."""
    match judgment.order:
        case Order(state=State.RUNNING):
            return "starts it"
        case Order(state=State.STOPPED):
            return "stops it"
        case Order(limit=0):
            return "limits it to 0 nodes"
    if order is None:
        return "starts it"
    if judgment.stop_at is not None:
        return "warns"
    return "leaves it stopped" if order.state is State.STOPPED or order.limit == 0 else "leaves it running"


def test_the_page_has_these_rows() -> None:
    assert list(written()) == list(ROWS)


@pytest.mark.parametrize("row", ROWS, ids=": ".join)
def test_the_schedule_does_what_the_page_says(row: tuple[str, str]) -> None:
    order, notice, now = ROWS[row]
    schedule = OFF_PEAK if "idle`" in row[0] else WEEKDAYS
    lives = "no node lives" not in row[1]

    judgment = judge(schedule, order, notice, now=at(now), runs=lives)

    assert done(judgment, order) == written()[row]
    if judgment.order is not None:
        # What was done once is not done again.
        again = judge(schedule, judgment.order, notice, now=at(now) + timedelta(minutes=1), runs=lives)
        assert again.order is None


def test_a_stop_without_a_warning_waits_for_one() -> None:
    late = Notice(window_end=at("2 20:00"), at=at("2 21:00"))

    assert judge(WEEKDAYS, runs(), None, now=at("2 21:00"), runs=True).stop_at == at("2 21:15")
    assert judge(WEEKDAYS, runs(), late, now=at("2 21:14"), runs=True).order is None
    stop = judge(WEEKDAYS, runs(), late, now=at("2 21:15"), runs=True).order
    assert stop is not None
    assert str(stop) == (
        "stopped by its schedule since 2026-11-02T21:15:00Z: its window ended at 2026-11-02T20:00:00Z (weekdays "
        "08:00-20:00 UTC)"
    )


@pytest.mark.parametrize("minutes", range(5, 31))
def test_a_window_that_is_not_longer_than_its_warning_ends_on_time_though_the_notice_comes_a_minute_late(
    minutes: int,
) -> None:
    schedule = ScheduleSettings(windows=(f"weekdays 08:00-08:{minutes:02} UTC",), warning=timedelta(minutes=15))
    start, first = ordered(State.RUNNING, SCHEDULE, "2 08:00"), max(1, minutes - 15)

    assert judge(schedule, start, None, now=at(f"2 08:{first:02}"), runs=True).stop_at == at(f"2 08:{minutes:02}")
