"""What the adapters share whose owners the settings name by their ids."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from cluster_common.errors import AWS_ERRORS
from cluster_common.owners.groups import Activity, OwnedGroup
from cluster_common.owners.kinds import OwnerTraits
from cluster_common.owners.node_owner import Reading
from cluster_contract.owners import OwnerSettings
from cluster_contract.tags import CLUSTER_TAG


@dataclass(frozen=True, kw_only=True)
class Named:
    """What the settings say of the owners of one kind.

    Attributes:
        cluster: The value of the tag on the owners.
        owners: The owner of each node group's nodes, by its name.
        now: The time.
        counts: How many nodes each node group has by the cluster's file, as far as that is known.
        tag: The key of that tag.
    """

    cluster: str
    owners: Mapping[str, OwnerSettings]
    now: datetime
    counts: Mapping[str, int] = field(default_factory=dict)
    tag: str = CLUSTER_TAG


class NamedOwners(ABC):
    """The owners of one kind that the settings name, if they carry the cluster's tag."""

    traits: OwnerTraits

    def __init__(self, named: Named) -> None:
        """Know the owners.

        Args:
            named: What the settings say of them.
        """
        self._cluster, self._tag = named.cluster, named.tag
        self._owners, self._counts, self._now = named.owners, named.counts, named.now
        self._sizes: dict[str, int] = {}

    @property
    def node_groups(self) -> Collection[str]:
        """The node groups that the settings give such an owner."""
        return self._owners.keys()

    def read(self, node_group: str | None = None) -> Reading:
        """Read the owners that there are, or that of one node group, and the nodes of each."""
        groups: list[OwnedGroup] = []
        unread: dict[str, Exception] = {}
        for name in sorted(name for name in self._owners if node_group in (None, name)):
            try:
                groups += filter(None, [self._read_own(name)])
            except AWS_ERRORS as error:
                unread[name] = error
        return Reading(groups=groups, unread=unread)

    def describe(self, group: OwnedGroup) -> OwnedGroup | None:
        """Read one again, with its nodes."""
        return self._read_own(group.node_group) if group.node_group in self._owners else None

    def read_activities(
        self,
        group: OwnedGroup,  # noqa: ARG002 (adapters whose service says what it did read it)
        since: datetime | None,  # noqa: ARG002
    ) -> tuple[Activity, ...]:
        """Return nothing: the service does not say what it did."""
        return ()

    def set_size(self, group: OwnedGroup, size: int) -> None:
        """Give an owner a size; one that it was just read to have is not sent again.

        A service that updates an owner shows that it does: what it shows otherwise is no older size.

        Raises:
            OwnerBusyError: It takes none at the moment.
        """
        if self._sizes.get(group.name) != size:
            self._set_size(group, size)

    def resume_launching(self, group: OwnedGroup) -> None:  # noqa: B027 (most cannot be suspended)
        """Do nothing: its launches cannot be suspended."""

    def retire_warm_nodes(self, group: OwnedGroup) -> None:  # noqa: B027 (none has a warm pool)
        """Do nothing: it has no warm pool that the power function renews."""

    def terminate(self, group: OwnedGroup, instance_id: str) -> None:
        """Refuse: the service chooses itself which nodes it terminates, as its traits say.

        Raises:
            NotImplementedError: Always.
        """
        raise NotImplementedError(
            f"{self.traits.service} chooses itself which nodes of {group.name} it terminates, and not {instance_id}"
        )

    def cordon(self, group: OwnedGroup, instance_id: str) -> None:  # noqa: B027 (the node takes no job by itself)
        """Do nothing: a faulty node takes no job by itself."""

    def uncordon(self, group: OwnedGroup, instance_id: str) -> None:  # noqa: B027 (likewise)
        """Do nothing: a node takes jobs again by itself."""

    def reboot(self, group: OwnedGroup, instance_id: str) -> None:
        """Refuse, as its traits say.

        Raises:
            NotImplementedError: Always.
        """
        raise NotImplementedError(f"{instance_id} of {group.name} is not rebooted: {self.traits.service} has it")

    def replace(self, group: OwnedGroup, instance_id: str) -> None:
        """Refuse: the service repairs its nodes itself, as its traits say.

        Raises:
            NotImplementedError: Always.
        """
        raise NotImplementedError(f"{instance_id} of {group.name} is not replaced: {self.traits.own_repair}")

    def _read_own(self, name: str) -> OwnedGroup | None:
        """Read what owns a node group's nodes. None: it is gone, or another cluster's."""
        found = self._read_group(name, self._owners[name])
        if found is None or found.tags.get(self._tag) != self._cluster:
            return None
        self._sizes.pop(found.name, None)
        if not found.busy and (found.scheduler_sized or found.reset_to is None):
            self._sizes[found.name] = found.desired
        return found

    @abstractmethod
    def _set_size(self, group: OwnedGroup, size: int) -> None:
        """Give an owner a size.

        Args:
            group: The owner.
            size: The size.

        Raises:
            OwnerBusyError: It takes none at the moment.
        """

    @abstractmethod
    def _read_group(self, name: str, owner: OwnerSettings) -> OwnedGroup | None:
        """Read what owns a node group's nodes. None: it is gone.

        Args:
            name: The node group's name.
            owner: What the settings say of its owner.
        """
