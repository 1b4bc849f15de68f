"""Single nodes of a group that are terminated by order, and what becomes of the group then."""

from datetime import timedelta

import pytest

from cluster_common.power_records import Termination
from fake_auto_scaling import FakeGroup
from power_scene import Scene
from termination_scene import HELD, TERMINATE, add_settled_twin, asked, living, middle, run_group, terminate


@pytest.fixture
def scene() -> Scene:
    return Scene()


@pytest.fixture
def group(scene: Scene) -> FakeGroup:
    """A group of 8 nodes that runs."""
    return run_group(scene)


def test_exactly_the_named_nodes_go_and_the_size_with_them(scene: Scene, group: FakeGroup) -> None:
    idle = middle(group)
    others = [name for name in living(group) if name not in idle]

    told = terminate(scene, idle)

    assert asked(scene) == idle
    assert (group.desired, living(group)) == (5, others)
    assert {name: told[name] for name in ("decision", "desired", "wanted", "in_service", "terminated", "reason")} == {
        "decision": "held",
        "desired": 5,
        "wanted": 8,
        "in_service": 5,
        "terminated": idle,
        "reason": "workers: 3 of its nodes were terminated, by cluster_idle: idle for an hour. Its size is 5 "
        "until a start or stop command, or until its count in the cluster's file changes",
    }


def test_who_has_nodes_terminated_is_recorded_before_the_first_one_goes(scene: Scene, group: FakeGroup) -> None:
    writes, idle = scene.writes(), middle(group)

    terminate(scene, idle)

    assert writes == ["PutItem", TERMINATE, TERMINATE, TERMINATE]
    at, text = scene.now, "2026-11-02T08:02:00Z by cluster_idle: idle for an hour"
    assert scene.record(group).terminated == Termination(at=at, text=text, ids=tuple(idle))


def test_the_nodes_do_not_come_back_and_no_others_go(scene: Scene, group: FakeGroup) -> None:
    stay = [name for name in living(group) if name not in middle(group)]
    terminate(scene, middle(group))

    held = scene.minute(20)["workers"]

    assert (held["decision"], held["reason"]) == ("held", HELD.format(5))
    assert (group.desired, living(group)) == (5, stay)
    assert scene.order("status")["workers"]["reason"] == HELD.format(5)
    assert scene.subjects() == []


def test_a_size_that_an_operator_gives_after_a_start_is_the_operators(scene: Scene, group: FakeGroup) -> None:
    terminate(scene, middle(group))
    scene.minute()
    scene.order("start")
    scene.minute()

    group.desired = 5

    assert scene.minute()["workers"]["reason"].startswith(
        "workers was given 8 nodes and its desired capacity was changed to 5 outside the power function: left"
    )


def test_a_deploy_neither_brings_the_nodes_back_nor_takes_more(scene: Scene, group: FakeGroup) -> None:
    terminate(scene, middle(group))
    group.maximum = 8  # What a deploy that leaves the count alone writes.

    assert scene.minute(2)["workers"]["desired"] == 5
    scene.counts["workers"] = group.maximum = 6
    assert scene.minute()["workers"]["desired"] == 6


def test_a_group_that_lost_its_last_node_is_held_at_zero(scene: Scene, group: FakeGroup) -> None:
    terminate(scene, living(group))

    held = scene.minute(3)["workers"]

    assert (held["decision"], held["reason"], held["state"]) == ("held", HELD.format(0), "running")
    assert scene.order("start")["workers"]["desired"] == 8


def test_nodes_of_a_group_that_an_operator_sized_go_too(scene: Scene, group: FakeGroup) -> None:
    group.desired = 5
    scene.minute()

    told = terminate(scene, middle(group, 1))

    assert (told["desired"], told["terminated"], group.in_service) == (4, middle(group, 0) + asked(scene), 4)
    assert scene.minute(2)["workers"]["desired"] == 4


def test_a_node_that_goes_already_counts_as_done_and_is_not_asked_again(scene: Scene, group: FakeGroup) -> None:
    group.hooked = True
    idle = middle(group)
    terminate(scene, idle[:2])
    scene.minute()

    told = terminate(scene, idle)

    assert asked(scene) == idle
    assert (told["terminated"], told["desired"]) == (idle, 5)


def test_nodes_that_an_operator_started_in_a_stopped_group_can_be_taken(scene: Scene, group: FakeGroup) -> None:
    scene.order("stop", by="ana", reason="weekend")
    scene.minute()
    group.desired = 2
    scene.minute()

    told = terminate(scene, middle(group, 1))

    assert (told["desired"], told["wanted"], told["state"]) == (1, 0, "stopped")
    assert scene.minute(2)["workers"]["desired"] == 1


def test_of_two_groups_in_a_deploy_each_loses_its_own_nodes(scene: Scene, group: FakeGroup) -> None:
    """The old one and its successor, which have the same size."""
    twin = add_settled_twin(scene)
    idle = [*middle(twin, 1), *middle(group, 2)]

    told = terminate(scene, idle)

    assert (group.desired, twin.desired) == (6, 7)
    assert told["terminated"] in ([idle[0]], idle[1:])


def test_a_node_that_launches_still_can_be_taken(scene: Scene, group: FakeGroup) -> None:
    group.in_service, group.launching = 7, 1
    name = next(name for name, state in group.nodes if state == "Pending")

    assert terminate(scene, [name])["desired"] == 7


def test_a_released_reservation_stays_as_it_is() -> None:
    scene = Scene(counts={"held": 8})
    group = scene.add("held")
    reservation = scene.add_reservation(group)
    scene.minute(3)

    terminate(scene, middle(group), "held")
    scene.minute(20)

    assert (group.desired, reservation.instances) == (5, 8)


def test_a_capacity_block_stays_as_it_is_and_drives_its_group_on() -> None:
    scene = Scene(counts={"pod": 8})
    group, block = scene.deploy_pod()
    scene.minute(7)

    told = terminate(scene, middle(group), "pod")

    assert told["reason"].endswith(
        "until its count in the cluster's file changes, or its Capacity Block starts or ends"
    )
    assert scene.minute(5)["pod"]["desired"] == 5
    assert block.ends is not None
    scene.now = block.ends - timedelta(minutes=40)
    assert scene.minute()["pod"]["desired"] == 0
