"""What a schedule makes of a node group: pure functions of what is ordered of it and of the time.

A schedule is one reason beside operators, the idle function and the budget. docs/schedules.md has the table that says
which of them wins; `judge` is that table.
"""

from dataclasses import dataclass
from datetime import datetime
from functools import cache, partial
from pathlib import Path

from cluster_common.power_records import Notice, Order, State
from cluster_common.times import time_text
from cluster_contract.schedule import Moment, ScheduleEnd, ScheduleSettings, Timetable
from cluster_contract.state import Sender
from cluster_contract.time_zones import time_zone

_TIME_ZONES = next(Path(__file__).parent.glob("tzdata-*.whl"))
_STAYS = "it stays stopped until a start command: a schedule does not undo what {} has ordered"


@dataclass(frozen=True, kw_only=True)
class Judgment:
    """What a schedule makes of a node group now.

    Attributes:
        now: Why it runs or not.
        then: What happens next.
        edge: When that happens. None: at no time that the schedule knows, or not within 400 days.
        order: What it orders now. None: nothing.
        stop_at: When its nodes are stopped, once that is so near that a notice is given. None: it is not.
        notice: The notice of that stop, which has to be recorded before it counts. None: it is recorded.
    """

    now: str
    then: str
    edge: datetime | None
    order: Order | None = None
    stop_at: datetime | None = None
    notice: Notice | None = None


def judge(
    schedule: ScheduleSettings, order: Order | None, notice: Notice | None, *, now: datetime, runs: bool
) -> Judgment:
    """Say what a schedule makes of a node group.

    Only the last edge counts, so that a function that was silent for days acts once. An order that is newer than an
    edge is not undone by it. A clock that goes back is taken for the time of the last order.

    Args:
        schedule: Its schedule.
        order: What is ordered of it. None: the function has never seen it.
        notice: The last notice that was given of a stop. None: none was.
        now: The time.
        runs: Whether any of its nodes lives.
    """
    now = now if order is None else max(now, order.since)
    moment = timetable(schedule).at(now)
    match order:
        case None if moment.inside:
            return Judgment(now="it is new, and a window is open", then="its nodes start", edge=now)
        case None:
            reason = f"it was first deployed outside its windows ({schedule})"
            return _stopped(
                schedule,
                moment,
                Order(state=State.STOPPED, by=Sender.SCHEDULE, reason=reason, since=now),
                is_new=True,
            )
        case Order(state=State.STOPPED):
            return _judge_stopped(schedule, order, moment, now)
        case Order(limit=0):
            return Judgment(now=f"it has no nodes: {order}", then=_STAYS.format(order.by), edge=None)
    if schedule.end is ScheduleEnd.IDLE:
        ran = "a window is open" if moment.inside else f"its window is over: {order}"
        then = "it is not stopped: the idle function stops it once it is idle"
        return Judgment(now=f"it runs: {ran}", then=then, edge=None)
    return _judge_running(schedule, order, notice, moment, now=now, runs=runs)


def _judge_stopped(schedule: ScheduleSettings, order: Order, moment: Moment, now: datetime) -> Judgment:
    by_idle = order.by == Sender.IDLE
    if not ends(order):
        return Judgment(now=f"it is {order}", then=_STAYS.format(order.by), edge=None)
    if moment.inside and moment.last is not None and (not by_idle or order.since < moment.last):
        if _is_too_late(schedule, moment, now):
            return _stopped(schedule, moment, order)
        reason = f"its window began at {time_text(moment.last)} ({schedule})"
        start = Order(state=State.RUNNING, by=Sender.SCHEDULE, reason=reason, since=now)
        return Judgment(now="a window is open", then="its nodes start", edge=now, order=start)
    return _stopped(schedule, moment, order)


def _is_too_late(schedule: ScheduleSettings, moment: Moment, now: datetime) -> bool:
    """Say whether nodes that start now would be stopped at once: its start was missed, and its end is near.

    A window that is shorter than the warning starts its nodes nevertheless.
    """
    if schedule.end is ScheduleEnd.IDLE or moment.last is None or moment.next_end is None:
        return False
    return moment.next_end - now <= schedule.warning < now - moment.last


def _stopped(schedule: ScheduleSettings, moment: Moment, order: Order, *, is_new: bool = False) -> Judgment:
    # Inside a window a stop holds if the idle function gave it, or if the window's end is near.
    if moment.inside and moment.next is not None:
        moment = timetable(schedule).at(moment.next)
    return Judgment(now=f"it is {order}", then="it starts", edge=moment.next, order=order if is_new else None)


def _judge_running(
    schedule: ScheduleSettings, order: Order, notice: Notice | None, moment: Moment, *, now: datetime, runs: bool
) -> Judgment:
    """Say what is made of a node group with nodes, or limited to some, by a schedule that stops it."""
    end = moment.next if moment.inside else moment.last
    if end is None:
        return Judgment(now="it runs: it has no window", then="nothing", edge=None)
    noticed = notice if notice is not None and _counts(notice, order, end) else None
    given = noticed or Notice(window_end=end, at=now)
    warned = end if _is_short(schedule, order, given) else given.at + schedule.warning
    due = max(end, warned) if runs else end
    if _is_kept(order, end, noticed):
        why = "a window is open" if moment.inside else "outside its windows"
        later = timetable(schedule).at(end).next_end if moment.inside else moment.next_end
        return Judgment(now=f"it runs: {why}, and it is {order}", then="it is stopped", edge=later)
    if now < end - schedule.warning:
        return Judgment(now="it runs: a window is open", then="it is stopped", edge=end)
    if now < due:
        until = f"its window {'ends' if end > now else 'ended'} at {time_text(end)}"
        return Judgment(
            now=f"it runs until its stop: {until}",
            then="it is stopped",
            edge=due,
            stop_at=due,
            notice=None if noticed else given,
        )
    return Judgment(
        now=f"its window ended at {time_text(end)}",
        then="its nodes are stopped",
        edge=now,
        order=_stop(schedule, order, end, now),
    )


def _is_short(schedule: ScheduleSettings, order: Order, notice: Notice) -> bool:
    """Say whether a window is no longer than its warning, which comes after its start: it still ends on time."""
    end = notice.window_end
    return order.by == Sender.SCHEDULE and order.since >= end - schedule.warning and notice.at < end


def _counts(notice: Notice, order: Order, end: datetime) -> bool:
    """Say whether a notice is of the stop at this end: what is ordered after the end needs another notice."""
    return notice.window_end == end and (order.since < end or order.since <= notice.at)


def _is_kept(order: Order, end: datetime, noticed: Notice | None) -> bool:
    """Say whether a node group runs on over the end of a window: an operator started it after the notice or the end.

    A limit keeps nothing, and neither does a start by a function.
    """
    if order.state is not State.RUNNING or order.by in tuple(Sender):
        return False
    return order.since >= end if noticed is None else order.since > noticed.at


def _stop(schedule: ScheduleSettings, order: Order, end: datetime, now: datetime) -> Order:
    """Return the order that stops a node group; one that is limited stays so, and gets no nodes at the next start."""
    reason = f"its window ended at {time_text(end)} ({schedule})"
    if order.state is State.LIMITED:
        return order.without_nodes(now, reason)
    return Order(state=State.STOPPED, by=Sender.SCHEDULE, reason=reason, since=now)


@cache
def timetable(schedule: ScheduleSettings) -> Timetable:
    """Return a schedule's windows, read once."""
    return Timetable(schedule, zone=partial(time_zone, _TIME_ZONES))


def removed(order: Order | None, now: datetime) -> Order | None:
    """Return the order that starts a node group whose schedule stopped it and has left the cluster's file."""
    if order is None or order.state is not State.STOPPED or order.by != Sender.SCHEDULE:
        return None
    return Order(
        state=State.RUNNING, by=Sender.SCHEDULE, reason="its schedule was removed from the cluster's file", since=now
    )


def ends(order: Order) -> bool:
    """Say whether a schedule ends a stop at the start of a window: its own, and the idle function's."""
    return order.state is State.STOPPED and order.by in (Sender.SCHEDULE, Sender.IDLE)
