"""Which nodes are broken, what is done about them, and how many repairs are left."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from cdk_training_cluster_cli.observe.deployed import Deployed
from cdk_training_cluster_cli.observe.status.part import Item, Moment, Part

_UNDER_REPAIR = ("cordon", "reboot", "replace", "return", "release", "wait")


class BrokenNodes(Part[Mapping[str, Any]]):
    """What the health function says."""

    key = "health"
    title = "Broken nodes"

    def ask(self, cluster: Deployed) -> Mapping[str, Any] | None:
        """Ask the health function."""
        return cluster.ask("health")

    def notes(self, answer: Mapping[str, Any], now: datetime) -> Mapping[str, str]:  # noqa: ARG002 - as for Part
        """Return which nodes are broken, and which are under repair."""
        return {
            one["instance_id"]: "under repair" if one["outcome"] in _UNDER_REPAIR else "broken"
            for one in answer["nodes"]
            if one["outcome"] != "observed"
        }

    def lines(self, answer: Mapping[str, Any], moment: Moment) -> Iterator[Item]:  # noqa: ARG002 - as for Part
        """Yield each node that the function knows something of, and the repairs that are left."""
        for one in answer["nodes"]:
            yield f"{one['node_group']}, {one['instance_id']}: {one['reason']}"
            if one["undo"]:
                yield one["undo"]
        if not answer["nodes"]:
            yield "No node reports a fault."
        if not answer["act"]:
            yield "The health function only reports."
            return
        left = ", ".join(f"{name} {count}" for name, count in answer["repairs_left"].items())
        yield f"Repairs left in the window of {answer['window_hours']:g} hours: {left}."
