"""Stops that happen at once or not at all, where something else happens at the same moment."""

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from fake_auto_scaling import FakeGroup
from immediate_stop_scene import stop_now, stopped
from power_scene import Scene
from termination_scene import LambdaEndedError, end_run, run_group

SAME_MOMENT = "workers was given another size at the same moment. The stop was not applied"
SHOWS_LATE = "workers was given the size 0 and its Auto Scaling group shows 8 still: the next run looks again"
OTHER_ORDER = "workers was stopped and given another command at the same moment: the next run applies that"


@pytest.fixture
def scene() -> Scene:
    return Scene()


@pytest.fixture
def group(scene: Scene) -> FakeGroup:
    """A group of 8 nodes that runs."""
    return run_group(scene)


def once_it_is_sized(scene: Scene, happens: Callable[[], object]) -> None:
    """Let something happen when a group was given the size zero, and before that is looked at and recorded."""
    scene.auto_scaling.before_next(
        "SetDesiredCapacity",
        "workers-asg",
        lambda: scene.auto_scaling.before_next("DescribeAutoScalingGroups", "workers-asg", happens),
    )


@pytest.mark.parametrize("size", [3, 8])
def test_a_size_that_an_operator_sets_at_the_same_moment_stays(scene: Scene, group: FakeGroup, size: int) -> None:
    before = scene.recorded()

    def size_otherwise() -> None:
        group.desired = size

    once_it_is_sized(scene, size_otherwise)
    told = stop_now(scene)

    assert (told.get("taken_back"), told["desired"], told["state"], told["reason"]) == (
        True if size == 3 else None,
        size,
        "running",
        SAME_MOMENT if size == 3 else SHOWS_LATE,
    )
    assert replace(scene.recorded(), unconfirmed=None) == before
    scene.minute(20)
    assert (group.desired, group.in_service, stopped(scene)) == (size, size, [])


def test_a_size_that_an_operator_sets_while_it_looks_stays(scene: Scene, group: FakeGroup) -> None:
    def size_otherwise() -> None:
        group.desired = 5

    scene.auto_scaling.before_next("DescribeAutoScalingGroups", "workers-asg", size_otherwise)

    assert stop_now(scene)["reason"] == "workers changed while the function looked. The stop was not applied"
    scene.minute(10)
    assert (group.in_service, scene.record(group).state) == (5, "running")


@pytest.mark.parametrize("action", ["start", "stop"])
def test_an_operators_order_that_comes_while_it_looks_wins(scene: Scene, group: FakeGroup, action: str) -> None:
    def order() -> None:
        scene.now += timedelta(seconds=1)
        scene.order(action, by="ana", reason="I know better")

    group.desired = 5
    scene.minute()
    scene.auto_scaling.before_next("DescribeAutoScalingGroups", "workers-asg", order)
    told = stop_now(scene)

    assert told["reason"] == "workers changed while the function looked. The stop was not applied"
    assert scene.record(group).by == "ana"
    assert scene.minute(10)["workers"]["desired"] == (8 if action == "start" else 0)
    assert stopped(scene) == (["workers"] if action == "stop" else [])


def test_a_start_that_comes_after_the_size_was_set_is_not_undone(scene: Scene, group: FakeGroup) -> None:
    scene.dynamodb.before_next("PutItem", "workers", lambda: scene.order("start", by="ana", reason="mine"))
    told = stop_now(scene)

    assert told["taken_back"]
    assert told["reason"] == OTHER_ORDER
    assert (scene.record(group).state, scene.record(group).by, stopped(scene)) == ("running", "ana", [])
    assert scene.minute(10)["workers"]["in_service"] == 8


def test_a_new_group_is_new_again_when_its_stop_is_taken_back(scene: Scene) -> None:
    group = scene.add()

    def size_otherwise() -> None:
        group.desired = 2

    describe = "DescribeAutoScalingGroups"
    once_it_was_looked_at = lambda: scene.auto_scaling.before_next(describe, "workers-asg", size_otherwise)  # noqa: E731 (read once)
    scene.auto_scaling.before_next(describe, "workers-asg", once_it_was_looked_at)
    assert stop_now(scene)["taken_back"]

    first = scene.minute()["workers"]

    assert (first["why"], first["desired"]) == ("first start after the deployment", 8)
    assert scene.record(group).state == "running"


@pytest.mark.parametrize("operation", ["DescribeAutoScalingGroups", "SetDesiredCapacity"])
def test_a_run_that_ends_before_the_size_is_set_leaves_no_stop_behind(
    scene: Scene, group: FakeGroup, operation: str
) -> None:
    before = scene.recorded()
    scene.auto_scaling.before_next(operation, "workers-asg", end_run)

    with pytest.raises(LambdaEndedError):
        stop_now(scene)

    assert scene.minute(10)["workers"]["decision"] == "keep"
    assert (group.in_service, scene.recorded(), stopped(scene)) == (8, before, [])


def test_a_run_that_ends_once_the_size_is_set_leaves_what_an_operator_leaves(scene: Scene, group: FakeGroup) -> None:
    scene.dynamodb.before_next("PutItem", "workers", end_run)

    with pytest.raises(LambdaEndedError):
        stop_now(scene)

    held = scene.minute(10)["workers"]
    assert (held["decision"], held["problem"], group.desired, stopped(scene)) == ("held", "emptied", 0, [])
    [told] = scene.sns.messages
    assert told["Subject"] == "base-pod: workers has the desired capacity 0 without a stop"
    commands = re.findall(r"training-cluster (\w+) base-pod --node-group workers", told["Message"])
    assert commands == ["start", "stop"]
    assert "Start the node group to bring its nodes back, or stop it to keep it stopped." in told["Message"]
    group.desired = 8
    assert scene.minute(10)["workers"]["in_service"] == 8


def test_a_tick_that_gives_it_another_count_at_the_same_moment_is_not_stopped_later(
    scene: Scene, group: FakeGroup
) -> None:
    """It has looked before the stop; what it records comes right before what the stop records."""
    scene.counts["workers"] = 6

    def size_and_record() -> None:
        group.desired = 6
        scene.change_record(group, size=6)

    scene.dynamodb.before_next("PutItem", "workers", size_and_record)
    told = stop_now(scene)

    assert told["taken_back"]
    assert told["reason"] == OTHER_ORDER
    kept = scene.minute(10)["workers"]
    assert (kept["decision"], kept["state"], group.in_service, stopped(scene)) == ("keep", "running", 6, [])


@pytest.mark.parametrize("reads", [1, 2])
def test_a_description_that_is_old_takes_no_stop_back(scene: Scene, group: FakeGroup, reads: int) -> None:
    before = scene.auto_scaling.describe_all()

    def lose_the_answer() -> None:
        scene.auto_scaling.old = [before] * reads
        if reads == 2:
            group.desired = 0
            scene.auto_scaling.fail_next("SetDesiredCapacity", "InternalFailure")

    scene.auto_scaling.before_next("SetDesiredCapacity", "workers-asg", lose_the_answer)

    assert (stop_now(scene)["taken_back"], group.desired, stopped(scene)) == (False, 0, ["workers"])
    assert scene.minute(3)["workers"]["decision"] == "keep"


@pytest.mark.usefixtures("group")
@pytest.mark.parametrize("reads", [3, 4, 5, 8])
def test_a_stop_that_shows_only_later_is_recorded_then(scene: Scene, reads: int) -> None:
    before = scene.auto_scaling.describe_all()
    scene.auto_scaling.before_next(
        "SetDesiredCapacity", "workers-asg", lambda: setattr(scene.auto_scaling, "old", [before] * reads)
    )

    told = stop_now(scene)

    assert (told.get("taken_back"), told["desired"], told["reason"]) == (None, 8, SHOWS_LATE)
    after = scene.minute(6)["workers"]
    assert (after["state"], after["by"], after["decision"], stopped(scene)) == (
        "stopped",
        "cluster_idle",
        "keep",
        ["workers"],
    )
    assert scene.sns.messages == []


@pytest.mark.parametrize("reads", [3, 4, 6])
@pytest.mark.parametrize("action", ["start", "stop"])
def test_a_command_before_a_stop_shows_wins(scene: Scene, group: FakeGroup, action: str, reads: int) -> None:
    before = scene.auto_scaling.describe_all()
    scene.auto_scaling.before_next(
        "SetDesiredCapacity", "workers-asg", lambda: setattr(scene.auto_scaling, "old", [before] * reads)
    )
    stop_now(scene)

    scene.order(action, by="ana", reason="mine")

    after = scene.minute(3)["workers"]
    assert (after["by"], after["why"], group.desired) == ("ana", "mine", 8 if action == "start" else 0)


def test_a_desired_capacity_of_0_long_after_a_stop_that_never_showed_is_not_that_stop(
    scene: Scene, group: FakeGroup
) -> None:
    once_it_is_sized(scene, lambda: setattr(group, "desired", 8))
    stop_now(scene)
    scene.minute(20)

    group.desired = 0

    assert (scene.minute()["workers"]["decision"], stopped(scene)) == ("held", [])


def test_a_group_that_vanishes_meanwhile_is_not_sized(scene: Scene) -> None:
    run_group(scene)
    scene.auto_scaling.before_next("DescribeAutoScalingGroups", "workers-asg", scene.auto_scaling.groups.clear)

    assert stop_now(scene)["reason"] == "workers changed while the function looked. The stop was not applied"
    assert stopped(scene) == []
