"""What changes between the look on which a stop is decided and the stop: it is left alone, and the others go."""

import contextlib
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from cluster_common.errors import PartialFailureError
from cluster_contract.idle import IdleScope, Policy, Signal, SignalKind
from fake_instances import FakeNode
from idle_scene import NODE_GROUP_TAG, POWER, IdleScene, verdicts


def look_again_after(scene: IdleScene, change: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> None:
    """Let something change between the look on which a stop is decided and the one right before it."""
    describe = scene.ec2.describe_instances

    def changed(**parameters: Any) -> dict[str, Any]:
        if any(one["Name"] == "instance-id" for one in parameters["Filters"]):
            change()
        return describe(**parameters)

    monkeypatch.setattr(scene.ec2, "describe_instances", changed)


@pytest.mark.parametrize(
    "change",
    [
        lambda _, node: node.tags.update({"cdk-training-cluster:keep": "true"}),
        lambda scene, node: setattr(node, "launched", scene.now),
        lambda _, node: setattr(node, "state", "shutting-down"),
        lambda _, node: node.tags.pop("cdk-training-cluster:cluster", None),
        lambda _, node: node.raw.update({"CapacityReservationId": "cr-1"}),
    ],
    ids=["kept", "restarted", "terminated", "not the cluster's", "reserved"],
)
def test_a_node_that_changed_since_the_look_is_not_stopped(
    change: Callable[[IdleScene, FakeNode], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = IdleScene()
    node, other = scene.add(), scene.add()
    scene.ticks(30)
    look_again_after(scene, lambda: change(scene, node), monkeypatch)

    found = scene.tick()
    assert other.state == "stopping"
    assert not found[node.id]["stopped"]
    asked = [parameters for operation, parameters in scene.ec2.requests if operation == "StopInstances"]
    assert [parameters["InstanceIds"] for parameters in asked] == [[other.id]]


@pytest.mark.parametrize(
    "change",
    [
        lambda scene: scene.auto_scaling.groups["workers-asg"].tags.update({"cdk-training-cluster:keep": "true"}),
        lambda scene: scene.auto_scaling.members["workers-asg"].append("i-00000000000000fff"),
        lambda scene: scene.auto_scaling.groups.clear(),
    ],
    ids=["kept", "a node came", "gone"],
)
def test_a_group_that_changed_since_the_look_is_not_stopped(
    change: Callable[[IdleScene], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = IdleScene()
    scene.add_group()
    scene.ticks(30)
    look_again_after(scene, lambda: change(scene), monkeypatch)

    scene.tick()
    assert scene.lambda_.orders == []


def test_a_wish_to_keep_the_last_of_many_groups_is_seen_while_the_others_are_stopped() -> None:
    scene = IdleScene()
    for name in "abcde":
        scene.add_group(name, count=2)
    scene.ticks(30)
    last = scene.auto_scaling.groups["e-asg"]
    for _ in range(3):
        scene.lambda_.before_next("Invoke", POWER, lambda: None)
    scene.lambda_.before_next("Invoke", POWER, lambda: last.tags.update({"cdk-training-cluster:keep": "true"}))

    scene.tick()
    assert [order["node_groups"] for order in scene.lambda_.orders] == [["a"], ["b"], ["c"], ["d"]]
    assert last.desired == 2


def test_a_wish_to_keep_a_node_is_seen_before_each_batch_of_a_stop() -> None:
    scene = IdleScene()
    *_, last = nodes = [scene.add() for _ in range(60)]
    scene.ticks(30)
    scene.ec2.before_next(
        "StopInstances", nodes[0].id, lambda: last.tags.update({"cdk-training-cluster:keep": "true"})
    )

    scene.tick()
    assert (len(scene.stopped), last.state) == (59, "running")


def test_a_look_at_one_group_reads_no_other() -> None:
    scene = IdleScene()
    scene.add_group("a", count=2)
    scene.add_group("b", count=2)
    scene.add_fleet()
    scene.ticks(30)
    scene.auto_scaling.requests.clear()

    scene.tick()
    asked = [parameters["Filters"][-1] for _, parameters in scene.auto_scaling.requests if "Filters" in parameters]
    assert [one["Values"] for one in asked] == [["base-pod"], ["a"], ["b"]]


@pytest.mark.parametrize(("throttled", "orders"), [(1, 1), (5, 1), (6, 0)])
def test_an_order_waits_while_the_power_function_does_something_else(throttled: int, orders: int) -> None:
    scene = IdleScene()
    scene.add_group(count=2)
    scene.ticks(30)
    for _ in range(throttled):
        scene.lambda_.fail_next("Invoke", "TooManyRequestsException", message="Rate Exceeded.")

    if orders:
        scene.tick()
    else:
        with pytest.raises(PartialFailureError, match=r"the power function did not stop it: .*TooManyReq"):
            scene.tick()
    assert (len(scene.lambda_.orders), scene.pauses) == (orders, [2, 4, 8, 16, 32][:throttled])


@pytest.mark.parametrize("scope", list(IdleScope))
def test_a_wish_to_keep_a_node_is_seen_while_an_order_waits(scope: IdleScope) -> None:
    scene = IdleScene(policy=Policy(scope=scope))
    node, *_ = scene.add_group(count=2)
    scene.ticks(30)
    scene.lambda_.fail_next("Invoke", "TooManyRequestsException", message="Rate Exceeded.")
    keep = {"cdk-training-cluster:keep": "true"}
    scene.pauses = cast("Any", SimpleNamespace(append=lambda _: node.tags.update(keep)))

    scene.tick()
    assert (scene.lambda_.orders, len(scene.subjects())) == ([], 1)
    assert not any("idle-stopping" in key for key in [*node.tags, *scene.auto_scaling.groups["workers-asg"].tags])


def test_a_wish_to_keep_what_nothing_owns_of_a_group_is_seen_after_the_group_was_stopped() -> None:
    scene = IdleScene()
    scene.add_group(count=2)
    kept = scene.add(tags={NODE_GROUP_TAG: "workers"})
    scene.ticks(30)
    scene.lambda_.before_next("Invoke", POWER, lambda: kept.tags.update({"cdk-training-cluster:keep": "true"}))

    found = scene.tick()
    assert (len(scene.stopped), kept.state, found[kept.id]["stopped"]) == (2, "running", False)


@pytest.mark.parametrize("is_read", [True, False])
def test_a_session_that_was_opened_since_the_look_keeps_a_node(
    is_read: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = IdleScene(policy=Policy(signals=(Signal(kind=SignalKind.SESSION),)))
    node = scene.add()
    scene.ticks(30)

    def change() -> None:
        if is_read:
            scene.ssm.targets.append(node.id)
        else:
            scene.ssm.fail_next("DescribeSessions", "AccessDeniedException")

    look_again_after(scene, change, monkeypatch)
    with contextlib.suppress(PartialFailureError):
        scene.tick()
    assert node.state == "running"


def test_an_order_whose_answer_is_lost_is_not_given_again() -> None:
    scene = IdleScene()
    scene.add_group(count=2)
    scene.ticks(30)
    scene.lambda_.fail_next("Invoke", "ServiceException")

    with pytest.raises(PartialFailureError, match="workers: the power function did not stop it"):
        scene.tick()
    assert [operation for operation, _ in scene.lambda_.requests] == ["Invoke"]


def test_one_denied_node_keeps_no_other_though_a_run_stops_one_at_a_time() -> None:
    scene = IdleScene(max_stops=1)
    denied = scene.add(stop_refusal=("UnauthorizedOperation", "You are not authorized to perform this operation."))
    others = [scene.add() for _ in range(3)]
    scene.ticks(30)
    for _ in range(4):
        with contextlib.suppress(PartialFailureError):
            scene.tick()

    assert scene.stopped == {node.id for node in others}
    # A node that may be stopped again is stopped at once.
    denied.stop_refusal = None
    assert verdicts(scene.tick()) == ["stop"]
