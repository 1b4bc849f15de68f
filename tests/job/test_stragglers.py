from random import Random
from statistics import median

import pytest

from cluster_job.stragglers import WINDOW_STEPS, LocalTimes, slow_ranks

_NOISE, _WINDOWS, _SLOW_FROM = 0.05, 24, 12


def _medians(ranks: int, slow: float) -> list[list[float]]:
    """Simulate the medians of windows: ranks differ by 1 %, steps by 5 %, and rank 0 slows down half way."""
    random = Random(ranks)  # noqa: S311 - a simulation
    own = [random.gauss(1, 0.01) for _ in range(ranks)]

    def seconds(rank: int, window: int) -> float:
        factor = slow if rank == 0 and window >= _SLOW_FROM else 1
        return own[rank] * factor * median(random.lognormvariate(0, _NOISE) for _ in range(WINDOW_STEPS))

    return [[seconds(rank, window) for rank in range(ranks)] for window in range(_WINDOWS)]


@pytest.mark.parametrize("ranks", [8, 64, 512])
@pytest.mark.parametrize("slow", [1.0, 1.25])
def test_a_slow_rank_is_found_after_60_steps_and_no_other_is_named(ranks: int, slow: float) -> None:
    medians = _medians(ranks, slow)
    known: dict[int, dict[int, float]] = {rank: {} for rank in range(ranks)}
    found = {}
    for window, row in enumerate(medians):
        for rank, seconds in enumerate(row):
            known[rank] = {**{w: s for w, s in known[rank].items() if w > window - 3}, window: seconds}
        found[window] = [one.rank for one in slow_ranks(known, ranks)]

    expected = {window: [0] if slow > 1 and window >= _SLOW_FROM + 2 else [] for window in range(_WINDOWS)}
    assert found == expected


def test_ranks_that_are_silent_are_not_named_and_too_many_of_them_keep_all_from_being_named() -> None:
    windows = dict.fromkeys(range(3), 1.0)
    slow = dict.fromkeys(range(3), 2.0)
    others = dict.fromkeys(range(1, 9), windows)

    assert [(one.rank, one.factor) for one in slow_ranks({0: slow, **others}, 10)] == [(0, 2.0)]
    assert slow_ranks({0: slow, **others}, 11) == ()
    assert slow_ranks({0: {**slow, 1: 1.0}, **others}, 9) == ()
    assert slow_ranks({0: slow, 1: windows, 2: windows}, 3) == ()


def test_a_window_counts_when_all_its_steps_are_there() -> None:
    times = LocalTimes()
    for step in range(5, 2 * WINDOW_STEPS + 3):
        times.add(step, 1.0 + (step % WINDOW_STEPS) / 128)

    assert times.windows == {1: 1.07421875}
