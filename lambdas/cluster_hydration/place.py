"""What one data set is hydrated with, and how its state goes from step to step."""

from dataclasses import dataclass, replace
from datetime import datetime

from cluster_contract.hydration import HydratedDataset, HydrationStep
from cluster_hydration import messages
from cluster_hydration.links import Links
from cluster_hydration.nodes import Nodes
from cluster_hydration.records import DatasetState, fingerprint


@dataclass(frozen=True, kw_only=True)
class Place:
    """What one data set is hydrated with.

    Attributes:
        dataset: Its settings.
        file_system: The file system's id.
        mount_point: Where nodes mount the file system.
        links: The file system's links.
        nodes: The cluster's nodes.
        now: The time, to the second.
    """

    dataset: HydratedDataset
    file_system: str
    mount_point: str
    links: Links
    nodes: Nodes
    now: datetime

    @property
    def directory(self) -> str:
        """The data set's directory on a node."""
        return directory(self.mount_point, self.dataset.path)

    @property
    def fingerprint(self) -> str:
        """A text that differs between settings of which each needs a run of its own."""
        return fingerprint(self.dataset, self.file_system)


def directory(mount_point: str, path: str) -> str:
    """Return where a node has a directory of the file system.

    Args:
        mount_point: Where the file system is mounted.
        path: The directory, such as `/data`.
    """
    return f"{mount_point}{path}".rstrip("/")


def fail(place: Place, state: DatasetState, reason: str, *, recovers: bool = False) -> DatasetState:
    """Return the state of a data set that cannot go on; the topic's subscribers are notified once.

    Args:
        place: The data set.
        state: How far it was.
        reason: Why, and what to do.
        recovers: Whether it goes on without an order when the link is mended.
    """
    if state.step is HydrationStep.FAILED and state.reason == reason:
        return state
    return replace(
        at(place, state, HydrationStep.FAILED),
        since=place.now,
        reason=reason,
        recovers=recovers,
        awaits_node=False,
        marked=recovers,
        notice=messages.FAILED,
        claimed=None,
    )


def at(place: Place, state: DatasetState, step: HydrationStep) -> DatasetState:
    """Return the state at a step, since now if it was at another.

    Args:
        place: The data set.
        state: How far it was.
        step: The step.
    """
    return state if state.step is step else replace(state, step=step, since=place.now)
