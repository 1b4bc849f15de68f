"""When the clock to a stop starts again, and when it goes on: work, wishes to keep, and nodes that come and go."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from cluster_contract.idle import IdleScope, Policy
from fake_instances import FakeNode
from idle_scene import IdleScene, last_metrics, verdicts


@pytest.mark.parametrize("count", [0, 4], ids=["alone", "a gang"])
def test_work_while_no_run_looked_voids_a_warning(count: int) -> None:
    scene = IdleScene()
    nodes = scene.add_group(count=count) if count else [scene.add()]
    scene.tick()
    for node in nodes:
        node.load = 95
    scene.pass_time(timedelta(hours=8))
    for node in nodes:
        node.load = 0
    scene.pass_time(timedelta(minutes=100))

    assert set(verdicts(scene.run())) == {"warn"}
    assert len(scene.subjects()) == 2
    assert not scene.stopped


def test_work_while_cloudwatch_had_no_answer_voids_a_warning() -> None:
    scene = IdleScene()
    node = scene.add()
    for _ in range(3):
        scene.add(load=80)
    scene.tick()
    scene.cloudwatch.statuses[node.id] = "PartialData"
    node.load = 95
    scene.ticks(8 * 60)
    node.load = 0
    scene.ticks(100)
    scene.cloudwatch.statuses.clear()

    assert scene.tick()[node.id]["verdict"] == "warn"
    assert len(scene.subjects()) == 2


@pytest.mark.parametrize("hours", [1, 5])
def test_a_keep_until_that_ended_while_no_run_looked_voids_a_warning(hours: int) -> None:
    scene = IdleScene()
    node = scene.add()
    scene.tick()
    node.tags["cdk-training-cluster:keep-until"] = "2026-11-02T08:30Z"
    scene.pass_time(timedelta(hours=hours))

    assert verdicts(scene.run()) == ["warn"]
    assert len(scene.subjects()) == 2


def test_what_is_stopped_is_judged_by_what_it_did_since_it_was_started_again() -> None:
    scene = IdleScene()
    node = scene.add()
    scene.ticks(35)
    assert node.state == "stopping"
    scene.tick()
    node.state, node.launched = "running", scene.now

    assert verdicts(scene.ticks(50)) == ["grace"]
    assert verdicts(scene.ticks(20)) == ["warn"]


def replace_one(scene: IdleScene, **settings: Any) -> FakeNode:
    """Let a node of a group end, and Auto Scaling launch another in its place."""
    victim = next(node for node in scene.ec2.nodes.values() if node.state == "running")
    victim.state = "terminated"
    scene.auto_scaling.members["workers-asg"].remove(victim.id)
    return scene.join("workers", age=timedelta(0), **settings)


def test_an_idle_gang_whose_nodes_are_replaced_again_and_again_is_stopped_all_the_same() -> None:
    scene = IdleScene()
    scene.add_group(count=8)
    hours = 0
    while not scene.lambda_.orders and hours < 14:
        replace_one(scene)
        scene.ticks(55)
        hours += 1

    assert hours <= 3
    assert scene.subjects()[0] == "base-pod: 8 nodes idle, terminated in 30 minutes"
    assert len(scene.subjects()) == 2


def test_an_idle_gang_to_which_nodes_come_too_often_to_be_judged_is_counted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    scene = IdleScene()
    scene.add_group(count=8)
    for _ in range(6):
        replace_one(scene)
        found = scene.ticks(35)

    assert set(verdicts(found)) == {"grace"}
    assert last_metrics(capsys)["IdleLingeringNodes"] >= 4


@pytest.mark.parametrize(
    ("minutes", "oldest"),
    [(20, True), (25, True), (30, True), (35, True), (40, True), (40, False), (55, True), (85, True), (85, False)],
)
def test_a_small_gang_whose_nodes_come_and_go_is_stopped_or_counted_in_most_looks(
    capsys: pytest.CaptureFixture[str], minutes: int, oldest: bool
) -> None:
    scene = IdleScene()
    scene.add_group(count=2)
    counted = []
    for _ in range(420 // minutes):
        living = [node for node in scene.ec2.nodes.values() if node.state == "running"]
        victim = min(living, key=lambda node: node.id) if oldest else max(living, key=lambda node: node.id)
        victim.state = "terminated"
        scene.auto_scaling.members["workers-asg"].remove(victim.id)
        scene.join("workers", age=timedelta(0))
        for _ in range(minutes // 5):
            scene.tick()
            counted.append(last_metrics(capsys)["IdleLingeringNodes"])
        if scene.lambda_.orders:
            return

    assert all(sum(map(bool, counted[end - 36 : end])) >= 27 for end in range(36, len(counted) + 1))


def test_young_nodes_that_came_together_or_alone_or_beside_one_that_works_are_not_counted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    scene = IdleScene()
    scene.add_group("alone", count=0, policy=Policy(scope=IdleScope.NODE))
    scene.add_group("others", count=0)
    scene.add_group(count=1, load=90)
    for age in (0, 10, 20, 30):
        scene.join("alone", age=timedelta(minutes=age))
        scene.join("workers", age=timedelta(minutes=age))
    for age in (0, 10):
        scene.join("others", age=timedelta(minutes=age))

    scene.tick()
    assert last_metrics(capsys).get("IdleLingeringNodes", 0) == 0


def test_a_warning_of_single_nodes_does_not_count_again_once_they_were_a_gang() -> None:
    single, gang = Policy(scope=IdleScope.NODE, warning=timedelta(minutes=60)), Policy(warning=timedelta(minutes=60))
    scene = IdleScene()
    nodes = scene.add_group(count=2, policy=single)
    scene.tick()
    scene.groups["workers"] = replace(scene.groups["workers"], policy=gang)
    scene.ticks(10)
    assert set(scene.warnings) == {"workers"}
    scene.groups["workers"] = replace(scene.groups["workers"], policy=single)
    scene.ticks(5)
    assert set(scene.warnings) == {node.id for node in nodes}

    scene.ticks(55)
    assert scene.stopped == set()
    scene.ticks(5)
    assert scene.stopped == {node.id for node in nodes}


@pytest.mark.parametrize("minutes", [10, 40])
def test_a_node_that_works_in_place_of_an_idle_one_voids_the_warning(minutes: int) -> None:
    scene = IdleScene()
    scene.add_group(count=8)
    scene.tick()
    newcomer = replace_one(scene)
    scene.ticks(minutes)
    newcomer.load = 80
    scene.tick()
    newcomer.load = 0

    assert set(verdicts(scene.ticks(10))) == {"busy"}
    assert (scene.warnings, any("idle-" in key for key in scene.auto_scaling.groups["workers-asg"].tags)) == (
        {},
        False,
    )
    scene.ticks(45)
    assert scene.lambda_.orders == []


def test_a_node_in_place_of_an_idle_one_of_a_warned_gang_is_waited_for_and_no_longer() -> None:
    scene = IdleScene()
    scene.add_group(count=4)
    scene.tick()
    replace_one(scene)

    assert set(verdicts(scene.ticks(40))) == {"grace"}
    assert set(verdicts(scene.tick())) == {"stop"}
    assert len(scene.subjects()) == 2


def test_a_gang_that_grew_has_its_time_from_then_on() -> None:
    scene = IdleScene()
    scene.add_group(count=4)
    scene.tick()
    scene.join("workers", age=timedelta(0))

    scene.ticks(50)
    assert (scene.lambda_.orders, len(scene.subjects())) == ([], 2)


def test_a_gang_of_which_most_nodes_came_lately_is_judged_as_a_new_one() -> None:
    scene = IdleScene()
    scene.add_group(count=2)
    for _ in range(2):
        scene.join("workers", age=timedelta(0))

    assert set(verdicts(scene.ticks(55))) == {"grace"}
