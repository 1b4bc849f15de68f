"""What a decision rests on: everything that was read, and the time."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from cluster_common.keep_tags import NO_KEEP_TAGS, KeepTags
from cluster_common.owners.groups import OwnedGroup
from cluster_contract.idle import IdleFunctionSettings, IdleScope, Policy
from cluster_contract.tags import IDLE_NOTE_TAG
from cluster_idle.accelerators import is_measured
from cluster_idle.evidence import Evidence
from cluster_idle.instances import Instance, Owner
from cluster_idle.sent_warnings import SentWarning

STANDBY = "is in Standby: Auto Scaling does not end it; terminate it or return it to service"
"""Why a group keeps a node that an operator took out of it: the end of a sentence.

Source: https://docs.aws.amazon.com/autoscaling/ec2/userguide/as-enter-exit-standby.html
"""

PROTECTED = "it is protected from scale-in"
"""Why a group keeps a node whatever its size."""


@dataclass(frozen=True, kw_only=True)
class OwnerState(OwnedGroup):
    """One of the cluster's owners of nodes, as it was read.

    Attributes:
        keep_tags: What its tags say about keeping its nodes.
    """

    keep_tags: KeepTags = NO_KEEP_TAGS

    @classmethod
    def tagged(cls, owned: OwnedGroup) -> "OwnerState":
        """Return an owner that was read, with what its tags say."""
        return cls(**vars(owned), keep_tags=KeepTags.from_tags(owned.tags))

    @property
    def has_note(self) -> bool:
        """Whether it carries the note of a warning."""
        return IDLE_NOTE_TAG in self.tags

    @property
    def protected_ids(self) -> frozenset[str]:
        """The ids of its nodes that it keeps whatever its size."""
        return frozenset(one for one, node in self.nodes.items() if node.protected)

    def why_held(self, instance_id: str) -> str | None:
        """Say why it does not terminate one of its nodes by order: the end of a sentence. None: it does."""
        node = self.nodes.get(instance_id)
        if node is None:
            return None
        if node.protected:
            return PROTECTED
        if node.state.endswith("Standby"):
            return STANDBY
        is_going = self.owner.terminates_nodes and node.state != "InService"
        return f"its state is {node.state}" if is_going else None


@dataclass(frozen=True, kw_only=True)
class IdleContext:
    """What a decision rests on.

    Attributes:
        settings: The function's settings.
        now: The time.
        evidence: What is known of each instance that was looked at, by its id.
        owners: The groups and Spot Fleet requests that could be read.
        unread: The node groups of which not every owner could be read.
        spot_requests: Why an instance of a Spot Instance request cannot be stopped, by the request's id; empty where
            it can. A request that is not there could not be read.
        warnings: The warnings that were sent, by the names of what is stopped together.
        reminders: When the last reminder of a tag was sent, by the key of what carries the tag.
        held: Why no node may be warned of or stopped. Empty: nodes may be.
        restores: Why every node is kept although its accelerators are idle: the end of a sentence. Empty: none is.
    """

    settings: IdleFunctionSettings
    now: datetime
    evidence: Mapping[str, Evidence] = field(default_factory=dict)
    owners: Mapping[Owner, OwnerState] = field(default_factory=dict)
    unread: frozenset[str] = frozenset()
    spot_requests: Mapping[str, str] = field(default_factory=dict)
    warnings: Mapping[str, SentWarning] = field(default_factory=dict)
    reminders: Mapping[str, datetime] = field(default_factory=dict)
    held: str = ""
    restores: str = ""

    def policy(self, instance: Instance) -> Policy:
        """Return the policy for an instance."""
        return self.settings.policy_of(instance.node_group)

    def is_looked_at(self, instance: Instance) -> bool:
        """Say whether its accelerators report their use; the nodes of a node group are set up to."""
        return instance.node_group in self.settings.groups or is_measured(instance.instance_type)

    def unit(self, instance: Instance) -> str:
        """Return the name of what an instance is stopped together with: its node group, or itself."""
        if not instance.node_group:
            return instance.id
        traits = instance.owner.traits
        alone = self.policy(instance).scope is IdleScope.NODE and (traits is None or traits.terminates_nodes)
        return instance.id if alone else instance.node_group

    def target(self, instance: Instance) -> Owner:
        """Return what carries the note of a warning, and the tags with which operators keep an instance."""
        if self.unit(instance) == instance.id:
            return instance.itself
        return instance.owner

    def keep_tags(self, owner: Owner) -> KeepTags:
        """Return what the tags of an owner say about keeping its nodes."""
        state = self.owners.get(owner)
        return state.keep_tags if state else NO_KEEP_TAGS
