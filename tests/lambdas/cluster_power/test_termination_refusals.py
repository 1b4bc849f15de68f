"""Nodes that an order to terminate names and that stay, and what is reported of them."""

from typing import Any

import pytest

from cluster_common.errors import PartialFailureError
from fake_auto_scaling import FakeGroup
from power_scene import Scene
from termination_scene import HELD, TERMINATE, add_settled_twin, asked, middle, refused, run_group, terminate


@pytest.fixture
def scene() -> Scene:
    return Scene()


@pytest.fixture
def group(scene: Scene) -> FakeGroup:
    """A group of 8 nodes that runs."""
    return run_group(scene)


def test_what_is_no_node_of_the_group_is_told_and_the_others_go(scene: Scene) -> None:
    scene.counts["eval"] = 2
    eval_group, group = scene.add("eval"), run_group(scene)
    [gone, other], idle = ["i-0aaa", middle(eval_group, 1)[0]], middle(group, 2)

    message = refused(scene, [gone, idle[0], other, idle[1]])

    assert message == (
        f"workers: {gone} is none of its nodes; workers: {other} is none of its nodes. Everything else was done."
    )
    assert asked(scene) == idle
    assert (group.desired, eval_group.desired) == (6, 2)


def test_another_clusters_node_is_never_asked_to_go(scene: Scene, group: FakeGroup) -> None:
    foreign = scene.auto_scaling.add("other", cluster="other-pod", node_group="workers", desired=2, in_service=2)
    name = foreign.nodes[0][0]

    assert refused(scene, [name]) == f"workers: {name} is none of its nodes. Everything else was done."
    assert (asked(scene), foreign.desired, group.desired) == ([], 2, 8)


@pytest.mark.parametrize(
    ("code", "message"),
    [("ScalingActivityInProgress", "busy"), ("ResourceContention", "wait"), ("Throttling", "Rate exceeded")],
)
def test_what_fails_for_one_node_is_raised_after_the_others_and_made_good_by_the_next_run(
    scene: Scene, group: FakeGroup, code: str, message: str
) -> None:
    idle = middle(group)
    scene.auto_scaling.fail_next(TERMINATE, code, group=idle[1], message=message)

    told = refused(scene, idle)

    assert told == f"workers: {idle[1]} could not be terminated ({code}: {message}). Everything else was done."
    assert group.desired == 6
    assert terminate(scene, [idle[1]])["terminated"] == [idle[1]]
    assert group.desired == 5


def test_an_order_that_iam_does_not_permit_takes_nothing_and_leaves_no_mark(scene: Scene, group: FakeGroup) -> None:
    idle = middle(group, 1)
    scene.auto_scaling.fail_next(TERMINATE, "AccessDenied", message="not you")

    assert "could not be terminated (AccessDenied: not you)" in refused(scene, idle)

    assert scene.record(group).terminated is None
    group.desired = 6
    assert "its desired capacity was changed to 6 outside the power function" in scene.minute()["workers"]["reason"]


def test_an_earlier_mark_outlives_an_order_that_took_nothing(scene: Scene, group: FakeGroup) -> None:
    terminate(scene, middle(group, 1))
    mark = scene.record(group).terminated
    scene.minute()
    scene.auto_scaling.fail_next(TERMINATE, "AccessDenied")

    refused(scene, middle(group, 1))

    assert scene.record(group).terminated == mark
    assert scene.minute()["workers"]["reason"] == HELD.format(7)


def test_a_stopped_groups_nodes_go_anyway(scene: Scene, group: FakeGroup) -> None:
    idle = middle(group)
    scene.order("stop", by="ana", reason="weekend")
    scene.auto_scaling.calls.clear()

    told = terminate(scene, idle)

    assert (told["reason"], told["terminated"]) == (
        "workers: 8 nodes still run where 0 should (8 InService): Auto Scaling is terminating 8 nodes. All of its "
        "nodes are terminated, with or without this command",
        [],
    )
    assert scene.auto_scaling.writes == []
    scene.minute(2)
    assert terminate(scene, idle)["reason"] == (
        "workers is stopped, by ana: weekend. All of its nodes are terminated, with or without this command"
    )


def test_a_stop_that_was_interrupted_is_left_to_the_tick(scene: Scene, group: FakeGroup) -> None:
    scene.auto_scaling.fail_next("SetDesiredCapacity", "InternalFailure")
    with pytest.raises(PartialFailureError):
        scene.order("stop", by="ana", reason="weekend")

    told = terminate(scene, middle(group))

    assert (told["decision"], told["terminated"]) == ("size", [])
    assert scene.minute(2)["workers"]["desired"] == 0


def test_a_new_group_is_left_to_the_tick(scene: Scene) -> None:
    group = scene.add(desired=2, in_service=2)

    message = refused(scene, middle(group, 1))

    assert message == (
        "workers: none of its nodes was terminated: workers should have 8 nodes (not seen before). Everything else "
        "was done."
    )
    assert scene.auto_scaling.writes == []


def test_a_group_whose_count_has_changed_is_left_to_the_tick(scene: Scene, group: FakeGroup) -> None:
    scene.counts["workers"] = 6

    assert "none of its nodes was terminated: workers should have 6 nodes, 8 before" in refused(scene, middle(group))
    assert scene.minute()["workers"]["desired"] == 6


def test_a_group_whose_item_cannot_be_read_is_left_alone(scene: Scene, group: FakeGroup) -> None:
    scene.dynamodb.change("power#base-pod", "workers", since="eight")

    assert "does not hold what the power function writes" in refused(scene, middle(group))
    assert (asked(scene), group.desired) == ([], 8)


def test_a_group_that_is_not_there_has_no_nodes(scene: Scene) -> None:
    message = refused(scene, ["i-0aaa"])

    assert message.startswith(
        "workers: none of its nodes was terminated: workers is in the cluster's file and has no"
    )


def test_a_group_that_is_being_deleted_is_left_alone(scene: Scene, group: FakeGroup) -> None:
    group.deleting = True

    told = terminate(scene, middle(group))

    assert told["reason"] == "workers is being deleted. All of its nodes are terminated, with or without this command"
    assert (asked(scene), told["terminated"]) == ([], [])


@pytest.mark.parametrize("state", ["Standby", "EnteringStandby", "Detaching", "Warmed:Running", "Quarantined"])
def test_a_node_that_the_size_does_not_count_is_left_alone(scene: Scene, group: FakeGroup, state: str) -> None:
    group.others.append(state)
    name = next(name for name, its_state in group.nodes if its_state == state)

    message = refused(scene, [name, *middle(group, 1)])

    assert message == f"workers: {name} is left alone, because its state is {state}. Everything else was done."
    assert group.desired == 7


def test_a_node_that_is_protected_from_scale_in_is_left_alone(scene: Scene, group: FakeGroup) -> None:
    group.protected = 2
    idle = [name for name, _ in group.nodes][1:3]

    message = refused(scene, idle)

    assert message == (
        f"workers: {idle[0]} is left alone, because it is protected from scale-in. Everything else was done."
    )
    assert (asked(scene), group.desired) == ([idle[1]], 7)


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        (
            {"terminating_suspended": "debugging"},
            "the process Terminate of the Auto Scaling group workers-asg is suspended",
        ),
        (
            {"zones": ["us-east-1a", "us-east-1b"]},
            "Auto Scaling would replace other nodes to balance us-east-1a, us-east-1b",
        ),
        ({"desired": 7}, "8 of its nodes run where 7 should, and Auto Scaling terminates some itself"),
    ],
)
def test_where_another_node_might_go_in_its_place_none_goes(
    scene: Scene, group: FakeGroup, changes: dict[str, Any], why: str
) -> None:
    idle = middle(group, 2)
    for name, value in changes.items():
        setattr(group, name, value)
    size = group.desired

    message = refused(scene, idle)

    assert message == f"workers: {', '.join(idle)} not terminated: {why}. Everything else was done."
    assert (asked(scene), group.desired, scene.record(group).terminated) == ([], size, None)


def test_a_minimum_that_an_operator_set_is_auto_scalings_to_keep(scene: Scene, group: FakeGroup) -> None:
    group.minimum = 7

    message = refused(scene, middle(group, 2))

    assert "(ValidationError: Currently, desiredSize equals minSize (7)." in message
    assert group.desired == 7


def test_what_neither_of_two_groups_has_is_told_once(scene: Scene, group: FakeGroup) -> None:
    twin = add_settled_twin(scene)

    message = refused(scene, ["i-0aaa", *middle(twin, 1), *middle(group, 1)])

    assert message == "workers: i-0aaa is none of its nodes. Everything else was done."
    assert (group.desired, twin.desired) == (7, 7)


def test_of_a_stopped_group_what_goes_already_counts_as_done(scene: Scene, group: FakeGroup) -> None:
    group.hooked = True
    idle = middle(group)
    terminate(scene, idle)
    scene.order("stop", by="ana", reason="weekend")

    assert terminate(scene, idle)["terminated"] == idle
    assert asked(scene) == idle
