"""When a warning counts: what was said must be so, and nothing may have happened since."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from cluster_common.errors import PartialFailureError
from cluster_contract.idle import Policy
from idle_scene import PART, IdleScene, verdicts


@pytest.mark.parametrize("minutes", [10, 60])
def test_after_a_dry_run_a_new_warning_is_sent_before_a_stop(minutes: int) -> None:
    scene = IdleScene(policy=Policy(dry_run=True))
    node = scene.add()
    scene.ticks(minutes)
    scene.policy = Policy()

    assert verdicts(scene.tick()) == ["warn"]
    assert scene.subjects()[-1] == "base-pod: 1 node idle, stopped in 30 minutes"
    assert verdicts(scene.ticks(25)) == ["warn"]
    assert node.state == "running"
    assert verdicts(scene.tick()) == ["stop"]


def test_a_warning_holds_when_the_cluster_turns_to_a_dry_run() -> None:
    scene = IdleScene()
    node = scene.add()
    scene.ticks(10)
    scene.policy = Policy(dry_run=True)

    assert verdicts(scene.ticks(55)) == ["stop"]
    assert node.state == "running"
    assert [subject.startswith("[dry run] ") for subject in scene.subjects()] == [False, True]


def test_nodes_that_wait_for_long_are_not_warned_of_again() -> None:
    """More than the time that metrics are read for: it was seen to be idle in each run meanwhile."""
    scene = IdleScene(max_stops=1)
    nodes = [scene.add() for _ in range(30)]

    scene.ticks(35)
    for count in range(1, 30):
        assert len(scene.stopped) == count
        scene.tick()

    assert scene.stopped == {node.id for node in nodes}
    assert len([subject for subject in scene.subjects() if " idle, stopped in " in subject]) == 1


@pytest.mark.parametrize("minutes", [0, 5, 25])
def test_work_of_a_node_that_waits_for_long_voids_its_warning(minutes: int) -> None:
    scene = IdleScene(max_stops=1)
    node = scene.add()
    scene.tick()
    scene.dynamodb.change(PART, node.id, stop_at="2026-11-02T14:00:00Z")
    scene.ticks(235)
    node.load = 90
    scene.tick()
    node.load = 0

    assert scene.warnings == {}
    assert verdicts(scene.ticks(60 + minutes)) == ["busy" if not minutes else "warn"]


def test_a_node_that_one_run_does_not_see_is_stopped_after_the_warning_that_was_sent() -> None:
    scene = IdleScene()
    node = scene.add()
    scene.ticks(25)
    unseen = scene.ec2.nodes.pop(node.id)
    scene.tick()
    scene.ec2.nodes[node.id] = unseen

    assert verdicts(scene.tick()) == ["stop"]
    assert len(scene.subjects()) == 2


@pytest.mark.parametrize(("minutes", "stays"), [(95, True), (100, False)])
def test_the_warning_of_a_node_that_is_gone_is_deleted_when_it_can_count_no_more(minutes: int, stays: bool) -> None:
    scene = IdleScene()
    node = scene.add()
    scene.tick()
    del scene.ec2.nodes[node.id]
    scene.ticks(minutes)

    assert (node.id in scene.warnings) is stays


def test_a_restart_voids_a_warning() -> None:
    scene = IdleScene(policy=Policy(grace=timedelta(0)))
    node = scene.add()
    scene.ticks(25)
    node.launched = scene.now

    assert verdicts(scene.ticks(50)) == ["grace"]
    assert scene.warnings == {}
    assert verdicts(scene.ticks(20)) == ["warn"]
    assert scene.warnings[node.id]["idle_until"] >= "2026-11-02T09:22:00Z"


def test_a_warning_from_the_future_does_not_count() -> None:
    scene = IdleScene()
    node = scene.add()
    scene.tick()
    scene.dynamodb.change(PART, node.id, idle_until="2026-11-02T12:00:00Z", stop_at="2026-11-02T08:00:00Z")

    assert verdicts(scene.tick()) == ["warn"]
    assert scene.warnings[node.id]["idle_until"] == "2026-11-02T08:12:00Z"


def test_what_a_dry_run_does_not_stop_takes_no_other_nodes_place() -> None:
    scene = IdleScene(max_stops=1)
    scene.add_group("lab", count=3, policy=Policy(dry_run=True))
    scene.ticks(15)
    node = scene.add(age=timedelta(hours=2))

    scene.ticks(50)

    assert scene.stopped == {node.id}


def test_a_group_whose_stop_is_refused_is_warned_of_once_and_tried_again_in_every_run() -> None:
    scene = IdleScene()
    scene.add_group(count=2)
    scene.ticks(30)
    scene.lambda_.refusal = "workers: could not be sized"
    for _ in range(100):
        with pytest.raises(PartialFailureError, match="the power function did not stop it"):
            scene.tick()
    scene.lambda_.refusal = None

    assert len(scene.subjects()) == 1
    assert verdicts(scene.tick()) == ["stop", "stop"]


def test_the_promised_time_runs_from_the_message_on_however_long_the_run_took(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scene = IdleScene(policy=Policy(warning=timedelta(minutes=10)))
    node = scene.add()
    read, publish = scene.cloudwatch.get_metric_data, scene.sns.publish

    def take(minutes: int, call: Callable[..., Any]) -> Callable[..., Any]:
        def slow(**parameters: Any) -> Any:
            scene.now += timedelta(minutes=minutes)
            return call(**parameters)

        return slow

    with monkeypatch.context() as patch:
        patch.setattr(scene.cloudwatch, "get_metric_data", take(3, read))
        patch.setattr(scene.sns, "publish", take(1, publish))
        scene.tick()

    assert scene.subjects() == ["base-pod: 1 node idle, stopped in 10 minutes"]
    assert "Will be stopped at 2026-11-02T08:20:00Z" in scene.texts()[0]
    sent = scene.warnings[node.id]
    assert (sent["idle_until"], sent["stop_at"]) == ("2026-11-02T08:11:00Z", "2026-11-02T08:21:00Z")
