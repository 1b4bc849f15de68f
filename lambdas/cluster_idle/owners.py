"""The owners of the cluster's nodes, read and tagged through the interface that all functions share."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from cluster_common.errors import AWS_ERRORS
from cluster_common.failures import Failures
from cluster_common.owners.auto_scaling_groups import AutoScalingGroups
from cluster_common.owners.groups import OwnedGroup
from cluster_common.owners.node_owner import NodeOwner
from cluster_common.owners.spot_fleets import SpotFleets
from cluster_contract.idle import IdleFunctionSettings
from cluster_idle.context import OwnerState
from cluster_idle.idle_tags import NOTICE_TAGS
from cluster_idle.instance_tags import InstanceTags
from cluster_idle.instances import Owner

if TYPE_CHECKING:
    from mypy_boto3_autoscaling.client import AutoScalingClient
    from mypy_boto3_ec2.client import EC2Client


class Owners:
    """The owners of the cluster's nodes, and nodes that nothing owns: what carries the tags of a warning."""

    def __init__(
        self,
        settings: IdleFunctionSettings,
        auto_scaling: "Callable[[], AutoScalingClient]",
        ec2: "Callable[[], EC2Client]",
        failures: Failures,
        now: datetime,
    ) -> None:
        """Read nothing yet.

        Args:
            settings: The function's settings.
            auto_scaling: Makes the client of EC2 Auto Scaling.
            ec2: Makes the client of EC2.
            failures: Where it is kept what failed.
            now: The time.
        """
        self._kinds = _kinds(settings, auto_scaling, ec2, now)
        self._failures = failures
        self._instance_tags = InstanceTags(ec2, failures)
        self._found: dict[Owner, tuple[NodeOwner, OwnedGroup]] = {}
        self.unread: frozenset[str] = frozenset()
        """The node groups of which not every owner could be read the last time."""

    def read(self, node_group: str | None = None) -> dict[Owner, OwnerState]:
        """Read the owners of the cluster's nodes; those that cannot be read are left out.

        Args:
            node_group: The one node group whose owners are read. Default: - those of all of them.
        """
        found: dict[Owner, OwnerState] = {}
        unread: set[str] = set()
        for kind in self._kinds:
            if node_group is not None and node_group not in kind.node_groups:
                continue
            try:
                reading = kind.read(node_group)
            except AWS_ERRORS as error:
                self._failures.add(f"the {kind.traits.noun}s", "could not be read", error)
                unread |= set(kind.node_groups)
                continue
            for name, why in reading.unread.items():
                self._failures.add(f"the {kind.traits.noun} of {name}", "could not be read", why)
            unread |= set(reading.unread)
            for group in reading.groups:
                if group.is_configured:
                    owner = Owner.of(kind.traits, group.name)
                    self._found[owner] = kind, group
                    found[owner] = OwnerState.tagged(group)
        self.unread = frozenset(unread)
        return found

    def write(self, tags: Iterable[tuple[Owner, Mapping[str, str]]]) -> frozenset[str]:
        """Write tags on owners, and on instances that carry tags of their own.

        Returns:
            The ids of those that could not be tagged.
        """
        failed: set[str] = set()
        instances: list[tuple[str, Mapping[str, str]]] = []
        for owner, own in tags:
            if owner in self._found:
                kind, group = self._found[owner]
                failed |= self._guard(owner, lambda kind=kind, group=group, own=own: kind.tag(group, own))  # type: ignore[misc]  # bound now
            else:
                instances.append((owner.id, own))
        return frozenset(failed | self._instance_tags.write(instances))

    def clear(self, owners: Sequence[Owner], keys: Sequence[str] = NOTICE_TAGS) -> None:
        """Take tags away from owners and instances.

        Args:
            owners: The owners.
            keys: The tags. Default: - those of a warning.
        """
        for owner in owners:
            if owner in self._found:
                kind, group = self._found[owner]
                self._guard(owner, lambda kind=kind, group=group: kind.untag(group, keys))  # type: ignore[misc]  # bound now
        self._instance_tags.clear([owner.id for owner in owners if owner not in self._found], keys)

    def _guard(self, owner: Owner, write: Callable[[], object]) -> set[str]:
        try:
            write()
        except AWS_ERRORS as error:
            self._failures.add(owner.description, "its tags could not be written", error)
            return {owner.id}
        return set()


def _kinds(
    settings: IdleFunctionSettings,
    auto_scaling: "Callable[[], AutoScalingClient]",
    ec2: "Callable[[], EC2Client]",
    now: datetime,
) -> list[NodeOwner]:
    """Return the kinds of owners that the settings name."""
    fleets = {name: group.fleet for name, group in settings.groups.items() if group.fleet}
    others = settings.groups.keys() - fleets
    kinds: list[NodeOwner] = []
    if others:
        kinds.append(
            AutoScalingGroups(
                auto_scaling(), auto_scaling, ec2, settings.cluster, frozenset(others), tag=settings.tag
            )
        )
    if fleets:
        kinds.append(SpotFleets(ec2(), settings.cluster, fleets, {}, now, tag=settings.tag))
    return kinds
