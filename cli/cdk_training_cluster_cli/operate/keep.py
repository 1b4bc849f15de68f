"""`training-cluster keep`: tags nodes, or what owns a node group's nodes, so that they run on though idle."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from cdk_training_cluster_cli.core.aws_errors import plain_refusals
from cdk_training_cluster_cli.core.output import Document, check_format, show
from cdk_training_cluster_cli.core.target import Target
from cdk_training_cluster_cli.core.times import parse_moment
from cdk_training_cluster_cli.operate.nodes import find_nodes, named_node
from cdk_training_cluster_cli.operate.power import PowerFunction
from cluster_contract.tags import KEEP_TAG, KEEP_UNTIL_TAG
from cluster_contract.times import TIME_FORMAT

_FORMATS = ("table", "json")
# The idle function reminds of a later one each day.
_FARTHEST = timedelta(days=30)


@dataclass(frozen=True, kw_only=True)
class Keep:
    """What is written on the owners of node groups, or on nodes.

    Attributes:
        until: Until when they are kept. None: they are kept no longer.
    """

    until: datetime | None

    @classmethod
    def read(cls, until: str | None, *, off: bool, now: datetime) -> "Keep":
        """Read what a user wrote.

        Args:
            until: The time, or a span from now on.
            off: Whether they are to be kept no longer.
            now: The time.

        Raises:
            ValueError: It is neither, or both.
        """
        if (until is None) != off:
            raise ValueError("keep takes either --until TIME, such as --until 12h, or --off")
        return cls(until=None if until is None else parse_moment("--until", until, now, most=_FARTHEST))

    @property
    def value(self) -> str | None:
        """The tag's value. None: the tag is taken off."""
        return None if self.until is None else self.until.astimezone(UTC).strftime(TIME_FORMAT)

    def said_of(self, name: str, group: str = "") -> str:
        """Say what it means for a node or a node group.

        Args:
            name: Its name.
            group: A node's group, of which the budget stops no node while one is kept.
        """
        if self.value is None:
            return f"{name} is kept no longer: when it is idle it is stopped, after a warning"
        kept = f"{name} is kept until {self.value}: before that it is"
        if group:
            return f"{kept} not stopped for being idle, and the budget stops no node of {group}"
        return f"{kept} stopped neither for being idle nor for the budget"


def run(power: PowerFunction, keep: Keep, *, node_groups: Sequence[str], nodes: Sequence[str], output: str) -> None:
    """Write the tags, and show what they mean.

    Args:
        power: The power function, which knows what owns the nodes.
        keep: What is written.
        node_groups: The node groups' names. Without nodes either, all.
        nodes: The nodes, as users name them.
        output: How to show it: `table` or `json`.

    Raises:
        ValueError: A setting is not allowed, nothing is named so, or AWS refuses.
    """
    check_format(output, formats=_FORMATS)
    target, kept, said = power.target, [], []
    if nodes:
        live = find_nodes(target)
        chosen = list(dict.fromkeys(named_node(name, live, target.name) for name in nodes))
        _tag_by_id(target, keep, [node.id for node in chosen])
        for node in chosen:
            kept.append(f"{node.name} ({node.id})")
            said.append(keep.said_of(kept[-1], node.node_group))
    if node_groups or not nodes:
        for group in power.status(node_groups)["node_groups"]:
            _tag_owner(target, keep, group)
            kept.append(str(group["node_group"]))
            said.append(keep.said_of(kept[-1]) + (_scheduled(group) if keep.value else ""))
    notes = ((target.name, tuple(said)),)
    show(output, Document(tables=(), notes=notes), {"cluster": target.name, "until": keep.value, "kept": kept})


def _scheduled(group: Mapping[str, Any]) -> str:
    """Say what a schedule, which reads no tags, does with the node group."""
    schedule = group.get("schedule")
    if not schedule:
        return ""
    at = f" at {schedule['next_edge']}" if schedule["next_edge"] else ""
    return f"; its schedule does not read the tag: {schedule['now']}; {schedule['then']}{at}"


def _tag_owner(target: Target, keep: Keep, group: Mapping[str, Any]) -> None:
    if group.get("spot_fleet"):
        _tag_by_id(target, keep, [group["spot_fleet"]])
        return
    if group.get("owner_arn"):
        _tag_by_arn(target, keep, group)
        return
    name = group.get("auto_scaling_group")
    if not name:
        raise ValueError(f"nothing owns the nodes of {group['node_group']}: {group['reason']}")
    owner = {"ResourceId": name, "ResourceType": "auto-scaling-group"}
    client = target.client("autoscaling")
    with plain_refusals(f"the tags of the Auto Scaling group {name}"):
        if keep.value is None:
            client.delete_tags(Tags=[{**owner, "Key": key} for key in (KEEP_TAG, KEEP_UNTIL_TAG)])
        else:
            # On the group alone: its nodes would keep it when the group's own is taken off.
            tag = {**owner, "Key": KEEP_UNTIL_TAG, "Value": keep.value, "PropagateAtLaunch": False}
            client.create_or_update_tags(Tags=[tag])


def _tag_by_arn(target: Target, keep: Keep, group: Mapping[str, Any]) -> None:
    """Write or take away the tag of an owner by the calls of its service, which its ARN names."""
    arn, keys = group["owner_arn"], [KEEP_TAG, KEEP_UNTIL_TAG]
    client = target.client(arn.split(":")[2])
    with plain_refusals(f"the tags of the {group['owner']}"):
        if "hyperpod_instance_group" in group:
            # Its cluster carries the tags of an instance group, whose name follows the key.
            name = group["hyperpod_instance_group"].rpartition("/")[2]
            if keep.value is None:
                client.delete_tags(ResourceArn=arn, TagKeys=[f"{key}/{name}" for key in keys])
            else:
                client.add_tags(ResourceArn=arn, Tags=[{"Key": f"{KEEP_UNTIL_TAG}/{name}", "Value": keep.value}])
        elif keep.value is None:
            client.untag_resource(resourceArn=arn, tagKeys=keys)
        else:
            client.tag_resource(resourceArn=arn, tags={KEEP_UNTIL_TAG: keep.value})


def _tag_by_id(target: Target, keep: Keep, ids: Sequence[str]) -> None:
    client = target.client("ec2")
    with plain_refusals(f"the tags of {', '.join(ids)}"):
        if keep.value is None:
            client.delete_tags(Resources=list(ids), Tags=[{"Key": KEEP_TAG}, {"Key": KEEP_UNTIL_TAG}])
        else:
            client.create_tags(Resources=list(ids), Tags=[{"Key": KEEP_UNTIL_TAG, "Value": keep.value}])
