"""The power function on a node group of which some nodes run in Capacity Blocks: it tells, and sizes nothing."""

from datetime import timedelta

import pytest

from cluster_common.errors import PartialFailureError
from fake_auto_scaling import FakeGroup
from fake_reservations import FakeReservation
from power_scene import Scene

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)


@pytest.fixture
def scene() -> Scene:
    return Scene(counts={"any": 8})


@pytest.fixture
def group(scene: Scene) -> FakeGroup:
    return scene.add("any")


def buy(scene: Scene, *lasts: timedelta, on_demand: bool = True, used: int = 4) -> list[FakeReservation]:
    """Give the group Capacity Blocks that last for some time from now."""
    blocks = [
        scene.ec2.add_reservation(
            f"cr-{number}", 4, starts=scene.now, ends=scene.now + time, is_block=True, others=used
        )
        for number, time in enumerate(lasts, 1)
    ]
    scene.details["any"] = {
        "blocks": tuple(block.id for block in blocks),
        "block_ends_early": 30 * MINUTE,
        "on_demand": on_demand,
    }
    return blocks


@pytest.mark.parametrize(
    ("on_demand", "then"),
    [
        (
            True,
            "Auto Scaling tries to launch others in the node group's other reservations and blocks, and then buys "
            "On-Demand Instances, at their full price.",
        ),
        (
            False,
            "Auto Scaling tries to launch others in the node group's other reservations and blocks; nothing else "
            "replaces them.",
        ),
    ],
)
def test_people_are_told_once_that_the_nodes_in_a_block_go(
    scene: Scene, group: FakeGroup, on_demand: bool, then: str
) -> None:
    buy(scene, 63 * MINUTE, on_demand=on_demand)

    scene.minute(2)
    assert scene.sns.messages == []
    scene.minute(20)

    [message] = scene.sns.messages
    assert message["Subject"] == "base-pod: nodes of any in a Capacity Block are terminated in 30 minutes"
    assert message["Message"] == (
        "Cluster base-pod\n\nany: EC2 terminates the nodes in its Capacity Block cr-1 from 2026-11-02T08:33:00Z on, "
        f"before that ends at 2026-11-02T09:03:00Z: save your checkpoint. {then}"
    )
    assert group.desired == 8


def test_each_block_is_told_once_when_several_end_one_after_the_other(scene: Scene, group: FakeGroup) -> None:
    buy(scene, 63 * MINUTE, 68 * MINUTE, 63 * MINUTE)

    scene.minute(25)

    first, second, third = [message["Message"] for message in scene.sns.messages]
    assert "its Capacity Block cr-1 from" in first
    assert "its Capacity Block cr-3 from" in second
    assert "its Capacity Block cr-2 from" in third
    assert group.desired == 8


def test_a_block_that_is_extended_is_told_again_at_its_new_end(scene: Scene, group: FakeGroup) -> None:
    [block] = buy(scene, 63 * MINUTE)
    scene.minute(5)
    assert block.ends is not None
    block.ends += 24 * HOUR
    scene.minute(5)
    scene.now = block.ends - 40 * MINUTE
    scene.minute(3)

    assert [subject.split()[-2:] for subject in scene.subjects()] == [["30", "minutes"], ["9", "minutes"]]
    assert group.desired == 8


@pytest.mark.parametrize("used", [0, 4])
def test_no_message_is_sent_where_no_node_runs_in_the_block(scene: Scene, group: FakeGroup, used: int) -> None:
    scene.minute(2)
    buy(scene, 63 * MINUTE, used=used)
    if used:
        scene.order("stop")

    scene.minute(20)

    assert scene.sns.messages == []
    assert group.desired == (0 if used else 8)


def test_blocks_that_are_over_or_cannot_be_read_or_found_size_nothing(scene: Scene, group: FakeGroup) -> None:
    block, _ = buy(scene, HOUR, 2 * HOUR)
    scene.ec2.fail_next("DescribeCapacityReservations", "RequestLimitExceeded")
    with pytest.raises(PartialFailureError):
        scene.order()
    block.state = "expired"
    del scene.ec2.reservations["cr-2"]

    kept = scene.minute(3)["any"]

    assert (kept["decision"], group.in_service, scene.sns.messages) == ("keep", 8, [])
