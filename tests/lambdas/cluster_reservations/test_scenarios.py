"""How reservations are made, whatever CloudFormation, Lambda and EC2 do: none is billed that nobody knows."""

from typing import Any

import pytest
from botocore.exceptions import ClientError, ConnectTimeoutError

from cluster_contract.times import parse_time
from cluster_reservations.keeper import NO_RESERVATION
from cluster_reservations.refusals import RefusedError
from fake_service import refusal
from reservation_scene import END, GENERATED, PLACE, RESOURCE, ReservationScene, lost, properties


def test_a_reservation_is_made_with_all_that_the_template_says_and_the_request_s_own_token() -> None:
    scene = ReservationScene()
    named = scene.create(properties(EndDateType="limited", EndDate=END))
    (made,) = scene.ec2.made.values()
    assert named == made.id
    terms, requests = (made.tags[f"cdk-training-cluster:{name}"] for name in ("terms", "requests"))
    assert made.request == {
        "InstanceType": "p5.48xlarge",
        "InstanceCount": 8,
        "InstancePlatform": "Linux/UNIX",
        "AvailabilityZone": "us-east-1b",
        "InstanceMatchCriteria": "targeted",
        "Tenancy": "default",
        "PlacementGroupArn": PLACE,
        "EndDateType": "limited",
        "EndDate": parse_time(END),
        "ClientToken": "request-1",
        "TagSpecifications": [
            {
                "ResourceType": "capacity-reservation",
                "Tags": [
                    {"Key": "cdk-training-cluster:cluster", "Value": "pod"},
                    {"Key": "cdk-training-cluster:node-group", "Value": "workers"},
                    {"Key": "cdk-training-cluster:requests", "Value": requests},
                    {"Key": "cdk-training-cluster:resource", "Value": RESOURCE},
                    {"Key": "cdk-training-cluster:stack", "Value": "pod-cluster"},
                    {"Key": "cdk-training-cluster:terms", "Value": terms},
                ],
            }
        ],
    }


def test_a_request_that_is_delivered_again_makes_nothing_more() -> None:
    scene = ReservationScene()
    event = scene.event("Create")
    assert {scene.carry_out(event) for _ in range(3)} == {"cr-00000000000000001"}
    assert len(scene.ec2.made) == 1
    # Even where EC2 lists nothing yet, the token says that it was made.
    scene.ec2.made["cr-00000000000000001"].hidden = 9
    assert scene.carry_out(event) == "cr-00000000000000001"
    assert len(scene.ec2.made) == 1


def test_an_answer_of_ec2_that_is_lost_is_asked_for_again_under_the_same_token() -> None:
    scene = ReservationScene()
    event, answer = scene.event("Create"), scene.ec2.create_capacity_reservation

    def lose(**parameters: Any) -> Any:
        answer(**parameters)
        raise ConnectTimeoutError(endpoint_url="https://ec2")

    scene.ec2.create_capacity_reservation = lose  # type: ignore[method-assign]
    with pytest.raises(ConnectTimeoutError):
        scene.carry_out(event)
    scene.ec2.create_capacity_reservation = answer  # type: ignore[method-assign]
    assert scene.carry_out(event) == "cr-00000000000000001"
    assert scene.ec2.billed == ["cr-00000000000000001"]


REFUSALS = {
    "InsufficientInstanceCapacity": "node group workers: EC2 does not have the capacity to reserve 8 p5.48xlarge in "
    "us-east-1b in one placement group now. Deploy again later, lower count, use another Availability Zone, or buy a "
    "Capacity Block instead. AWS says: InsufficientInstanceCapacity: no",
    "InstanceLimitExceeded": "node group workers: the account's EC2 quota does not allow to reserve 8 p5.48xlarge in "
    "us-east-1b. Ask for more in Service Quotas (EC2, the quota of the type's family), or lower count. AWS says: "
    "InstanceLimitExceeded: no",
    "UnauthorizedOperation": "node group workers: EC2 refused to reserve 8 p5.48xlarge in us-east-1b. AWS says: "
    "UnauthorizedOperation: no",
}


@pytest.mark.parametrize("code", REFUSALS)
def test_a_reservation_that_ec2_does_not_make_is_one_sentence_and_nothing_is_left(code: str) -> None:
    scene = ReservationScene()
    scene.ec2.fail_next("CreateCapacityReservation", code, times=7)
    with pytest.raises(RefusedError) as refused:
        scene.create()
    assert str(refused.value) == REFUSALS[code]
    scene.waited = 0
    # CloudFormation then deletes what it was told.
    scene.stack.physical_id = NO_RESERVATION
    assert scene.delete() == NO_RESERVATION
    assert (scene.ec2.billed, scene.waited) == ([], 0)


def test_no_capacity_is_certain_although_ec2_answers_with_status_500_and_other_such_answers_are_not() -> None:
    scene = ReservationScene()
    for code, kind in (("InsufficientInstanceCapacity", RefusedError), ("InternalError", ClientError)):
        error = refusal("CreateCapacityReservation", code, "no")
        error.response["ResponseMetadata"] = {"HTTPStatusCode": 500}  # type: ignore[typeddict-item]
        scene.ec2.on_call = _raise_at("CreateCapacityReservation", error)
        with pytest.raises(kind):
            scene.create()


@pytest.mark.parametrize("code", ["RequestLimitExceeded", "Throttling", "ThrottlingException", "RequestThrottled"])
def test_a_throttled_request_is_delivered_again(code: str) -> None:
    scene = ReservationScene()
    scene.ec2.fail_next("CreateCapacityReservation", code)
    with pytest.raises(ClientError):
        scene.create()
    assert scene.create() == "cr-00000000000000001"


def _raise_at(operation: str, error: Exception) -> Any:
    def look(called: str) -> None:
        if called == operation:
            raise error

    return look


def test_a_pending_reservation_is_waited_for() -> None:
    scene = ReservationScene()
    scene.ec2.state = "pending"
    assert scene.create() == "cr-00000000000000001"
    assert scene.ec2.made["cr-00000000000000001"].state == "active"
    assert 0 < scene.waited <= 60


def test_a_pending_reservation_that_fails_is_refused_and_asked_for_no_more() -> None:
    scene = ReservationScene()
    scene.ec2.state, scene.ec2.settles = "pending", "failed"
    event = scene.event("Create")
    for _ in range(2):
        with pytest.raises(RefusedError, match="capacity reservation cr-00000000000000001 is failed"):
            scene.carry_out(event)
    assert len(scene.ec2.made) == 1


def test_one_that_is_pending_when_it_is_deleted_is_cancelled_once_that_is_possible() -> None:
    scene = ReservationScene()
    scene.create()
    made = scene.ec2.made["cr-00000000000000001"]
    made.state, made.polls = "pending", 0
    scene.delete()
    assert scene.ec2.billed == []


# Creations that CloudFormation does not know of


@pytest.mark.parametrize("physical_id", [GENERATED, "", NO_RESERVATION])
def test_what_was_made_under_a_lost_answer_is_cancelled_by_the_rollback(physical_id: str) -> None:
    scene = ReservationScene()
    lost(scene, "Create")
    scene.stack.physical_id = physical_id
    scene.delete()
    assert scene.ec2.billed == []


def test_one_that_ec2_does_not_list_yet_is_looked_for_again() -> None:
    scene = ReservationScene()
    scene.ec2.hides = 2
    lost(scene, "Create")
    scene.stack.physical_id = GENERATED
    scene.delete()
    assert (scene.ec2.billed, scene.waited) == ([], 3)


@pytest.mark.parametrize("status", ["CREATE_FAILED", "DELETE_IN_PROGRESS", "DELETE_COMPLETE", "CREATE_COMPLETE", ""])
def test_a_creation_that_runs_after_its_deletion_buys_nothing(status: str) -> None:
    scene = ReservationScene()
    late = scene.event("Create")
    scene.stack.physical_id = GENERATED
    scene.delete()
    scene.stack.status = status
    with pytest.raises(RefusedError, match="CloudFormation no longer waits for this request"):
        scene.carry_out(late)
    assert scene.ec2.made == {}


def test_an_update_that_is_delivered_late_buys_nothing() -> None:
    scene = ReservationScene()
    scene.create()
    late = scene.event(
        "Update",
        "cr-00000000000000001",
        ResourceProperties=properties(InstanceType="p4d.24xlarge"),
        OldResourceProperties=properties(),
    )
    for status, physical_id in (("UPDATE_COMPLETE", "cr-00000000000000001"), ("UPDATE_IN_PROGRESS", "cr-other")):
        scene.stack.status, scene.stack.physical_id = status, physical_id
        with pytest.raises(RefusedError, match="no longer waits"):
            scene.carry_out(late)
    assert len(scene.ec2.made) == 1


def test_a_creation_that_failed_and_is_repaired_by_an_update_uses_what_was_made() -> None:
    # A deployment without rollback.
    scene = ReservationScene()
    made = lost(scene, "Create")
    scene.stack.physical_id = GENERATED
    assert scene.update(properties()) == made
    # The name that CloudFormation had made up is deleted afterwards.
    scene.delete(GENERATED)
    assert scene.ec2.billed == [made]


def test_a_creation_that_failed_and_is_repaired_with_other_terms_leaves_nothing() -> None:
    scene = ReservationScene()
    lost(scene, "Create")
    scene.stack.physical_id = GENERATED
    second = scene.update(properties(InstanceType="p4d.24xlarge"))
    scene.delete(GENERATED)
    assert scene.ec2.billed == [second]


# Updates in place
