"""What changes between the look on which a stop is decided and the stop: it is left alone, and the others go."""

from collections.abc import Callable
from typing import Any

import pytest

from fake_instances import FakeNode
from idle_scene import IdleScene

STOP_AT = "cdk-training-cluster:idle-stop-at"


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
        lambda _, node: node.tags.pop(STOP_AT, None),
        lambda scene, node: setattr(node, "launched", scene.now),
        lambda _, node: setattr(node, "state", "shutting-down"),
        lambda _, node: node.tags.pop("cdk-training-cluster:cluster", None),
        lambda _, node: node.raw.update({"CapacityReservationId": "cr-1"}),
    ],
    ids=["kept", "tag removed", "restarted", "terminated", "not the cluster's", "reserved"],
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
        lambda scene: scene.auto_scaling.groups["workers-asg"].tags.pop(STOP_AT, None),
        lambda scene: scene.auto_scaling.members["workers-asg"].append("i-00000000000000fff"),
        lambda scene: scene.auto_scaling.groups.clear(),
    ],
    ids=["kept", "tag removed", "a node came", "gone"],
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
