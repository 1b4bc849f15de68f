import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_job.intervals import FIRST_SECONDS, Cadence, History, best_interval


def lost(interval: float, cost: float, between: float) -> float:
    """Daly's expected time for a second of work, with failures at random and restarts that cost nothing."""
    return between * (math.exp((interval + cost) / between) - 1) / interval


@given(st.floats(0.01, 600), st.floats(600, 1e7))
def test_no_interval_loses_notably_less_time(cost: float, between: float) -> None:
    best = best_interval(cost, between)
    least = min(lost(best * 1.02**part, cost, between) for part in range(-80, 81))
    assert lost(best, cost, between) <= least * 1.01


@pytest.mark.parametrize(
    ("failures", "rank_hours", "world_size", "hours"),
    [(0, 0, 1024, 8), (0, 8192, 1024, 16), (3, 0, 1024, 2), (1, 8192, 8, 1024)],
)
def test_failures_of_the_run_count_beside_the_published_rate(
    failures: int, rank_hours: float, world_size: int, hours: float
) -> None:
    history = History(failures=failures, rank_hours=rank_hours)
    assert history.seconds_between_failures(world_size) == pytest.approx(3600 * hours)


@pytest.mark.parametrize(
    ("stall", "writing", "interval"),
    [
        (0.001, 1, 60),  # at least a minute
        (0.15, 5, 93),  # what Young and Daly say at 1,024 ranks
        (0.15, 90, 180),  # storage is idle for half of the time
        (300, 5, 3600),  # at most an hour
        (0.15, 2400, 4800),
    ],
)
def test_the_interval_follows_from_what_a_checkpoint_cost(stall: float, writing: float, interval: float) -> None:
    now = 0.0
    cadence = Cadence(History(), 1024, clock=lambda: now)
    now = FIRST_SECONDS - 1
    assert not cadence.due()
    now = FIRST_SECONDS
    assert cadence.due()
    cadence.saved()
    cadence.measured(stall=stall, writing=writing)
    assert cadence.interval == pytest.approx(interval, rel=0.01)
    now += cadence.interval
    assert cadence.due()
    assert cadence.history().rank_hours == pytest.approx(1024 * now / 3600)
