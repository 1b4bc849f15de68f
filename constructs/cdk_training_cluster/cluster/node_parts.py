"""The nodes of a cluster, and what they are made with: functions that make them of values that exist."""

from collections.abc import Sequence

from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sns as sns
from constructs import Construct

from cdk_training_cluster.cluster.base import ClusterBase, SharedParts
from cdk_training_cluster.cluster.orchestrator import Orchestrator
from cdk_training_cluster.core.state.runs_table import make_runs_table
from cdk_training_cluster.functions import make_alert_topic
from cdk_training_cluster.guardrails.money.cost_budget import has_cost_budgets
from cdk_training_cluster.network import ClusterNetwork
from cdk_training_cluster.nodes import NodeFleet
from cdk_training_cluster.nodes.fleet_owners import FleetOwners
from cdk_training_cluster.nodes.fleet_warnings import warn_of_moving_images
from cdk_training_cluster.nodes.job_role import let_write_metrics
from cdk_training_cluster.nodes.lustre_connections import warn_of_connections
from cdk_training_cluster.nodes.reservation_function import ReservationFunction
from cdk_training_cluster.nodes.rules import ClusterContext
from cdk_training_cluster.observability.prometheus import ClusterPrometheus, Observability
from cdk_training_cluster.storage import Dataset, ExportedCheckpoints, TrainingFileSystem
from cluster_contract.metrics import job_namespace


def shared_file_system(
    file_system: TrainingFileSystem | None, checkpoints: ExportedCheckpoints
) -> TrainingFileSystem:
    """Return the file system that the nodes mount, which is the one that checkpoints are exported from.

    Args:
        file_system: The one that the cluster was given, or None.
        checkpoints: Where training keeps its checkpoints.

    Raises:
        ValueError: They are two.
    """
    if file_system not in (None, checkpoints.file_system):
        raise ValueError(
            "checkpoints must be exported from the cluster's file_system, got a directory of another one: give the "
            "store's file system to both"
        )
    return checkpoints.file_system


def make_file_system(
    scope: Construct, network: ClusterNetwork, file_system: TrainingFileSystem | None, datasets: Sequence[Dataset]
) -> TrainingFileSystem | None:
    """Return the file system with the data sets linked; without one, make it if there are data sets.

    Args:
        scope: The cluster.
        network: Where its nodes live.
        file_system: The one that the cluster was given, or None.
        datasets: What to link.
    """
    if file_system is None and datasets:
        return TrainingFileSystem(scope, "FileSystem", network=network, datasets=datasets)
    if file_system is not None:
        for dataset in datasets:
            file_system.add_dataset(dataset)
    return file_system


def make_shared_parts(
    base: ClusterBase,
    orchestrator: Orchestrator,
    alert_topic: sns.ITopic | None,
    observability: Observability | None,
    *,
    budgets: bool,
) -> SharedParts:
    """Make what the nodes of all groups share.

    Args:
        base: What the cluster has.
        orchestrator: The orchestrator that launches the nodes.
        alert_topic: Where alarms and functions report. None: a topic is made.
        observability: What is observed with Prometheus. None: nothing.
        budgets: Whether AWS Budgets publishes to the topic.
    """
    scope, key = base.scope, base.encryption_key
    role = orchestrator.make_role(base)
    job_role = orchestrator.make_job_role(base, role)
    let_write_metrics(job_role, job_namespace(base.cluster_name))
    profile = iam.InstanceProfile(scope, "InstanceProfile", role=role)
    topic = alert_topic or make_alert_topic(scope, key, budgets=budgets and has_cost_budgets(Stack.of(scope).region))
    prometheus = None
    if observability is not None:
        prometheus = ClusterPrometheus(
            scope,
            "Prometheus",
            cluster_name=base.cluster_name,
            observability=observability,
            alert_topic=topic,
            encryption_key=key,
        )
        # The collector is no process of root's.
        prometheus.grant_write(job_role if orchestrator.serves_job_role else role)
    return SharedParts(
        role=role,
        job_role=job_role,
        instance_profile=profile,
        alert_topic=topic,
        prometheus=prometheus,
        runs_table=make_runs_table(scope, role, job_role, key),
    )


def make_node_groups(
    base: ClusterBase,
    shared: SharedParts,
    together: ClusterContext,
    owners: FleetOwners,
    powertools_layer: lambda_.ILayerVersion | None,
) -> dict[str, NodeFleet]:
    """Make the nodes of every group and return them by name.

    Args:
        base: What the cluster has.
        shared: What its nodes share.
        together: The node groups, checked.
        owners: The orchestrator that launches the nodes, whose control is made.
        powertools_layer: As for `ClusterFunction`.
    """
    # In a scope of their own, so that a group may be called as its users like.
    scope = Construct(base.scope, "NodeGroups")
    reservations = (
        ReservationFunction(
            base.scope,
            "ReservationFunction",
            cluster_name=base.cluster_name,
            alert_topic=shared.alert_topic,
            powertools_layer=powertools_layer,
            encryption_key=base.encryption_key,
        )
        if any(nodes.group.reserves_in_placement_group for nodes in together.nodes)
        else None
    )
    fleets = {
        nodes.group.name: NodeFleet(
            scope,
            nodes.group.name,
            cluster_name=base.cluster_name,
            network=base.network,
            node_group=nodes.group,
            role=shared.role,
            job_role=shared.job_role,
            instance_profile=shared.instance_profile,
            mount=base.mount,
            environment=None if base.checkpoints is None else base.checkpoints.environment,
            idle_policy=nodes.policy,
            encryption_key=base.encryption_key,
            collector=None if shared.prometheus is None else shared.prometheus.collector,
            runs_table=shared.runs_table.table_name,
            _checked=nodes,
            _owners=owners,
            _reservations=reservations,
        )
        for nodes in together.nodes
    }
    warn_of_moving_images(base.scope, {name: fleet.moving_images for name, fleet in fleets.items()})
    if base.file_system is not None:
        for fleet in fleets.values():
            fleet.owner.node.add_dependency(*base.file_system.access_rules)
        if base.file_system.efa_enabled:
            warn_of_connections(base.scope, fleets.values())
    return fleets
