"""How reservations are changed and replaced, and what a rollback makes of it."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from cluster_contract.times import parse_time
from cluster_reservations.refusals import RefusedError
from reservation_scene import (
    END,
    NOW,
    OWN_TAGS,
    PLACE,
    ReservationScene,
    lost,
    properties,
)


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
