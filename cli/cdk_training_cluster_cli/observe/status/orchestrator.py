"""The orchestrator that runs jobs, and how to reach it."""

from collections.abc import Iterator, Mapping
from typing import Any

from cdk_training_cluster_cli.observe.deployed import Deployed
from cdk_training_cluster_cli.observe.status.part import Item, Moment, Part


class Orchestrator(Part[Mapping[str, Any]]):
    """What the deployment wrote down of it."""

    key = "orchestrator"
    title = "Jobs"

    def ask(self, cluster: Deployed) -> Mapping[str, Any] | None:
        """Read the cluster's description. None: nothing runs jobs."""
        said = cluster.description
        return {"orchestrator": said.orchestrator, "access": dict(said.access)} if said.orchestrator else None

    def lines(self, answer: Mapping[str, Any], moment: Moment) -> Iterator[Item]:  # noqa: ARG002 - of any time
        """Yield what runs jobs, and how it is reached."""
        yield f"run on {answer['orchestrator']}"
        yield from (f"{name}: {value}" for name, value in sorted(answer["access"].items()))
