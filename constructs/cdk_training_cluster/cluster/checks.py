"""What a cluster's settings demand of each other, before anything is made."""

from collections.abc import Iterator, Mapping, Sequence
from weakref import WeakKeyDictionary

from aws_cdk import Stack, Stage
from constructs import Construct, IConstruct

from cdk_training_cluster.cluster.orchestrator import Orchestrator
from cdk_training_cluster.instance_types import InstanceTypeInfo
from cdk_training_cluster.network import DEFAULT_CIDR, ClusterNetwork, node_range_of
from cdk_training_cluster.nodes import IdlePolicy, NodeGroup, Schedule
from cdk_training_cluster.nodes.rules import ClusterContext, by_rule, cluster_problems, together_warnings
from cdk_training_cluster.storage import TrainingFileSystem
from cdk_training_cluster.validation.checks import is_unknown, shown
from cdk_training_cluster.validation.words import Words

_CLUSTERS: WeakKeyDictionary[IConstruct, dict[tuple[str, ...], str]] = WeakKeyDictionary()
"""The paths of each app's clusters, by where they are deployed and their names."""


def check_name(cluster: Construct, cluster_name: str) -> None:
    """Refuse a second cluster of one name in one place: each would find, size and stop the other's nodes by its tag.

    Stacks that leave account or region to the credentials are in one place if they are in one stage: one command
    deploys them.

    Args:
        cluster: The cluster.
        cluster_name: Its name.

    Raises:
        ValueError: Another cluster of the app, for the same account and region, has the name.
    """
    if is_unknown(cluster_name):
        return
    place = Stack.of(cluster).environment
    stage = Stage.of(cluster) if "unknown-" in place else None
    others = _CLUSTERS.setdefault(cluster.node.root, {})
    key = (place, "" if stage is None else stage.node.path, cluster_name)
    if key in others:
        raise ValueError(
            f"cluster_name must be unique in an account and region, got {shown(cluster_name)} for {others[key]} and "
            f"{cluster.node.path}: rename one"
        )
    others[key] = cluster.node.path


def check_cluster(
    *,
    node_groups: Sequence[NodeGroup],
    availability_zone: str | None,
    network: ClusterNetwork | None,
    file_system: TrainingFileSystem | None,
    idle_policy: IdlePolicy | None,
    schedule: Schedule | None = None,
    instance_type_facts: Sequence[InstanceTypeInfo],
    words: Words,
    orchestrator: Orchestrator,
    zone_id: str | None = None,
) -> ClusterContext:
    """Refuse the settings of a `TrainingCluster` that cannot be together; they are explained there.

    Returns:
        The node groups, with what holds for them.

    Raises:
        ValueError: A setting is wrong; every reason, a line each.
    """
    problems = list(_network_problems(availability_zone, network, file_system))
    if not node_groups:
        problems.append("node_groups must hold at least one NodeGroup, got none")
    together = ClusterContext.of(
        node_groups,
        idle_policy,
        instance_type_facts,
        availability_zone=availability_zone if network is None else network.availability_zone,
        zone_id=zone_id,
        public_subnet=network is not None and network.is_public,
        existing_network=network is not None and network.spare_range is None,
        node_range=node_range_of(DEFAULT_CIDR) if network is None else network.node_range,
        schedule=schedule,
        words=words,
        orchestrator=orchestrator.kind,
    )
    problems += map(str, cluster_problems(together))
    problems += map(str, orchestrator.problems(together))
    if problems:
        raise ValueError("\n".join(problems))
    return together


def cluster_warnings(together: ClusterContext, orchestrator: Orchestrator) -> Mapping[str, str]:
    """Say what of settings that can be together will surprise: a sentence by the rule's id.

    Args:
        together: The node groups, with what holds for them.
        orchestrator: The orchestrator that launches the nodes.
    """
    return {**together_warnings(together), **by_rule(orchestrator.warnings(together))}


def _network_problems(
    availability_zone: str | None, network: ClusterNetwork | None, file_system: TrainingFileSystem | None
) -> Iterator[str]:
    if network is None and availability_zone is None:
        yield (
            "availability_zone or network is required: name the zone to make a network in, such as "
            "availability_zone='us-east-1b', or give a ClusterNetwork"
        )
    if network is not None and availability_zone is not None:
        yield "availability_zone and network exclude each other: the zone is the network's; leave it out"
    if file_system is not None and network is None:
        yield (
            "network is required beside file_system: nodes reach a file system in its own network; give "
            "file_system.network"
        )
    if file_system is not None and network is not None and file_system.network is not network:
        yield (
            f"file_system must be in the cluster's network, got one in {file_system.network.node.path}: the rules "
            "that let nodes reach it are made with its network; make both with the same ClusterNetwork"
        )
