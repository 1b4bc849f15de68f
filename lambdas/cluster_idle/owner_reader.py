"""The owners of the cluster's nodes, read and annotated through the interface that all functions share."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from aws_lambda_powertools import Logger

from cluster_common.clients import Clients
from cluster_common.errors import AWS_ERRORS, error_text
from cluster_common.failures import Failures
from cluster_common.owners.groups import OwnedGroup
from cluster_common.owners.making import make_owners
from cluster_common.owners.node_owner import NodeOwner
from cluster_common.tags import tag_value
from cluster_contract.idle import IdleFunctionSettings
from cluster_contract.tags import IDLE_NOTE_TAG
from cluster_idle.context import OwnerState
from cluster_idle.instances import Instance, Owner, instances_of

if TYPE_CHECKING:
    from mypy_boto3_ec2.type_defs import TagTypeDef

# https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_CreateTags.html
_MAX_TAGGED = 1000


class OwnerReader:
    """Read what owns the cluster's nodes, and write notes on it and on nodes that nothing owns."""

    def __init__(
        self,
        settings: IdleFunctionSettings,
        clients: Clients,
        *,
        failures: Failures,
        logger: Logger,
        now: datetime,
    ) -> None:
        """Read nothing yet.

        Args:
            settings: The function's settings.
            clients: What the function talks to.
            failures: Where it is kept what failed.
            logger: Where a note is mentioned that could not be written.
            now: The time.
        """
        self._kinds = make_owners(
            settings.groups, clients, settings.cluster, now, stack_id=settings.stack_id, tag=settings.tag
        )
        self._failures = failures
        self._ec2 = clients.ec2
        self._logger = logger
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

    def read_instances(self) -> list[Instance]:
        """Read the nodes that EC2 does not describe, since they are no instances of the account."""
        readings = [kind.read() for kind in self._kinds if not kind.traits.is_on_ec2]
        return [one for reading in readings for group in reading.groups for one in instances_of(group)]

    def annotate(self, notes: Mapping[Owner, str]) -> None:
        """Write a note on owners and instances, for operators: one that fails does not hold up the others."""
        alike: dict[str, list[Owner]] = {}
        for owner, note in notes.items():
            alike.setdefault(tag_value(note), []).append(owner)
        for note, owners in alike.items():
            tag = {IDLE_NOTE_TAG: note}
            self._each(owners, lambda kind, group, tag=tag: kind.tag(group, tag))  # type: ignore[misc]  # bound now
            self._instances(owners, "create_tags", {"Key": IDLE_NOTE_TAG, "Value": note})

    def clear_notes(self, owners: Sequence[Owner]) -> None:
        """Take the notes away."""
        self._each(owners, lambda kind, group: kind.untag(group, [IDLE_NOTE_TAG]))
        self._instances(owners, "delete_tags", {"Key": IDLE_NOTE_TAG})

    def _each(self, owners: Sequence[Owner], write: Callable[[NodeOwner, OwnedGroup], object]) -> None:
        for owner in owners:
            if owner in self._found:
                with self._logged(owner.description):
                    write(*self._found[owner])

    def _instances(
        self, owners: Sequence[Owner], operation: Literal["create_tags", "delete_tags"], tag: "TagTypeDef"
    ) -> None:
        ids = [owner.id for owner in owners if owner not in self._found]
        for start in range(0, len(ids), _MAX_TAGGED):
            some = ids[start : start + _MAX_TAGGED]
            with self._logged(", ".join(some)):
                getattr(self._ec2(), operation)(Resources=some, Tags=[tag])

    @contextmanager
    def _logged(self, subject: str) -> Iterator[None]:
        try:
            yield
        except AWS_ERRORS as error:
            self._logger.warning(f"{subject}: the tag {IDLE_NOTE_TAG} could not be changed ({error_text(error)})")
