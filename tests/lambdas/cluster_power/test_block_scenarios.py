"""The power function on a node group that runs in a Capacity Block."""

from datetime import timedelta
from typing import Any

import pytest

from fake_auto_scaling import FakeGroup
from fake_reservations import FakeReservation
from power_scene import Scene

HOUR, MINUTE = timedelta(hours=1), timedelta(minutes=1)


@pytest.fixture
def scene() -> Scene:
    return Scene(counts={"pod": 8})


def test_a_group_waits_for_its_block_and_misses_nothing(scene: Scene) -> None:
    group, _ = scene.deploy_pod()

    waiting = scene.minute(4)["pod"]

    assert (waiting["decision"], waiting["wanted"], waiting["missing"], group.desired) == ("waiting", 0, 0, 0)
    assert waiting["reason"] == "pod waits for its Capacity Block cr-pod, which starts at 2026-11-02T08:05:00Z"
    assert waiting["capacity_block"] == "cr-pod"
    (block,) = waiting["reservations"]
    assert (block["id"], block["state"], block["starts"]) == ("cr-pod", "scheduled", "2026-11-02T08:05:00Z")
    assert scene.sns.messages == []


def test_nodes_come_up_when_the_block_starts(scene: Scene) -> None:
    scene.deploy_pod()
    scene.minute(4)

    started = scene.minute()["pod"]
    running = scene.minute()["pod"]

    assert (started["decision"], started["desired"], started["missing"]) == ("size", 8, 8)
    assert (running["decision"], running["in_service"], running["missing"]) == ("keep", 8, 0)
    assert running["reason"] == (
        "pod has all of its 8 nodes until 2026-11-03T07:25:00Z: its Capacity Block cr-pod ends at "
        "2026-11-03T08:05:00Z"
    )


@pytest.mark.parametrize(("ends_early", "down"), [(30, 40), (60, 70)])
def test_nodes_are_down_before_ec2_terminates_them(scene: Scene, ends_early: int, down: int) -> None:
    group, block = scene.deploy_pod(starts=timedelta(0), ends_early=ends_early * MINUTE)
    scene.minute(2)
    assert block.ends is not None

    scene.now = block.ends - (down + 2) * MINUTE
    last = scene.minute()["pod"]
    gone = scene.minute()["pod"]
    after = scene.minute()["pod"]

    assert (last["desired"], last["in_service"]) == (8, 8)
    assert (gone["decision"], gone["desired"]) == ("size", 0)
    assert (after["decision"], after["alive"], after["missing"], group.alive) == ("over", 0, 0, 0)
    assert scene.now == block.ends - (down - 1) * MINUTE


def test_people_are_told_once_that_nodes_go_soon(scene: Scene) -> None:
    group, block = scene.deploy_pod(starts=timedelta(0))
    scene.minute(2)
    assert block.ends is not None
    scene.now = block.ends - 72 * MINUTE

    assert scene.minute()["pod"]["decision"] == "keep"
    assert scene.minute()["pod"]["decision"] == "closing"
    scene.minute(20)

    [message] = scene.sns.messages
    assert message["Subject"] == "base-pod: the nodes of pod are terminated in 30 minutes"
    assert message["Message"] == (
        "Cluster base-pod\n\npod: its nodes are terminated at 2026-11-03T07:20:00Z, before its Capacity Block cr-pod "
        "ends at 2026-11-03T08:00:00Z: save checkpoints.\n\nThe nodes stay if the Capacity Block is extended before "
        "that."
    )
    assert scene.record(group).told[0].startswith("end/")


def test_no_message_is_sent_that_nodes_go_where_none_run(scene: Scene) -> None:
    group, block = scene.deploy_pod(starts=timedelta(0))
    scene.minute()
    group.in_service, group.suspended = 0, "User suspended at 2026-11-02T07:00:00Z"
    assert block.ends is not None
    scene.now = block.ends - 65 * MINUTE

    scene.minute(3)

    assert scene.subjects() == ["base-pod: nodes of pod are missing"]


def test_a_block_that_is_extended_while_it_closes_goes_on_and_its_new_end_is_told(scene: Scene) -> None:
    _, block = scene.deploy_pod(starts=timedelta(0))
    scene.minute(2)
    assert block.ends is not None
    scene.now = block.ends - 60 * MINUTE
    scene.minute()
    block.ends += 24 * HOUR

    assert scene.minute(30)["pod"]["decision"] == "keep"
    scene.now = block.ends - 71 * MINUTE
    scene.minute(2)

    assert scene.subjects() == [
        "base-pod: the nodes of pod are terminated in 19 minutes",
        "base-pod: the nodes of pod are terminated in 30 minutes",
    ]


def test_a_block_that_is_extended_at_the_last_moment_opens_again(scene: Scene) -> None:
    """EC2 takes the payment of an extension until 35 minutes before the end; the nodes go five minutes earlier."""
    group, block = scene.deploy_pod(starts=timedelta(0))
    scene.minute(2)
    assert block.ends is not None
    scene.now = block.ends - 41 * MINUTE
    scene.minute(2)
    assert group.alive == 0
    block.ends += 24 * HOUR

    assert scene.minute(2)["pod"]["in_service"] == 8


def test_nodes_that_ec2_ended_in_their_own_block_while_no_tick_came_are_given_up(scene: Scene) -> None:
    group, block = scene.deploy_pod(starts=timedelta(0))
    scene.minute(2)
    assert block.ends is not None
    scene.pass_time(block.ends - scene.now)

    scene.minute(2)

    assert (group.desired, group.alive) == (0, 0)


def test_a_stop_during_the_block_stays(scene: Scene) -> None:
    group, block = scene.deploy_pod(starts=timedelta(0))
    scene.minute(2)

    scene.order("stop", by="ana", reason="the data are wrong")
    stopped = scene.minute(2)["pod"]
    assert block.ends is not None
    scene.now = block.ends - 70 * MINUTE
    scene.minute(3)
    block.ends += 24 * HOUR
    scene.minute(2)

    assert (stopped["decision"], stopped["reason"]) == ("keep", "pod is stopped, by ana: the data are wrong")
    assert (group.desired, scene.sns.messages) == (0, [])


def test_a_start_before_the_block_means_when_it_starts(scene: Scene) -> None:
    group, _ = scene.deploy_pod()
    scene.minute()
    scene.order("stop", by="ana", reason="weekend")

    ordered = scene.order("start", by="bo", reason="monday")["pod"]

    assert ordered["reason"] == ("pod should have 0 nodes (its Capacity Block cr-pod starts at 2026-11-02T08:05:00Z)")
    assert (ordered["state"], group.desired) == ("running", 0)
    assert scene.minute(3)["pod"]["decision"] == "waiting"
    assert scene.minute(2)["pod"]["in_service"] == 8


def test_a_size_that_an_operator_sets_stays_until_the_block_ends(scene: Scene) -> None:
    group, block = scene.deploy_pod(starts=timedelta(0))
    scene.minute(2)
    group.desired = 5

    held = scene.minute(3)["pod"]
    assert (held["decision"], group.desired) == ("held", 5)
    assert held["reason"].endswith("its count in the cluster's file changes, or its Capacity Block starts or ends")
    assert block.ends is not None
    scene.now = block.ends - 42 * MINUTE
    scene.minute(3)

    assert group.desired == 0
    assert scene.subjects() == ["base-pod: the nodes of pod are terminated in 1 minute"]


def test_nodes_that_an_operator_asks_for_before_the_block_starts_are_not_missing(scene: Scene) -> None:
    group, _ = scene.deploy_pod()
    scene.minute()
    group.desired = 2

    held = scene.minute()["pod"]

    assert (held["decision"], held["missing"], held["problem"], group.desired) == ("held", 0, None, 2)
    assert scene.minute(4)["pod"]["in_service"] == 8


def test_nodes_that_an_operator_started_in_a_stopped_group_go_before_the_block_ends_too(scene: Scene) -> None:
    group, block = scene.deploy_pod(starts=timedelta(0))
    scene.order("stop", by="ana", reason="weekend")
    group.desired = 2
    assert scene.minute(2)["pod"]["decision"] == "held"
    assert block.ends is not None
    scene.now = block.ends - 42 * MINUTE

    scene.minute()
    gone = scene.minute()["pod"]

    assert gone["reason"] == (
        "pod should have 0 nodes, since its Capacity Block cr-pod ends at 2026-11-03T08:00:00Z, and its desired "
        "capacity was changed to 2 outside the power function"
    )
    assert group.desired == 0
    assert scene.minute()["pod"]["reason"] == "pod is stopped, by ana: weekend"
    assert scene.subjects() == ["base-pod: the nodes of pod are terminated in 1 minute"]


def test_a_block_that_is_smaller_than_the_group_runs_what_it_has_and_the_rest_is_missing(scene: Scene) -> None:
    group, _ = scene.deploy_pod(starts=timedelta(0), bought=6)

    scene.minute(2)
    short = scene.minute()["pod"]

    assert (group.desired, group.in_service) == (6, 6)
    assert (short["decision"], short["missing"], short["problem"]) == ("short", 2, "capacity-block-too-small")
    assert short["reason"] == (
        "pod: 6 of 8 nodes are running: its Capacity Block cr-pod has 6 instances. Lower the count in the cluster's "
        "file, or give the node group a larger block."
    )
    assert scene.subjects() == ["base-pod: nodes of pod are missing"]


def test_a_block_that_says_it_shrank_takes_no_node_away(scene: Scene) -> None:
    group, block = scene.deploy_pod(starts=timedelta(0))
    scene.minute(2)
    block.bought = 3

    scene.minute(3)

    assert group.desired == 8


def name_the_next_block(scene: Scene, group: FakeGroup, **settings: Any) -> FakeReservation:
    """Let nodes run in a block, and deploy the id of another one."""
    last, group.version = scene.add_block(group, id="cr-old"), 1
    scene.minute(2)
    last.stays, group.version = group.in_service, 2
    return scene.add_block(group, id="cr-new", **{"starts": 47 * HOUR, "last": last, **settings})


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({}, "pod waits for its Capacity Block cr-new, which starts at 2026-11-04T07:02:00Z"),
        ({"state": "payment-failed"}, "pod: its Capacity Block cr-new was never paid"),
        ({"is_block": False}, "pod: its Capacity Block cr-new is an On-Demand Capacity Reservation"),
        ({"starts": -48 * HOUR, "state": "expired"}, "pod: its Capacity Block cr-new has ended (expired)"),
        ({"starts": -48 * HOUR, "state": "delayed"}, "pod: its Capacity Block cr-new has ended (delayed)"),
        ({"state": "cancelled"}, "pod: its Capacity Block cr-new was cancelled (cancelled)"),
        ({"starts": -HOUR, "state": "cancelling"}, "pod: its Capacity Block cr-new was cancelled (cancelling)"),
    ],
)
def test_nodes_run_on_when_a_deploy_names_a_block_that_they_cannot_run_in(
    scene: Scene, settings: dict[str, Any], why: str
) -> None:
    group = scene.add("pod")
    name_the_next_block(scene, group, **settings)

    kept = scene.minute(5)["pod"]
    scene.order("start", by="bo", reason="go on")
    group.desired = 7
    scene.order("start", by="bo", reason="go on")
    group.desired = 8
    scene.minute()

    assert (kept["decision"], group.desired, group.in_service) == ("unusable", 8, 8)
    [message] = scene.sns.messages
    assert message["Message"].split("\n\n")[1].startswith(why)
    assert "The nodes that run are not in it, and stay until EC2 or a stop terminates them." in message["Message"]
    scene.order("stop")
    assert group.desired == 0


@pytest.mark.parametrize("ends", [24 * HOUR, 60 * MINUTE])
def test_nodes_of_the_last_block_are_not_taken_for_nodes_of_the_next_one_when_that_starts(
    scene: Scene, ends: timedelta
) -> None:
    group = scene.add("pod")
    name_the_next_block(scene, group, starts=3 * MINUTE, ends=scene.now + ends)

    open_now = scene.minute(6)["pod"]

    assert (open_now["decision"], open_now["missing"], group.desired, group.in_service) == ("unusable", 0, 8, 8)
    assert "The nodes that run are not in it, and stay until EC2 or a stop terminates them" in open_now["reason"]
    assert scene.subjects() == ["base-pod: the Capacity Block of pod cannot be used"]
    group.version = 3
    scene.ec2.reservations["cr-new"].last = None
    assert "not in it" not in scene.minute()["pod"]["reason"]


def test_a_node_that_fails_in_the_last_block_is_missing_and_holds_no_deployment(scene: Scene) -> None:
    group = scene.add("pod")
    block = name_the_next_block(scene, group)
    scene.minute()
    assert block.last is not None
    block.last.stays = group.in_service = 7

    short = scene.minute(14)["pod"]

    assert (short["decision"], short["missing"], group.desired, group.in_service) == ("unusable", 1, 7, 7)
    assert "7 of 8 nodes are running" in short["reason"]
    assert scene.subjects() == [
        "base-pod: the Capacity Block of pod cannot be used",
        "base-pod: nodes of pod are missing",
    ]
    block.starts, block.state = scene.now, "active"
    assert scene.minute(12)["pod"]["in_service"] == 8


def test_the_next_block_takes_over_when_the_nodes_of_the_last_one_have_gone(scene: Scene) -> None:
    group = scene.add("pod")
    block = name_the_next_block(scene, group)
    scene.minute()
    scene.pass_time(24 * HOUR)

    waiting = scene.minute()["pod"]
    assert block.starts is not None
    assert (waiting["alive"], group.desired) == (0, 0)
    scene.pass_time(block.starts - scene.now)

    assert scene.minute(2)["pod"]["in_service"] == 8
    assert scene.subjects()[-1] == "base-pod: the problem with the Capacity Block of pod is over"
