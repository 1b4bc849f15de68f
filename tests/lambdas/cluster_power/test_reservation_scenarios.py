"""The power function on a node group with a reservation that is kept: it is read and reported, and never touched."""

from datetime import timedelta

import pytest

from cluster_common.errors import PartialFailureError
from fake_auto_scaling import FakeGroup
from fake_reservations import FakeReservation
from power_scene import Scene

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)


@pytest.fixture
def scene() -> Scene:
    return Scene(counts={"kept": 8})


@pytest.fixture
def group(scene: Scene) -> FakeGroup:
    return scene.add("kept")


@pytest.fixture
def reservation(scene: Scene, group: FakeGroup) -> FakeReservation:
    """The reservation, in which all nodes run."""
    made = scene.add_reservation(group, release=False)
    scene.minute(2)
    return made


def share(scene: Scene, count: int) -> FakeGroup:
    """Deploy another node group that runs in the same reservation."""
    scene.counts["eval"] = count
    scene.details["eval"] = dict(scene.details["kept"])
    return scene.add("eval")


def test_a_stopped_group_keeps_its_reservation_and_says_what_it_costs(
    scene: Scene, reservation: FakeReservation
) -> None:
    scene.order("stop", by="ana", reason="weekend")

    stopped = scene.minute(3)["kept"]

    assert (stopped["decision"], reservation.bought, scene.ec2.writes) == ("keep", 8, [])
    assert stopped["reason"] == (
        "kept is stopped, by ana: weekend; its capacity reservation cr-kept holds 8 instances, which are billed"
    )


def test_people_are_told_once_a_day_ahead_that_the_reservation_ends(
    scene: Scene, reservation: FakeReservation
) -> None:
    reservation.ends = scene.now + 24 * HOUR + 2 * MINUTE
    scene.minute()
    assert scene.sns.messages == []
    scene.minute(5)

    [message] = scene.sns.messages
    assert message["Subject"] == "base-pod: the capacity reservation of kept ends in 24 hours"
    assert message["Message"] == (
        "Cluster base-pod\n\nkept: its capacity reservation cr-kept ends at 2026-11-03T08:04:00Z: nodes that run go "
        "on at On-Demand prices, and from then on no node can start.\n\nAn ended reservation cannot be restored: "
        "give it a later end before that, in the cluster's file if the cluster made it, and else in EC2."
    )
    reservation.ends += 24 * HOUR
    scene.minute(5)
    scene.now = reservation.ends - 30 * MINUTE
    scene.minute(2)
    assert scene.subjects()[1:] == ["base-pod: the capacity reservation of kept ends in less than an hour"]


def test_the_end_of_a_stopped_groups_reservation_is_told_too(scene: Scene, reservation: FakeReservation) -> None:
    scene.order("stop")
    reservation.ends = scene.now + HOUR

    scene.minute(3)

    assert scene.subjects() == ["base-pod: the capacity reservation of kept ends in 1 hour"]


@pytest.mark.parametrize("state", ["unavailable", "delayed", "assessing", "a state of the future"])
def test_a_state_that_is_not_known_or_not_yet_active_is_no_end_and_stops_nothing(
    scene: Scene, group: FakeGroup, reservation: FakeReservation, state: str
) -> None:
    reservation.state = state

    kept = scene.minute(3)["kept"]

    assert (kept["decision"], kept["problem"], group.desired, scene.sns.messages) == ("keep", None, 8, [])


@pytest.mark.parametrize("lost", ["unread", "not found", "expired", "unavailable"])
def test_a_start_of_a_group_whose_reservation_is_kept_is_carried_out_whatever_is_read(
    scene: Scene, group: FakeGroup, reservation: FakeReservation, lost: str
) -> None:
    scene.order("stop")
    scene.minute(2)
    if lost == "unread":
        scene.ec2.fail_next("DescribeCapacityReservations", "UnauthorizedOperation")
        with pytest.raises(PartialFailureError):
            scene.order("start")
    else:
        reservation.state = lost
        if lost == "not found":
            del scene.ec2.reservations["cr-kept"]
        scene.order("start")

    assert group.desired == 8


def test_what_was_told_is_not_taken_back_while_the_reservation_cannot_be_read(
    scene: Scene, reservation: FakeReservation
) -> None:
    reservation.state = "expired"
    scene.minute(2)
    scene.ec2.fail_next("DescribeCapacityReservations", "RequestLimitExceeded")
    with pytest.raises(PartialFailureError):
        scene.minute()
    scene.minute()
    reservation.state = "unavailable"
    scene.minute()

    assert scene.subjects() == ["base-pod: the capacity reservation of kept has ended"]
