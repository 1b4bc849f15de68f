"""The nodes of a cluster, and how a user names one: by its instance id, or as `workers/0`."""

import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from cdk_training_cluster_cli.core.aws_errors import plain_refusals
from cdk_training_cluster_cli.core.target import Target
from cluster_contract.description import ClusterDescription, description_parameter
from cluster_contract.tags import CLUSTER_TAG, NODE_GROUP_TAG

_ID = re.compile(r"i-[0-9a-f]{8,17}")
_NAME = re.compile(r"([A-Za-z0-9._-]+)/([0-9]{1,4})")
LIVE = ("pending", "running")
"""EC2's states of the nodes that can be named by their place."""


@dataclass(frozen=True, kw_only=True)
class ListedNode:
    """A node that lives.

    Attributes:
        id: The instance's id.
        node_group: Its node group.
        index: Its place in the group, from 0, in the order in which the nodes were launched.
        state: EC2's state of it.
    """

    id: str
    node_group: str
    index: int
    state: str

    @property
    def name(self) -> str:
        """How a user names it."""
        return f"{self.node_group}/{self.index}"


def node_filters(cluster: str, description: ClusterDescription, states: Sequence[str]) -> list[dict[str, Any]]:
    """Return the filters of DescribeInstances for the nodes of a cluster.

    The tag alone does not identify a node: a principal that may tag instances can add it to any instance. A node also
    has the security group of the cluster's network, which only a launch or a change of its groups can give.

    Args:
        cluster: The cluster's name.
        description: What its deployment wrote down.
        states: EC2's states of the nodes.

    Raises:
        ValueError: An earlier release deployed the cluster.

    Source: https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeInstances.html
    """
    if not description.security_group:
        raise ValueError(
            f"the SSM parameter {description_parameter(cluster)} does not name the security group of the nodes: "
            "deploy the cluster again"
        )
    return [
        {"Name": f"tag:{CLUSTER_TAG}", "Values": [cluster]},
        {"Name": "instance.group-id", "Values": [description.security_group]},
        {"Name": "instance-state-name", "Values": list(states)},
    ]


def find_nodes(target: Target) -> Sequence[ListedNode]:
    """Ask EC2 for the nodes of a cluster that are pending or running, by group and in the order of their launch.

    Args:
        target: The cluster.

    Raises:
        ValueError: The cluster's description cannot be read, or EC2 refuses.
    """
    filters = node_filters(target.name, target.description, LIVE)
    with plain_refusals("the cluster's instances"):
        pages = target.client("ec2").get_paginator("describe_instances").paginate(Filters=filters)
        found = [
            (_group(raw.get("Tags", ())), raw["LaunchTime"], raw["InstanceId"], raw["State"]["Name"])
            for page in pages
            for each in page["Reservations"]
            for raw in each["Instances"]
        ]
    nodes, seen = [], Counter[str]()
    for group, _, instance, state in sorted(found):
        nodes.append(ListedNode(id=instance, node_group=group, index=seen[group], state=state))
        seen[group] += 1
    return nodes


def node_problem(text: str) -> str | None:
    """Say why a text cannot name a node, before AWS is asked. None: it can.

    Args:
        text: What was given.
    """
    if _ID.fullmatch(text) or _NAME.fullmatch(text):
        return None
    return (
        "a node must be an instance id such as i-0123456789abcdef0, or a node group and a number such as workers/0, "
        f"got {text!r}"
    )


def named_node(text: str, nodes: Sequence[ListedNode], cluster: str) -> ListedNode:
    """Return the node that a user names.

    Args:
        text: An instance id, or the node group's name and the index.
        nodes: The cluster's nodes.
        cluster: The cluster's name.

    Raises:
        ValueError: It names none.
    """
    found = next((node for node in nodes if text in (node.id, node.name)), None)
    if found is None:
        raise ValueError(f"{text} is no live node of the cluster {cluster!r}: {_known(nodes)}")
    return found


def check_groups(names: Collection[str], nodes: Sequence[ListedNode], cluster: str) -> None:
    """Refuse node groups that have no node.

    Args:
        names: What was given.
        nodes: The cluster's nodes.
        cluster: The cluster's name.

    Raises:
        ValueError: One has none.
    """
    missing = sorted(set(names) - {node.node_group for node in nodes})
    if missing:
        raise ValueError(f"no node of {', '.join(missing)} lives in the cluster {cluster!r}: {_known(nodes)}")


def _known(nodes: Sequence[ListedNode]) -> str:
    counts = Counter(node.node_group for node in nodes)
    if not counts:
        return "no node of it is pending or running"
    return f"its nodes are {', '.join(f'{name}/0 to {name}/{count - 1}' for name, count in counts.items())}"


def _group(tags: Sequence[dict[str, str]]) -> str:
    return next((tag["Value"] for tag in tags if tag["Key"] == NODE_GROUP_TAG), "none")
