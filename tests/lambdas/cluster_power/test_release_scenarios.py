"""The power function on a node group whose reservation is released while it is stopped."""

from datetime import timedelta

import pytest

from cluster_common.errors import PartialFailureError
from cluster_contract.schedule import ScheduleSettings
from fake_auto_scaling import FakeGroup
from fake_reservations import FakeReservation
from power_scene import Scene

WINDOW = ScheduleSettings(windows=("daily 08:00-08:30 UTC",))


@pytest.fixture
def scene() -> Scene:
    return Scene(counts={"held": 8})


@pytest.fixture
def group(scene: Scene) -> FakeGroup:
    return scene.add("held")


@pytest.fixture
def reservation(scene: Scene, group: FakeGroup) -> FakeReservation:
    return scene.add_reservation(group)


def test_the_reservation_is_lowered_when_the_group_is_stopped_and_its_last_node_is_gone(
    scene: Scene, group: FakeGroup, reservation: FakeReservation
) -> None:
    scene.minute(2)
    group.hooked = True
    scene.order("stop", by="ana", reason="weekend")

    scene.minute(3)
    assert (group.alive, reservation.bought) == (8, 8)
    group.hooked = False
    lowered = scene.minute()["held"]

    assert (lowered["decision"], reservation.bought) == ("keep", 1)
    assert scene.ec2.writes == ["ModifyCapacityReservation"]
    scene.minute(3)
    assert scene.ec2.writes == ["ModifyCapacityReservation"]


def test_the_reservation_is_lowered_when_a_window_ends_of_a_group_that_is_limited(
    scene: Scene, group: FakeGroup, reservation: FakeReservation
) -> None:
    scene.schedules, scene.details["held"] = (WINDOW,), {**scene.details["held"], "schedule": 0}
    scene.minute(2)
    scene.order("limit", by="cluster_spend")

    ended = scene.minute(35)["held"]

    assert (group.desired, reservation.bought) == (0, 1)
    assert "its capacity reservation cr-held holds 1 instance, which is billed" in ended["reason"]


def test_a_running_group_that_an_operator_emptied_keeps_its_reservation(
    scene: Scene, group: FakeGroup, reservation: FakeReservation
) -> None:
    """Its state says that its nodes are to come back; EC2 may not have the capacity again."""
    scene.minute(3)
    group.desired = 0

    scene.minute(3)

    assert (group.alive, reservation.bought, scene.ec2.writes) == (0, 8, [])


def test_a_group_that_waits_for_a_deploy_to_end_keeps_its_new_reservation(scene: Scene, group: FakeGroup) -> None:
    """It was bought in another way before: CloudFormation empties the old group before it removes it."""
    scene.minute(3)
    new = scene.add("held", name="held-reservation-asg")
    reservation = scene.add_reservation(new)
    scene.minute()
    group.minimum = group.desired = group.maximum = 0
    scene.minute(2)
    assert reservation.bought == 8

    del scene.auto_scaling.groups[group.name]
    scene.minute(2)

    assert (new.in_service, reservation.bought, scene.ec2.writes) == (8, 8, [])


def test_a_reservation_of_which_ec2_does_not_say_how_much_is_used_is_not_lowered(
    scene: Scene, reservation: FakeReservation
) -> None:
    scene.minute(2)
    reservation.counted = False
    scene.order("stop")

    scene.minute(3)

    assert reservation.bought == 8


def test_instances_of_others_in_the_reservation_are_not_shut_out(scene: Scene, reservation: FakeReservation) -> None:
    scene.counts["held"] = 5
    reservation.others = 3
    scene.minute(2)
    scene.order("stop")

    scene.minute(3)

    assert reservation.bought == 3


def test_the_reservation_is_raised_before_the_group_is_sized(
    scene: Scene, group: FakeGroup, reservation: FakeReservation
) -> None:
    scene.minute(2)
    scene.order("stop")
    scene.minute(2)
    assert reservation.bought == 1
    seen: list[int] = []
    scene.auto_scaling.before_next("SetDesiredCapacity", "held-asg", lambda: seen.append(reservation.bought))

    scene.order("start", by="bo", reason="monday")
    back = scene.minute()["held"]

    assert seen == [8]
    assert (back["in_service"], group.in_service) == (8, 8)


def test_capacity_that_is_gone_is_a_problem_and_no_failure_and_is_tried_again(
    scene: Scene, group: FakeGroup, reservation: FakeReservation
) -> None:
    scene.minute(2)
    scene.order("stop")
    scene.minute(2)
    reservation.capacity = 7

    ordered = scene.order("start", by="bo", reason="monday")["held"]
    short = scene.minute(3)["held"]

    assert (ordered["decision"], ordered["state"]) == ("short", "running")
    assert (short["decision"], short["problem"], short["missing"], group.desired) == ("short", "no-capacity", 8, 0)
    assert short["reason"] == (
        "held: 0 of 8 nodes are running: its capacity reservation cr-held could not be raised to 8 instances: EC2 "
        "has no more capacity of its instance type in that Availability Zone now, and its nodes start when it has. "
        "The power function asks again every minute. AWS says: InsufficientInstanceCapacity: Insufficient capacity."
    )
    reservation.capacity = 8
    scene.minute(3)
    assert (group.in_service, reservation.bought) == (8, 8)
    assert scene.subjects() == [
        "base-pod: nodes of held are missing",
        "base-pod: no nodes of held are missing any more",
    ]


def test_a_quota_that_does_not_allow_it_is_a_problem_too(
    scene: Scene, group: FakeGroup, reservation: FakeReservation
) -> None:
    scene.order("stop")
    scene.minute(2)
    assert reservation.bought == 1
    scene.ec2.fail_next("ModifyCapacityReservation", "InstanceLimitExceeded", message="Your quota allows for 0 more")

    short = scene.order("start")["held"]

    assert (short["problem"], group.desired) == ("quota", 0)
    assert "does not allow so many. Ask for more in Service Quotas" in short["reason"]


@pytest.mark.parametrize("code", ["UnauthorizedOperation", "RequestLimitExceeded", "IncorrectState"])
def test_a_refusal_that_is_not_about_capacity_fails_the_run_and_the_group_is_not_sized(
    scene: Scene, group: FakeGroup, reservation: FakeReservation, code: str
) -> None:
    scene.order("stop")
    scene.minute(2)
    scene.ec2.fail_next("ModifyCapacityReservation", code)

    with pytest.raises(PartialFailureError, match=f"held: could not be sized to 8 \\({code}: no\\)"):
        scene.order("start")
    assert (group.desired, reservation.bought) == (0, 1)

    scene.minute(2)
    assert (group.in_service, reservation.bought) == (8, 8)


def test_a_deploy_that_writes_the_count_again_is_followed_by_lowering_again(
    scene: Scene, reservation: FakeReservation
) -> None:
    scene.order("stop")
    scene.minute(2)
    reservation.bought = 8

    scene.minute()

    assert reservation.bought == 1


def test_a_reservation_that_an_operator_lowered_under_a_running_group_is_raised_again(
    scene: Scene, group: FakeGroup, reservation: FakeReservation
) -> None:
    scene.minute(2)
    group.in_service = 5
    reservation.bought = 5

    scene.minute(2)

    assert (reservation.bought, group.in_service) == (8, 8)


def test_nodes_that_an_operator_asks_for_in_a_stopped_group_get_room(
    scene: Scene, group: FakeGroup, reservation: FakeReservation
) -> None:
    scene.minute(2)
    scene.order("stop")
    scene.minute(2)
    group.desired = 3

    held = scene.minute(2)["held"]

    assert (held["decision"], reservation.bought, group.in_service) == ("held", 3, 3)


def test_a_reservation_that_cannot_be_read_starts_nothing_and_is_not_in_the_way_of_a_stop(
    scene: Scene, group: FakeGroup, reservation: FakeReservation
) -> None:
    scene.ec2.fail_next("DescribeCapacityReservations", "UnauthorizedOperation")
    with pytest.raises(PartialFailureError, match="held: the Capacity Blocks and reservations could not be read"):
        scene.order()
    assert group.desired == 0
    scene.minute(2)
    assert group.in_service == 8
    scene.ec2.fail_next("DescribeCapacityReservations", "UnauthorizedOperation")
    with pytest.raises(PartialFailureError):
        scene.order("stop")

    assert (group.desired, reservation.bought) == (0, 8)


def test_a_group_waits_for_a_reservation_that_is_not_active_yet(
    scene: Scene, group: FakeGroup, reservation: FakeReservation
) -> None:
    reservation.state = "pending"

    waiting = scene.order()["held"]

    assert (waiting["decision"], waiting["reason"], group.desired) == (
        "blocked",
        "held is not started yet: its capacity reservation cr-held is pending",
        0,
    )
    reservation.state = "active"
    assert scene.minute(2)["held"]["in_service"] == 8


@pytest.mark.parametrize("state", ["expired", "cancelled", "failed"])
def test_a_reservation_that_ended_is_told_with_what_to_do(
    scene: Scene, group: FakeGroup, reservation: FakeReservation, state: str
) -> None:
    scene.order("stop")
    scene.minute(2)
    reservation.state, reservation.ends = state, scene.now

    stopped = scene.minute(2)["held"]
    started = scene.order("start")["held"]
    later = scene.minute(2)["held"]

    assert (stopped["decision"], stopped["problem"], stopped["missing"]) == ("unusable", "reservation-ended", 0)
    assert stopped["reason"] == (
        f"held: its capacity reservation cr-held has ended ({state}, at 2026-11-02T08:02:00Z): nodes that run go on "
        "at On-Demand prices, and no other node starts. An ended reservation cannot be restored: when the nodes are "
        "no longer needed, give the node group another name and a new end or another reservation in the cluster's "
        "file, and deploy, which terminates them."
    )
    assert (started["decision"], later["decision"], later["missing"], group.desired) == ("unusable", "unusable", 8, 0)
    assert scene.subjects() == ["base-pod: the capacity reservation of held has ended"]
    assert scene.ec2.writes == ["ModifyCapacityReservation"]


def test_nodes_run_on_when_their_reservation_ends_and_can_be_stopped(
    scene: Scene, group: FakeGroup, reservation: FakeReservation
) -> None:
    reservation.ends = scene.now + timedelta(minutes=3)
    scene.minute(4)

    assert (group.desired, group.in_service) == (8, 8)
    assert scene.subjects() == [
        "base-pod: the capacity reservation of held ends in less than an hour",
        "base-pod: the capacity reservation of held has ended",
    ]
    scene.order("stop")
    assert group.desired == 0


def test_a_reservation_that_is_not_there_is_told_as_one_that_ended(
    scene: Scene, group: FakeGroup, reservation: FakeReservation
) -> None:
    del scene.ec2.reservations[reservation.id]

    lost = scene.minute()["held"]

    assert (lost["decision"], lost["problem"], group.desired) == ("unusable", "reservation-ended", 0)
    assert "cr-held cannot be found in this account and region" in lost["reason"]


def test_a_size_that_an_operator_set_is_kept_when_the_reservation_has_ended(
    scene: Scene, group: FakeGroup, reservation: FakeReservation
) -> None:
    scene.minute(2)
    group.desired = 5
    reservation.state = "cancelled"

    held = scene.minute()["held"]

    assert (held["decision"], held["problem"], group.desired) == ("held", "reservation-ended", 5)


def test_a_start_that_comes_while_a_tick_is_about_to_lower_wins(
    scene: Scene, group: FakeGroup, reservation: FakeReservation
) -> None:
    scene.order("stop")
    scene.minute()
    reservation.bought = 8
    scene.auto_scaling.before_next("DescribeAutoScalingGroups", "held-asg", lambda: scene.order("start"))

    scene.order()
    scene.minute()

    assert (reservation.bought, group.in_service) == (8, 8)


def test_a_group_in_deletion_keeps_its_reservation(
    scene: Scene, group: FakeGroup, reservation: FakeReservation
) -> None:
    group.deleting = True

    scene.minute(2)

    assert (reservation.bought, scene.ec2.writes) == (8, [])


@pytest.mark.parametrize("state", ["unavailable", "a state of the future"])
def test_a_state_that_is_not_known_starts_nothing_and_is_no_end(
    scene: Scene, reservation: FakeReservation, state: str
) -> None:
    reservation.state = state

    waiting = scene.order()["held"]

    assert (waiting["decision"], waiting["reason"], waiting["problem"]) == (
        "unseen",
        f"held is not started: its capacity reservation cr-held has the state {state!r}, which this function does "
        "not know",
        None,
    )
    reservation.state = "delayed"
    assert scene.order()["held"]["reason"] == "held is not started yet: its capacity reservation cr-held is delayed"
    reservation.state = "active"
    assert scene.minute(2)["held"]["in_service"] == 8
    reservation.state = state
    assert scene.order()["held"]["decision"] == "keep"
    assert scene.sns.messages == []
