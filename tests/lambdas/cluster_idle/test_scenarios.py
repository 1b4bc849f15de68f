"""Clusters as they live: who is warned, stopped and kept, tick by tick."""

from dataclasses import replace
from datetime import timedelta

import pytest

from cluster_common.actions import Action
from cluster_common.errors import PartialFailureError
from cluster_contract.idle import IdleScope, Policy
from idle_scene import IdleScene, verdicts

NOTE = "cdk-training-cluster:idle-note"


def test_an_idle_node_is_warned_of_and_stopped_half_an_hour_later() -> None:
    scene = IdleScene()
    node = scene.add()

    assert verdicts(scene.tick()) == ["warn"]
    assert scene.warnings[node.id]["stop_at"] == "2026-11-02T08:37:00Z"
    assert node.tags[NOTE].startswith("idle since 2026-11-02T06:30:00Z - stopped at 2026-11-02T08:37:00Z unless it")
    assert scene.subjects() == ["base-pod: 1 node idle, stopped in 30 minutes"]
    assert verdicts(scene.ticks(25)) == ["warn"]
    assert node.state == "running"
    found = scene.tick()
    assert (verdicts(found), node.state) == (["stop"], "stopping")
    assert found[node.id]["stopped"]
    assert scene.subjects()[1:] == ["base-pod: 1 node stopped: idle"]
    assert (scene.tick(), scene.warnings) == ({}, {})


def test_a_working_node_is_left_alone() -> None:
    scene = IdleScene()
    node = scene.add(load=87)

    assert verdicts(scene.ticks(180)) == ["busy"]
    assert (node.state, scene.sns.messages) == ("running", [])
    assert not [call for call in scene.calls if any(word in call.action for word in ("Tags", "Stop", "Write"))]


def test_work_voids_a_warning() -> None:
    scene = IdleScene()
    node = scene.add()
    scene.ticks(15)
    node.load = 50
    assert verdicts(scene.tick()) == ["busy"]
    assert (scene.warnings, NOTE in node.tags) == ({}, False)
    node.load = 0

    assert verdicts(scene.ticks(60)) == ["busy"]
    assert verdicts(scene.tick()) == ["warn"]
    assert verdicts(scene.ticks(25)) == ["warn"]
    assert verdicts(scene.tick()) == ["stop"]


def test_a_keep_tag_keeps_a_node() -> None:
    scene = IdleScene()
    node = scene.add(tags={"cdk-training-cluster:keep": "job 17"})

    assert verdicts(scene.ticks(120)) == ["keep"]
    assert scene.stopped == set()
    assert scene.run()[node.id]["reason"] == f"{node.id} has the tag cdk-training-cluster:keep"


def test_keep_until_expires_by_itself_and_then_a_new_warning_is_sent() -> None:
    scene = IdleScene()
    node = scene.add()
    scene.ticks(20)
    node.tags["cdk-training-cluster:keep-until"] = "2026-11-02T10:00Z"

    assert verdicts(scene.tick()) == ["keep"]
    assert (scene.warnings, NOTE in node.tags) == ({}, False)
    assert verdicts(scene.ticks(90)) == ["keep"]
    assert verdicts(scene.tick()) == ["warn"]
    assert verdicts(scene.ticks(30)) == ["stop"]


def test_a_stale_idle_point_and_then_silence_never_stop_a_node() -> None:
    scene = IdleScene()
    node = scene.add()
    scene.tick()
    node.load = None

    assert verdicts(scene.tick()) == ["warn"]
    assert verdicts(scene.ticks(240)) == ["unknown"]
    assert node.state == "running"


def test_a_node_that_never_reported_is_unknown_when_it_should_have() -> None:
    scene = IdleScene()
    node = scene.add(load=None, age=timedelta(minutes=80))

    found = scene.tick()
    assert verdicts(found) == ["grace"]
    found = scene.ticks(10)
    assert verdicts(found) == ["unknown"]
    assert found[node.id]["reason"] == f"{node.id} may work: CloudWatch has no data for its utilization"


def test_a_young_node_has_its_grace() -> None:
    scene = IdleScene()
    scene.add(age=timedelta(minutes=10))
    pending = scene.add(age=timedelta(0), load=None)
    pending.state = "pending"

    assert verdicts(scene.tick()) == ["grace", "grace"]


def test_a_gang_is_stopped_as_one_by_the_power_function() -> None:
    scene = IdleScene()
    nodes = scene.add_group(count=4)

    assert verdicts(scene.tick()) == ["warn"] * 4
    assert list(scene.warnings) == ["workers"]
    assert [NOTE in tags for tags in (scene.auto_scaling.groups["workers-asg"].tags, nodes[0].tags)] == [True, False]
    assert verdicts(scene.ticks(30)) == ["stop"] * 4
    assert scene.lambda_.orders == [
        {
            "action": "stop",
            "node_groups": ["workers"],
            "all_or_nothing": True,
            "expected_size": 4,
            "expected_instance_ids": [node.id for node in nodes],
            "reason": "idle since 2026-11-02 06:30 UTC",
        }
    ]
    assert not [call for call in scene.calls if "StopInstances" in call.action]
    assert scene.tick() == {}
    assert NOTE not in scene.auto_scaling.groups["workers-asg"].tags


@pytest.mark.parametrize(
    ("load", "verdict", "words"),
    [
        (90.0, "busy", "1 of the 4 nodes of workers work"),
        (None, "unknown", "1 of the 4 nodes of workers have no complete data"),
    ],
)
def test_one_node_that_works_or_is_not_seen_keeps_its_gang(load: float | None, verdict: str, words: str) -> None:
    scene = IdleScene()
    *idle, last = scene.add_group(count=4)
    last.points.clear()
    last.load = load

    found = scene.ticks(180)
    assert verdicts(found) == [verdict] * 4
    assert words in found[idle[0].id]["reason"]
    assert scene.lambda_.orders == []


def test_a_keep_tag_on_the_group_keeps_all_of_it() -> None:
    scene = IdleScene()
    nodes = scene.add_group(count=2)
    scene.auto_scaling.groups["workers-asg"].tags["cdk-training-cluster:keep-until"] = "2026-11-03"

    found = scene.ticks(120)
    assert verdicts(found) == ["keep", "keep"]
    assert found[nodes[0].id]["reason"] == (
        f"{nodes[0].id} of workers belongs to the Auto Scaling group workers-asg, which has the tag "
        "cdk-training-cluster:keep-until, which ends at 2026-11-04T12:00:00Z"
    )


def test_a_new_node_voids_the_warning_of_its_gang() -> None:
    scene = IdleScene()
    scene.add_group(count=2)
    scene.tick()
    scene.join("workers", age=timedelta(0))

    assert verdicts(scene.ticks(30)) == ["grace"] * 3
    assert scene.lambda_.orders == []


def test_by_choice_each_node_of_a_group_goes_by_itself() -> None:
    scene = IdleScene(policy=Policy(scope=IdleScope.NODE))
    idle, busy = scene.add_group("lab", count=2)
    busy.load, busy.points = 70, dict.fromkeys(busy.points, 70.0)

    assert verdicts(scene.tick()) == ["warn", "busy"]
    assert (list(scene.warnings), NOTE in idle.tags) == ([idle.id], True)
    assert verdicts(scene.ticks(30)) == ["stop", "busy"]
    (order,) = scene.lambda_.orders
    assert (order["action"], order["node_groups"], order["instance_ids"]) == ("terminate", ["lab"], [idle.id])


def test_a_spot_fleet_is_stopped_through_the_power_function() -> None:
    scene = IdleScene()
    scene.add_fleet(count=2)

    assert verdicts(scene.tick()) == ["warn", "warn"]
    assert NOTE in scene.ec2.fleets["sfr-extras"].tags
    assert verdicts(scene.ticks(30)) == ["stop", "stop"]
    assert [order["node_groups"] for order in scene.lambda_.orders] == [["extras"]]


def test_a_dry_run_says_everything_and_stops_nothing() -> None:
    scene = IdleScene(policy=Policy(dry_run=True))
    alone, *gang = scene.add(), *scene.add_group(count=2)

    found = scene.ticks(90)
    assert verdicts(found) == ["stop"] * 3
    assert scene.stopped == set()
    assert scene.lambda_.orders == []
    assert not [call for call in scene.calls if "StopInstances" in call.action]
    assert len(scene.subjects()) == 2
    assert all(subject.startswith("[dry run] base-pod: ") for subject in scene.subjects())
    assert all("This is a dry run: nothing is stopped." in text for text in scene.texts())
    assert alone.tags[NOTE].startswith("dry run - ")
    assert found[gang[0].id]["reason"].endswith("since the warning: without dry_run it would be stopped now")


def test_the_longest_idle_go_first_and_the_rest_are_deferred() -> None:
    scene = IdleScene(max_stops=1)
    later = scene.add()
    first, second, third = (scene.add() for _ in range(3))
    later.points[scene.now - timedelta(minutes=57)] = 50  # It worked one period longer than the others.

    scene.tick()
    found = scene.ticks(30)
    assert verdicts(found) == ["warn", "stop", "deferred", "deferred"]
    assert found[third.id]["reason"] == (
        f"{third.id} is idle: its utilization has been below 5 % for 60 minutes; it waits for a later "
        "run: one run stops at most 1, the longest idle first"
    )
    late = "2 more are due and wait for a later run: one run stops at most 1, the longest idle first."
    assert any(text.endswith(late) for text in scene.texts())
    assert verdicts(scene.tick()) == ["deferred", "stop", "deferred"]
    assert verdicts(scene.tick()) == ["deferred", "stop"]
    assert verdicts(scene.tick()) == ["stop"]
    assert scene.stopped == {first.id, second.id, third.id, later.id}


def test_a_gang_larger_than_the_limit_goes_whole() -> None:
    scene = IdleScene(max_stops=2)
    scene.add_group(count=4)
    scene.tick()

    assert verdicts(scene.ticks(30)) == ["stop"] * 4


def test_the_circuit_breaker_holds_everything_back_when_most_of_the_cluster_goes_dark() -> None:
    scene = IdleScene()
    idle = scene.add()
    others = [scene.add(load=80) for _ in range(3)]
    scene.ticks(25)
    for node in others:
        node.load = None
    scene.tick()
    found = scene.tick()

    assert verdicts(found) == ["deferred", "unknown", "unknown", "unknown"]
    assert scene.summary["breaker"] == (
        "3 of 4 nodes had complete data 15 minutes ago and have none now, more than 50%: the function warns of no "
        "node and stops none"
    )
    assert idle.state == "running"
    assert verdicts(scene.ticks(10)) == ["deferred", "unknown", "unknown", "unknown"]
    assert verdicts(scene.tick()) == ["stop", "unknown", "unknown", "unknown"]


def test_status_changes_nothing() -> None:
    scene = IdleScene()
    scene.add()
    scene.add_group()

    assert verdicts(scene.run(Action.STATUS)) == ["warn"] * 5
    assert {call.action for call in scene.calls} == {
        "autoscaling:DescribeAutoScalingGroups",
        "cloudwatch:GetMetricData",
        "dynamodb:Query",
        "ec2:DescribeInstances",
    }


def test_a_policy_that_is_off_looks_at_nothing() -> None:
    scene = IdleScene(policy=replace(Policy(), off=True))
    scene.add()

    assert verdicts(scene.tick()) == ["keep"]
    assert "cloudwatch:GetMetricData" not in {call.action for call in scene.calls}


def test_without_a_message_nothing_is_stopped() -> None:
    scene = IdleScene()
    node = scene.add()
    scene.sns.fails = True
    for _ in range(12):
        with pytest.raises(PartialFailureError, match="the notification could not be published"):
            scene.tick()

    assert (node.state, "idle_until" in scene.warnings[node.id], NOTE in node.tags) == ("running", False, False)
