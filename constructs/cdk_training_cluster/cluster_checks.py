"""What a cluster's settings demand of each other, before anything is made."""

from collections.abc import Iterator, Sequence
from weakref import WeakKeyDictionary

from aws_cdk import Stack, Stage
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sns as sns
from constructs import Construct, IConstruct

from cdk_training_cluster.checks import interface_problems, is_unknown, kind_problems, kinds_problems, shown
from cdk_training_cluster.guardrails import Budget
from cdk_training_cluster.instance_types import InstanceTypeInfo
from cdk_training_cluster.network import ClusterNetwork
from cdk_training_cluster.nodes import IdlePolicy, NodeGroup
from cdk_training_cluster.nodes.rules import Together, cluster_problems, look_up
from cdk_training_cluster.storage import Dataset, TrainingFileSystem
from cdk_training_cluster.validation import cluster_name_problems

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
    datasets: Sequence[Dataset],
    file_system: TrainingFileSystem | None,
    cluster_name: str | None,
    alert_topic: sns.ITopic | None,
    idle_policy: IdlePolicy | None,
    budget: Budget | None,
    instance_type_facts: Sequence[InstanceTypeInfo],
    powertools_layer: lambda_.ILayerVersion | None,
    encryption_key: kms.IKey | None,
) -> Together:
    """Refuse the settings of a `TrainingCluster` that cannot be; they are explained there.

    Returns:
        The node groups, with what holds for them.

    Raises:
        ValueError: A setting is wrong; every reason, a line each. What is of the wrong kind comes alone, since
            nothing else can be said of it.
    """
    problems = [
        *_list_problems(node_groups, datasets, instance_type_facts),
        *_text_problems(availability_zone, cluster_name),
        *_construct_problems(network, file_system, alert_topic, powertools_layer, encryption_key),
        *_policy_problems(idle_policy),
        *([] if budget is None else kind_problems("budget", budget, Budget, "Budget(monthly_usd=20_000)")),
    ]
    if problems:
        raise ValueError("\n".join(problems))
    problems += _network_problems(availability_zone, network, file_system)
    if not node_groups:
        problems.append("node_groups must hold at least one NodeGroup, got none")
    together = look_up(
        node_groups,
        idle_policy,
        instance_type_facts,
        availability_zone=availability_zone if network is None else network.availability_zone,
        public_subnet=network is not None and network.is_public,
    )
    problems += map(str, cluster_problems(together))
    if problems:
        raise ValueError("\n".join(problems))
    return together


def _list_problems(node_groups: object, datasets: object, instance_type_facts: object) -> list[str]:
    return [
        *kinds_problems(
            "node_groups", node_groups, NodeGroup, "NodeGroup('workers', instance_types=['p5.48xlarge'], count=8)"
        ),
        *kinds_problems("datasets", datasets, Dataset, "Dataset(bucket=bucket, file_system_path='/data')"),
        *kinds_problems(
            "instance_type_facts",
            instance_type_facts,
            InstanceTypeInfo,
            "replace(instance_type_info('p5.48xlarge'), name='p9.48xlarge')",
        ),
    ]


def _text_problems(availability_zone: object, cluster_name: object) -> Iterator[str]:
    if availability_zone is not None and not isinstance(availability_zone, str):
        yield f"availability_zone must be the name of a zone, such as 'us-east-1b', got {shown(availability_zone)}"
    if cluster_name is not None:
        yield from cluster_name_problems(cluster_name)


def _construct_problems(
    network: object, file_system: object, alert_topic: object, powertools_layer: object, encryption_key: object
) -> Iterator[str]:
    if network is not None:
        yield from kind_problems("network", network, ClusterNetwork, "ClusterNetwork.from_subnet(…)")
    if file_system is not None:
        yield from kind_problems("file_system", file_system, TrainingFileSystem, "TrainingFileSystem(…)")
    if alert_topic is not None:
        yield from interface_problems(
            "alert_topic", alert_topic, "topic_arn", "a topic of CDK, such as sns.Topic.from_topic_arn(…)"
        )
    if powertools_layer is not None:
        yield from interface_problems(
            "powertools_layer",
            powertools_layer,
            "layer_version_arn",
            "a layer of CDK, such as lambda_.LayerVersion.from_layer_version_arn(…)",
        )
    if encryption_key is not None:
        yield from interface_problems(
            "encryption_key", encryption_key, "key_arn", "a key of CDK, such as kms.Key.from_key_arn(…)"
        )


def _policy_problems(idle_policy: object) -> list[str]:
    if idle_policy is None:
        return []
    return kind_problems("idle_policy", idle_policy, IdlePolicy, "IdlePolicy(window=Duration.minutes(90))")


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
