"""A run that ends at any of its calls leaves a state from which the next ticks finish."""

from collections.abc import Callable

import pytest

from power_scene import Scene
from termination_scene import LambdaEndedError, end_run

Cluster = Callable[[Scene], object]


def end_at(number: int) -> Callable[[str], None]:
    """Return what ends a run right before its call of that number, and so after the one before."""
    calls: list[str] = []

    def on_call(operation: str) -> None:
        calls.append(operation)
        if len(calls) == number:
            end_run()

    return on_call


def new_cluster() -> Scene:
    """Deploy a group, a group with a reservation that is released, and a Spot Fleet."""
    scene = Scene(counts={"held": 3, "workers": 8})
    scene.add()
    scene.add_reservation(scene.add("held"))
    scene.add_fleet("extras")
    return scene


def sizes(scene: Scene) -> dict[str, tuple[int, str]]:
    """Return the size and the state of each node group, once ticks had time."""
    scene.watch(lambda _: None)
    told = scene.minute(6)
    return {name: (one["desired"], one["state"]) for name, one in told.items()}


RUNNING = {"extras": (4, "running"), "held": (3, "running"), "workers": (8, "running")}
STOPPED = dict.fromkeys(RUNNING, (0, "stopped"))


def first_tick(scene: Scene) -> None:
    scene.order()


def stop(scene: Scene) -> None:
    scene.order("stop", by="ana", reason="weekend")


def start(scene: Scene) -> None:
    scene.order("start", by="ana", reason="monday")


def grow(scene: Scene) -> None:
    scene.counts["workers"] = 9
    scene.auto_scaling.groups["workers-asg"].maximum = 9
    scene.order()


def deploy_only(scene: Scene) -> None:
    del scene


def run(scene: Scene) -> None:
    scene.minute(3)


def run_and_stop(scene: Scene) -> None:
    run(scene)
    stop(scene)
    scene.minute(3)


@pytest.mark.parametrize(
    ("before", "interrupted", "expected"),
    [
        (deploy_only, first_tick, RUNNING),
        (run, grow, {**RUNNING, "workers": (9, "running")}),
        (run_and_stop, first_tick, STOPPED),
    ],
    ids=["the first tick", "another count", "a stopped cluster"],
)
def test_a_tick_that_ends_anywhere_is_made_good_by_the_next(
    before: Cluster, interrupted: Cluster, expected: dict[str, tuple[int, str]]
) -> None:
    for number in range(1, 100):
        scene = new_cluster()
        before(scene)
        scene.watch(end_at(number))
        try:
            interrupted(scene)
        except LambdaEndedError:
            assert sizes(scene) == expected
            continue
        break
    assert number > 5
    assert sizes(scene) == expected


@pytest.mark.parametrize(
    ("before", "order", "until", "after"),
    [(run, stop, RUNNING, STOPPED), (run_and_stop, start, STOPPED, RUNNING)],
    ids=["stop", "start"],
)
def test_of_an_order_that_ends_anywhere_what_was_recorded_is_applied_and_the_rest_as_it_was(
    before: Cluster, order: Cluster, until: dict[str, tuple[int, str]], after: dict[str, tuple[int, str]]
) -> None:
    recorded: list[int] = []
    for number in range(1, 100):
        scene = new_cluster()
        before(scene)
        scene.watch(end_at(number))
        try:
            order(scene)
        except LambdaEndedError:
            names = [name for name in after if str(scene.recorded(name).record("").state) == after[name][1]]
            recorded.append(len(names))
            assert sizes(scene) == {name: (after if name in names else until)[name] for name in after}
            continue
        break
    assert recorded == sorted(recorded)
    assert {0, 1, 2, 3} == set(recorded)
    assert sizes(scene) == after
