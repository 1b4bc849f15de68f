"""The power function beside nodes in Standby: each keeps its place, and costs no other node its own."""

from datetime import timedelta

import pytest

from fake_auto_scaling import FakeGroup
from power_scene import Scene


@pytest.fixture
def scene() -> Scene:
    return Scene()


@pytest.fixture
def group(scene: Scene) -> FakeGroup:
    group = scene.add()
    scene.minute(30)
    return group


def shown(group: FakeGroup) -> tuple[int, int, int]:
    return group.desired, group.in_service, len(group.standby)


def enter(group: FakeGroup, number: int = 1) -> list[str]:
    ids = [one for one, state in group.nodes if state == "InService"][:number]
    for one in ids:
        group.enter_standby(one)
    return ids


def test_a_node_in_standby_keeps_its_place_for_hours_and_returns_to_it(scene: Scene, group: FakeGroup) -> None:
    [node] = enter(group)
    before = list(scene.auto_scaling.writes)

    summary = scene.minute(120)["workers"]

    assert (shown(group), scene.auto_scaling.writes) == ((7, 7, 1), before)
    assert (summary["decision"], summary["missing"], summary["surplus"]) == ("keep", 0, 0)
    group.exit_standby(node)
    assert scene.minute(2)["workers"]["decision"] == "keep"
    assert (shown(group), scene.auto_scaling.writes, scene.subjects()) == ((8, 8, 0), before, [])


def test_the_place_of_a_node_that_is_terminated_in_standby_is_given_back(scene: Scene, group: FakeGroup) -> None:
    [node] = enter(group)
    scene.minute(3)
    group.terminate(node, lowers=False)

    scene.minute(2)

    assert (shown(group), scene.subjects()) == ((8, 8, 0), [])
    assert scene.minute()["workers"]["decision"] == "keep"


@pytest.mark.parametrize("entered", [0, 1])
def test_a_node_that_returns_and_goes_before_the_function_looks_has_its_place(
    scene: Scene, group: FakeGroup, entered: int
) -> None:
    [node] = enter(group)
    scene.minute(3)
    group.exit_standby(node)
    group.terminate(node, lowers=False)
    enter(group, entered)

    scene.minute(10)

    assert (shown(group), scene.subjects()) == ((8 - entered, 8 - entered, entered), [])
    assert scene.minute()["workers"]["decision"] == "keep"


def test_all_nodes_of_a_group_may_be_in_standby(scene: Scene, group: FakeGroup) -> None:
    first, *others = enter(group, 8)
    assert scene.minute(30)["workers"]["decision"] == "keep"
    group.terminate(first, lowers=False)
    scene.minute(2)
    for one in others:
        group.exit_standby(one)
    scene.minute(2)
    assert (shown(group), scene.subjects()) == ((8, 8, 0), [])


@pytest.mark.parametrize("passes", [1, 15])
def test_a_node_that_returns_while_ec2_lacks_nodes_ends_no_other(scene: Scene, group: FakeGroup, passes: int) -> None:
    group.in_service, group.capacity = 6, 6
    scene.minute(15)
    [node] = enter(group)
    group.capacity = 5
    scene.minute(passes)
    group.exit_standby(node)
    group.capacity = 6

    scene.minute(3)

    assert group.in_service == 6
    group.capacity = 8
    scene.minute(15)
    assert shown(group) == (8, 8, 0)


def test_commands_give_a_group_its_size_less_the_nodes_in_standby(scene: Scene, group: FakeGroup) -> None:
    enter(group, 2)
    scene.minute()
    assert scene.order("limit", by="ana", reason="budget")["workers"]["wanted"] == 8
    assert shown(group) == (6, 6, 2)
    scene.order("start", by="ana", reason="again")
    assert shown(group) == (6, 6, 2)
    stopped = scene.order("stop", by="ana", reason="weekend")["workers"]
    assert (stopped["desired"], group.desired) == (0, 0)
    scene.minute(2)
    scene.order("start", by="ana", reason="monday")
    scene.minute(3)
    assert shown(group) == (6, 6, 2)


def test_a_node_in_standby_beside_a_whole_group_takes_no_place(scene: Scene, group: FakeGroup) -> None:
    [node] = (one for one, _ in group.nodes[:1])
    group.enter_standby(node, lowers=False)
    scene.minute(2)
    scene.order("start", by="ana", reason="again")
    scene.minute(3)
    assert shown(group) == (8, 8, 1)


def test_a_size_that_an_operator_lowers_beside_a_node_in_standby_is_left_alone(
    scene: Scene, group: FakeGroup
) -> None:
    enter(group)
    scene.minute()
    group.desired = 4
    scene.pass_time(timedelta(minutes=1))
    assert scene.minute(30)["workers"]["decision"] == "held"
    assert shown(group) == (4, 4, 1)
