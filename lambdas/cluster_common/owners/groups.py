"""Node groups, as what owns their nodes describes them."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from cluster_common.owners.kinds import AUTO_SCALING_GROUP, OWNER_KINDS, OwnerTraits
from cluster_contract.owners import OwnedGroupSettings
from cluster_contract.tags import NODE_GROUP_TAG

TERMINATING = "Terminat"
"""What the states of a node begin with that is being terminated, or is."""

# A node in these lifecycle states ends without a smaller size, or lives on whatever the size is.
# https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-lifecycle.html
_NOT_LIVE = (TERMINATING, "Detach", "Warmed", "Standby", "EnteringStandby")


@dataclass(frozen=True, kw_only=True)
class Activity:
    """One thing that the owner of a group did or tried.

    Attributes:
        launch: Whether it launches a node.
        started: When it began.
        failed: Whether it ended without a node.
        finished: Whether it ended at all.
        message: What AWS says of it.
        termination: Whether it terminates a node.
    """

    launch: bool
    started: datetime
    failed: bool
    finished: bool
    message: str
    termination: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class OwnedNode:
    """One node of a group.

    Attributes:
        state: Its state, in the owner's words.
        protected: Whether it is protected from scale-in.
        template: The launch template and version that it was launched from, such as `lt-0a1b2c3d4e5f67890 3`.
            Empty: unknown.
        instance_type: Its type, where EC2 does not describe the node.
        launched: When it was launched, likewise.
        unhealthy: Whether its owner says that it is unhealthy.
    """

    state: str
    protected: bool = False
    template: str = ""
    instance_type: str = ""
    launched: datetime | None = None
    unhealthy: bool = False

    @property
    def in_standby(self) -> bool:
        """Whether it is out of service, or on its way there, until it is put back."""
        return self.state in ("Standby", "EnteringStandby")


@dataclass(frozen=True, kw_only=True)
class OwnedGroup:
    """One node group that carries the cluster's tag.

    Attributes:
        name: The name or id of what owns its nodes.
        node_group: The node group it is.
        owner: What owns its nodes.
        is_configured: Whether the cluster's file gives the node group this kind of owner.
        desired: How many nodes it was given.
        minimum: Its smallest allowed size.
        maximum: Its largest allowed size.
        in_service: How many of its nodes are in service.
        out_of_service: The states of its other nodes that live, and are billed.
        protected: How many of its nodes are protected from scale-in.
        zones: The Availability Zones it launches in, where that is known.
        instance_types: The types of the nodes it has.
        launching_suspended: Why it launches nothing, in AWS's words. None: it launches.
        terminating_suspended: Why it terminates nothing, in AWS's words. None: it terminates.
        ends_newest: Whether the newest node ends first where it has more than it was given.
        keeps_excess: Whether nodes stay when it is given a smaller size. None: its owner does not say.
        busy: Whether it takes no new size at the moment, and may not show the one it was given last.
        deleting: Whether it is being terminated.
        nodes: Its nodes by their ids.
        templates: The launch templates and versions that it launches from, likewise. Empty: unknown.
        tags: Its tags.
        scheduler_sized: Whether a scheduler launches and terminates its nodes as jobs need them: its desired capacity
            is then the most that it may have.
        reset_to: The desired capacity that a deployment gives it again, if it has that. None: a deployment leaves it.
        is_loose: Whether a scheduler sizes it although it should have all of its nodes: a deployment wrote that.
        auto_scaling_group: The Auto Scaling group underneath. Empty: it is one itself, or there is none.
        arn: Its ARN, where tags are written by that.
    """

    name: str
    node_group: str
    desired: int
    minimum: int
    maximum: int
    in_service: int
    owner: OwnerTraits = AUTO_SCALING_GROUP
    is_configured: bool = True
    out_of_service: tuple[str, ...] = ()
    protected: int = 0
    zones: tuple[str, ...] = ()
    instance_types: tuple[str, ...] = ()
    launching_suspended: str | None = None
    terminating_suspended: str | None = None
    ends_newest: bool = False
    keeps_excess: bool | None = None
    busy: bool = False
    deleting: bool = False
    nodes: Mapping[str, OwnedNode] = field(default_factory=dict)
    templates: frozenset[str] = frozenset()
    tags: Mapping[str, str] = field(default_factory=dict, repr=False)
    scheduler_sized: bool = False
    reset_to: int | None = None
    is_loose: bool = False
    auto_scaling_group: str = ""
    arn: str = ""

    def count_missing(self, goal: int) -> int:
        """Return how many nodes it lacks of those that it should have. A scheduler may have fewer."""
        return 0 if self.scheduler_sized else max(0, goal - self.in_service - self.standby)

    def may_launch(self, goal: int) -> bool:
        """Say whether it has fewer nodes than it may have, so that its owner may fail to launch some."""
        return self.in_service + self.standby < goal

    @property
    def standby_ids(self) -> frozenset[str]:
        """The ids of its nodes in Standby: each keeps its place, which the desired capacity does not count.

        Only where its owner knows of that.
        """
        if not self.owner.reboots:
            return frozenset()
        return frozenset(one for one, node in self.nodes.items() if node.in_standby)

    @property
    def standby(self) -> int:
        """How many these are."""
        return len(self.standby_ids)

    @property
    def counted(self) -> int:
        """How many of its nodes its desired capacity counts: those in service, and those on their way there."""
        return self.in_service + sum(not state.startswith(_NOT_LIVE) for state in self.out_of_service)

    @property
    def alive(self) -> int:
        """How many of its nodes live and are billed, in service or not."""
        return self.in_service + len(self.out_of_service)

    @property
    def live_ids(self) -> frozenset[str]:
        """The ids of the nodes that end when its size becomes zero."""
        return frozenset(one for one, node in self.nodes.items() if not node.state.startswith(_NOT_LIVE))

    @property
    def suspended_by_auto_scaling(self) -> bool:
        """Whether it launches nothing because Auto Scaling has suspended that: it says so of users' suspensions."""
        return bool(self.launching_suspended) and not (self.launching_suspended or "").startswith("User suspended")

    def should_keep_excess(self, size: int) -> bool | None:
        """Say whether nodes are to stay when another than the function lowers the size, once the group has a size.

        They stay while it runs, so that a mistake ends no job. They are terminated where the function itself
        lowers the size.

        Returns:
            None: that is not known, because the group does not say it, and has the size.
        """
        if size != self.desired:
            return size > self.desired
        if self.keeps_excess is None:
            return None
        if self.alive > size:
            return self.keeps_excess and size > 0
        return self.keeps_excess or size > 0


def is_old(template: str, current: Collection[str]) -> bool:
    """Say whether a node was launched from another version than its group launches from. Unknown ones are not old."""
    known = all(version.rpartition(" ")[2].isdecimal() for version in current)
    return bool(template) and bool(current) and known and template not in current


def node_group_of(tags: Mapping[str, str], groups: Mapping[str, OwnedGroupSettings]) -> str:
    """Return the node group of an instance: one of an owner that the settings name goes with it, whatever its other
    tags say. Empty: none.

    Args:
        tags: The instance's tags.
        groups: The settings of the cluster's node groups.
    """
    for name, group in groups.items():
        if group.owner is not None and OWNER_KINDS[group.owner.kind].owner_named_by(tags) == group.owner.id:
            return name
    return tags.get(NODE_GROUP_TAG, "")
