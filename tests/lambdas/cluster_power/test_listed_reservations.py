"""Node groups that go through several reservations in turn: their nodes run on, and cost, when one ends."""

from datetime import timedelta

import pytest

from fake_auto_scaling import FakeGroup
from fake_reservations import FakeReservation
from power_scene import Scene
from termination_scene import run_group

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
ENDED = "base-pod: the capacity reservation of workers has ended"


@pytest.fixture
def scene() -> Scene:
    scene = Scene()
    scene.details["workers"] = {"listed": ("cr-1", "cr-2")}
    return scene


@pytest.fixture
def reservations(scene: Scene) -> list[FakeReservation]:
    """Two reservations of 4 instances each, in which the nodes run; the first ends in 25 hours."""
    first = scene.ec2.add_reservation("cr-1", bought=4, others=4, ends=scene.now + 25 * HOUR)
    return [first, scene.ec2.add_reservation("cr-2", bought=4, others=4)]


@pytest.fixture
def group(scene: Scene, reservations: list[FakeReservation]) -> FakeGroup:
    assert len(reservations) == 2
    return run_group(scene)


def end(scene: Scene, reservation: FakeReservation) -> None:
    scene.now += 26 * HOUR
    reservation.state, reservation.others = "expired", 0


def test_people_are_told_a_day_before_once_and_again_of_a_later_end(
    scene: Scene, group: FakeGroup, reservations: list[FakeReservation]
) -> None:
    scene.minute(5)
    assert scene.subjects() == []
    scene.now += 2 * HOUR
    scene.minute(3)
    assert scene.subjects() == ["base-pod: a capacity reservation of workers ends in 23 hours"]
    assert (
        "cr-1 ends at 2026-11-03T09:00:00Z: nodes that run in it go on, at On-Demand prices"
        in (scene.sns.messages[0]["Message"])
    )
    reservations[0].ends = scene.now + 20 * HOUR + DAY
    scene.now += 21 * HOUR
    scene.minute(3)
    assert len(scene.subjects()) == 2
    assert group.in_service == 8


def test_each_end_is_told_and_one_that_comes_earlier_again(
    scene: Scene, group: FakeGroup, reservations: list[FakeReservation]
) -> None:
    for one in reservations:
        one.ends = scene.now + 20 * HOUR
    scene.minute(3)
    assert scene.subjects() == ["base-pod: a capacity reservation of workers ends in 20 hours"] * 2
    reservations[1].ends = scene.now + 5 * HOUR
    scene.minute(3)
    assert scene.subjects()[2:] == ["base-pod: a capacity reservation of workers ends in 5 hours"]
    assert group.in_service == 8


def test_nodes_that_run_on_at_on_demand_prices_are_told_until_they_do_not(
    scene: Scene, group: FakeGroup, reservations: list[FakeReservation]
) -> None:
    end(scene, reservations[0])

    told = scene.minute(3)["workers"]

    assert (told["decision"], told["problem"], told["reason"]) == (
        "unusable",
        "reservation-ended",
        "workers: its capacity reservation has ended (cr-1), and 4 nodes run on at On-Demand prices: on_demand "
        "limits launches only. Stop the node group when its work is saved, or put another reservation into the "
        "cluster's file and deploy: running nodes then use it.",
    )
    assert (scene.subjects(), group.desired) == ([ENDED], 8)
    scene.details["workers"] = {"listed": ("cr-2", "cr-3")}
    scene.ec2.add_reservation("cr-3", bought=4, others=4)
    assert scene.minute(3)["workers"]["decision"] == "keep"
    assert len(scene.subjects()) == 2


@pytest.mark.parametrize("case", ["not counted", "not read", "all in another", "stopped"])
def test_what_is_not_known_or_costs_nothing_is_not_told(
    scene: Scene, group: FakeGroup, reservations: list[FakeReservation], case: str
) -> None:
    end(scene, reservations[0])
    if case == "not counted":
        reservations[1].counted = False
    elif case == "all in another":
        reservations[1].bought = reservations[1].others = 8
    elif case == "stopped":
        scene.order("stop")
    else:
        scene.ec2.fail_next("DescribeCapacityReservations", "Throttling")
        with pytest.raises(Exception, match="the Capacity Blocks and reservations could not be read"):
            scene.order()
        assert scene.subjects() == []
        return
    scene.minute(3)
    assert (scene.subjects(), group.desired) == ([], 0 if case == "stopped" else 8)
