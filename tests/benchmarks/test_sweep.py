"""A run over a fleet is measured, and held to what it may take."""

import os
from collections.abc import Iterator

import pytest

from benchmarks.measuring import FailedError, Program
from benchmarks.sweep.account import SweepServer
from benchmarks.sweep.goals import meets, most_requests
from benchmarks.sweep.measure import SHARES, Sweep, due, sides


@pytest.fixture(scope="module")
def server() -> Iterator[SweepServer]:
    with SweepServer() as server:
        yield server


@pytest.mark.parametrize(
    ("instances", "stops", "owners", "expected"),
    [
        (0, 0, 0, 5),
        (1, 0, 0, 1 + 1 + 5),
        (200, 0, 0, 1 + 1 + 5),
        (201, 50, 50, 2 + 1 + 2 + 4 + 5),
        (501, 51, 51, 3 + 2 + 4 + 6 + 5),
        (10_000, 1_000, 1_200, 50 + 20 + 40 + 96 + 200 + 5),
    ],
)
def test_requests_are_bounded_by_pages_batches_and_owners(
    instances: int, stops: int, owners: int, expected: int
) -> None:
    assert most_requests(instances, stops, owners) == expected


@pytest.mark.parametrize(
    ("figures", "missed"),
    [
        ({}, set()),
        ({"requests": 11}, {"requests"}),
        ({"ratio_of_turns": 1.11}, {"wall"}),
        ({"peak_mib": 128.1}, {"peak"}),
        ({"peak_mib": 128.1, "instances": 2_000}, set()),
    ],
)
def test_a_goal_is_missed_above_its_bound(figures: dict[str, float], missed: set[str]) -> None:
    entry = {
        "instances": 10_000,
        "requests": 10,
        "most_requests": 10,
        "ratio_of_turns": 1.1,
        "peak_mib": 128.0,
        **figures,
    }
    assert {goal for goal, is_met in meets(entry).items() if not is_met} == missed


@pytest.mark.parametrize("size", SHARES)
def test_a_tenth_of_each_fleet_is_to_be_stopped(size: int) -> None:
    assert due(size) == (size / 10, size / 50)


def test_both_sides_do_what_is_due_with_as_few_requests_as_they_may(server: SweepServer) -> None:
    size = 60
    stops, warnings = due(size)
    both = sides(server, size)
    for side in both.values():
        side.run()
    requests = {name: side.accounts[0].requests for name, side in both.items()}
    assert requests["minimal"] == {"DescribeInstances": 1, "GetMetricData": 1, "Query": 1, "StopInstances": 1}
    assert requests["minimal"].items() <= requests["function"].items()
    assert sum(requests["function"].values()) <= most_requests(size, stops, stops + warnings)


def test_a_run_that_does_not_do_what_is_due_is_an_error(server: SweepServer) -> None:
    idle = Sweep(server=server, program=Program(arguments=("-c", ""), environment=os.environ), size=50, warns=True)
    with pytest.raises(FailedError, match=r"^of 50 instances \(stopped, warned\) should be \(5, 1\): "):
        idle.run()
