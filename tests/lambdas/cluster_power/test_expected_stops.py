"""Stops that say what was judged: what the node group has become since is not stopped."""

from collections.abc import Callable
from typing import Any

import pytest

from fake_auto_scaling import FakeGroup
from immediate_stop_scene import stop_now, stopped
from power_scene import Scene
from termination_scene import run_group

BY_ANA = {"by": "ana", "reason": "I know better"}


@pytest.fixture
def scene() -> Scene:
    return Scene()


@pytest.fixture
def group(scene: Scene) -> FakeGroup:
    """A group of 8 nodes that runs."""
    return run_group(scene)


def judged(group: FakeGroup) -> dict[str, Any]:
    """Return what a caller that judges whether a group may stop has read of it."""
    return {"expected_size": group.desired, "expected_instance_ids": [one for one, _ in group.nodes]}


def replace_one(group: FakeGroup) -> None:
    """Let a node fail its health check, and another take its place."""
    group.in_service -= 1
    _ = group.nodes
    group.in_service += 1


def resize(group: FakeGroup) -> None:
    group.desired = 9


def test_what_is_as_it_was_judged_is_stopped_and_a_second_order_does_nothing(scene: Scene, group: FakeGroup) -> None:
    expected = judged(group)

    assert (stop_now(scene, **expected)["taken_back"], group.desired) == (False, 0)
    scene.auto_scaling.calls.clear()
    assert stop_now(scene, **expected)["taken_back"] is False
    assert (scene.auto_scaling.writes, stopped(scene)) == ([], ["workers"])


def test_nodes_that_go_already_or_that_no_stop_ends_need_not_have_been_judged(scene: Scene, group: FakeGroup) -> None:
    expected = judged(group)
    group.others = ["Standby", "Detaching", "Warmed:Running"]
    group.terminating = ["i-0f"]

    assert (stop_now(scene, **expected)["taken_back"], group.desired) == (False, 0)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (resize, "workers has the desired size 9, and the stop was sent for 8"),
        (replace_one, "workers has i-2239a3720009, for which the stop was not sent"),
    ],
)
@pytest.mark.parametrize("at_the_last_moment", [False, True])
def test_what_was_not_judged_is_not_stopped(
    scene: Scene, group: FakeGroup, change: Callable[[FakeGroup], None], why: str, at_the_last_moment: bool
) -> None:
    expected, before = judged(group), scene.recorded()
    if at_the_last_moment:
        scene.auto_scaling.before_next("DescribeAutoScalingGroups", "workers-asg", lambda: change(group))
        why = why if change is replace_one else "workers changed while the function looked"
    else:
        change(group)

    told = stop_now(scene, **expected)

    assert (told["taken_back"], told["reason"]) == (True, f"{why}. The stop was not applied")
    assert (group.desired > 0, scene.recorded(), stopped(scene)) == (True, before, [])


@pytest.mark.usefixtures("group")
def test_an_operators_start_between_the_look_and_the_stop_stays(scene: Scene) -> None:
    scene.order("stop", node_groups=["workers"], **BY_ANA)
    scene.minute(2)
    expected: dict[str, Any] = {"expected_size": 8, "expected_instance_ids": ["i-1", "i-2"]}
    scene.order("start", **BY_ANA)
    scene.minute(2)

    told = stop_now(scene, **expected)

    assert told["taken_back"] is True
    assert told["reason"].endswith(" and 5 more, for which the stop was not sent. The stop was not applied")
    assert scene.minute(3)["workers"]["in_service"] == 8


def test_a_fleet_and_two_owners_are_held_against_the_same() -> None:
    scene = Scene()
    fleet = scene.add_fleet("extras")
    group = run_group(scene)
    twin = scene.add(name="workers-asg-2")
    twin.desired = twin.in_service = 4
    scene.minute(4)
    both: dict[str, Any] = {
        "expected_size": 12,
        "expected_instance_ids": [one for each in (group, twin) for one, _ in each.nodes],
    }
    all_of_it: dict[str, Any] = {"expected_size": 4, "expected_instance_ids": ["i-0", "i-1", "i-2", "i-3"]}

    assert stop_now(scene, **judged(group))["taken_back"] is True
    assert stop_now(scene, **both)["taken_back"] is False
    assert stop_now(scene, "extras", **(all_of_it | {"expected_size": 3}))["taken_back"] is True
    assert stop_now(scene, "extras", **(all_of_it | {"expected_instance_ids": ["i-0"]}))["taken_back"] is True
    assert stop_now(scene, "extras", **all_of_it)["taken_back"] is False
    assert (group.desired, twin.desired, fleet.desired) == (0, 0, 0)
