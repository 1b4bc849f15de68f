"""Node groups, as what owns their nodes describes them, and what differs between the kinds of owners."""

import json
import shlex
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from cluster_contract.owners import OwnedGroupSettings, OwnerKind
from cluster_contract.tags import NODE_GROUP_TAG

RETRY_EVERY = timedelta(minutes=10)
"""How often an Auto Scaling group that is short of nodes is asked for them."""


@dataclass(frozen=True, kw_only=True)
class OwnerTraits:
    """What decisions have to know of a service that owns nodes, and how messages name it.

    Attributes:
        key: Its kind.
        service: Who launches and terminates the nodes.
        noun: What one owner is called.
        history: Where one can read what it did.
        role: The role that it launches nodes with.
        more_capacity: How one gets capacity that EC2 does not have at the moment.
        retries: What is done about nodes that EC2 could not launch.
        tries: What the service itself does about them, where an operator sized it.
        holds_deployments: Whether CloudFormation waits for its nodes: its size is lowered while EC2 lacks some.
        reset_by_deployments: Whether a deployment sets its size to 0 and leaves its nodes.
        absent: What is missing where a node group has no owner, and why that may be: the end of a sentence, in which
            `$id` is what the settings name.
        instance_tags: The tags, which only the service can set, by which an instance names its owner: their values,
            with a slash between them, are the owner's name or id.
        emptied: What the size zero does to it and its nodes: the end of a sentence.
        tag_command: Returns the command that writes a tag on it, of its name, a key, a value and the region.
            Default: - `aws ec2 create-tags` takes its id, beside those of instances.
    """

    key: OwnerKind
    service: str
    noun: str
    history: str
    role: str
    more_capacity: str
    retries: str
    tries: str
    holds_deployments: bool
    reset_by_deployments: bool
    absent: str
    instance_tags: tuple[str, ...]
    emptied: str
    tag_command: Callable[[str, str, str, str], str] | None = None

    @property
    def terminates_nodes(self) -> bool:
        """Whether single nodes can be terminated; if not, it chooses itself which it terminates."""
        return self.key.terminates_nodes

    def owner_named_by(self, tags: Mapping[str, str]) -> str:
        """Return the name or id of the owner that an instance's tags name. Empty: none of this kind."""
        found = [tags.get(key, "") for key in self.instance_tags]
        return "/".join(found) if all(found) else ""


def _tag_auto_scaling_group(name: str, key: str, value: str, region: str) -> str:
    tag = {
        "ResourceId": name,
        "ResourceType": "auto-scaling-group",
        "Key": key,
        "Value": value,
        "PropagateAtLaunch": False,
    }
    # Operators paste the command into a shell, and a name may hold any character.
    argument = shlex.quote(json.dumps([tag], separators=(",", ":")))
    return f"aws autoscaling create-or-update-tags --region {region} --tags {argument}"


# A node in these lifecycle states ends without a smaller size, or lives on whatever the size is.
# https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-lifecycle.html
_NOT_LIVE = ("Terminat", "Detach", "Warmed", "Standby")

_RELEASED = "their capacity goes back to EC2, so a later start may have to wait for capacity"

AUTO_SCALING_GROUP = OwnerTraits(
    key=OwnerKind.AUTO_SCALING_GROUP,
    service="Auto Scaling",
    noun="Auto Scaling group",
    history="activity history",
    role="AWSServiceRoleForAutoScaling",
    more_capacity="get the capacity beforehand with a capacity reservation or in another Availability Zone",
    retries=f"The power function asks for them again every {RETRY_EVERY.seconds // 60} minutes.",
    tries="Auto Scaling asks for them again, for about a day.",
    holds_deployments=True,
    reset_by_deployments=False,
    absent="group: a deployment is under way, or failed",
    # https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-tagging.html
    instance_tags=("aws:autoscaling:groupName",),
    emptied="is scaled to zero; data on the nodes' disks is lost, except on nodes that return to a warm pool; "
    f"{_RELEASED}",
    tag_command=_tag_auto_scaling_group,
)
SPOT_FLEET = OwnerTraits(
    key=OwnerKind.SPOT_FLEET,
    service="the Spot Fleet",
    noun="Spot Fleet request",
    history="history",
    # https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-fleet-prerequisites.html
    role="AWSServiceRoleForEC2SpotFleet",
    more_capacity="name more instance types, or buy the nodes in another way",
    retries="The Spot Fleet asks for them again.",
    tries="The Spot Fleet asks for them again.",
    holds_deployments=False,
    reset_by_deployments=True,
    absent="Spot Fleet request $id that launches nodes: a deployment is under way, or the request was cancelled",
    # https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/manage-spot-fleet.html
    instance_tags=("aws:ec2spot:fleet-request-id",),
    emptied=f"gets the target capacity 0; data on the nodes' disks is lost; {_RELEASED}",
)

OWNER_KINDS: Mapping[str, OwnerTraits] = {kind.key: kind for kind in (AUTO_SCALING_GROUP, SPOT_FLEET)}
"""The kinds of owners that the functions deal with, by their keys."""


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


@dataclass(frozen=True, kw_only=True)
class Activity:
    """One thing that the owner of a group did or tried.

    Attributes:
        launch: Whether it launches a node.
        started: When it began.
        failed: Whether it ended without a node.
        finished: Whether it ended at all.
        message: What AWS says of it.
    """

    launch: bool
    started: datetime
    failed: bool
    finished: bool
    message: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Node:
    """One node of a group.

    Attributes:
        state: Its state, in the owner's words.
        protected: Whether it is protected from scale-in.
        template: The launch template and version that it was launched from, such as `lt-0a1b2c3d4e5f67890 3`.
            Empty: unknown.
    """

    state: str
    protected: bool = False
    template: str = ""


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
    nodes: Mapping[str, Node] = field(default_factory=dict)
    templates: frozenset[str] = frozenset()
    tags: Mapping[str, str] = field(default_factory=dict, repr=False)

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
