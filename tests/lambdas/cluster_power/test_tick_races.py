"""The power function where a group changes while it looks or acts."""

from datetime import timedelta

import pytest

from cluster_common.errors import PartialFailureError
from power_scene import Scene

STATE = "cdk-training-cluster:power-state"
SIZE = "cdk-training-cluster:power-size"


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_a_busy_group_waits_for_the_next_tick_and_is_no_failure(scene: Scene) -> None:
    scene.add()
    scene.auto_scaling.fail_next("SetDesiredCapacity", "ScalingActivityInProgress")

    busy = scene.order()["workers"]

    assert (busy["decision"], busy["desired"]) == ("blocked", 0)
    assert busy["reason"] == "workers is busy with another scaling activity: the next tick tries again"
    assert scene.minute()["workers"]["desired"] == 8


def test_a_group_that_vanishes_while_it_is_sized_is_absent_at_the_next_tick(scene: Scene) -> None:
    scene.add()
    scene.auto_scaling.fail_next("SetDesiredCapacity", "ValidationError", message="AutoScalingGroup name not found")
    with pytest.raises(PartialFailureError, match="AutoScalingGroup name not found"):
        scene.order()

    scene.auto_scaling.groups.clear()

    assert scene.minute()["workers"]["decision"] == "absent"


def test_a_stop_that_comes_while_a_tick_looks_wins(scene: Scene) -> None:
    """The tick looks again right before it acts; what changed meanwhile is left to the next one."""
    group = scene.add()
    scene.auto_scaling.before_next(
        "DescribeAutoScalingGroups", "workers-asg", lambda: scene.order("stop", by="ana", reason="weekend")
    )

    late = scene.order()["workers"]

    assert late["reason"] == "workers changed while the tick looked: the next tick decides"
    assert (group.desired, group.tags[STATE], group.tags[SIZE]) == (0, "stopped", "0")


def test_two_ticks_at_the_same_moment_do_the_same_and_tell_it_once(scene: Scene) -> None:
    """An event of a Capacity Block can make a tick while the scheduler's is under way."""
    group = scene.add(capacity=3)
    scene.auto_scaling.before_next("SetDesiredCapacity", "workers-asg", scene.order)
    scene.order()
    assert (group.desired, group.tags[SIZE]) == (8, "8")
    scene.pass_time(timedelta(minutes=1))
    scene.auto_scaling.before_next("DescribeAutoScalingGroups", "workers-asg", scene.order)

    scene.order()

    assert scene.subjects() == ["base-pod: nodes of workers are missing"]


@pytest.mark.parametrize("moment", ["SetDesiredCapacity", "CreateOrUpdateTags"])
def test_a_stop_that_comes_while_a_tick_sizes_a_group_is_carried_out_at_the_next(scene: Scene, moment: str) -> None:
    group = scene.add()
    scene.minute(2)
    scene.counts["workers"] = 6
    scene.auto_scaling.before_next(moment, "workers-asg", lambda: scene.order("stop", by="ana", reason="weekend"))

    scene.order()
    scene.minute()

    assert (group.desired, group.tags[STATE]) == (0, "stopped")


def test_a_size_that_another_run_set_meanwhile_is_not_taken_for_an_operators(scene: Scene) -> None:
    """The last of two runs that remembers a size looks whether it is the one that is there."""
    group = scene.add()
    scene.minute(2)
    scene.counts["workers"] = 6

    def size_otherwise() -> None:
        group.desired = 8

    def when_it_is_remembered() -> None:
        scene.auto_scaling.before_next("CreateOrUpdateTags", "workers-asg", size_otherwise)

    scene.auto_scaling.before_next("SetDesiredCapacity", "workers-asg", when_it_is_remembered)
    late = scene.order()["workers"]

    assert (late["decision"], late["reason"]) == (
        "blocked",
        "workers was given another size at the same moment: the next tick decides",
    )
    assert group.tags[SIZE] == "none"
    assert scene.minute(2)["workers"]["desired"] == 6


def test_a_description_that_is_old_is_not_taken_for_another_size(scene: Scene) -> None:
    group = scene.add()
    scene.minute(2)
    scene.counts["workers"], before = 6, scene.auto_scaling.describe_all()
    scene.auto_scaling.before_next("CreateOrUpdateTags", group.name, lambda: scene.auto_scaling.old.append(before))

    assert scene.order()["workers"]["decision"] == "size"
    assert (group.desired, group.tags[SIZE]) == (6, "6")


def test_the_end_of_a_block_that_comes_while_a_tick_starts_nodes_wins() -> None:
    scene = Scene(counts={"pod": 8})
    group = scene.add("pod")
    block = scene.add_block(group)
    assert block.ends is not None
    scene.order("stop")
    scene.now = block.ends - timedelta(minutes=40, seconds=1)
    scene.pass_time(timedelta(0))

    def warn() -> None:
        scene.now += timedelta(seconds=1)
        scene.order()

    scene.auto_scaling.before_next("SetDesiredCapacity", "pod-asg", warn)
    scene.order("start", by="ana", reason="one more epoch")
    scene.minute()

    assert group.desired == 0
