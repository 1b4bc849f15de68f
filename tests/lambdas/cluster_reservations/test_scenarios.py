"""What becomes of reservations, whatever CloudFormation, Lambda and EC2 do: none is billed that nobody knows."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError, ConnectTimeoutError

from cluster_common.errors import InvalidEventError
from cluster_contract.times import parse_time
from cluster_reservations.keeper import NO_RESERVATION
from cluster_reservations.refusals import RefusedError
from cluster_reservations.requests import Request
from fake_service import refusal
from reservation_scene import END, NOW, OWN_TAGS, PLACE, RESOURCE, STACK, ReservationScene, properties

GENERATED = "pod-cluster-ClusterNodeGroupsworkersReservation-1AB2CD3EF4GH"


def lost(scene: ReservationScene, kind: str, physical_id: str = "", **more: Any) -> str:
    """Carry a request out whose answer is lost, and return what was made."""
    scene.stack.status = f"{kind.upper()}_IN_PROGRESS"
    return scene.carry_out(scene.event(kind, physical_id, **more))


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


def test_count_and_end_are_changed_in_place() -> None:
    scene = ReservationScene()
    named = scene.create()
    assert scene.update(properties(InstanceCount="10", EndDateType="limited", EndDate=END)) == named
    made = scene.ec2.made[named]
    assert (made.count, made.ends) == (10, parse_time(END))
    assert scene.update(properties(), properties(InstanceCount="10", EndDateType="limited", EndDate=END)) == named
    assert (made.count, made.ends) == (8, None)


def test_what_the_template_does_not_change_is_left_as_it_is() -> None:
    scene = ReservationScene()
    named = scene.create()
    made = scene.ec2.made[named]
    # An operator has raised it and given it an end.
    made.count, made.ends = 12, NOW + timedelta(days=1)
    scene.update(properties(EndDateType="limited", EndDate=END))
    assert (made.count, made.ends) == (12, parse_time(END))
    made.ends = NOW + timedelta(days=1)
    now = properties(EndDateType="limited", EndDate=END)
    scene.update({**now, "InstanceCount": "9"}, now)
    assert (made.count, made.ends) == (9, NOW + timedelta(days=1))


def test_a_new_name_of_the_cluster_is_written_onto_the_reservation() -> None:
    scene = ReservationScene()
    named = scene.create()
    tags = [{"Key": "cdk-training-cluster:cluster", "Value": "llama"}, *OWN_TAGS[1:]]
    specification = [{"ResourceType": "capacity-reservation", "Tags": tags}]
    assert scene.update({**properties(), "TagSpecifications": specification}) == named
    assert scene.ec2.made[named].tags["cdk-training-cluster:cluster"] == "llama"
    assert [one for one in scene.ec2.writes if one.endswith("Tags")] == ["CreateTags", "CreateTags"]
    assert "ModifyCapacityReservation" not in scene.ec2.writes


# What the power function holds, the count before and after, and what is held then. Of a released one, what is not
# held is bought by the power function before it starts the group.
RELEASED = [
    (8, 8, "10", 10),
    (8, 8, "6", 6),
    (1, 8, "10", 1),
    (1, 8, "6", 1),
    (4, 8, "2", 2),
]


@pytest.mark.parametrize(("held", "before", "count", "after"), RELEASED)
def test_a_released_reservation_is_not_raised_before_its_group_starts(
    held: int, before: int, count: str, after: int
) -> None:
    scene = ReservationScene()
    old = properties(OnIdle="release", InstanceCount=str(before))
    named = scene.create(old)
    scene.ec2.made[named].count = held
    scene.update({**old, "InstanceCount": count}, old)
    assert scene.ec2.made[named].count == after


def test_a_released_reservation_that_is_to_be_kept_is_raised_again() -> None:
    scene = ReservationScene()
    old = properties(OnIdle="release")
    named = scene.create(old)
    scene.ec2.made[named].count = 1
    scene.update(properties(), old)
    assert scene.ec2.made[named].count == 8
    # The other way round, the power function lowers it when its group is stopped.
    scene.update(old, properties())
    assert scene.ec2.made[named].count == 8


def test_a_change_that_ec2_refuses_changes_nothing_and_its_rollback_asks_for_nothing() -> None:
    scene = ReservationScene()
    named = scene.create()
    scene.ec2.fail_next("ModifyCapacityReservation", "InsufficientInstanceCapacity")
    with pytest.raises(RefusedError) as refused:
        scene.update(properties(InstanceCount="10"))
    assert str(refused.value).startswith(
        "node group workers: EC2 does not have the capacity to change capacity reservation cr-00000000000000001 to "
        "InstanceCount 10 in one placement group now."
    )
    assert scene.update(properties(), properties(InstanceCount="10")) == named
    assert scene.ec2.writes.count("ModifyCapacityReservation") == 1
    assert scene.ec2.made[named].count == 8


def test_fewer_instances_than_run_are_refused() -> None:
    scene = ReservationScene()
    named = scene.create()
    scene.ec2.made[named].used = 8
    with pytest.raises(RefusedError, match="8 instances run in it"):
        scene.update(properties(InstanceCount="6"))
    assert scene.update(properties(), properties(InstanceCount="6")) == named


@pytest.mark.parametrize("change", [{"InstanceCount": "10"}, {}])
def test_an_end_in_the_past_is_refused_before_ec2_is_asked(change: dict[str, str]) -> None:
    scene = ReservationScene()
    past = properties(EndDateType="limited", EndDate="2026-11-30T00:00:00Z", **change)
    told = (
        "node group workers: the end of its capacity reservation, 2026-11-30T00:00:00Z, is in the past: give a later "
        "end in the cluster's file, and deploy again"
    )
    with pytest.raises(RefusedError) as refused:
        scene.create(past)
    assert str(refused.value) == told
    scene.create()
    with pytest.raises(RefusedError) as refused:
        scene.update(past)
    assert str(refused.value) == told
    assert "ModifyCapacityReservation" not in scene.ec2.writes
    assert len(scene.ec2.made) == 1


@pytest.mark.parametrize("state", ["expired", "cancelled", "gone"])
def test_one_that_has_ended_gets_no_other_end_and_blocks_no_other_change(state: str) -> None:
    scene = ReservationScene()
    before = properties(EndDateType="limited", EndDate=END)
    named = scene.create(before)
    if state == "gone":
        del scene.ec2.made[named]
    else:
        scene.ec2.made[named].state = state
    scene.now = datetime.fromisoformat("2026-12-25T00:00:00+00:00")
    with pytest.raises(RefusedError) as refused:
        scene.update(properties(EndDateType="limited", EndDate="2027-01-01T00:00:00Z"), before)
    what = "cannot be found" if state == "gone" else f"has ended ({state})"
    assert str(refused.value) == (
        f"node group workers: its capacity reservation cr-00000000000000001 {what}, and cannot be restored. Give the "
        "node group another name and a new end in the cluster's file, and deploy, which terminates its nodes"
    )
    if state != "gone":
        # The rollback.
        assert scene.roll_back(before, properties(EndDateType="limited", EndDate="2027-01-01T00:00:00Z")) == named
    with pytest.raises(RefusedError, match="cannot be restored"):
        scene.update({**before, "InstanceCount": "9"}, before)
    assert scene.update({**before, "InstanceCount": "7"}, before) == named
    assert scene.ec2.billed == []


# Replacements

OTHER = {
    "type": properties(InstanceType="p4d.24xlarge"),
    "zone": properties(AvailabilityZone="us-east-1d"),
    "placement group": properties(PlacementGroupArn=f"{PLACE}r"),
    "platform": properties(InstancePlatform="Red Hat Enterprise Linux"),
}


@pytest.mark.parametrize("wanted", OTHER.values(), ids=OTHER)
def test_another_type_zone_or_placement_group_is_another_reservation_and_the_old_one_goes_last(
    wanted: dict[str, Any],
) -> None:
    scene = ReservationScene()
    first = scene.create()
    second = scene.update(wanted)
    assert scene.ec2.billed == [first, second]
    # CloudFormation's clean-up names what was replaced.
    scene.delete(first)
    assert scene.ec2.billed == [second]
    scene.delete()
    assert scene.ec2.billed == []


def test_a_replacement_that_fails_leaves_the_old_one_as_it_is() -> None:
    scene = ReservationScene()
    first = scene.create()
    scene.ec2.fail_next("CreateCapacityReservation", "InsufficientInstanceCapacity")
    with pytest.raises(RefusedError):
        scene.update(OTHER["type"])
    assert scene.update(properties(), OTHER["type"]) == first
    assert scene.ec2.billed == [first]


def test_a_replacement_that_is_rolled_back_is_undone_by_the_first_one_itself() -> None:
    scene = ReservationScene()
    first = scene.create()
    second = scene.update(OTHER["type"])
    # Another resource fails: CloudFormation updates back, and cleans the second one up.
    assert scene.update(properties(), OTHER["type"]) == first
    scene.delete(second)
    assert scene.ec2.billed == [first]
    assert len(scene.ec2.made) == 2


def test_a_replacement_that_is_rolled_back_without_being_asked_is_cancelled_alone() -> None:
    scene = ReservationScene()
    first = scene.create()
    second = scene.update(OTHER["type"])
    scene.stack.physical_id = first
    scene.delete(second)
    assert scene.ec2.billed == [first]


def test_a_replacement_whose_answer_is_lost_is_cancelled_by_the_rollback() -> None:
    scene = ReservationScene()
    first = scene.create()
    lost(scene, "Update", first, ResourceProperties=OTHER["zone"], OldResourceProperties=properties())
    assert len(scene.ec2.billed) == 2
    assert scene.update(properties(), OTHER["zone"]) == first
    assert scene.ec2.billed == [first]


def test_a_replacement_whose_answer_is_lost_goes_with_the_stack() -> None:
    # A deployment without rollback, and then the stack is deleted.
    scene = ReservationScene()
    first = scene.create()
    lost(scene, "Update", first, ResourceProperties=OTHER["zone"], OldResourceProperties=properties())
    scene.delete()
    assert scene.ec2.billed == []


def test_a_replacement_whose_answer_is_lost_is_used_by_the_next_deployment() -> None:
    scene = ReservationScene()
    first = scene.create()
    made = lost(scene, "Update", first, ResourceProperties=OTHER["zone"], OldResourceProperties=properties())
    assert scene.update({**OTHER["zone"], "InstanceCount": "9"}) == made
    scene.delete(first)
    assert scene.ec2.billed == [made]
    assert scene.ec2.made[made].count == 9


def test_a_change_in_place_cancels_what_a_lost_answer_left() -> None:
    scene = ReservationScene()
    first = scene.create()
    lost(scene, "Update", first, ResourceProperties=OTHER["zone"], OldResourceProperties=properties())
    assert scene.update(properties(InstanceCount="9")) == first
    assert scene.ec2.billed == [first]


def test_a_request_that_is_not_about_what_there_is_cancels_nothing() -> None:
    scene = ReservationScene()
    first = scene.create()
    late = scene.event("Update", first, ResourceProperties=properties(), OldResourceProperties=properties())
    second = scene.update(OTHER["zone"])
    with pytest.raises(RefusedError, match="no longer waits"):
        scene.carry_out(late)
    assert scene.ec2.billed == [first, second]


def test_a_stray_that_cannot_be_cancelled_is_reported_before_anything_is_bought() -> None:
    scene = ReservationScene()
    first = scene.create()
    lost(scene, "Update", first, ResourceProperties=OTHER["zone"], OldResourceProperties=properties())
    scene.ec2.fail_next("CancelCapacityReservation", "UnauthorizedOperation", times=14)
    with pytest.raises(RefusedError, match="cr-00000000000000002 could not be cancelled and is billed"):
        scene.update(OTHER["type"])
    assert len(scene.ec2.made) == 2


# Deletions


@pytest.mark.parametrize("state", ["cancelled", "expired", "failed", "gone"])
def test_one_that_is_gone_is_deleted_already(state: str) -> None:
    scene = ReservationScene()
    named = scene.create()
    if state == "gone":
        del scene.ec2.made[named]
    else:
        scene.ec2.made[named].state = state
    assert scene.delete() == named
    assert ("CancelCapacityReservation" in scene.ec2.writes) == (state == "gone")


def test_one_that_ends_while_it_is_cancelled_is_deleted() -> None:
    scene = ReservationScene()
    named = scene.create()

    def end() -> None:
        scene.ec2.made[named].state = "expired"

    scene.ec2.before_next("CancelCapacityReservation", named, end)
    assert scene.delete() == named


def test_one_that_instances_run_in_is_cancelled() -> None:
    scene = ReservationScene()
    scene.ec2.made[scene.create()].used = 8
    scene.delete()
    assert scene.ec2.billed == []


def test_one_that_cannot_be_cancelled_is_told_with_the_command() -> None:
    scene = ReservationScene()
    named = scene.create()
    scene.ec2.fail_next("CancelCapacityReservation", "UnauthorizedOperation", times=14)
    with pytest.raises(RefusedError) as refused:
        scene.delete()
    assert str(refused.value) == (
        f"capacity reservation {named} could not be cancelled and is billed. Correct the cause and delete again, or "
        f"run: aws ec2 cancel-capacity-reservation --capacity-reservation-id {named}. AWS says: "
        "UnauthorizedOperation: no"
    )
    scene.delete()
    assert scene.ec2.billed == []


def test_a_resource_that_has_left_the_template_takes_all_of_its_reservations_with_it() -> None:
    scene = ReservationScene()
    first = scene.create()
    lost(scene, "Update", first, ResourceProperties=OTHER["zone"], OldResourceProperties=properties())
    scene.stack.status = ""
    scene.delete(first)
    assert scene.ec2.billed == []


def test_a_deletion_that_is_delivered_twice_is_done_once() -> None:
    scene = ReservationScene()
    scene.create()
    scene.delete()
    scene.delete()
    assert scene.ec2.writes.count("CancelCapacityReservation") == 1


def test_reservations_of_other_resources_and_stacks_are_left_alone() -> None:
    scene = ReservationScene()
    scene.create()
    for changes in ({"StackId": STACK.replace("pod", "other")}, {"LogicalResourceId": "Other"}):
        scene.stack.status, scene.stack.physical_id = "CREATE_IN_PROGRESS", ""
        scene.carry_out({**scene.event("Create"), **changes})
    scene.stack.physical_id = GENERATED
    scene.delete()
    assert len(scene.ec2.billed) == 2


def test_what_ec2_refuses_to_describe_is_told_in_one_sentence() -> None:
    scene = ReservationScene()
    denied = "You are not authorized."
    scene.ec2.fail_next("DescribeCapacityReservations", "UnauthorizedOperation", message=denied, times=7)
    with pytest.raises(RefusedError) as refused:
        scene.create()
    assert str(refused.value) == "node group workers: AWS says: UnauthorizedOperation: You are not authorized."


@pytest.mark.parametrize("event", [{}, {"RequestType": "Create"}, {"RequestType": "Other", "ResponseURL": "x"}])
def test_who_is_not_cloudformation_is_told_so(event: dict[str, str]) -> None:
    with pytest.raises(InvalidEventError, match="takes requests of CloudFormation only"):
        Request.of(event)
