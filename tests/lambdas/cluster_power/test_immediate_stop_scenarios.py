"""Stops that happen at once or not at all, and what the ticks after them do."""

import pytest

from cluster_common.errors import PartialFailureError
from fake_auto_scaling import FakeGroup
from immediate_stop_scene import IDLE, failed_stop, stop_now, stopped
from power_scene import Scene
from termination_scene import run_group

BUSY = "workers is busy with another scaling activity. The stop was not applied"


@pytest.fixture
def scene() -> Scene:
    return Scene()


@pytest.fixture
def group(scene: Scene) -> FakeGroup:
    """A group of 8 nodes that runs."""
    return run_group(scene)


def test_a_stop_that_nothing_hinders_is_a_stop(scene: Scene, group: FakeGroup) -> None:
    scene.auto_scaling.calls.clear()

    told = stop_now(scene)

    assert scene.auto_scaling.writes == ["SetDesiredCapacity"]
    assert {name: told[name] for name in ("desired", "taken_back", "decision", "state", "by", "why")} == {
        "desired": 0,
        "taken_back": False,
        "decision": "size",
        "state": "stopped",
        "by": "cluster_idle",
        "why": "idle for an hour",
    }
    assert (scene.record(group).state, scene.record(group).size, stopped(scene)) == (
        "stopped",
        0,
        ["workers"],
    )
    kept = scene.minute(3)["workers"]
    assert (kept["decision"], kept["reason"]) == ("keep", "workers is stopped, by cluster_idle: idle for an hour")
    assert scene.order("start")["workers"]["desired"] == 8


def test_other_orders_say_nothing_of_what_was_taken_back(scene: Scene, group: FakeGroup) -> None:
    assert "taken_back" not in scene.order("stop", **IDLE)["workers"]
    assert group.desired == 0


@pytest.mark.parametrize("code", ["AccessDenied", "Throttling", "ResourceContention", "InternalFailure"])
def test_a_size_that_is_refused_leaves_nothing_to_a_later_tick(scene: Scene, group: FakeGroup, code: str) -> None:
    before = scene.recorded()
    scene.auto_scaling.fail_next("SetDesiredCapacity", code)

    message = failed_stop(scene)

    assert message == f"workers: could not be stopped ({code}: no). Everything else was done."
    assert (scene.recorded(), stopped(scene)) == (before, [])
    assert scene.minute(10)["workers"]["decision"] == "keep"
    assert (group.desired, group.in_service, scene.recorded(), stopped(scene)) == (8, 8, before, [])


def test_a_group_that_cannot_be_read_again_stays_as_it_is(scene: Scene, group: FakeGroup) -> None:
    before = scene.recorded()
    scene.auto_scaling.fail_next("DescribeAutoScalingGroups", "Throttling", group="workers-asg")

    assert "could not be stopped (Throttling: no)" in failed_stop(scene)

    scene.minute(10)
    assert (group.desired, group.in_service, scene.recorded(), stopped(scene)) == (8, 8, before, [])


def test_a_busy_group_stays_as_it_is_and_is_no_failure(scene: Scene, group: FakeGroup) -> None:
    before = scene.recorded()
    scene.auto_scaling.fail_next("SetDesiredCapacity", "ScalingActivityInProgress")

    told = stop_now(scene)

    assert {
        name: told[name] for name in ("taken_back", "decision", "reason", "state", "by", "wanted", "desired")
    } == {
        "taken_back": True,
        "decision": "blocked",
        "reason": BUSY,
        "state": "running",
        "by": "cluster_power",
        "wanted": 8,
        "desired": 8,
    }
    scene.minute(10)
    assert (group.desired, group.in_service, scene.recorded(), stopped(scene)) == (8, 8, before, [])


def test_a_group_with_a_smallest_size_stays_as_it_is_when_that_is_taken_away(scene: Scene, group: FakeGroup) -> None:
    before = scene.recorded()
    group.minimum = 4

    told = stop_now(scene)

    assert (told["taken_back"], told["desired"], told["reason"]) == (
        True,
        8,
        "workers should have 0 nodes and the minimum size of its group is 4: set that to 0. The stop was not applied",
    )
    group.minimum = 0
    scene.minute(10)
    assert (group.desired, group.in_service, scene.recorded(), stopped(scene)) == (8, 8, before, [])


def test_a_size_that_an_operator_set_before_stays(scene: Scene, group: FakeGroup) -> None:
    group.desired = 5
    scene.minute(2)
    before = scene.recorded()
    scene.auto_scaling.fail_next("SetDesiredCapacity", "ScalingActivityInProgress")

    assert stop_now(scene)["wanted"] == 8

    assert scene.minute(10)["workers"]["decision"] == "held"
    assert (group.desired, group.in_service, scene.recorded()) == (5, 5, before)


@pytest.mark.usefixtures("group")
def test_a_stop_that_cannot_be_remembered_is_one_all_the_same(scene: Scene) -> None:
    """To ticks it is a size that an operator set."""
    before = scene.recorded()
    scene.dynamodb.fail_next("PutItem", "AccessDenied")

    message = failed_stop(scene)

    assert message == (
        "workers: was stopped, and that could not be recorded (AccessDenied: no). Everything else was done."
    )
    held = scene.minute(10)["workers"]
    assert (held["decision"], held["desired"], held["problem"], stopped(scene)) == ("held", 0, "emptied", [])
    assert scene.recorded() == before.with_changes("workers-asg", {"told": ("problem/emptied",)})
    assert scene.order("start")["workers"]["desired"] == 8


def test_a_size_that_was_set_though_the_answer_is_lost_is_remembered(scene: Scene, group: FakeGroup) -> None:
    def set_it() -> None:
        group.desired = 0

    scene.auto_scaling.before_next("SetDesiredCapacity", "workers-asg", set_it)
    scene.auto_scaling.fail_next("SetDesiredCapacity", "RequestTimeout")

    told = stop_now(scene)

    assert (told["taken_back"], told["desired"], scene.record(group).state) == (False, 0, "stopped")
    assert scene.minute(10)["workers"]["decision"] == "keep"


def test_a_stop_that_is_remembered_and_cannot_be_looked_at_again_stays_a_stop(scene: Scene, group: FakeGroup) -> None:
    scene.auto_scaling.before_next(
        "SetDesiredCapacity",
        "workers-asg",
        lambda: scene.auto_scaling.fail_next("DescribeAutoScalingGroups", "Throttling"),
    )

    assert failed_stop(scene).startswith("workers: could not be read again (Throttling: no)")
    scene.minute(10)
    assert (group.desired, stopped(scene)) == (0, ["workers"])


def test_a_group_that_was_stopped_before_stays_stopped(scene: Scene, group: FakeGroup) -> None:
    scene.order("stop", by="ana", reason="weekend")
    scene.minute(2)
    scene.auto_scaling.calls.clear()

    told = stop_now(scene)

    assert (told["taken_back"], told["desired"], told["by"]) == (False, 0, "ana")
    assert (scene.auto_scaling.writes, stopped(scene)) == ([], ["workers"])
    assert scene.minute(10)["workers"]["by"] == "ana"
    assert group.desired == 0


def test_nodes_that_an_operator_started_in_a_stopped_group_run_on(scene: Scene, group: FakeGroup) -> None:
    scene.order("stop", by="ana", reason="weekend")
    scene.minute(2)
    group.desired = 2
    scene.minute(2)
    scene.auto_scaling.fail_next("SetDesiredCapacity", "ScalingActivityInProgress")

    assert stop_now(scene)["taken_back"]

    scene.minute(10)
    assert (group.desired, scene.record(group).by, stopped(scene)) == (2, "ana", ["workers"])


def test_an_operators_stop_stays_armed(scene: Scene, group: FakeGroup) -> None:
    scene.auto_scaling.fail_next("SetDesiredCapacity", "Throttling")
    with pytest.raises(PartialFailureError):
        scene.order("stop", by="ana", reason="weekend")
    assert (group.desired, scene.record(group).state) == (8, "stopped")
    scene.auto_scaling.fail_next("SetDesiredCapacity", "ScalingActivityInProgress")
    assert stop_now(scene)["taken_back"]

    kept = scene.minute(2)["workers"]

    assert (kept["desired"], kept["by"]) == (0, "ana")


def test_a_group_whose_item_cannot_be_read_is_left_to_people(scene: Scene, group: FakeGroup) -> None:
    scene.dynamodb.change("power#base-pod", "workers", state="runing")

    assert "got 'runing'): start or stop the node group" in failed_stop(scene)
    assert group.desired == 8


def test_a_group_that_is_being_deleted_is_left_alone(scene: Scene, group: FakeGroup) -> None:
    group.deleting = True
    before = scene.recorded()

    told = stop_now(scene)

    assert (told["decision"], told["taken_back"], told["reason"]) == (
        "deleting",
        True,
        "workers is being deleted. The stop was not applied",
    )
    assert (group.desired, scene.recorded()) == (8, before)


def test_a_node_group_that_nothing_owns_yet_starts_when_it_comes(scene: Scene) -> None:
    """An ordinary stop is remembered for the owner that comes."""
    told = stop_now(scene)

    assert (told["decision"], told["taken_back"], told["desired"]) == ("absent", True, 0)
    group = scene.add()
    scene.minute(3)
    assert (group.in_service, stopped(scene)) == (8, [])


def test_a_released_reservation_is_lowered_by_a_stop_only() -> None:
    scene = Scene(counts={"held": 8})
    group = scene.add("held")
    reservation = scene.add_reservation(group)
    scene.minute(3)
    group.minimum = 1
    assert stop_now(scene, "held")["taken_back"]
    group.minimum = 0
    scene.auto_scaling.fail_next("SetDesiredCapacity", "ScalingActivityInProgress")
    assert stop_now(scene, "held")["taken_back"]
    scene.auto_scaling.fail_next("SetDesiredCapacity", "AccessDenied")
    failed_stop(scene, "held")
    scene.minute(10)
    assert (group.in_service, reservation.bought, scene.ec2.writes) == (8, 8, [])

    assert not stop_now(scene, "held")["taken_back"]
    assert scene.ec2.writes == []
    scene.minute(3)

    assert reservation.bought == 1


def test_each_node_group_of_an_order_is_stopped_or_taken_back_by_itself() -> None:
    scene = Scene(counts={"eval": 2, "workers": 8})
    groups = {name: scene.add(name) for name in scene.counts}
    scene.minute(2)
    scene.auto_scaling.fail_next("SetDesiredCapacity", "ScalingActivityInProgress", group="eval-asg")

    told = scene.order("stop", all_or_nothing=True, **IDLE)

    assert {name: (one["taken_back"], one["desired"]) for name, one in told.items()} == {
        "eval": (True, 2),
        "workers": (False, 0),
    }
    scene.minute(10)
    assert ({name: group.in_service for name, group in groups.items()}, stopped(scene)) == (
        {"eval": 2, "workers": 0},
        ["workers"],
    )
