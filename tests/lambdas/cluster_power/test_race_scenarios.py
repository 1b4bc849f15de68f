"""The power function where a group changes while it looks or acts."""

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
    scene.auto_scaling.before_next_read_by_name = lambda: scene.order("stop", by="ana", reason="weekend")

    late = scene.order()["workers"]

    assert late["reason"] == "workers changed while the tick looked: the next tick decides"
    assert (group.desired, group.tags[STATE], group.tags[SIZE]) == (0, "stopped", "0")


def test_a_tick_reads_one_group_by_its_name_and_not_by_a_filter_too(scene: Scene) -> None:
    """Auto Scaling takes names or filters; a group of that name that became another cluster's is not written."""
    group = scene.add()

    def give_away() -> None:
        group.tags["cdk-training-cluster:cluster"] = "other-pod"

    scene.auto_scaling.before_next_read_by_name = give_away
    late = scene.order()["workers"]

    assert late["reason"] == "workers changed while the tick looked: the next tick decides"
    assert scene.auto_scaling.writes == []
