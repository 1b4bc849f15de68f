"""What owns the nodes of a cluster, as the function deals with it."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from cluster_power.groups import Activity, Group
from cluster_power.records import Record


class OwnerBusyError(Exception):
    """Say that an owner takes no new size at the moment. Nothing was changed."""


@dataclass(frozen=True, kw_only=True)
class Glance:
    """The little of a group that decides whether it is still as it was read.

    Attributes:
        record: What the function wrote on it.
        size: How many nodes it was given.
        busy: Whether it may not show yet what it was given last.
        counted: How many nodes its size counts; they come and go at any time.
    """

    record: Record
    size: int
    busy: bool = False
    counted: int = field(default=0, compare=False)


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What was read of the groups of one kind of owner.

    Attributes:
        groups: The groups, sorted by node group and name.
        unread: Why a node group could not be read, by its name.
    """

    groups: list[Group]
    unread: Mapping[str, Exception] = field(default_factory=dict)


class Owner(Protocol):
    """A service that owns nodes: it launches and terminates them until there are as many as it was told."""

    @property
    def node_groups(self) -> Collection[str]:
        """The node groups that it should own, by the cluster's file."""

    def read(self) -> Reading:
        """Read the cluster's groups, with what their tags remember."""

    def glance(self, group: Group) -> Glance | None:
        """Read again what decides about one group. None: it is gone, or another cluster's."""

    def look(self, group: Group) -> Group | None:
        """Read one group again, with its nodes. None: it is gone, or another cluster's."""

    def read_activities(self, group: Group) -> tuple[Activity, ...]:
        """Read what it last did with a group, newest first."""

    def set_size(self, group: Group, size: int) -> None:
        """Give a group a size, if it does not have it.

        Raises:
            OwnerBusyError: It takes none at the moment.
        """

    def resume_launching(self, group: Group) -> None:
        """Let a group launch nodes again."""

    def retire_warm_nodes(self, group: Group) -> None:
        """Terminate the nodes of its warm pool that an old launch template version has launched."""

    def write_tags(self, group: Group, tags: Mapping[str, str]) -> None:
        """Write tags on what owns a group's nodes only, not on the nodes it launches."""
