"""Stops of groups in memory that happen at once or not at all."""

from typing import Any

import pytest

from cluster_common.errors import PartialFailureError
from power_scene import Scene

IDLE = {"by": "cluster_idle", "reason": "idle for an hour"}
STOP_NOW = {"all_or_nothing": True} | IDLE


def stop_now(scene: Scene, node_group: str = "workers", **expected: object) -> dict[str, Any]:
    """Order a node group to stop now or never, as the function does that finds idle nodes; return the answer."""
    told: dict[str, Any] = scene.order("stop", node_groups=[node_group], **STOP_NOW, **expected)[node_group]
    return told


def failed_stop(scene: Scene, node_group: str = "workers") -> str:
    """Order the same where something fails, and return what."""
    with pytest.raises(PartialFailureError) as caught:
        stop_now(scene, node_group)
    return str(caught.value)


def stopped(scene: Scene) -> list[str]:
    """Return the node groups that are recorded as stopped."""
    return scene.stopped()
