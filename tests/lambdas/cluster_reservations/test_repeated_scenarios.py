"""Requests that Lambda delivers again, late or in part: none undoes a newer one, and none leaves a reservation."""

from typing import Any

import pytest
from botocore.exceptions import ClientError

from cluster_reservations.keeper import NO_RESERVATION, UNKNOWN_RESERVATION
from cluster_reservations.refusals import RefusedError
from fake_service import refusal
from reservation_scene import END, ReservationScene, properties

NAMED = "cr-00000000000000001"
MORE = properties(InstanceCount="16")
ENDING = properties(InstanceCount="4", EndDateType="limited", EndDate=END)


def updated(scene: ReservationScene, wanted: dict[str, Any], before: dict[str, Any]) -> dict[str, Any]:
    """Carry an update out, and return its event, which Lambda may deliver again."""
    scene.stack.status = "UPDATE_IN_PROGRESS"
    event = scene.event("Update", scene.stack.physical_id, ResourceProperties=wanted, OldResourceProperties=before)
    scene.carry_out(event)
    return event


def state(scene: ReservationScene) -> tuple[int, object]:
    """Return what matters of the one reservation."""
    (made,) = scene.ec2.made.values()
    return made.count, made.ends


@pytest.mark.parametrize("status", ["UPDATE_COMPLETE", "DELETE_IN_PROGRESS", "DELETE_COMPLETE", ""])
def test_an_update_in_place_that_is_delivered_late_changes_nothing(status: str) -> None:
    scene = ReservationScene()
    scene.create()
    late = scene.event("Update", NAMED, ResourceProperties=MORE, OldResourceProperties=properties())
    scene.stack.status = status
    with pytest.raises(RefusedError, match="CloudFormation no longer waits"):
        scene.carry_out(late)
    assert (state(scene), scene.ec2.writes) == ((8, None), ["CreateCapacityReservation"] * 2 + ["CreateTags"])


def test_an_update_that_is_delivered_again_after_its_rollback_has_begun_buys_nothing() -> None:
    scene = ReservationScene()
    scene.create()
    first = updated(scene, MORE, properties())
    updated(scene, properties(), MORE)
    # The resource is still being rolled back.
    for _ in range(2):
        with pytest.raises(RefusedError, match=f"a newer request changed capacity reservation {NAMED}"):
            scene.carry_out(first)
    assert state(scene) == (8, None)


def test_a_refused_update_that_is_delivered_again_after_its_rollback_has_begun_buys_nothing() -> None:
    scene = ReservationScene()
    scene.create()
    scene.ec2.fail_next("ModifyCapacityReservation", "InsufficientInstanceCapacity")
    scene.stack.status = "UPDATE_IN_PROGRESS"
    event = scene.event("Update", NAMED, ResourceProperties=MORE, OldResourceProperties=properties())
    with pytest.raises(RefusedError):
        scene.carry_out(event)
    updated(scene, properties(), MORE)
    with pytest.raises(RefusedError, match="a newer request"):
        scene.carry_out(event)
    assert state(scene) == (8, None)


def test_a_creation_that_is_delivered_again_during_an_update_changes_nothing() -> None:
    scene = ReservationScene()
    creation = scene.event("Create")
    scene.stack.physical_id = scene.carry_out(creation)
    updated(scene, ENDING, properties())
    with pytest.raises(RefusedError, match="a newer request"):
        scene.carry_out(creation)
    assert state(scene)[0] == 4
    assert state(scene)[1] is not None


def test_a_request_that_is_delivered_again_before_the_next_one_is_carried_out_again() -> None:
    scene = ReservationScene()
    scene.create()
    event = updated(scene, MORE, properties())
    assert scene.carry_out(event) == NAMED
    assert state(scene) == (16, None)


def test_the_requests_that_a_tag_names_fit_into_it() -> None:
    scene = ReservationScene()
    scene.create()
    for _ in range(40):
        scene.update(properties())
    assert 200 < len(scene.ec2.made[NAMED].tags["cdk-training-cluster:requests"]) <= 256


# Refusals that prove that there is no reservation, and others


def test_a_reservation_that_a_refused_delivery_does_not_know_is_cancelled_by_the_rollback() -> None:
    scene = ReservationScene()
    event = scene.event("Create")
    scene.carry_out(event)
    scene.ec2.fail_next("DescribeCapacityReservations", "InvalidParameterValue")
    with pytest.raises(RefusedError):
        scene.carry_out(event)
    assert scene.refused == UNKNOWN_RESERVATION
    scene.stack.physical_id = UNKNOWN_RESERVATION
    scene.ec2.made[NAMED].hidden = 3
    assert scene.delete() == UNKNOWN_RESERVATION
    assert scene.ec2.billed == []


def test_a_refused_change_of_a_reservation_that_was_made_before_names_it() -> None:
    scene = ReservationScene()
    event = scene.event("Create")
    scene.carry_out(event)
    scene.ec2.made[NAMED].count = 4
    scene.ec2.fail_next("ModifyCapacityReservation", "InsufficientInstanceCapacity")
    with pytest.raises(RefusedError):
        scene.carry_out(event)
    assert scene.refused == NAMED


def test_only_a_refused_creation_proves_that_there_is_none() -> None:
    scene = ReservationScene()
    scene.ec2.fail_next("CreateCapacityReservation", "InsufficientInstanceCapacity")
    with pytest.raises(RefusedError):
        scene.create()
    assert scene.refused == NO_RESERVATION


# A group that was removed and added again


def test_a_deletion_that_is_delivered_again_leaves_the_reservation_of_the_group_that_was_added_again() -> None:
    scene = ReservationScene()
    scene.create()
    for physical_id in (NAMED, "pod-cluster-generated"):
        scene.stack.status, scene.stack.physical_id = "DELETE_IN_PROGRESS", physical_id
        deletion = scene.event("Delete", physical_id)
        scene.carry_out(deletion)
        scene.stack.status, scene.stack.physical_id = "CREATE_IN_PROGRESS", ""
        again = scene.carry_out(scene.event("Create"))
        scene.carry_out(deletion)
        assert scene.ec2.billed == [again]
        scene.stack.status, scene.stack.physical_id = "DELETE_IN_PROGRESS", again
        scene.carry_out(scene.event("Delete", again))


# Errors that are not certain, and properties that cannot be read


@pytest.mark.parametrize(
    ("operation", "kind"),
    [("CancelCapacityReservation", "Delete"), ("ModifyCapacityReservation", "Update"), ("CreateTags", "Update")],
)
def test_an_error_of_ec2_s_own_is_no_answer(operation: str, kind: str) -> None:
    scene = ReservationScene()
    scene.create()
    error = refusal(operation, "InternalError", "no")
    error.response["ResponseMetadata"] = {"HTTPStatusCode": 500}  # type: ignore[typeddict-item]

    def look(called: str) -> None:
        if called == operation:
            raise error

    scene.ec2.on_call = look
    with pytest.raises(ClientError):
        scene.delete() if kind == "Delete" else scene.update(MORE)


def test_an_error_of_cloudformation_s_does_not_mean_that_the_resource_is_gone() -> None:
    scene = ReservationScene()
    first = scene.create()
    scene.stack.status = "UPDATE_IN_PROGRESS"
    wanted = properties(AvailabilityZone="us-east-1d")
    scene.carry_out(scene.event("Update", first, ResourceProperties=wanted, OldResourceProperties=properties()))
    scene.stack.fail_next("DescribeStackResource", "Throttling")
    with pytest.raises(ClientError):
        scene.delete(first)
    assert len(scene.ec2.billed) == 2


def test_a_pending_reservation_that_was_found_and_fails_is_no_success() -> None:
    scene = ReservationScene()
    scene.ec2.state, scene.ec2.settles = "pending", "failed"
    event = scene.event("Create")
    scene.ec2.fail_next("DescribeCapacityReservations", "Throttling", after=1)
    with pytest.raises(ClientError):
        scene.carry_out(event)
    with pytest.raises(RefusedError, match=f"{NAMED} is failed"):
        scene.carry_out(event)


def test_a_creation_that_is_delivered_again_does_not_raise_a_reservation_that_was_released() -> None:
    scene = ReservationScene()
    event = scene.event("Create", ResourceProperties=properties(OnIdle="release"))
    scene.carry_out(event)
    scene.ec2.made[NAMED].count = 1
    scene.carry_out(event)
    assert scene.ec2.made[NAMED].count == 1


@pytest.mark.parametrize("wrong", [{"InstanceCount": "8.5"}, {"EndDate": "tomorrow"}, {"TagSpecifications": None}])
def test_properties_that_cannot_be_read_are_refused_and_block_no_rollback_or_deletion(wrong: dict[str, Any]) -> None:
    scene = ReservationScene()
    with pytest.raises(RefusedError, match="the properties of the reservation cannot be read: "):
        scene.create(properties(**wrong))
    named = scene.create()
    with pytest.raises(RefusedError, match="cannot be read"):
        scene.update(properties(**wrong))
    assert scene.roll_back(properties(), properties(**wrong)) == named
    scene.stack.status = "DELETE_IN_PROGRESS"
    scene.carry_out(scene.event("Delete", named, ResourceProperties=properties(**wrong)))
    assert scene.ec2.billed == []
