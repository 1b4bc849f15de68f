"""Runs that end too early, and topics that take no message: the next run finishes, and reports every stop once."""

import contextlib
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any, cast

import pytest

from cluster_common.errors import PartialFailureError
from cluster_contract.idle import IdleScope, Policy
from idle_scene import IdleScene

NOTE = "cdk-training-cluster:idle-note"
REPORTED_LATE = "base-pod: stopped by an earlier run: idle"
MAYBE_SENT = "An earlier run stopped these nodes, and could not send this message or record that it was sent:"


class Died(BaseException):
    """The end of a run: Lambda's time is over, or its memory."""


def dying(call: Callable[..., Any], left: Iterator[int]) -> Callable[..., Any]:
    """Let a run end instead of a call when no call is left."""

    def die(*parameters: Any, **named: Any) -> Any:
        if next(left, None) is None:
            raise Died
        return call(*parameters, **named)

    return die


def runs_that_die(prepare: Callable[[IdleScene], object], monkeypatch: pytest.MonkeyPatch) -> Iterator[IdleScene]:
    """Yield the scene after a run that ends before its first call, its second one, and so on."""
    for calls in range(100):
        scene = IdleScene()
        prepare(scene)
        left = iter(range(calls))
        with monkeypatch.context() as patch:
            for service in (scene.ec2, scene.cloudwatch, scene.auto_scaling, scene.dynamodb, scene.lambda_):
                patch.setattr(service, "record", dying(service.record, left))
            patch.setattr(scene.sns, "publish", dying(scene.sns.publish, left))
            with contextlib.suppress(Died):
                scene.tick()
                assert calls > 8
                return
        yield scene


def populate(scene: IdleScene) -> None:
    """Let a node, a gang, a group of single nodes and a Spot Fleet be idle."""
    scene.add(id="i-alone")
    scene.add_group(count=2)
    scene.add_group("lab", count=1, policy=Policy(scope=IdleScope.NODE), id="i-lab")
    scene.add_fleet()


def test_a_run_that_ends_while_it_stops_nodes_is_finished_by_the_next_and_every_stop_is_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def prepare(scene: IdleScene) -> None:
        populate(scene)
        scene.ticks(30)

    for scene in runs_that_die(prepare, monkeypatch):
        scene.ticks(15)

        assert scene.stopped == set(scene.ec2.nodes)
        reports = "".join(scene.texts()[1:])
        assert all(name in reports for name in ("i-alone", "workers", "i-lab", "extras"))
        assert scene.warnings == {}


def test_after_a_run_that_ends_while_it_warns_no_node_is_stopped_sooner_and_each_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for scene in runs_that_die(populate, monkeypatch):
        scene.ticks(25)
        assert (scene.stopped, len(scene.subjects()) in (1, 2)) == (set(), True)
        scene.ticks(10)
        assert scene.stopped == set(scene.ec2.nodes)


def test_after_a_run_that_ends_while_it_clears_warnings_the_next_one_clears_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def prepare(scene: IdleScene) -> None:
        populate(scene)
        scene.tick()
        for node in scene.ec2.nodes.values():
            node.load = 90

    for scene in runs_that_die(prepare, monkeypatch):
        scene.ticks(10)
        services = (scene.ec2.nodes, scene.auto_scaling.groups, scene.ec2.fleets)
        tags = [one.tags for each in services for one in cast("dict[str, Any]", each).values()]
        assert (scene.warnings, [one for one in tags if NOTE in one]) == ({}, [])


def die_after_the_stop(scene: IdleScene, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the run that stops nodes end when the power function has done what it was ordered."""
    invoke = scene.lambda_.invoke

    def die(**parameters: Any) -> None:
        invoke(**parameters)
        raise Died

    with monkeypatch.context() as patch:
        patch.setattr(scene.lambda_, "invoke", die)
        with pytest.raises(Died):
            scene.tick()


def test_what_a_run_stopped_that_ended_too_early_is_reported_by_the_next_and_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scene = IdleScene()
    node = scene.add()
    scene.add_group(count=2)
    scene.ticks(30)
    die_after_the_stop(scene, monkeypatch)

    scene.ticks(30)
    assert scene.subjects()[1:] == [REPORTED_LATE]
    _, _, head, _, of_node, _, start_node, of_group, _, start_group = scene.texts()[1].splitlines()
    assert head == MAYBE_SENT
    assert of_node.startswith(
        f"{node.id} (p5.48xlarge): utilization below 5 % for 60 minutes, idle since 2026-11-02T"
    )
    assert start_node == f"  To start it again: aws ec2 start-instances --region us-east-1 --instance-ids {node.id}"
    assert of_group.startswith("workers (2 p5.48xlarge: ")
    assert start_group.startswith("  To start it again: training-cluster start ")


def test_a_stop_whose_message_was_sent_and_could_not_be_recorded_is_reported_again_as_such() -> None:
    scene = IdleScene()
    scene.add()
    scene.ticks(30)
    scene.dynamodb.fail_next("BatchWriteItem", "ThrottlingException", after=1)
    with pytest.raises(PartialFailureError, match="the state table state-table: could not be written"):
        scene.tick()

    scene.ticks(10)
    assert scene.subjects()[1:] == ["base-pod: 1 node stopped: idle", REPORTED_LATE]
    assert MAYBE_SENT in scene.texts()[2]


def test_what_was_started_again_before_its_stop_was_reported_is_said_to_be_and_judged_anew(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scene = IdleScene()
    node = scene.add()
    scene.add_group(count=2)
    scene.ticks(30)
    die_after_the_stop(scene, monkeypatch)
    scene.pass_time(timedelta(minutes=2))
    node.state, node.launched = "running", scene.now
    scene.auto_scaling.groups["workers-asg"].desired = 2
    scene.join("workers", age=timedelta())

    scene.ticks(10)
    assert scene.subjects()[1:] == [REPORTED_LATE]
    assert scene.texts()[1].count("\n  It has been started again since.") == 2
    assert (scene.warnings, NOTE in node.tags) == ({}, False)


@pytest.mark.parametrize("is_dead", [True, False])
def test_a_stop_that_could_not_be_reported_is_until_the_topic_takes_the_message(
    is_dead: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = IdleScene()
    scene.add_group(count=2)
    scene.ticks(30)
    if is_dead:
        die_after_the_stop(scene, monkeypatch)
    scene.sns.fails = True
    for _ in range(3):
        with pytest.raises(PartialFailureError, match="the notification could not be published"):
            scene.tick()
    scene.sns.fails = False

    scene.ticks(10)
    assert (scene.subjects()[1:], scene.warnings) == ([REPORTED_LATE], {})


def test_a_stop_is_reported_though_its_node_was_started_and_is_idle_again_before_the_topic_takes_a_message() -> None:
    scene = IdleScene()
    node = scene.add()
    scene.ticks(30)
    scene.sns.fails = True
    for number in range(24):
        with pytest.raises(PartialFailureError, match="the notification could not be published"):
            scene.tick()
        if number == 0:
            node.state, node.launched = "running", scene.now + timedelta(minutes=1)
    scene.sns.fails = False

    scene.tick()
    assert scene.subjects()[1:] == [REPORTED_LATE, "base-pod: 1 node idle, stopped in 30 minutes"]


def test_a_group_that_is_stopped_after_the_power_functions_answer_was_lost_is_reported() -> None:
    scene = IdleScene()
    scene.add_group(count=2)
    scene.ticks(30)
    scene.lambda_.fail_next("Invoke", "ServiceException")
    with pytest.raises(PartialFailureError, match="workers: the power function did not stop it"):
        scene.tick()
    scene.obey({"action": "stop", "node_groups": ["workers"]})

    scene.tick()
    assert scene.subjects()[1:] == [REPORTED_LATE]


def test_what_a_dry_run_would_have_stopped_is_reported_once_the_topic_takes_the_message() -> None:
    scene = IdleScene(policy=Policy(dry_run=True))
    scene.add()
    scene.ticks(30)
    scene.sns.fails = True
    with pytest.raises(PartialFailureError, match="the notification could not be published"):
        scene.tick()
    scene.sns.fails = False

    scene.ticks(20)
    assert scene.subjects()[1:] == ["[dry run] base-pod: 1 node would be stopped now: idle"]


def test_nodes_that_an_earlier_run_did_not_come_to_stop_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = IdleScene()
    nodes = [scene.add(tags={"cdk-training-cluster:node-group": "dev"}) for _ in range(60)]
    scene.ticks(30)
    stop, batches = scene.ec2.stop_instances, iter(range(1))

    with monkeypatch.context() as patch:
        patch.setattr(scene.ec2, "stop_instances", dying(stop, batches))
        with pytest.raises(Died):
            scene.tick()
    scene.tick()

    assert scene.subjects()[1] == REPORTED_LATE
    assert scene.texts()[1].endswith(f"\n  Of these, 10 still run, such as {nodes[50].id}.")
    assert scene.stopped == {node.id for node in nodes}


def test_a_run_that_ended_before_it_stopped_anything_is_not_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = IdleScene()
    node = scene.add()
    scene.ticks(30)
    with monkeypatch.context() as patch:
        patch.setattr(scene.ec2, "stop_instances", dying(scene.ec2.stop_instances, iter(())))
        with pytest.raises(Died):
            scene.tick()
    node.load = 90

    scene.ticks(10)
    assert (len(scene.subjects()), scene.warnings, NOTE in node.tags) == (1, {}, False)


@pytest.mark.parametrize("is_stopped", [True, False])
def test_a_stop_that_the_power_function_cannot_see_yet_is_reported_once_it_shows(is_stopped: bool) -> None:
    scene = IdleScene()
    scene.add_group(count=2)
    scene.ticks(30)
    scene.lambda_.blocked, scene.lambda_.shows_late = "its Auto Scaling group shows 2 still", True
    with pytest.raises(PartialFailureError, match="shows 2 still"):
        scene.tick()
    assert len(scene.subjects()) == 1

    scene.lambda_.blocked = None
    if is_stopped:
        scene.obey({"action": "stop", "node_groups": ["workers"]})
    scene.tick()

    stopped = [REPORTED_LATE] if is_stopped else ["base-pod: 2 nodes terminated: idle"]
    assert (scene.subjects()[1:], scene.warnings) == (stopped, {})
