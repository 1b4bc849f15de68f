from collections.abc import Callable
from datetime import timedelta

import pytest

from cluster_common.errors import PartialFailureError
from power_scene import Scene


def test_a_group_that_lost_the_tags_of_its_cluster_is_stopped_and_started_all_the_same() -> None:
    scene = Scene()
    group = scene.add()
    scene.minute(4)
    scene.untag(group)
    assert scene.minute(30)["workers"]["decision"] == "keep"
    scene.order("stop")
    scene.minute(3)
    assert (group.desired, group.in_service) == (0, 0)
    scene.order("start")
    scene.minute(3)
    assert group.in_service == 8


LOST = (
    "workers: the Auto Scaling group workers-asg, which has nodes by the last record, was not found. Its nodes may "
    "run on: look for it, and terminate them. Everything else was done."
)


@pytest.mark.parametrize("action", ["stop", "start", "limit"])
def test_runs_and_commands_fail_once_a_group_that_was_not_stopped_is_gone_for_longer_than_launches_take(
    action: str,
) -> None:
    scene = Scene()
    group = scene.add()
    scene.minute(4)
    scene.auto_scaling.groups.clear()
    scene.minute(10)
    orders: list[Callable[[], object]] = [scene.minute, lambda: scene.order(action), scene.minute]
    for order in orders:
        scene.now += timedelta(minutes=1)
        with pytest.raises(PartialFailureError) as caught:
            order()
        assert str(caught.value) == LOST
    assert scene.stopped() == (["workers"] if action == "stop" else [])
    scene.auto_scaling.groups[group.name] = group
    assert scene.minute(3)["workers"]["desired"] == (8 if action == "start" else 0)


def test_the_absence_of_a_group_that_was_stopped_or_never_seen_is_no_failure() -> None:
    scene = Scene(counts={"workers": 8, "new": 4})
    scene.add()
    scene.minute(4)
    scene.order("stop")
    scene.minute(3)
    scene.auto_scaling.groups.clear()
    assert {one["decision"] for one in scene.minute(30).values()} == {"absent"}
