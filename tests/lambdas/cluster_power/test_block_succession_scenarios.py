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
    """Name the next block: nodes run on where they are, and the group launches into the next one."""
    last = scene.ec2.reservations["cr-old"]
    last.stays = group.in_service
    return scene.add_block(group, id="cr-new", **{"starts": 47 * HOUR, "last": last, **settings})


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
    deploy(scene, group, starts=timedelta(0))
    both = scene.minute(3)["pod"]
    at(scene, old, 42 * MINUTE)
    closing = scene.minute()["pod"]
    gone = scene.minute()["pod"]
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
    waiting = scene.minute(2)["pod"]
    assert new.starts is not None
    scene.now = new.starts - MINUTE
    scene.minute(2)

    assert (leaving["capacity_block"], leaving["alive"], leaving["desired"]) == ("cr-old", 8, 0)
    assert (waiting["decision"], waiting["capacity_block"], group.desired) == ("waiting", "cr-new", 8)
    assert group.tags[BLOCK] == "cr-new"


@pytest.mark.usefixtures("old")
def test_a_stop_is_carried_out_and_the_next_start_is_the_next_blocks(scene: Scene, group: FakeGroup) -> None:
    deploy(scene, group)
    scene.minute()

    stopped = scene.order("stop", by="ana", reason="cost")["pod"]
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
    """The function sizes nothing; Auto Scaling itself moves nodes of a group that gets another zone."""
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
    assert new.starts is not None
    scene.pass_time(new.starts - scene.now)
    group.desired = group.in_service = 2

    assert scene.minute(2)["pod"]["in_service"] == 8


def test_nodes_that_were_restarted_in_the_next_block_are_not_drained_at_the_end_of_the_old_one(
    scene: Scene, group: FakeGroup, old: FakeReservation
) -> None:
    new = deploy(scene, group, starts=timedelta(0), lasts=72 * HOUR)
    scene.minute()
    group.hooked = True
    scene.order("stop", by="ana", reason="a fresh start")
    scene.pass_time(MINUTE)
    scene.order("start", by="ana", reason="a fresh start")
    group.hooked = False
    scene.minute(3)
    assert (old.used, new.used, group.tags[BLOCK]) == (0, 8, "cr-new")

    at(scene, old, 42 * MINUTE)
    scene.auto_scaling.calls.clear()
    kept = scene.minute(5)["pod"]

    assert (kept["decision"], group.in_service, scene.auto_scaling.writes) == ("keep", 8, [])
    assert scene.sns.messages == []


def test_a_node_that_never_leaves_an_ended_block_does_not_keep_the_next_one_empty(
    scene: Scene, group: FakeGroup, old: FakeReservation
) -> None:
    group.others = ["Standby"]
    new = deploy(scene, group, starts=HOUR * 24, lasts=72 * HOUR)
    at(scene, old, 41 * MINUTE)
    scene.minute(3)
    assert (group.desired, old.used) == (0, 0)
    assert new.starts is not None
    scene.now = new.starts
    scene.minute(3)

    assert (group.in_service, new.used, group.tags[BLOCK]) == (8, 8, "cr-new")


@pytest.mark.usefixtures("old")
def test_a_start_adds_to_the_nodes_that_somebody_launched_in_the_next_block(scene: Scene, group: FakeGroup) -> None:
    scene.order("stop", by="ana", reason="cost")
    scene.minute(2)
    scene.now += 30 * HOUR
    deploy(scene, group, starts=timedelta(0), lasts=72 * HOUR)
    scene.minute(2)
    group.desired = 2
    scene.minute(2)
    sizes = []
    scene.order("start", by="ana", reason="all of them")
    for _ in range(3):
        scene.minute()
        sizes.append(group.desired)

    assert (sizes, group.in_service) == ([8, 8, 8], 8)


@pytest.mark.usefixtures("old")
def test_a_node_that_fails_in_the_old_block_is_missed_with_the_reason(scene: Scene, group: FakeGroup) -> None:
    deploy(scene, group)
    scene.minute()
    group.in_service = 7

    short = scene.minute(2)["pod"]

    assert (short["decision"], short["missing"]) == ("short", 1)
    assert short["reason"].endswith("The cluster's file names cr-new by now: nothing launches into cr-old any more.")
    assert scene.subjects() == ["base-pod: nodes of pod are missing"]


@pytest.mark.usefixtures("old")
def test_a_group_that_has_its_nodes_and_remembers_no_block_gets_the_tag(scene: Scene, group: FakeGroup) -> None:
    del group.tags[BLOCK]
    scene.minute()
    assert group.tags[BLOCK] == "cr-old"

    deploy(scene, group)
    scene.minute(3)

    assert (group.tags[BLOCK], group.in_service) == ("cr-old", 8)


def test_nobody_is_drained_on_the_word_that_nothing_is_counted(
    scene: Scene, group: FakeGroup, old: FakeReservation
) -> None:
    """Whether a node still runs in the old block is unknown then: it is driven by that to its end."""
    old.counted = False
    deploy(scene, group, starts=timedelta(0))

    assert scene.minute(2)["pod"]["capacity_block"] == "cr-old"
