"""EC2 lacks nodes: the desired capacity waits at what there is, and the goal is never lost."""

from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest

from cluster_common.errors import PartialFailureError
from cluster_common.owners.kinds import RETRY_EVERY
from cluster_common.times import time_text
from fake_auto_scaling import FakeGroup
from power_scene import START, Scene
from termination_scene import middle, terminate

BY_A_USER = "User suspended at 2026-11-02T07:00:00Z"
BY_AUTO_SCALING = "It has failed for 24 hours"
RETRY = RETRY_EVERY // timedelta(minutes=1)


@pytest.fixture
def scene() -> Scene:
    return Scene()


@pytest.fixture
def group(scene: Scene) -> FakeGroup:
    """Five of eight nodes are running, and EC2 has had no more for longer than the grace."""
    group = scene.add(capacity=5)
    scene.minute(12)
    return group


def sizes(scene: Scene, minutes: int) -> list[int]:
    (group,) = scene.auto_scaling.groups.values()
    return [(scene.minute(), group.desired)[1] for _ in range(minutes)]


def test_what_is_desired_is_lowered_after_the_grace_and_raised_again_at_intervals_for_as_long_as_it_fails() -> None:
    scene = Scene()
    scene.add(capacity=5)

    assert sizes(scene, 11) == [8] * 11
    assert sizes(scene, 25) == [5] * RETRY + [8] + [5] * RETRY + [8] + [5] * (23 - 2 * RETRY)


@pytest.mark.usefixtures("group")
def test_nodes_are_missed_and_told_of_against_the_goal(scene: Scene) -> None:
    told = [scene.minute()["workers"] for _ in range(25)]

    assert {(one["wanted"], one["in_service"], one["missing"], one["surplus"]) for one in told} == {(8, 5, 3, 0)}
    assert {(one["decision"], one["problem"]) for one in told} == {("short", "no-capacity")}
    assert "workers: 5 of 8 nodes are running" in told[0]["reason"]
    assert scene.subjects() == ["base-pod: nodes of workers are missing"]


def test_nodes_that_ec2_has_again_come_within_the_interval(scene: Scene, group: FakeGroup) -> None:
    group.capacity = 8
    scene.minute(RETRY + 1)

    assert (group.desired, group.in_service, scene.minute()["workers"]["decision"]) == (8, 8, "keep")
    scene.auto_scaling.calls.clear()
    scene.minute(2 * RETRY)
    assert scene.auto_scaling.writes == []


def test_nodes_that_die_while_others_are_missing_are_missed_too_and_come_back(scene: Scene, group: FakeGroup) -> None:
    group.in_service = group.capacity = 3
    short = scene.minute(2)["workers"]
    assert (short["desired"], short["missing"]) == (3, 5)
    group.capacity = 6
    scene.minute(RETRY + 1)
    assert (group.in_service, scene.minute(RETRY)["workers"]["desired"]) == (6, 6)


def test_nodes_on_their_way_are_not_ended(scene: Scene, group: FakeGroup) -> None:
    scene.minute(RETRY)
    group.others = ["Pending:Wait", "Terminating"]
    assert scene.minute(2)["workers"]["desired"] == 6


@pytest.mark.parametrize("until", [1, RETRY], ids=["lowered", "raised"])
@pytest.mark.parametrize("size", [2, 4, 6])
def test_a_size_that_an_operator_sets_meanwhile_is_left_alone(
    scene: Scene, group: FakeGroup, until: int, size: int
) -> None:
    scene.minute(until)
    group.desired = size
    held = scene.minute(2 * RETRY)["workers"]
    assert (held["decision"], held["desired"]) == ("held", size)


def test_a_size_that_was_lowered_before_is_an_operators_once_it_was_raised(scene: Scene, group: FakeGroup) -> None:
    scene.minute(RETRY)
    group.desired = 5
    assert scene.minute()["workers"]["decision"] == "held"


@pytest.mark.parametrize("operation", ["SetDesiredCapacity", "PutItem", "DescribeAutoScalingGroups", "GetItem"])
@pytest.mark.parametrize("nth", range(3))
@pytest.mark.parametrize("begins", [1, RETRY], ids=["raise", "lower"])
def test_a_run_that_is_cut_off_anywhere_is_no_operator(
    scene: Scene, group: FakeGroup, operation: str, nth: int, begins: int
) -> None:
    scene.minute(begins)
    scene.fail_next(operation, "InternalFailure", owner="workers-asg", after=nth)
    for _ in range(RETRY):
        with suppress(PartialFailureError):
            assert scene.minute()["workers"]["decision"] in {"short", "blocked"}
    group.capacity = 8
    with suppress(PartialFailureError):
        scene.minute(RETRY)
    assert scene.minute(RETRY + 1)["workers"]["in_service"] == 8


@pytest.mark.parametrize("operation", ["PutItem", "SetDesiredCapacity"])
def test_a_node_that_comes_while_the_size_is_lowered_costs_no_other(
    scene: Scene, group: FakeGroup, operation: str
) -> None:
    scene.minute(RETRY)

    def come() -> None:
        group.in_service = group.capacity = 6

    service = scene.dynamodb if operation == "PutItem" else scene.auto_scaling
    service.before_next(operation, "workers" if operation == "PutItem" else "workers-asg", come)
    ended: list[int] = []
    for _ in range(3):
        scene.order()
        ended.append(group.in_service - group.desired)
        scene.pass_time(timedelta(minutes=1))
    assert max(ended) <= 0
    assert group.in_service == 6


def fail_to_remember(scene: Scene, group: FakeGroup) -> None:
    del group
    scene.dynamodb.fail_next("PutItem", "InternalFailure", group="workers", after=1)


def be_busy(scene: Scene, group: FakeGroup) -> None:
    del group
    scene.auto_scaling.fail_next("SetDesiredCapacity", "ScalingActivityInProgress", group="workers-asg")


def change_at_once(scene: Scene, group: FakeGroup) -> None:
    scene.dynamodb.before_next("PutItem", "workers", lambda: setattr(group, "desired", 7))


@pytest.mark.parametrize("begins", [1, RETRY], ids=["raise", "lower"])
@pytest.mark.parametrize("interrupt", [fail_to_remember, be_busy, change_at_once])
@pytest.mark.parametrize("size", [0, 5, 7])
def test_any_size_set_by_hand_is_left_alone_once_a_tick_has_found_the_group_complete(
    scene: Scene, group: FakeGroup, interrupt: Callable[[Scene, FakeGroup], None], begins: int, size: int
) -> None:
    scene.minute(begins)
    interrupt(scene, group)
    with suppress(PartialFailureError):
        scene.minute(RETRY)
    group.capacity, group.desired = 8, 8
    scene.minute(2)
    group.desired = size
    held = scene.minute(2)["workers"]
    assert (held["decision"], held["desired"]) == ("held", size)
    assert held["problem"] == (None if size else "emptied")


def test_a_size_that_was_only_about_to_be_set_explains_nothing_after_some_minutes(scene: Scene) -> None:
    group = scene.add(in_service=8, desired=8)
    scene.minute()
    scene.change_record(group, desired={"sizes": [0, 8], "at": time_text(scene.now)})
    group.desired = 0
    scene.pass_time(timedelta(minutes=6))
    assert scene.minute()["workers"]["decision"] == "held"


@pytest.mark.parametrize(("until", "desired"), [(1, 5), (RETRY, 8)], ids=["lowered", "raised"])
def test_nodes_that_are_terminated_while_others_are_missing_leave_those_wanted(
    scene: Scene, group: FakeGroup, until: int, desired: int
) -> None:
    scene.minute(until)
    assert group.desired == desired
    told = terminate(scene, middle(group, 1))
    assert (told["missing"], told["desired"], "Its size is 7" in told["reason"]) == (3, desired - 1, True)
    group.capacity = 4
    after = [scene.minute()["workers"] for _ in range(2 * RETRY)]
    assert {(one["decision"], one["missing"], one["problem"]) for one in after} == {("held", 3, "no-capacity")}
    assert after[0]["reason"].startswith("workers was given 8 nodes and its size is 7 since nodes were terminated")
    assert {one["desired"] for one in after} == {4, 7}
    assert scene.subjects() == ["base-pod: nodes of workers are missing"]

    group.suspended, group.capacity = BY_AUTO_SCALING, 8
    assert scene.minute(RETRY + 2)["workers"]["in_service"] == group.desired == 7
    group.desired = 3
    assert "its desired capacity was changed to 3 outside the power function" in scene.minute(2)["workers"]["reason"]


def test_nodes_that_go_missing_after_others_were_terminated_do_not_hold_up_a_deployment(scene: Scene) -> None:
    group = scene.add()
    scene.minute(2)
    terminate(scene, middle(group, 1))
    scene.minute()
    group.in_service = group.capacity = 5
    assert sizes(scene, RETRY + 3)[-1] == 5


def prioritize(group: FakeGroup) -> None:
    group.policies = ["Default"]


def launch(group: FakeGroup) -> None:
    group.activities.insert(
        0, {"Description": "Launching a new EC2 instance: i-2", "StatusCode": "InProgress", "StartTime": START}
    )


@pytest.mark.parametrize("change", [prioritize, launch])
def test_a_group_is_not_lowered_where_that_could_end_a_node_that_works(change: Callable[[FakeGroup], None]) -> None:
    scene = Scene()
    group = scene.add(capacity=5)
    scene.minute(11)
    scene.dynamodb.before_next("PutItem", "workers", lambda: change(group))
    if change is prioritize:
        change(group)
    assert set(sizes(scene, RETRY)) == {8}


def test_a_lowered_group_that_may_not_grow_is_lowered_further(scene: Scene, group: FakeGroup) -> None:
    scene.minute()
    group.maximum, group.in_service, group.capacity = 6, 3, 3
    assert sizes(scene, 2 * RETRY)[-1] == 3


def test_launches_that_cannot_be_resumed_keep_no_group_from_its_size(scene: Scene, group: FakeGroup) -> None:
    scene.order("stop")
    scene.minute(2)
    group.suspended = BY_AUTO_SCALING
    scene.auto_scaling.fail_next("ResumeProcesses", "AccessDenied", group=group.name)
    with pytest.raises(PartialFailureError, match="launching could not be resumed"):
        scene.order("start")
    assert group.desired == 8
    scene.auto_scaling.fail_next("ResumeProcesses", "AccessDenied", group=group.name)
    with pytest.raises(PartialFailureError):
        scene.minute()
    assert "It could not be resumed: " in scene.sns.messages[-1]["Message"]


def stop(scene: Scene, group: FakeGroup) -> None:
    scene.order("stop")
    group.desired = 5


def shrink(scene: Scene, group: FakeGroup) -> None:
    del scene
    group.maximum = 6


def deploy(scene: Scene, group: FakeGroup) -> None:
    scene.counts["workers"] = group.maximum = 6


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda scene, _: scene.order("start"), ("short", 8, 8)),
        (stop, ("held", 0, 5)),
        (lambda scene, _: scene.order("stop"), ("keep", 0, 0)),
        (shrink, ("short", 8, 5)),
        (deploy, ("short", 6, 6)),
    ],
    ids=["start", "stop, then by hand", "stop", "maximum", "count"],
)
def test_orders_and_deploys_hold_as_ever(
    scene: Scene, group: FakeGroup, change: Callable[[Scene, FakeGroup], object], expected: tuple[str, int, int]
) -> None:
    change(scene, group)
    told = scene.minute(2)["workers"]
    assert (told["decision"], told["wanted"], told["desired"]) == expected
    if expected[0] == "short":
        scene.minute(RETRY)
        assert group.desired in {5, told["wanted"]}


def test_a_group_whose_block_closes_is_not_raised_and_goes_with_it() -> None:
    scene = Scene(counts={"pod": 8})
    group, block = scene.deploy_pod(starts=timedelta(0), lasts=timedelta(hours=3), others=3)
    assert block.ends is not None
    scene.minute(12)
    assert group.desired == 5
    scene.now = block.ends - timedelta(minutes=69)
    assert set(sizes(scene, 28)) == {5}
    assert sizes(scene, 2)[-1] == 0


def test_a_spot_fleet_is_never_lowered() -> None:
    scene = Scene(counts={})
    fleet = scene.add_fleet(capacity=1)
    scene.minute(3 * RETRY)
    assert fleet.target == 4


@pytest.mark.parametrize(
    ("reason", "problem"),
    [(BY_AUTO_SCALING, "no-capacity"), (BY_A_USER, "launching-suspended"), ("", "launching-suspended")],
)
@pytest.mark.parametrize("action", ["start", "tick"])
def test_only_what_auto_scaling_itself_suspended_is_resumed(
    scene: Scene, group: FakeGroup, reason: str, problem: str, action: str
) -> None:
    resumes = reason == BY_AUTO_SCALING
    group.suspended = reason
    if action == "start":
        scene.order("start")
    told: dict[str, Any] = scene.minute(RETRY + 2)["workers"]

    assert (group.suspended is None, "ResumeProcesses" in scene.auto_scaling.writes) == (resumes, resumes)
    assert told["problem"] == problem
    scene.minute(RETRY + 2)
    assert group.desired == 5 or resumes


def test_launches_of_a_stopped_group_stay_suspended_until_it_starts(scene: Scene, group: FakeGroup) -> None:
    scene.order("stop")
    group.suspended, group.capacity = BY_AUTO_SCALING, 8
    scene.minute(2 * RETRY)
    assert group.suspended
    scene.order("start")
    assert scene.minute()["workers"]["in_service"] == 8
