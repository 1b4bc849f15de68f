"""What is known of a cluster at a moment: every part is asked at once; what cannot be read is said to be unknown."""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from cdk_training_cluster_cli.observe.deployed import Deployed
from cdk_training_cluster_cli.observe.status.alarms import Alarms
from cdk_training_cluster_cli.observe.status.checkpoints import Checkpoints
from cdk_training_cluster_cli.observe.status.groups import NodeGroups
from cdk_training_cluster_cli.observe.status.health import BrokenNodes
from cdk_training_cluster_cli.observe.status.hydration import Hydration
from cdk_training_cluster_cli.observe.status.idle import IdleClock
from cdk_training_cluster_cli.observe.status.nodes import Nodes
from cdk_training_cluster_cli.observe.status.orchestrator import Orchestrator
from cdk_training_cluster_cli.observe.status.part import Item, Moment, Part
from cdk_training_cluster_cli.observe.status.runs import Runs
from cdk_training_cluster_cli.observe.status.spend import SpendSoFar

PARTS: Sequence[Part[Any]] = (
    Alarms(),
    Orchestrator(),
    NodeGroups(),
    Nodes(),
    Runs(),
    BrokenNodes(),
    IdleClock(),
    Hydration(),
    Checkpoints(),
    SpendSoFar(),
)
"""The parts of a status, in the order in which they are shown."""


@dataclass(frozen=True, kw_only=True)
class Status:
    """What is known of a cluster.

    Attributes:
        cluster: The cluster, and when AWS was asked.
        answers: What each part found, by its key; None where the cluster has nothing of the kind.
        unknown: Why a part found nothing, by its key.
        parts: The parts.
    """

    cluster: Deployed
    answers: Mapping[str, Any]
    unknown: Mapping[str, str]
    parts: Sequence[Part[Any]] = PARTS

    @property
    def waits(self) -> bool:
        """Whether something is on its way that `--wait` waits for."""
        return any(part.waits(answer) for part, answer in self._known())

    @property
    def has_failed(self) -> bool:
        """Whether something of the cluster cannot go on."""
        return any(part.has_failed(answer) for part, answer in self._known())

    def values(self) -> Mapping[str, object]:
        """Return what a program reads: each part's values, null where there is nothing or it is unknown."""
        known = {part.key: part.values(answer) for part, answer in self._known()}
        return {
            "cluster": self.cluster.name,
            "region": self.cluster.target.region,
            "time": self.cluster.now.isoformat(),
            **{part.key: known.get(part.key) for part in self.parts},
            "unknown": self.unknown,
        }

    def sections(self, *, all: bool = False) -> Iterator[tuple[str, list[Item]]]:
        """Yield what a person reads: the heading of each part with its lines.

        Args:
            all: Whether every node is shown.
        """
        notes: dict[str, str] = {}
        for part, answer in self._known():
            notes |= part.notes(answer, self.cluster.now)
        moment = Moment(now=self.cluster.now, notes=notes, all=all)
        for part in self.parts:
            if part.key in self.unknown:
                yield part.title, [f"unknown: {self.unknown[part.key]}"]
            elif self.answers[part.key] is not None:
                yield part.title, list(part.lines(self.answers[part.key], moment))

    def _known(self) -> Iterator[tuple[Part[Any], Any]]:
        for part in self.parts:
            if self.answers.get(part.key) is not None:
                yield part, self.answers[part.key]


def ask_status(cluster: Deployed, parts: Sequence[Part[Any]] = PARTS) -> Status:
    """Ask AWS what is known of a cluster.

    Args:
        cluster: The cluster.
        parts: What is asked. Default: - everything
    """
    answers: dict[str, Any] = {}
    unknown: dict[str, str] = {}
    with ThreadPoolExecutor(max_workers=len(parts)) as threads:
        asked = {part.key: threads.submit(part.ask, cluster) for part in parts}
        for key, one in asked.items():
            try:
                answers[key] = one.result()
            except ValueError as error:
                unknown[key] = str(error)
    return Status(cluster=cluster, answers=answers, unknown=unknown, parts=parts)
