"""Orders to terminate single nodes that are interrupted, overlap, or come with something else at the same moment."""

from datetime import timedelta

import pytest
from botocore.exceptions import ConnectionClosedError

from fake_auto_scaling import FakeGroup
from power_scene import CLUSTER, Scene
from termination_scene import (
    TERMINATE,
    LambdaEndedError,
    asked,
    end_run,
    living,
    middle,
    refused,
    run_group,
    terminate,
)


@pytest.fixture
def scene() -> Scene:
    return Scene()


@pytest.fixture
def group(scene: Scene) -> FakeGroup:
    """A group of 8 nodes that runs."""
    return run_group(scene)


def lose(answer: Exception) -> None:
    """Let a call end without an answer."""
    raise answer


def test_without_a_mark_no_node_goes(scene: Scene, group: FakeGroup) -> None:
    scene.dynamodb.fail_next("PutItem", "InternalFailure")

    message = refused(scene, middle(group))

    assert message == (
        "workers: could not record which of its nodes are terminated (InternalFailure: no). Everything else was done."
    )
    assert (asked(scene), group.desired) == ([], 8)


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_run_that_is_interrupted_leaves_what_the_next_tick_leaves_alone(
    scene: Scene, group: FakeGroup, number: int
) -> None:
    idle = middle(group)

    scene.auto_scaling.before_next(TERMINATE, idle[number], end_run)
    with pytest.raises(LambdaEndedError):
        terminate(scene, idle)
    stay = living(group)

    scene.minute(3)

    assert (group.desired, living(group)) == (8 - number, stay)
    terminate(scene, idle[number:])
    assert (group.desired, asked(scene)) == (5, idle)


@pytest.mark.parametrize(
    ("action", "size"), [("stop", 0), ("start", 8)], ids=["a stop takes the rest", "a start brings them back"]
)
def test_another_order_that_comes_meanwhile_wins(scene: Scene, group: FakeGroup, action: str, size: int) -> None:
    idle = middle(group)

    def order() -> None:
        scene.now += timedelta(seconds=1)
        scene.order(action, by="ana", reason="I know better")

    def once_the_first_has_gone() -> None:
        scene.auto_scaling.before_next("DescribeAutoScalingGroups", "workers-asg", order)

    scene.auto_scaling.before_next(TERMINATE, idle[0], once_the_first_has_gone)
    message = refused(scene, idle)

    assert "not terminated: " in message
    assert asked(scene) == idle[:1]
    assert scene.minute(2)["workers"]["desired"] == size


def test_a_size_that_an_operator_sets_meanwhile_lets_none_of_the_others_go(scene: Scene, group: FakeGroup) -> None:
    idle = middle(group)

    def shrink() -> None:
        group.desired = 4

    def once_the_first_has_gone() -> None:
        scene.auto_scaling.before_next("DescribeAutoScalingGroups", "workers-asg", shrink)

    scene.auto_scaling.before_next(TERMINATE, idle[0], once_the_first_has_gone)

    assert "7 of its nodes run where 4 should" in refused(scene, idle)
    assert group.desired == 4


def test_nodes_that_cannot_be_seen_do_not_go(scene: Scene, group: FakeGroup) -> None:
    scene.auto_scaling.fail_next("DescribeAutoScalingGroups", "Throttling", group="workers-asg")

    message = refused(scene, middle(group, 2))

    assert message.startswith("workers: could not be read again (Throttling: no); workers: i-")
    assert "not terminated: it is gone, or could not be read" in message
    assert asked(scene) == []


def test_a_group_that_becomes_another_clusters_loses_nothing_more(scene: Scene, group: FakeGroup) -> None:
    def give_away() -> None:
        group.tags["cdk-training-cluster:cluster"] = f"not-{CLUSTER}"

    scene.auto_scaling.before_next("DescribeAutoScalingGroups", "workers-asg", give_away)

    assert "not terminated: it is gone, or could not be read" in refused(scene, middle(group))
    assert (asked(scene), group.desired) == ([], 8)


def test_a_long_reason_is_cut_and_does_not_look_like_another_order(scene: Scene, group: FakeGroup) -> None:
    order = {"node_groups": ["workers"], "instance_ids": middle(group), "by": "b" * 200, "reason": "r " * 200}

    assert scene.order("terminate", **order)["workers"]["desired"] == 5


def test_a_node_that_was_asked_to_go_and_does_not_show_it_yet_keeps_no_other_waiting(
    scene: Scene, group: FakeGroup
) -> None:
    group.slow = True
    idle = middle(group)

    assert terminate(scene, idle)["terminated"] == idle
    assert (asked(scene), group.desired) == (idle, 5)


def test_an_order_that_is_repeated_while_descriptions_are_old_lets_no_node_go_twice(
    scene: Scene, group: FakeGroup
) -> None:
    idle, before = middle(group), scene.auto_scaling.describe_all()
    terminate(scene, idle)
    scene.now += timedelta(seconds=30)
    scene.auto_scaling.old = [before] * 5

    message = refused(scene, idle)

    assert message.count("is being terminated already") == 3
    assert (asked(scene), group.desired) == (idle, 5)


def test_a_node_of_which_no_answer_came_is_not_asked_twice(scene: Scene, group: FakeGroup) -> None:
    [idle, other] = middle(group, 2)
    lost = ConnectionClosedError(endpoint_url="https://autoscaling.us-east-1.amazonaws.com")
    scene.auto_scaling.before_next(TERMINATE, idle, lambda: lose(lost))

    assert f"{idle} may not have been terminated" in refused(scene, [idle, other])
    assert f"{idle} is being terminated already" in refused(scene, [idle])


def test_a_node_that_is_protected_meanwhile_stays(scene: Scene, group: FakeGroup) -> None:
    idle = [name for name, _ in group.nodes][:2]

    def protect() -> None:
        group.protected = 1

    scene.auto_scaling.before_next("DescribeAutoScalingGroups", "workers-asg", protect)

    assert f"{idle[0]} is left alone, because it is protected from scale-in" in refused(scene, idle)
    assert asked(scene) == idle[1:]


def test_two_equal_runs_at_the_same_moment_ask_each_node_once(scene: Scene, group: FakeGroup) -> None:
    idle, before = middle(group), scene.auto_scaling.describe_all()

    def order_again() -> None:
        scene.now += timedelta(seconds=1)
        terminate(scene, idle)
        scene.auto_scaling.old = [before] * 9

    scene.dynamodb.before_next("PutItem", "workers", order_again)

    assert "nodes of workers were terminated by command at the same moment" in refused(scene, idle)
    assert (asked(scene), group.desired) == (idle, 5)
