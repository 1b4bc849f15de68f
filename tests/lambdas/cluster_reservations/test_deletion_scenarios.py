"""How reservations are deleted: none stays that is billed, and none of others goes."""

import pytest

from cluster_common.errors import InvalidEventError
from cluster_reservations.refusals import RefusedError
from cluster_reservations.requests import Request
from reservation_scene import GENERATED, PLACE, STACK, Made, ReservationScene, lost, properties


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


@pytest.mark.parametrize(
    "name",
    [
        None,
        "",
        "pod-cluster",
        "another-stack-Place-1AB2CD3EF4GH",
        "pod-cluster-evalPlace-1AB2CD3EF4GH",
        "pod-cluster-2-workersPlace-1AB2CD3EF4GH",
        "pod-cluster-workersPlace-2-workersPlace-1AB2CD3EF4GH",
    ],
)
def test_a_reservation_of_others_with_the_same_tags_is_neither_cancelled_nor_used(name: str | None) -> None:
    scene = ReservationScene()
    own = scene.create()
    request = {**scene.ec2.made[own].request, "PlacementGroupArn": "" if name is None else _place(name)}
    scene.ec2.made["cr-0f"] = Made("cr-0f", request, 8, dict(scene.ec2.made[own].tags))
    changed = properties(InstanceCount="9")
    assert scene.update(changed) == own
    scene.update(properties(InstanceType="p5e.48xlarge"), changed)
    scene.delete(own)
    scene.delete()
    assert scene.ec2.billed == ["cr-0f"]


def test_a_request_that_cannot_be_read_cancels_no_reservation_of_others() -> None:
    scene = ReservationScene()
    own = scene.create()
    scene.ec2.made["cr-0f"] = Made("cr-0f", {"PlacementGroupArn": ""}, 8, dict(scene.ec2.made[own].tags))
    scene.stack.status = "DELETE_IN_PROGRESS"
    scene.carry_out(scene.event("Delete", own, ResourceProperties=properties(InstanceCount="many")))
    assert scene.ec2.billed == ["cr-0f"]


def test_a_reservation_in_an_earlier_placement_group_of_the_stack_is_cancelled() -> None:
    scene = ReservationScene()
    own = scene.create()
    request = {"PlacementGroupArn": _place("pod-cluster-workersPlace-1AB2CD3EF4GH")}
    scene.ec2.made["cr-0f"] = Made("cr-0f", request, 8, dict(scene.ec2.made[own].tags))
    scene.delete()
    assert scene.ec2.billed == []


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
    elsewhere = properties(AvailabilityZone="us-east-1d")
    lost(scene, "Update", first, ResourceProperties=elsewhere, OldResourceProperties=properties())
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


def _place(name: str) -> str:
    return f"{PLACE.partition('/')[0]}/{name}"
