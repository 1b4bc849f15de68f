"""What is decided about a node that is broken, or may be."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum

from cluster_common.owners.groups import OwnedGroup
from cluster_common.owners.kinds import OwnerTraits
from cluster_contract.health_settings import HealthPolicySettings
from cluster_contract.texts import printable
from cluster_health.node_records import NodeRecord
from cluster_health.records import BadSerial, GroupRecord


class Outcome(StrEnum):
    """What is to be done with a node: each step and each end of a repair, under the same name, and why nothing is."""

    CORDON = "cordon"
    """Take it out of service: its repair begins."""

    REBOOT = "reboot"
    """Reboot it: its job has ended, or had its time."""

    REPLACE = "replace"
    """Terminate it; its group keeps its size."""

    RETURN = "return"
    """Put it back into service."""

    RELEASE = "release"
    """Terminate it: it is out of service, and its node group is stopped."""

    WAIT = "wait"
    """Wait: its job ends, it boots or is verified, or its owner is at it."""

    RETURNED = "returned"
    """Its repair is over, and it is in service."""

    REPLACED = "replaced"
    """Its repair is over: it is gone, and its group may launch another."""

    LEFT = "left"
    """Its repair is over: the node went before it was done, or with its stopped group."""

    HELD = "held"
    """Its repair is over: the node stays as it is until an operator decides."""

    OBSERVED = "observed"
    """Leave it in service: none of its faults asks for a reboot or another node."""

    KEPT = "kept"
    """Leave it: an operator keeps it, or has taken it out of service."""

    TURN = "turn"
    """Wait: another node of its group is under repair, or a place of its group is being filled."""

    PLACE = "place"
    """Leave it: its group lacks a node that EC2 has not launched for long, or launches none."""

    BUSY = "busy"
    """Ask again: what owns it has been busy for long."""

    BUDGET = "budget"
    """Leave it: the repairs of the window are spent."""

    REPORT = "report"
    """Report it: the policy lets the function do no more."""

    OWNER = "owner"
    """Report it: what owns it repairs it."""

    GOING = "going"
    """Leave it: it is about to go."""

    UNKNOWN = "unknown"
    """Leave it: something that the decision rests on is not known."""

    @property
    def waits(self) -> bool:
        """Whether a broken node is left as it is until an operator does something."""
        return self in _WAITS

    @property
    def needs_message(self) -> bool:
        """Whether the alert topic's subscribers have to know it."""
        return self in _MESSAGES


_WAITS = frozenset({Outcome.KEPT, Outcome.HELD, Outcome.BUDGET, Outcome.PLACE, Outcome.BUSY, Outcome.REPORT})
_ENDS = frozenset({Outcome.RETURNED, Outcome.REPLACED, Outcome.LEFT})
_MESSAGES = _WAITS | _ENDS | {Outcome.CORDON, Outcome.REPLACE, Outcome.RELEASE, Outcome.OWNER}


PLACE_WITHIN = timedelta(minutes=10)
"""How long a repair waits for a place to be filled, or for the power function to know of a node in Standby."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What is decided about one node.

    Attributes:
        node_group: Its node group.
        instance_id: The node.
        outcome: What is to be done.
        reason: Why, with the evidence: a sentence.
        key: What the message about it is: one of each key is sent.
        undo: How an operator undoes it, or does it instead. Empty: there is nothing to do.
        record: What is recorded of its group before anything is done. None: nothing changes.
    """

    node_group: str
    instance_id: str
    outcome: Outcome
    reason: str
    key: str
    undo: str = ""
    record: GroupRecord | None = None

    def with_record(self, record: GroupRecord) -> "Finding":
        """Return it with what is recorded before anything is done."""
        return replace(self, record=record)


@dataclass(frozen=True, kw_only=True)
class PlannedSize:
    """The size that the power function has given a node group.

    Attributes:
        size: How many nodes it has given the group.
        stopped: Whether no node is to run. Default: - where that size is zero.
        standby: The nodes in Standby whose places it gives back when they are gone.
        goal: How many nodes are to be there, where an operator has terminated some or lowered the desired capacity.
            Default: - `size`.
    """

    size: int
    stopped: bool = False
    standby: frozenset[str] = frozenset()
    goal: int | None = None

    def __post_init__(self) -> None:
        """Take the size 0 for a stop."""
        object.__setattr__(self, "stopped", self.stopped or self.size == 0)


@dataclass(frozen=True, kw_only=True)
class GroupView:
    """What is known of one node group.

    Attributes:
        name: The node group.
        traits: What owns its nodes, by the cluster's file.
        group: Its owner and nodes. None: they could not be read, or there are none.
        record: Its repairs.
        nodes: What is known of its nodes that have reported, or are unhealthy.
        wanted: What the power function wants. None: that is not known.
        kept: Why an operator keeps nodes, by their ids: the end of a sentence, or empty. Nodes of which it is not
            known are missing.
        stopped: Its nodes that are stopped in EC2, as far as that is known.
        terminated: Those that are terminated in EC2, likewise.
        unconfirmed: Those that are broken by their reports, and not by their own tags.
    """

    name: str
    traits: OwnerTraits
    group: OwnedGroup | None
    record: GroupRecord = field(default_factory=GroupRecord)
    nodes: Mapping[str, NodeRecord] = field(default_factory=dict)
    wanted: PlannedSize | None = None
    kept: Mapping[str, str] = field(default_factory=dict)
    stopped: frozenset[str] = frozenset()
    terminated: frozenset[str] = frozenset()
    unconfirmed: frozenset[str] = frozenset()

    @property
    def surplus(self) -> int:
        """How many nodes it has beyond those that the power function has given it, those in Standby among them.

        One that Auto Scaling launches before it terminates another, beyond the desired capacity, is none of these.
        """
        group, wanted = self.group, self.wanted
        if group is None or wanted is None:
            return 0
        return min(group.desired, group.counted) + group.standby - wanted.size

    @property
    def lacks(self) -> str:
        """Why no node is replaced: its place would not be filled. Empty: it would, or a scheduler sizes the group."""
        group, wanted = self.group, self.wanted
        if group is None or wanted is None or group.scheduler_sized:
            return ""
        if group.launching_suspended is not None:
            why = f" ({group.launching_suspended})" if group.launching_suspended else ""
            return f"its process Launch is suspended{why}, so that no other node would take its place"
        goal, there = wanted.size if wanted.goal is None else wanted.goal, group.counted + group.standby
        return (
            f"its node group has {there} of {goal} nodes, and EC2 may have none for its place" if there < goal else ""
        )

    def is_place_kept(self, instance_id: str) -> bool:
        """Say whether another node takes the place of one that is terminated.

        Of one in Standby the power function gives the place back, unless the size of the group is not its own.

        Args:
            instance_id: The node.
        """
        group, wanted = self.group, self.wanted
        owned = group.nodes.get(instance_id) if group is not None else None
        return wanted is not None and owned is not None and (not owned.in_standby or instance_id in wanted.standby)

    def why_out(self, instance_id: str, desired: int | None) -> str:
        """Say why a node does not come back from Standby, which raises the desired capacity. Empty: it does.

        Args:
            instance_id: The node.
            desired: The desired capacity of its group with the node, when its repair began. None: unknown.
        """
        group = self.group
        if group is None or self.is_place_kept(instance_id) or group.desired + 1 == desired:
            return ""
        return f"the desired capacity of {group.name} was set to {group.desired} during its repair"

    @property
    def lost_place(self) -> str:
        """Why no other node would take the place of one in Standby: a clause."""
        name, desired = (self.group.name, self.group.desired) if self.group is not None else (self.name, "unknown")
        set_by = f"the desired capacity of {name} ({desired}) was set outside the power function"
        return f"{set_by}, so that no other node would take its place"


@dataclass(frozen=True, kw_only=True)
class Context:
    """What decisions rest on beside the group.

    Attributes:
        policy: What the function may do, and how long it waits.
        now: The time.
        region: The cluster's region, for commands.
        bad_serials: The accelerators of nodes that were replaced, by their serials.
        statuses_read: Whether this run has read which nodes are unhealthy: what an earlier one has read may be over.
    """

    policy: HealthPolicySettings
    now: datetime
    region: str
    bad_serials: Mapping[str, BadSerial] = field(default_factory=dict)
    statuses_read: bool = False

    def is_recent(self, moment: datetime, time: timedelta) -> bool:
        """Say whether less than some time has passed since a moment."""
        return self.now - moment < time


# "If you attempt to put a terminated instance that was on standby back in service, Amazon EC2 Auto Scaling performs a
# health check on the instance, determines that it is terminating and unhealthy, and launches a replacement instance."
# https://docs.aws.amazon.com/autoscaling/ec2/userguide/as-enter-exit-standby.html
TERMINATED = "was terminated in EC2, and leaves Standby, where Auto Scaling would list it for ever, to be replaced"
"""Why a node in Standby goes that EC2 has terminated."""

GONE = "was terminated in EC2, and leaves Standby, where Auto Scaling would list it for ever"
"""Likewise, where no other is to be launched in its place."""


UNCONFIRMED = "its own tag does not confirm the report"
"""Why nothing is done to a node of which only a report says that it is broken."""

# What a node says is within it; a message of SNS takes 256 KB, a record of the log less.
_MAX_REASON = 2000

# https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-lifecycle.html
IN_SERVICE = "InService"
"""The lifecycle state of a node that works."""

GOING = ("Terminat", "Detach", "Warmed")
"""How the lifecycle states of nodes begin that are about to go."""


def finding_about(
    view: GroupView, instance_id: str, outcome: Outcome, reason: str, *, key: str, undo: str = ""
) -> Finding:
    """Return what is decided about a node.

    Args:
        view: Its node group.
        instance_id: The node.
        outcome: What is to be done.
        reason: Why: the end of a sentence that begins with the node.
        key: What distinguishes its message from others of the same outcome.
        undo: How an operator undoes it, or does it instead.
    """
    return Finding(
        node_group=view.name,
        instance_id=instance_id,
        outcome=outcome,
        reason=printable(f"{instance_id} of {view.name} {reason}", _MAX_REASON),
        key=f"{outcome} {key}",
        undo=undo,
    )
