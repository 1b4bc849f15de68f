"""What owns the nodes of a cluster, as the function deals with it."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from cluster_common.owners.groups import Activity, OwnedGroup
from cluster_common.owners.kinds import OwnerTraits


class OwnerBusyError(Exception):
    """Say that an owner takes no new size at the moment. Nothing was changed."""


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What was read of the groups of one kind of owner.

    Attributes:
        groups: The groups, sorted by node group and name.
        unread: Why a node group could not be read, by its name.
    """

    groups: list[OwnedGroup]
    unread: Mapping[str, Exception] = field(default_factory=dict)


class NodeOwner(Protocol):
    """A service that owns nodes: it launches and terminates them until there are as many as it was given."""

    @property
    def traits(self) -> OwnerTraits:
        """What kind of owner it is."""

    @property
    def node_groups(self) -> Collection[str]:
        """The node groups that it should own, by the cluster's file."""

    def read(self, node_group: str | None = None) -> Reading:
        """Read the cluster's groups, with their tags.

        Args:
            node_group: The one node group whose groups are read. Default: - those of all of them.
        """

    def describe(self, group: OwnedGroup) -> OwnedGroup | None:
        """Read one group again, with its nodes. None: it is gone, or another cluster's."""

    def read_activities(self, group: OwnedGroup, since: datetime | None) -> tuple[Activity, ...]:
        """Read what it last did with a group, newest first; of some only what was after a time."""

    def set_size(self, group: OwnedGroup, size: int) -> None:
        """Give a group a size, also one that it seems to have: what was read of it may be old.

        Raises:
            OwnerBusyError: It takes none at the moment.
        """

    def resume_launching(self, group: OwnedGroup) -> None:
        """Let a group launch nodes again."""

    def retire_warm_nodes(self, group: OwnedGroup) -> None:
        """Terminate the nodes of its warm pool that an old launch template version has launched."""

    def terminate(self, group: OwnedGroup, instance_id: str) -> None:
        """Terminate one node of a group and lower the group's size by one, where its traits allow it."""

    def cordon(self, group: OwnedGroup, instance_id: str) -> None:
        """Take one node out of service, in a group whose size stays, where its traits allow that.

        Raises:
            OwnerBusyError: It takes no change at the moment.
        """

    def uncordon(self, group: OwnedGroup, instance_id: str) -> None:
        """Put one node back into service, likewise."""

    def reboot(self, group: OwnedGroup, instance_id: str) -> None:
        """Reboot one node that is out of service, where its traits allow that."""

    def replace(self, group: OwnedGroup, instance_id: str) -> None:
        """Terminate one node; the group keeps its size, and gets another one where it should have one.

        Raises:
            OwnerBusyError: It takes no change at the moment.
        """

    def tag(self, group: OwnedGroup, tags: Mapping[str, str]) -> None:
        """Write tags on what owns a group's nodes only, not on the nodes it launches."""

    def untag(self, group: OwnedGroup, keys: Iterable[str]) -> None:
        """Take tags away from what owns a group's nodes."""


class Owners:
    """All owners of the cluster's nodes."""

    def __init__(self, owners: Iterable[NodeOwner]) -> None:
        self._owners = {owner.traits.key: owner for owner in owners}

    def __iter__(self) -> Iterator[NodeOwner]:
        """Yield each kind of owner."""
        return iter(self._owners.values())

    def of(self, group: OwnedGroup) -> NodeOwner:
        """Return the owner of a group's nodes."""
        return self._owners[group.owner.key]
