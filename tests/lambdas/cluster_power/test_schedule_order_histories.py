"""Drawn orders of operators, the budget and the idle function beside a schedule: the last one holds, as docs say.

`make test-histories` draws more.
"""

import os
from dataclasses import replace
from datetime import datetime, timedelta
from random import Random
from typing import Any

import pytest

from cluster_contract.schedule import ScheduleEnd
from power_scene import Scene
from schedule_histories import draw_schedule
from schedule_orders import BUDGET, COUNT, IDLE, OPERATOR, POWER, ExpectedGroup, Span, spans

_NUMBER = int(os.environ.get("SCHEDULE_HISTORIES", "12"))
_CHUNK = 50
_REACH = 4
_ORDERS = (
    *3 * (("start", OPERATOR),),
    *(("start", POWER), ("stop", OPERATOR), ("stop", BUDGET), ("limit", BUDGET), ("stop", IDLE)),
)
_MINUTE = timedelta(minutes=1)

Event = tuple[datetime, tuple[str, str] | None]


def draw_events(draw: Random, opened: list[Span], warning: timedelta) -> list[Event]:
    """Draw looks of the function, mostly near edges and warnings, and orders between them."""
    first, last = opened[0][1], opened[-1][1] - _MINUTE
    edges = [one for span in opened for one in span] + [end + sign * warning for _, end in opened for sign in (-1, 1)]
    near = [edge + shift * _MINUTE for edge in edges for shift in (-1, 0, 1, 4)]
    anywhere = [first + _MINUTE * draw.randrange(max(1, (last - first) // _MINUTE)) for _ in range(10)]
    moments = sorted({one for one in (*near, *anywhere) if first < one < last})
    attention, activity = draw.choice([0.2, 0.5, 0.9, 1.0]), draw.choice([0.05, 0.2])
    looks = [(one, None) for one in moments if draw.random() < attention]
    # Half a minute later, since a notice and an order of the same second have no order.
    orders = [(one + _MINUTE / 2, draw.choice(_ORDERS)) for one in moments if draw.random() < activity]
    return sorted([(first, None), *looks, *orders], key=lambda event: event[0])


@pytest.mark.parametrize("first", range(0, _NUMBER, _CHUNK))
def test_the_last_order_holds_and_a_schedule_acts_at_its_edges_alone(first: int) -> None:
    for seed in range(first, min(first + _CHUNK, _NUMBER)):
        draw, drawn = Random(seed), draw_schedule(seed)  # noqa: S311 (a drawn history)
        opened = spans(list(drawn.open_minutes(_REACH)))
        if len(opened) < 2:
            continue
        shortest = min(end - start for start, end in opened)
        warning = min(draw.choice([5 * _MINUTE, 15 * _MINUTE, shortest, shortest]), 240 * _MINUTE)
        stops = draw.random() < 0.8
        end = {} if stops else {"end": ScheduleEnd.IDLE}
        schedule = replace(drawn.settings, warning=warning, **end)  # type: ignore[arg-type]
        events = draw_events(draw, opened, warning)
        check(schedule, events, ExpectedGroup(opened, warning, stops=stops), where=f"history {seed}: {schedule}")


def check(schedule: Any, events: list[Event], expected: ExpectedGroup, *, where: str) -> None:
    scene = Scene(counts={"workers": COUNT}, details={"workers": {"schedule": 0}}, schedules=(schedule,))
    scene.now = events[0][0]
    group, told = scene.add(), [where]
    for moment, order in events:
        scene.pass_time(moment - scene.now)
        lives = group.alive > 0
        told.append(f"{moment} {order or 'look'}")
        if order is None:
            scene.order()
            expected.look(moment, lives=lives)
        else:
            scene.order(order[0], by=order[1])
            expected.command(*order, moment)
        found, last, warned = scene.recorded().order, expected.last, scene.recorded().notice
        assert found is not None
        assert last is not None
        told.append(f"  {found}; {warned}")
        assert (found.state, found.by, group.desired) == (last.word, last.by, last.nodes), "\n".join(told)
        assert (warned and (warned.window_end, warned.at)) == expected.warned, "\n".join(told)
