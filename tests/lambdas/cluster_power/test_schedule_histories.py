"""Schedules are open exactly when a wall clock says so, minute by minute, over every change of a clock.

`make test-histories` draws more.
"""

import os
from datetime import timedelta
from itertools import pairwise
from random import Random

import pytest

from cluster_power.schedules import timetable
from schedule_histories import draw_schedule

_NUMBER = int(os.environ.get("SCHEDULE_HISTORIES", "12"))
_CHUNK = 50
_REACH = 4


@pytest.mark.parametrize("first", range(0, _NUMBER, _CHUNK))
def test_a_schedule_is_open_when_a_wall_clock_says_so(first: int) -> None:
    for seed in range(first, min(first + _CHUNK, _NUMBER)):
        drawn = draw_schedule(seed)
        minutes = list(drawn.open_minutes(_REACH))
        edges = [moment for (_, before), (moment, now) in pairwise(minutes) if before != now]
        ends = [moment for (_, before), (moment, _) in pairwise(minutes) if before and moment in set(edges)]
        looks = timetable(drawn.settings)
        draw = Random(seed)  # noqa: S311 (a drawn history)
        moments = [
            *(one + shift for one in edges for shift in (timedelta(minutes=-1), timedelta(0))),
            *(moment for moment, _ in draw.sample(minutes, 5)),
        ]
        is_open = dict(minutes)
        for moment in moments:
            found, where = looks.at(moment), f"history {seed}: {drawn.settings} at {moment}"
            assert found.inside is is_open[moment], where
            before = [one for one in edges if one <= moment]
            after = [one for one in edges if one > moment]
            after_ends = [one for one in ends if one > moment]
            assert not before or found.last == before[-1], where
            assert not after or found.next == after[0], where
            assert not after_ends or found.next_end == after_ends[0], where
