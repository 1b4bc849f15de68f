"""The power function on a node group whose Capacity Block cannot be used, or not be read, and where calls fail."""

from datetime import timedelta

import pytest

from cluster_common.errors import PartialFailureError
from power_scene import START, Scene

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)


@pytest.fixture
def scene() -> Scene:
    return Scene(counts={"pod": 8})


def test_a_block_that_cannot_be_read_changes_no_size(scene: Scene) -> None:
    group, _ = scene.deploy_pod(starts=timedelta(0))
    scene.minute(2)
    scene.ec2.fail_next("DescribeCapacityReservations", "UnauthorizedOperation", message="not you")

    with pytest.raises(PartialFailureError) as caught:
        scene.minute()

    assert str(caught.value) == (
        "pod: the Capacity Blocks and reservations could not be read, and the next run tries again "
        "(UnauthorizedOperation: not you). Everything else was done."
    )
    assert (group.desired, scene.sns.messages) == (8, [])
    assert scene.minute()["pod"]["decision"] == "keep"


def test_a_block_that_is_not_there_changes_no_size_and_is_told_once(scene: Scene) -> None:
    group, _ = scene.deploy_pod(starts=timedelta(0))
    scene.minute(2)
    del scene.ec2.reservations["cr-pod"]

    unseen = scene.minute(3)["pod"]

    assert (unseen["decision"], unseen["problem"], unseen["wanted"], group.desired) == (
        "unseen",
        "capacity-block",
        8,
        8,
    )
    assert scene.subjects() == ["base-pod: the Capacity Block of pod cannot be used"]


def test_a_stop_is_carried_out_though_the_block_cannot_be_read(scene: Scene) -> None:
    group, _ = scene.deploy_pod(starts=timedelta(0))
    scene.minute(2)
    scene.ec2.fail_next("DescribeCapacityReservations", "RequestLimitExceeded")

    with pytest.raises(PartialFailureError):
        scene.order("stop", by="ana", reason="cost")

    assert group.desired == 0


def test_a_start_waits_until_the_block_can_be_read(scene: Scene) -> None:
    group, _ = scene.deploy_pod(starts=timedelta(0))
    scene.order("stop")
    scene.ec2.fail_next("DescribeCapacityReservations", "RequestLimitExceeded")
    with pytest.raises(PartialFailureError):
        scene.order("start", by="bo", reason="monday")
    assert group.desired == 0

    assert scene.minute()["pod"]["desired"] == 8


@pytest.mark.parametrize("state", ["payment-failed", "cancelled", "failed", "unsupported", "expired"])
def test_a_block_that_never_comes_is_a_problem_that_is_told_once(scene: Scene, state: str) -> None:
    group, block = scene.deploy_pod()
    scene.minute()
    block.state = state

    lost = scene.minute(3)["pod"]

    assert (lost["decision"], lost["problem"], lost["missing"], group.desired) == (
        "unusable",
        "capacity-block",
        0,
        0,
    )
    assert scene.subjects() == ["base-pod: the Capacity Block of pod cannot be used"]
    assert f"({state}): put the id of another one into the cluster's file" in scene.sns.messages[0]["Message"]


def test_another_block_that_a_deploy_names_ends_the_problem(scene: Scene) -> None:
    group, block = scene.deploy_pod()
    block.state = "payment-failed"
    scene.minute(2)
    scene.add_block(group, starts=HOUR)

    scene.minute(2)

    assert scene.subjects() == [
        "base-pod: the Capacity Block of pod cannot be used",
        "base-pod: the problem with the Capacity Block of pod is over",
    ]
    assert scene.sns.messages[1]["Message"] == (
        "Cluster base-pod\n\nThe problem with the Capacity Block is over: pod waits for its Capacity Block cr-pod, "
        "which starts at 2026-11-02T09:02:00Z."
    )


def test_a_block_in_another_zone_is_told_before_it_starts_and_nothing_launches(scene: Scene) -> None:
    group, _ = scene.deploy_pod(starts=48 * HOUR, zone="us-east-1d")

    wrong = scene.minute(2)["pod"]
    scene.now += 48 * HOUR
    scene.minute(2)

    assert wrong["reason"].startswith(
        "pod: its Capacity Block cr-pod is in us-east-1d and its nodes launch in us-east-1b: none is started or "
    )
    assert scene.subjects() == ["base-pod: the Capacity Block of pod cannot be used"]
    assert (group.desired, group.activities) == (0, [])


@pytest.mark.parametrize("action", ["status", "start"])
def test_nodes_that_run_stay_when_a_deploy_moves_their_group_to_another_zone(scene: Scene, action: str) -> None:
    group, _ = scene.deploy_pod(starts=-HOUR)
    scene.minute(2)
    group.zones = ["us-east-1d"]
    group.in_service, group.suspended = 7, "It has failed for 24 hours"

    told = scene.minute(3)["pod"]
    scene.order(action)

    assert group.suspended, "launches of a group that is left alone stay suspended"
    group.in_service = 8
    assert (told["decision"], told["problem"]) == ("unusable", "capacity-block")
    assert "is in us-east-1b and its nodes launch in us-east-1d: none is started or terminated" in told["reason"]
    assert scene.subjects() == ["base-pod: the Capacity Block of pod cannot be used"]
    assert scene.minute(3)["pod"]["in_service"] == 8
    assert scene.order("stop")["pod"]["desired"] == 0


def test_a_block_that_is_late_is_waited_for_and_told_after_the_grace(scene: Scene) -> None:
    group, block = scene.deploy_pod()
    block.starts, block.state = START + 5 * MINUTE, "delayed"

    scene.minute(14)
    assert scene.sns.messages == []
    scene.minute()
    assert scene.subjects() == ["base-pod: the Capacity Block of pod cannot be used"]
    block.state = "active"

    assert scene.minute(2)["pod"]["in_service"] == 8
    assert group.desired == 8


@pytest.mark.parametrize(("state", "bought"), [("active", 0), ("payment-pending", 8), ("delayed", 8)])
def test_a_block_that_seems_not_to_have_started_any_more_takes_no_node_away(
    scene: Scene, state: str, bought: int
) -> None:
    group, block = scene.deploy_pod(starts=timedelta(0))
    scene.minute(2)
    block.state, block.bought, block.group = state, bought, None

    odd = scene.minute(3)["pod"]

    assert (odd["decision"], group.desired, group.in_service) == ("waiting", 8, 8)
    block.state, block.bought = "active", 8
    assert scene.minute()["pod"]["decision"] == "keep"


def test_nodes_that_stay_when_the_block_is_over_are_not_called_down(scene: Scene) -> None:
    group, block = scene.deploy_pod(starts=timedelta(0))
    scene.minute(2)
    assert block.ends is not None
    group.protected = 2
    scene.now = block.ends - 41 * MINUTE
    scene.minute()

    staying = scene.minute(2)["pod"]
    assert (staying["decision"], staying["surplus"]) == ("pending", 2)
    scene.minute(15)

    assert scene.minute()["pod"]["decision"] == "over"  # EC2 has terminated them.


def test_a_group_without_its_block_being_open_is_absent_without_missing_nodes(scene: Scene) -> None:
    scene.deploy_pod()
    scene.auto_scaling.groups.clear()

    absent = scene.order()["pod"]

    assert (absent["decision"], absent["missing"]) == ("absent", 0)
    scene.pass_time(5 * MINUTE)
    assert scene.order()["pod"]["missing"] == 8


def test_a_message_that_nodes_go_that_fails_is_sent_by_the_next_tick(scene: Scene) -> None:
    _, block = scene.deploy_pod(starts=timedelta(0))
    scene.minute(2)
    assert block.ends is not None
    scene.now = block.ends - 71 * MINUTE
    scene.sns.fails = True
    with pytest.raises(PartialFailureError, match="pod: could not send or record an alert"):
        scene.minute()
    scene.sns.fails = False

    scene.minute(2)

    assert scene.subjects() == ["base-pod: the nodes of pod are terminated in 29 minutes"]


@pytest.mark.parametrize("operation", ["SetDesiredCapacity", "PutItem"])
@pytest.mark.parametrize("at", ["start", "end"])
def test_what_fails_at_the_start_or_the_end_of_a_block_is_made_good_a_minute_later(
    scene: Scene, operation: str, at: str
) -> None:
    group, block = scene.deploy_pod(starts=2 * MINUTE)
    scene.minute()
    assert block.ends is not None
    if at == "end":
        scene.minute(3)
        scene.now = block.ends - 41 * MINUTE
    scene.fail_next(operation, "InternalFailure")

    with pytest.raises(PartialFailureError):
        scene.minute()
    scene.minute()

    expected = 8 if at == "start" else 0
    assert (group.desired, scene.record(group).size) == (expected, expected)


def test_a_plain_cluster_never_calls_ec2() -> None:
    scene = Scene()
    scene.add()

    scene.minute(2)

    assert scene.ec2.calls == []
