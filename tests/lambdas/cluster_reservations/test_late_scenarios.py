"""What the function does while EC2 and IAM do not show yet what was made a moment ago, and when time runs out."""

from datetime import timedelta
from typing import Any

import pytest

from cluster_reservations.keeper import NO_RESERVATION
from cluster_reservations.refusals import RefusedError
from reservation_scene import NOW, OWN_TAGS, TIMEOUT, ReservationScene, properties, tagged

HOUR = timedelta(hours=1)
STACK_KEY = "cdk-training-cluster:stack"
NAMED = "cr-00000000000000001"


def limited(after: timedelta) -> dict[str, Any]:
    """Return the properties of a reservation that ends some time after the scene begins."""
    return properties(EndDateType="limited", EndDate=f"{NOW + after:%Y-%m-%dT%H:%M:%SZ}")


# EC2 finds nothing for some requests, or for ever.


@pytest.mark.parametrize("hidden", [1, 3, 6])
def test_one_that_ec2_does_not_find_yet_is_cancelled_by_its_id(hidden: int) -> None:
    scene = ReservationScene()
    scene.create()
    scene.ec2.made[NAMED].hidden = hidden
    assert scene.delete() == NAMED
    assert scene.ec2.billed == []


def test_one_that_ec2_does_not_find_yet_and_that_is_pending_is_cancelled() -> None:
    scene = ReservationScene()
    scene.create()
    made = scene.ec2.made[NAMED]
    made.state, made.hidden, made.polls = "pending", 4, 0
    scene.delete()
    assert scene.ec2.billed == []


def test_one_is_gone_only_if_ec2_does_not_find_it_for_a_minute() -> None:
    scene = ReservationScene()
    scene.create()
    del scene.ec2.made[NAMED]
    assert scene.delete() == NAMED
    assert scene.waited >= 60
    assert scene.ec2.writes.count("CancelCapacityReservation") > 3


@pytest.mark.parametrize("hidden", [1, 3, 6])
def test_one_that_ec2_does_not_find_yet_is_changed(hidden: int) -> None:
    scene = ReservationScene()
    scene.create()
    scene.ec2.made[NAMED].hidden = hidden
    assert scene.update({**tagged(team="vision"), "InstanceCount": "16"}) == NAMED
    made = scene.ec2.made[NAMED]
    assert (made.count, made.tags["team"]) == (16, "vision")


# What IAM and EC2 refuse seconds after the role and the placement group were made.


@pytest.mark.parametrize(
    ("operation", "code"),
    [
        ("CreateCapacityReservation", "UnauthorizedOperation"),
        ("CreateCapacityReservation", "InvalidPlacementGroup.Unknown"),
        ("DescribeCapacityReservations", "UnauthorizedOperation"),
        ("DescribeStackResource", "AccessDenied"),
    ],
)
def test_a_refusal_that_may_be_late_is_not_certain_for_a_minute(operation: str, code: str) -> None:
    for times, made in ((5, True), (7, False)):
        scene = ReservationScene()
        service = scene.stack if operation == "DescribeStackResource" else scene.ec2
        service.fail_next(operation, code, times=times)
        if made:
            assert scene.create() == NAMED
        else:
            with pytest.raises(RefusedError, match=code):
                scene.create()
        assert 30 <= scene.waited <= 60


def test_no_capacity_is_certain_at_once() -> None:
    scene = ReservationScene()
    scene.ec2.fail_next("CreateCapacityReservation", "InsufficientInstanceCapacity")
    with pytest.raises(RefusedError):
        scene.create()
    assert scene.waited == 0


# Pending for longer than the function runs


def pending() -> ReservationScene:
    """Return a scene with a reservation that stays pending, which a creation waits for in vain."""
    scene = ReservationScene()
    scene.ec2.state = scene.ec2.settles = "pending"
    with pytest.raises(RefusedError):
        scene.create()
    assert scene.refused == NAMED
    scene.stack.physical_id = NAMED
    return scene


def test_the_function_waits_for_a_pending_reservation_until_it_has_to_answer() -> None:
    scene = pending()
    assert TIMEOUT - 120 < scene.waited <= TIMEOUT - 90


def test_one_that_was_pending_too_long_is_cancelled_by_the_rollback() -> None:
    scene = pending()
    scene.ec2.settles = "active"
    scene.delete()
    assert scene.ec2.billed == []


def test_a_deletion_of_one_that_stays_pending_says_what_to_do() -> None:
    scene = pending()
    for _ in range(2):
        with pytest.raises(RefusedError) as refused:
            scene.delete()
        assert str(refused.value) == (
            f"node group workers: capacity reservation {NAMED} is still pending, and is billed when it is active. "
            f"Delete again, or run: aws ec2 cancel-capacity-reservation --capacity-reservation-id {NAMED}"
        )
    scene.ec2.settles = "active"
    scene.delete()
    assert scene.ec2.billed == []


def test_one_that_stays_pending_does_not_keep_another_from_being_cancelled() -> None:
    scene = ReservationScene()
    first = scene.create()
    scene.stack.status, wanted = "UPDATE_IN_PROGRESS", properties(AvailabilityZone="us-east-1d")
    lost = scene.event("Update", first, ResourceProperties=wanted, OldResourceProperties=properties())
    second = scene.carry_out(lost)
    scene.ec2.made[first].state = scene.ec2.settles = "pending"
    with pytest.raises(RefusedError, match=f"{first} is still pending"):
        scene.delete()
    assert second not in scene.ec2.billed


# Ends that have passed when a deployment is rolled back


@pytest.mark.parametrize("later", [timedelta(minutes=20), timedelta(minutes=4)])
def test_a_rollback_to_an_end_that_has_passed_ends_the_reservation_soon(later: timedelta) -> None:
    scene = ReservationScene()
    old, new = limited(timedelta(minutes=5)), limited(150 * HOUR)
    scene.create(old)
    scene.update(new, old)
    scene.now = NOW + later
    assert scene.roll_back(old, new) == NAMED
    assert scene.ec2.made[NAMED].ends == scene.now + timedelta(minutes=5)


def test_a_rollback_restores_an_end_that_is_to_come() -> None:
    scene = ReservationScene()
    old, new = limited(HOUR), properties()
    scene.create(old)
    scene.update(new, old)
    scene.roll_back(old, new)
    assert scene.ec2.made[NAMED].ends == NOW + HOUR


def test_a_rollback_asks_for_no_end_that_the_reservation_has() -> None:
    scene = ReservationScene()
    old, new = limited(HOUR), limited(150 * HOUR)
    scene.create(old)
    scene.ec2.fail_next("ModifyCapacityReservation", "InvalidParameterValue")
    with pytest.raises(RefusedError):
        scene.update(new, old)
    scene.now = NOW + timedelta(minutes=58)
    assert scene.roll_back(old, new) == NAMED
    assert scene.ec2.writes.count("ModifyCapacityReservation") == 1


def test_a_rollback_of_one_that_was_cancelled_meanwhile_changes_nothing() -> None:
    scene = ReservationScene()
    old, new = limited(HOUR), limited(150 * HOUR)
    scene.create(old)
    scene.update(new, old)
    scene.ec2.made[NAMED].state = "cancelled"
    assert scene.roll_back(old, new) == NAMED


def test_a_deployment_of_an_end_that_has_passed_stays_refused_and_is_rolled_back() -> None:
    scene = ReservationScene()
    old, past = limited(HOUR), limited(-HOUR)
    scene.create(old)
    with pytest.raises(RefusedError, match="is in the past: give a later end"):
        scene.update(past, old)
    assert scene.roll_back(old, past) == NAMED
    assert scene.ec2.made[NAMED].ends == NOW + HOUR


# Tags of the user's


def test_tags_of_the_template_are_written_changed_and_removed() -> None:
    scene = ReservationScene()
    first = tagged(team="vision", project="atlas")
    scene.create(first)
    made = scene.ec2.made[NAMED]
    assert (made.tags["team"], made.tags["project"]) == ("vision", "atlas")
    made.tags["inventory"] = "7"  # which another tool has written
    scene.update(tagged(team="speech"), first)
    assert "project" not in made.tags
    assert (made.tags["team"], made.tags["inventory"]) == ("speech", "7")
    assert made.tags["cdk-training-cluster:stack"] == "pod-cluster"


def test_the_function_s_own_tags_are_no_one_else_s_to_give() -> None:
    scene = ReservationScene()
    other = {**properties(), "TagSpecifications": [{"Tags": [*OWN_TAGS, {"Key": STACK_KEY, "Value": "other"}]}]}
    scene.create(other)
    assert scene.ec2.made[NAMED].tags[STACK_KEY] == "pod-cluster"
    scene.update(properties(), other)
    assert scene.ec2.made[NAMED].tags[STACK_KEY] == "pod-cluster"


def test_too_many_tags_are_no_quota_of_instances() -> None:
    scene = ReservationScene()
    scene.ec2.fail_next("CreateCapacityReservation", "TagLimitExceeded")
    with pytest.raises(RefusedError, match="EC2 refused to reserve 8"):
        scene.create()
    scene.stack.physical_id = NO_RESERVATION
    scene.delete()
