"""The arguments that every kind of cluster takes; `TrainingCluster` explains them."""

from collections.abc import Sequence
from typing import NotRequired, TypedDict

from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sns as sns

from cdk_training_cluster.core.state import ClusterState
from cdk_training_cluster.guardrails import Budget
from cdk_training_cluster.guardrails.health import HealthPolicy
from cdk_training_cluster.instance_types import InstanceTypeInfo
from cdk_training_cluster.network import ClusterNetwork
from cdk_training_cluster.nodes import IdlePolicy, NodeGroup, Schedule
from cdk_training_cluster.observability.prometheus import Observability
from cdk_training_cluster.storage import CheckpointStore, Dataset, TrainingFileSystem
from cdk_training_cluster.validation.bounds import ClusterName


class TrainingClusterArguments(TypedDict):
    """The keyword arguments of `TrainingCluster`."""

    node_groups: Sequence[NodeGroup]
    availability_zone: NotRequired[str | None]
    network: NotRequired[ClusterNetwork | None]
    datasets: NotRequired[Sequence[Dataset]]
    file_system: NotRequired[TrainingFileSystem | None]
    checkpoints: NotRequired[CheckpointStore | None]
    cluster_name: NotRequired[ClusterName | None]
    alert_topic: NotRequired[sns.ITopic | None]
    backup_alert_topic: NotRequired[sns.ITopic | None]
    state: NotRequired[ClusterState | None]
    idle_policy: NotRequired[IdlePolicy | None]
    schedule: NotRequired[Schedule | None]
    budget: NotRequired[Budget | None]
    health: NotRequired[HealthPolicy | None]
    instance_type_facts: NotRequired[Sequence[InstanceTypeInfo]]
    powertools_layer: NotRequired[lambda_.ILayerVersion | None]
    encryption_key: NotRequired[kms.IKey | None]
    observability: NotRequired[Observability | None]
    dashboard: NotRequired[bool]
