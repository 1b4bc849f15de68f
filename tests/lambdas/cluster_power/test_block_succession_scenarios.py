"""The power function on a node group that a deploy gives the next Capacity Block while the last one runs."""

from datetime import timedelta
from typing import Any

import pytest

from cluster_common.errors import PartialFailureError
from fake_auto_scaling import FakeGroup
from fake_reservations import FakeReservation
from power_scene import Scene

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)
BLOCK = "cdk-training-cluster:power-block"


@pytest.fixture
def scene() -> Scene:
    return Scene(counts={"pod": 8})


@pytest.fixture
def group(scene: Scene) -> FakeGroup:
    return scene.add("pod")


@pytest.fixture
def old(scene: Scene, group: FakeGroup) -> FakeReservation:
    """The block in which the group runs, which ends at 2026-11-03T08:00:00Z."""
    block = scene.add_block(group, id="cr-old")
    scene.minute(2)
    return block


def deploy(scene: Scene, group: FakeGroup, **settings: Any) -> FakeReservation:
    """Name the next block; no node of the group runs in it yet."""
    block = scene.add_block(group, id="cr-new", **{"starts": 47 * HOUR, **settings})
    block.group = None
    return block


def move(group: FakeGroup, old: FakeReservation, new: FakeReservation) -> None:
    """Let the group launch into the next block from now on, as its launch template says."""
    old.group, new.group = None, group


def at(scene: Scene, block: FakeReservation, before_its_end: timedelta) -> None:
    assert block.ends is not None
    scene.now = block.ends - before_its_end


def test_the_block_is_remembered_with_the_size_in_one_write(
    scene: Scene, group: FakeGroup, old: FakeReservation
) -> None:
    assert group.tags[BLOCK] == old.id
    writes = [parameters for operation, parameters in scene.auto_scaling.requests if "Update" in operation]
    [keys] = [
        [tag["Key"] for tag in one["Tags"]] for one in writes if any(tag["Key"] == BLOCK for tag in one["Tags"])
    ]
    assert keys == [f"cdk-training-cluster:power-{name}" for name in ("size", "since", "block")]


def test_a_group_that_is_in_no_block_remembers_none() -> None:
    scene = Scene()
    group = scene.add()
    scene.minute(2)

    assert BLOCK not in group.tags


@pytest.mark.usefixtures("old")
def test_nodes_run_on_in_their_block_when_a_deploy_names_the_next_one(scene: Scene, group: FakeGroup) -> None:
    deploy(scene, group)

    kept = scene.minute(5)["pod"]

    assert (kept["decision"], kept["capacity_block"], group.desired, group.in_service) == ("keep", "cr-old", 8, 8)
    assert kept["reason"] == (
        "pod runs on in cr-old until 2026-11-03T07:20:00Z; cr-new takes over when it starts, at 2026-11-04T07:02:00Z"
    )
    assert (kept["missing"], kept["problem"], scene.sns.messages) == (0, None, [])


def test_nodes_move_when_their_block_ends_and_the_next_one_is_open(
    scene: Scene, group: FakeGroup, old: FakeReservation
) -> None:
    new = deploy(scene, group, starts=timedelta(0))
    both = scene.minute(3)["pod"]
    at(scene, old, 42 * MINUTE)
    closing = scene.minute()["pod"]
    gone = scene.minute()["pod"]
    move(group, old, new)
    moved = scene.minute(2)["pod"]
    calls = len(scene.auto_scaling.writes)
    scene.minute(3)

    assert both["reason"] == "pod runs on in cr-old until 2026-11-03T07:20:00Z; cr-new takes over then"
    assert closing["reason"] == (
        "pod: its nodes go at 2026-11-03T07:20:00Z, before its Capacity Block cr-old ends at 2026-11-03T08:00:00Z: "
        "save your checkpoint; cr-new takes over then"
    )
    assert (gone["decision"], gone["desired"], gone["capacity_block"]) == ("size", 0, "cr-old")
    assert (moved["capacity_block"], moved["in_service"], group.tags[BLOCK]) == ("cr-new", 8, "cr-new")
    assert scene.subjects() == ["base-pod: the nodes of pod go in 1 minute"]
    assert len(scene.auto_scaling.writes) == calls


def test_nodes_wait_for_the_next_block_when_theirs_is_over(
    scene: Scene, group: FakeGroup, old: FakeReservation
) -> None:
    new = deploy(scene, group)
    at(scene, old, 41 * MINUTE)
    group.hooked = True
    scene.minute()
    leaving = scene.minute(2)["pod"]
    group.hooked = False
    move(group, old, new)
    waiting = scene.minute(2)["pod"]
    assert new.starts is not None
    scene.now = new.starts - MINUTE
    scene.minute(2)

    assert (leaving["capacity_block"], leaving["alive"], leaving["desired"]) == ("cr-old", 8, 0)
    assert (waiting["decision"], waiting["capacity_block"], group.desired) == ("waiting", "cr-new", 8)
    assert group.tags[BLOCK] == "cr-new"


def test_a_stop_is_carried_out_and_the_next_start_is_the_next_blocks(
    scene: Scene, group: FakeGroup, old: FakeReservation
) -> None:
    new = deploy(scene, group)
    scene.minute()

    stopped = scene.order("stop", by="ana", reason="cost")["pod"]
    move(group, old, new)
    scene.minute(2)
    started = scene.order("start", by="bo", reason="monday")["pod"]

    assert (stopped["desired"], group.desired) == (0, 0)
    assert started["reason"].startswith("pod should have 0 nodes (its Capacity Block cr-new starts at")


@pytest.mark.usefixtures("old")
def test_a_start_of_a_group_that_runs_on_changes_nothing(scene: Scene, group: FakeGroup) -> None:
    deploy(scene, group)
    scene.auto_scaling.calls.clear()

    scene.order("start", by="bo", reason="again")

    assert (scene.auto_scaling.writes, group.desired) == ([], 8)


@pytest.mark.parametrize("code", ["UnauthorizedOperation", "RequestLimitExceeded"])
@pytest.mark.usefixtures("old")
def test_blocks_that_cannot_be_read_change_no_size(scene: Scene, group: FakeGroup, code: str) -> None:
    deploy(scene, group)
    scene.minute()
    scene.ec2.fail_next("DescribeCapacityReservations", code)

    with pytest.raises(PartialFailureError):
        scene.minute()

    assert (group.desired, scene.sns.messages) == (8, [])


@pytest.mark.usefixtures("old")
def test_both_blocks_are_read_in_one_call_until_the_next_one_runs(scene: Scene, group: FakeGroup) -> None:
    deploy(scene, group)
    scene.ec2.requests.clear()
    scene.minute()
    group.in_service = group.desired = 0
    group.tags["cdk-training-cluster:power-size"] = "0"
    scene.minute()

    assert [parameters["CapacityReservationIds"] for _, parameters in scene.ec2.requests] == [
        ["cr-new", "cr-old"],
        ["cr-new"],
    ]


@pytest.mark.usefixtures("old")
def test_a_block_of_running_nodes_that_is_not_found_changes_no_size_and_is_told(
    scene: Scene, group: FakeGroup
) -> None:
    deploy(scene, group)
    del scene.ec2.reservations["cr-old"]

    unseen = scene.minute(2)["pod"]
    group.in_service, group.suspended = 0, "for the test"
    waiting = scene.minute(2)["pod"]

    assert (unseen["decision"], unseen["desired"], unseen["in_service"]) == ("unseen", 8, 8)
    assert scene.sns.messages[0]["Message"].split("\n\n")[1] == (
        "pod: its Capacity Block cr-old cannot be found in this account and region: its size is left alone; cr-new "
        "takes over when its nodes are gone."
    )
    assert (waiting["decision"], waiting["capacity_block"], group.desired) == ("waiting", "cr-new", 0)


def test_nodes_go_when_their_block_is_cancelled(scene: Scene, group: FakeGroup, old: FakeReservation) -> None:
    deploy(scene, group)
    old.state, old.group = "cancelled", None

    sized = scene.minute()["pod"]

    assert (sized["desired"], sized["reason"]) == (
        0,
        "pod should have 0 nodes, 8 before (its Capacity Block cr-old was cancelled (cancelled))",
    )


def test_a_next_block_in_another_zone_takes_no_node_away_and_is_told_ahead(
    scene: Scene, group: FakeGroup, old: FakeReservation
) -> None:
    """The deploy moves the group's subnet, and the nodes stay where they are until their block ends."""
    old.zone = "us-east-1d"
    deploy(scene, group, zone="us-east-1f")

    told = scene.minute(3)["pod"]

    assert (told["decision"], group.desired) == ("unusable", 8)
    assert scene.subjects() == ["base-pod: the Capacity Block of pod cannot be used"]
    assert "pod: its Capacity Block cr-new is in us-east-1f and" in scene.sns.messages[0]["Message"]


@pytest.mark.usefixtures("old")
def test_another_count_of_the_next_block_waits_for_it(scene: Scene, group: FakeGroup) -> None:
    scene.counts["pod"] = group.maximum = 16
    deploy(scene, group)

    kept = scene.minute(3)["pod"]

    assert (kept["decision"], kept["missing"], group.desired) == ("keep", 0, 8)


def test_nodes_that_somebody_launches_into_the_next_block_are_the_next_blocks(
    scene: Scene, group: FakeGroup, old: FakeReservation
) -> None:
    new = deploy(scene, group)
    at(scene, old, 41 * MINUTE)
    scene.minute(2)
    move(group, old, new)
    assert new.starts is not None
    scene.pass_time(new.starts - scene.now)
    group.desired = group.in_service = 2

    assert scene.minute(2)["pod"]["in_service"] == 8
