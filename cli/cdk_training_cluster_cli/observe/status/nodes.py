"""The nodes: the instances with the cluster's tag and security group, as EC2 describes them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any

from cdk_training_cluster_cli.core.aws_errors import plain_refusals
from cdk_training_cluster_cli.core.output import Table
from cdk_training_cluster_cli.observe.ages import moment_text
from cdk_training_cluster_cli.observe.deployed import Deployed
from cdk_training_cluster_cli.observe.status.part import Item, Moment, Part
from cdk_training_cluster_cli.operate.nodes import LIVE, node_filters
from cluster_contract.tags import NODE_GROUP_TAG

_STATES = ("pending", "running", "stopping", "stopped", "shutting-down")
_RUNNING = "running"
_MARKETS = {"capacity-block": "block", "interruptible-capacity-reservation": "interruptible"}
_HEALTHY = ("ok", "not-applicable")
# https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeInstanceStatus.html: so many ids in one request,
# and events that are over begin like this.
_MAX_IDS = 100
_OVER = ("[Completed]", "[Canceled]")
# One look: more of a group than this are counted.
_SHOWN = 16


@dataclass(frozen=True, kw_only=True)
class NodeStatus:
    """One node.

    Attributes:
        id: The instance's id.
        node_group: Its node group.
        type: Its instance type.
        state: EC2's state of it.
        health: What EC2's status checks say; what is scheduled for it is added. Empty: not known.
        market: How it is bought: `on-demand`, `reserved`, or what EC2 calls its lifecycle, such as `spot`.
        reservation: The capacity reservation that it runs in, if any.
        zone: Its Availability Zone.
        address: Its private IP address. Empty: it has none.
        launched: When it was launched or last started.
    """

    id: str
    node_group: str
    type: str
    state: str
    health: str
    market: str
    reservation: str | None
    zone: str
    address: str
    launched: datetime

    @property
    def condition(self) -> str:
        """Its state and, where that is not all, its health."""
        is_sound = self.health in _HEALTHY or not self.health or self.state != _RUNNING
        return self.state if is_sound else f"{self.state}, {self.health}"


class Nodes(Part[Sequence[NodeStatus]]):
    """What EC2 says."""

    key = "nodes"
    title = "Nodes"

    def ask(self, cluster: Deployed) -> Sequence[NodeStatus]:
        """Ask EC2 for the cluster's instances, and for the state of those that run."""
        return find_nodes(cluster)

    def values(self, answer: Sequence[NodeStatus]) -> Any:  # noqa: ANN401 - as for Part
        """Return each node's fields."""
        return [{**vars(node), "launched": moment_text(node.launched)} for node in answer]

    def lines(self, answer: Sequence[NodeStatus], moment: Moment) -> Iterator[Item]:
        """Yield a table for each node group."""
        if not answer:
            yield "There are none."
        for name, found in groupby(answer, key=lambda node: node.node_group):
            nodes = list(found)
            # As connect, exec, keep and terminate count them.
            places = {node.id: str(place) for place, node in enumerate(filter(_lives, nodes))}
            # Those first that are not as most are.
            ranked = sorted(nodes, key=lambda node: (node.condition == _RUNNING, moment.notes.get(node.id) == "busy"))
            shown = nodes if moment.all or len(nodes) <= _SHOWN else ranked[:_SHOWN]
            yield _table(name or "no node group", shown, places, moment.notes)
            if len(shown) < len(nodes):
                yield f"{len(nodes) - len(shown)} more nodes of {name}: --all shows every node."


def _table(group: str, nodes: Sequence[NodeStatus], places: Mapping[str, str], notes: Mapping[str, str]) -> Table:
    """Return the nodes of a group, one line each at 80 columns: a type that all of them have is said once."""
    types = sorted({node.type for node in nodes})
    has_types = len(types) > 1
    return Table(
        title=group if has_types else f"{group}, {types[0]}",
        headings=("#", "Node", *(("Type",) if has_types else ()), "State", "Launched", "Bought", "Work"),
        rows=tuple(
            (
                places.get(node.id, "-"),
                node.id,
                *((node.type,) if has_types else ()),
                node.condition,
                node.launched.strftime("%m-%d %H:%M"),
                _MARKETS.get(node.market, node.market),
                notes.get(node.id, "-"),
            )
            for node in nodes
        ),
    )


def _lives(node: NodeStatus) -> bool:
    return node.state in LIVE


def find_nodes(cluster: Deployed) -> Sequence[NodeStatus]:
    """Ask EC2 for a cluster's instances, except those that are terminated.

    Args:
        cluster: The cluster.

    Raises:
        ValueError: An earlier release deployed the cluster, or EC2 refuses.

    Sources: https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeInstances.html and
    https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_Instance.html
    """
    ec2 = cluster.client("ec2")
    filters = node_filters(cluster.name, cluster.description, _STATES)
    with plain_refusals("the cluster's instances"):
        pages = ec2.get_paginator("describe_instances").paginate(Filters=filters)
        found = [raw for page in pages for each in page["Reservations"] for raw in each["Instances"]]
        health = _health(ec2, [raw["InstanceId"] for raw in found if raw["State"]["Name"] == _RUNNING])
    nodes = [_node(raw, health) for raw in found]
    return sorted(nodes, key=lambda node: (node.node_group, node.launched, node.id))


def node_of(cluster: Deployed, raw: Mapping[str, Any]) -> NodeStatus:
    """Return an instance that EC2 has described, with its health.

    Args:
        cluster: The cluster.
        raw: What DescribeInstances says of it.

    Raises:
        ValueError: EC2 refuses.
    """
    runs = raw["State"]["Name"] == _RUNNING
    with plain_refusals(f"the status of {raw['InstanceId']}"):
        return _node(raw, _health(cluster.client("ec2"), [raw["InstanceId"]] if runs else []))


def _health(ec2: Any, ids: Sequence[str]) -> Mapping[str, str]:  # noqa: ANN401 - a client
    found: dict[str, str] = {}
    for start in range(0, len(ids), _MAX_IDS):
        asked = list(ids[start : start + _MAX_IDS])
        for one in ec2.describe_instance_status(InstanceIds=asked)["InstanceStatuses"]:
            found[one["InstanceId"]] = _health_of(one)
    return found


def _health_of(status: Mapping[str, Any]) -> str:
    checks = [
        status.get(name, {}).get("Status", "") for name in ("SystemStatus", "InstanceStatus", "AttachedEbsStatus")
    ]
    worst = next((one for one in checks if one and one not in _HEALTHY), "ok")
    events = [one for one in status.get("Events", ()) if not str(one.get("Description", "")).startswith(_OVER)]
    planned = [f"{one['Code']} at {moment_text(one['NotBefore'])}" for one in events if "NotBefore" in one]
    return ", ".join([worst, *planned]) if worst != "ok" or not planned else ", ".join(planned)


def _node(raw: Mapping[str, Any], health: Mapping[str, str]) -> NodeStatus:
    tags = {tag["Key"]: tag["Value"] for tag in raw.get("Tags", ())}
    reservation = raw.get("CapacityReservationId")
    return NodeStatus(
        id=raw["InstanceId"],
        node_group=tags.get(NODE_GROUP_TAG, ""),
        type=raw["InstanceType"],
        state=raw["State"]["Name"],
        health=health.get(raw["InstanceId"], ""),
        market=raw.get("InstanceLifecycle") or ("reserved" if reservation else "on-demand"),
        reservation=reservation,
        zone=raw["Placement"]["AvailabilityZone"],
        address=raw.get("PrivateIpAddress", ""),
        launched=raw["LaunchTime"],
    )
