"""Single nodes of a group in memory that are terminated by order."""

from typing import Any

import pytest

from cluster_common.errors import PartialFailureError
from fake_auto_scaling import FakeGroup
from power_scene import Scene

TERMINATE = "TerminateInstanceInAutoScalingGroup"
HELD = (
    "workers was given 8 nodes and its size is {} since nodes were terminated (at 2026-11-02T08:02:00Z by "
    "cluster_idle: idle for an hour): left alone until a start or stop command, or until its count in the cluster's "
    "file changes"
)


class LambdaEndedError(Exception):
    """What ends a run at once: its time is over."""


def end_run() -> None:
    """End a run at once."""
    raise LambdaEndedError


def end_before(scene: Scene, operation: str) -> None:
    """End the run that calls an operation about the node group `workers` next."""
    if operation == "PutItem":
        scene.dynamodb.before_next(operation, "workers", end_run)
    else:
        scene.auto_scaling.before_next(operation, "workers-asg", end_run)


def run_group(scene: Scene, node_group: str = "workers", **settings: Any) -> FakeGroup:
    """Deploy a group, and let its nodes launch."""
    group = scene.add(node_group, **settings)
    scene.minute(2)
    return group


def add_settled_twin(scene: Scene) -> FakeGroup:
    """Deploy a successor of the same size beside a group of 8 nodes, which the function has sized as well."""
    twin = scene.add(name="workers-asg-2", desired=8, in_service=8)
    item = scene.dynamodb.values("power#base-pod", "workers")
    owners = {**item["owners"], twin.name: item["owners"]["workers-asg"]}
    scene.dynamodb.change("power#base-pod", "workers", owners=owners)
    return twin


def middle(group: FakeGroup, number: int = 3) -> list[str]:
    """Return the ids of some nodes that Auto Scaling itself would not take first."""
    return [name for name, _ in group.nodes][1 : number + 1]


def living(group: FakeGroup) -> list[str]:
    """Return the ids of the nodes in service."""
    return [name for name, state in group.nodes if state == "InService"]


def asked(scene: Scene) -> list[str]:
    """Return the nodes that Auto Scaling was asked to terminate, in order, whatever it answered."""
    return [
        parameters["InstanceId"] for operation, parameters in scene.auto_scaling.requests if operation == TERMINATE
    ]


def terminate(scene: Scene, instance_ids: list[str], node_group: str = "workers") -> dict[str, Any]:
    """Order nodes to go, as the function does that finds idle ones, and return the answer."""
    order = {"node_groups": [node_group], "instance_ids": instance_ids, "by": "cluster_idle"}
    told: dict[str, Any] = scene.order("terminate", reason="idle for an hour", **order)[node_group]
    return told


def refused(scene: Scene, instance_ids: list[str], node_group: str = "workers") -> str:
    """Order nodes to go of which some stay, and return what failed."""
    with pytest.raises(PartialFailureError) as caught:
        terminate(scene, instance_ids, node_group)
    return str(caught.value)
