"""Stops that are carried out at once or not at all, where something else happens at the same moment."""

from datetime import timedelta

import pytest

from fake_auto_scaling import FakeGroup
from immediate_stop_scene import failed_stop, stop_now, stopped
from power_scene import Scene
from termination_scene import LambdaEndedError, end_run, run_group

PREFIX = "cdk-training-cluster:power-"
SAME_MOMENT = "workers was given another size at the same moment. The stop was taken back"


@pytest.fixture
def scene() -> Scene:
    return Scene()


@pytest.fixture
def group(scene: Scene) -> FakeGroup:
    """A group of 8 nodes that runs."""
    return run_group(scene)


@pytest.mark.parametrize("size", [3, 8])
def test_a_size_that_somebody_sets_at_the_same_moment_stays(scene: Scene, group: FakeGroup, size: int) -> None:
    before = dict(group.tags)

    def size_otherwise() -> None:
        group.desired = size

    scene.auto_scaling.before_next("CreateOrUpdateTags", "workers-asg", size_otherwise)
    told = stop_now(scene)

    assert (told["taken_back"], told["desired"], told["state"], told["reason"]) == (
        True,
        size,
        "running",
        SAME_MOMENT,
    )
    assert group.tags == before
    scene.minute(10)
    assert (group.desired, group.in_service, stopped(scene)) == (size, size, [])


def test_what_cannot_be_written_back_fails_loudly_and_the_size_stays_all_the_same(
    scene: Scene, group: FakeGroup
) -> None:
    def size_otherwise() -> None:
        group.desired = 5

    def refuse_the_next() -> None:
        scene.auto_scaling.before_next("DescribeAutoScalingGroups", "workers-asg", fail)

    def fail() -> None:
        size_otherwise()
        scene.auto_scaling.fail_next("CreateOrUpdateTags", "Throttling")

    scene.auto_scaling.before_next("CreateOrUpdateTags", "workers-asg", refuse_the_next)
    message = failed_stop(scene)

    assert message == (
        "workers: was given another size at the same moment, and what was recorded before could not be written "
        "back: a tick may stop it (Throttling: no). Everything else was done."
    )
    scene.minute(10)
    assert (group.desired, group.in_service) == (5, 5)


def test_a_size_that_somebody_sets_while_it_looks_stays(scene: Scene, group: FakeGroup) -> None:
    def size_otherwise() -> None:
        group.desired = 5

    scene.auto_scaling.before_next("DescribeAutoScalingGroups", "workers-asg", size_otherwise)

    assert stop_now(scene)["reason"] == "workers changed while the function looked. The stop was taken back"
    scene.minute(10)
    assert (group.in_service, group.tags[f"{PREFIX}state"]) == (5, "running")


@pytest.mark.parametrize("action", ["start", "stop"])
def test_an_operators_order_that_comes_while_it_looks_wins(scene: Scene, group: FakeGroup, action: str) -> None:
    def order() -> None:
        scene.now += timedelta(seconds=1)
        scene.order(action, by="ana", reason="I know better")

    group.desired = 5
    scene.minute()
    scene.auto_scaling.before_next("DescribeAutoScalingGroups", "workers-asg", order)
    told = stop_now(scene)

    assert told["reason"] == "workers changed while the function looked. The stop was taken back"
    assert group.tags[f"{PREFIX}by"] == "ana"
    assert scene.minute(10)["workers"]["desired"] == (8 if action == "start" else 0)
    assert stopped(scene) == (["workers"] if action == "stop" else [])


def test_a_start_that_comes_after_the_size_was_set_is_not_undone(scene: Scene, group: FakeGroup) -> None:
    def once_it_is_remembered() -> None:
        scene.auto_scaling.before_next(
            "DescribeAutoScalingGroups", "workers-asg", lambda: scene.order("start", by="ana", reason="mine")
        )

    scene.auto_scaling.before_next("CreateOrUpdateTags", "workers-asg", once_it_is_remembered)
    told = stop_now(scene)

    assert (told["taken_back"], told["desired"], told["reason"]) == (True, 8, SAME_MOMENT)
    assert (group.tags[f"{PREFIX}state"], group.tags[f"{PREFIX}by"], stopped(scene)) == ("running", "ana", [])
    assert scene.minute(10)["workers"]["in_service"] == 8


def test_a_new_group_is_new_again_when_its_stop_is_taken_back(scene: Scene) -> None:
    group = scene.add()

    def size_otherwise() -> None:
        group.desired = 2

    scene.auto_scaling.before_next("CreateOrUpdateTags", "workers-asg", size_otherwise)
    assert stop_now(scene)["taken_back"]

    first = scene.minute()["workers"]

    assert (first["why"], first["desired"]) == ("first start after the deploy", 8)
    assert group.tags[f"{PREFIX}state"] == "running"


@pytest.mark.parametrize("operation", ["DescribeAutoScalingGroups", "SetDesiredCapacity"])
def test_a_run_that_ends_before_the_size_is_set_leaves_no_stop_behind(
    scene: Scene, group: FakeGroup, operation: str
) -> None:
    before = dict(group.tags)
    scene.auto_scaling.before_next(operation, "workers-asg", end_run)

    with pytest.raises(LambdaEndedError):
        stop_now(scene)

    assert scene.minute(10)["workers"]["decision"] == "keep"
    assert (group.in_service, group.tags, stopped(scene)) == (8, before, [])


def test_a_run_that_ends_once_the_size_is_set_leaves_what_an_operator_leaves(scene: Scene, group: FakeGroup) -> None:
    scene.auto_scaling.before_next("CreateOrUpdateTags", "workers-asg", end_run)

    with pytest.raises(LambdaEndedError):
        stop_now(scene)

    held = scene.minute(10)["workers"]
    assert (held["decision"], held["problem"], group.desired, stopped(scene)) == ("held", "emptied", 0, [])
    [told] = scene.sns.messages
    assert told["Subject"] == "base-pod: workers has no nodes and is not stopped"
    assert "Order a start to bring its nodes back, or a stop to keep it at 0." in told["Message"]
    group.desired = 8
    assert scene.minute(10)["workers"]["in_service"] == 8


def test_a_tick_makes_good_what_a_run_did_not_write_of_its_stop(scene: Scene, group: FakeGroup) -> None:
    scene.ssm.before_next("PutParameter", "stopped-groups", end_run)
    with pytest.raises(LambdaEndedError):
        stop_now(scene)

    scene.minute()

    assert (group.desired, stopped(scene)) == (0, ["workers"])


def test_a_tick_that_gives_it_another_count_at_the_same_moment_is_not_stopped_later(
    scene: Scene, group: FakeGroup
) -> None:
    """It has looked before; what it writes comes between what the stop writes and its second look."""
    scene.counts["workers"] = 6

    def size_and_remember() -> None:
        group.desired = 6
        group.tags[f"{PREFIX}size"] = "6"

    def once_the_stop_is_remembered() -> None:
        scene.auto_scaling.before_next("DescribeAutoScalingGroups", "workers-asg", size_and_remember)

    scene.auto_scaling.before_next("CreateOrUpdateTags", "workers-asg", once_the_stop_is_remembered)
    told = stop_now(scene)

    assert (told["taken_back"], told["desired"], told["reason"]) == (True, 6, SAME_MOMENT)
    kept = scene.minute(10)["workers"]
    assert (kept["decision"], kept["state"], group.in_service, stopped(scene)) == ("keep", "running", 6, [])


def test_a_stop_while_a_tick_gives_it_another_count_is_a_stop(scene: Scene, group: FakeGroup) -> None:
    scene.counts["workers"] = 6

    def once_it_is_sized() -> None:
        scene.auto_scaling.before_next("CreateOrUpdateTags", "workers-asg", lambda: stop_now(scene))

    scene.auto_scaling.before_next("SetDesiredCapacity", "workers-asg", once_it_is_sized)
    scene.order()

    assert scene.minute(2)["workers"]["state"] == "stopped"
    assert (group.desired, stopped(scene)) == (0, ["workers"])


def test_what_a_tick_notes_meanwhile_does_not_take_it_back(scene: Scene, group: FakeGroup) -> None:
    def note() -> None:
        group.tags[f"{PREFIX}told"] = "problem/quota"

    scene.auto_scaling.before_next("DescribeAutoScalingGroups", "workers-asg", note)

    assert (stop_now(scene)["taken_back"], group.desired) == (False, 0)


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


def test_a_group_that_vanishes_meanwhile_is_not_sized(scene: Scene) -> None:
    run_group(scene)
    scene.auto_scaling.before_next("DescribeAutoScalingGroups", "workers-asg", scene.auto_scaling.groups.clear)

    assert stop_now(scene)["reason"] == "workers changed while the function looked. The stop was taken back"
    assert stopped(scene) == []
