"""Lives in which what matters is hidden at the moment of the look: by a node, an owner, or a policy."""

from dataclasses import replace
from datetime import timedelta
from io import BytesIO
from typing import Any

import pytest

from cluster_common.errors import PartialFailureError
from cluster_contract.idle import IdleScope, Policy
from fake_service import refusal
from idle_scene import NODE_GROUP_TAG, IdleScene, verdicts

KEEP = "cdk-training-cluster:keep"
KEEP_UNTIL = "cdk-training-cluster:keep-until"
WORKERS = {NODE_GROUP_TAG: "workers"}


def tick(scene: IdleScene) -> dict[str, dict[str, Any]]:
    """Run the function five minutes later, whether it fails or not."""
    try:
        return scene.tick()
    except PartialFailureError:
        return {}


def test_a_working_node_that_lost_its_tag_keeps_what_works_with_its_group_and_nothing_owns() -> None:
    scene = IdleScene()
    working, *_ = scene.add_group(count=3)
    alone = scene.add(tags=dict(WORKERS))
    working.load, working.points = 95, dict.fromkeys(working.points, 95.0)
    del working.tags["cdk-training-cluster:cluster"]

    assert set(verdicts(scene.ticks(60))) == {"unknown"}
    assert (alone.state, scene.lambda_.orders) == ("running", [])


def test_a_group_that_cannot_be_read_keeps_what_works_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    scene = IdleScene()
    scene.add_group(count=3)
    alone = scene.add(tags=dict(WORKERS))
    scene.ticks(30)

    def throttled(**_: object) -> None:
        raise refusal("DescribeAutoScalingGroups", "Throttling", "Rate exceeded")

    monkeypatch.setattr(scene.auto_scaling, "describe_groups", throttled)
    assert tick(scene) == {}
    assert (alone.state, scene.lambda_.orders) == ("running", [])


def test_a_wish_to_keep_one_node_voids_the_warning_though_another_is_not_seen() -> None:
    scene = IdleScene()
    kept, dark, *_ = scene.add_group(count=4)
    for _ in range(4):
        scene.add(load=80)
    scene.tick()
    kept.tags[KEEP] = "true"
    scene.cloudwatch.statuses[dark.id] = "PartialData"
    scene.ticks(30)
    scene.cloudwatch.statuses.clear()
    del kept.tags[KEEP]

    assert verdicts(scene.tick())[:4] == ["warn"] * 4
    assert scene.lambda_.orders == []


def test_a_wish_to_keep_the_group_that_ended_unseen_voids_the_warning_of_each_node() -> None:
    scene = IdleScene(policy=Policy(scope=IdleScope.NODE))
    scene.add_group("lab", count=1)
    scene.tick()
    scene.auto_scaling.groups["lab-asg"].tags[KEEP_UNTIL] = "2026-11-02T08:30Z"
    scene.pass_time(timedelta(minutes=40))

    assert verdicts(scene.run()) == ["warn"]


def test_a_wish_to_keep_a_node_that_is_not_stopped_voids_the_warning_of_the_others() -> None:
    scene = IdleScene()
    scene.add(tags=dict(WORKERS))
    reserved = scene.add(tags=dict(WORKERS), raw={"CapacityReservationId": "cr-1"})
    scene.tick()
    reserved.tags[KEEP_UNTIL] = "2026-11-02T08:30Z"
    scene.pass_time(timedelta(minutes=40))

    assert verdicts(scene.run()) == ["warn", "reserved"]


def test_a_kept_node_of_another_service_keeps_those_it_works_with() -> None:
    scene = IdleScene()
    scene.add(tags=dict(WORKERS))
    scene.add(tags={**WORKERS, KEEP: "true"}, raw={"Operator": {"Managed": True}})

    assert verdicts(scene.ticks(60)) == ["keep", "managed"]


def test_after_a_warning_and_a_dry_run_a_new_warning_is_sent_before_a_stop() -> None:
    scene = IdleScene()
    node = scene.add()
    scene.ticks(10)
    scene.policy = replace(scene.policy, dry_run=True)
    scene.ticks(55)
    scene.policy = replace(scene.policy, dry_run=False)

    assert verdicts(scene.tick()) == ["warn"]
    assert node.state == "running"


def test_a_node_that_came_into_a_group_since_the_warning_is_warned_of_anew() -> None:
    scene = IdleScene(policy=Policy(scope=IdleScope.NODE))
    scene.add_group("lab", count=0)
    node = scene.add(tags={NODE_GROUP_TAG: "lab"})
    scene.ticks(25)
    node.tags["aws:autoscaling:groupName"] = "lab-asg"
    scene.auto_scaling.members["lab-asg"].append(node.id)
    # Auto Scaling raises the desired capacity by what is attached.
    scene.auto_scaling.groups["lab-asg"].desired = 1

    assert verdicts(scene.ticks(10)) == ["warn"]
    assert scene.subjects() == [
        "base-pod: 1 node idle, stopped in 30 minutes",
        "base-pod: 1 node idle, terminated in 30 minutes",
    ]


def test_where_the_power_function_refuses_what_nothing_owns_stays_too() -> None:
    scene = IdleScene()
    scene.add_group(count=2)
    alone = scene.add(tags=dict(WORKERS))
    scene.tick()
    scene.ticks(25)
    scene.lambda_.blocked = "workers changed while the function looked"
    tick(scene)

    assert alone.state == "running"
    assert len(scene.subjects()) == 1


@pytest.mark.parametrize(
    "answer",
    [
        refusal("Invoke", "ServiceException", "no answer"),
        {"FunctionError": "Unhandled", "Payload": BytesIO(b'{"errorMessage": "extras: could not be read"}')},
        {"Payload": BytesIO(b'{"node_groups": [{"desired": 2, "taken_back": true, "reason": "a stale read"}]}')},
    ],
    ids=["no answer", "a failure elsewhere", "a stale read"],
)
def test_a_group_at_zero_is_reported_as_stopped_whatever_the_power_function_says(
    answer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = IdleScene()
    scene.add_group(count=2)
    scene.ticks(30)
    invoke = scene.lambda_.invoke

    def late(**parameters: Any) -> Any:
        invoke(**parameters)
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(scene.lambda_, "invoke", late)
    with pytest.raises(PartialFailureError, match=r"workers: its desired capacity is 0\. The power function also"):
        scene.tick()

    assert scene.subjects()[-1] == "base-pod: 2 nodes terminated: idle"


@pytest.mark.parametrize("answer", [b"null", b"[]", b'{"node_groups": null}', b'{"node_groups": [null]}', b"oops"])
def test_an_answer_that_makes_no_sense_is_a_failure_and_stops_nothing_else(
    answer: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = IdleScene()
    scene.add_group(count=2)
    alone = scene.add()
    scene.ticks(30)
    monkeypatch.setattr(scene.lambda_, "invoke", lambda **_: {"StatusCode": 200, "Payload": BytesIO(answer)})

    with pytest.raises(PartialFailureError, match="workers: the power function"):
        scene.tick()
    assert alone.state == "stopping"
    assert scene.subjects()[-1] == "base-pod: 1 node stopped: idle"


def test_a_node_that_is_due_and_does_not_stop_is_counted(capsys: pytest.CaptureFixture[str]) -> None:
    scene = IdleScene()
    scene.add(stop_refusal=("IncorrectInstanceState", "The instance is not in a state from which it can be stopped."))
    scene.ticks(60)

    assert '"IdleStuckNodes":[1.0]' in capsys.readouterr().out.splitlines()[-2].replace(" ", "")
