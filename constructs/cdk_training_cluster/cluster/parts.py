"""The parts of a cluster: functions that make a part of one when what the part needs is made."""

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from aws_cdk import CfnResource, Stack
from aws_cdk import aws_autoscaling as autoscaling
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sns as sns
from aws_cdk import aws_ssm as ssm
from constructs import Construct

from cdk_training_cluster.functions import GuardrailArguments, forward_alarms
from cdk_training_cluster.guardrails import (
    BillingAlarms,
    Budget,
    CheckpointWatch,
    ClusterSpend,
    DatasetHydration,
    IdleGroup,
    IdleStop,
    SpendGroup,
)
from cdk_training_cluster.guardrails.money.fixed_parts import as_floats, engine_price_problems, fixed_parts
from cdk_training_cluster.guardrails.money.spend import alarm_count, scheduled_function
from cdk_training_cluster.instance_types import InstanceTypeInfo
from cdk_training_cluster.nodes import IdlePolicy, NodeFleet
from cdk_training_cluster.nodes.dashboard import accelerator_row
from cdk_training_cluster.nodes.fleet_warnings import warn_of_moving_images
from cdk_training_cluster.nodes.node_role import allow_run_command
from cdk_training_cluster.nodes.orchestrator_kind import OrchestratorKind
from cdk_training_cluster.nodes.reservation_function import ReservationFunction
from cdk_training_cluster.nodes.rules import ClusterContext
from cdk_training_cluster.nodes.runs import run_row
from cdk_training_cluster.observability import ClusterDashboard
from cdk_training_cluster.observability.prometheus import ClusterPrometheus, Observability
from cdk_training_cluster.storage import CheckpointStore, Dataset, ExportedCheckpoints, TrainingFileSystem
from cdk_training_cluster.storage.dashboard import file_system_row
from cdk_training_cluster.validation.rule import refuse
from cluster_contract.checkpoints import place_parameter
from cluster_contract.codec import encode
from cluster_contract.description import ClusterDescription, FunctionDescription, description_parameter, kind_of

if TYPE_CHECKING:
    from cdk_training_cluster.cluster.training_cluster import TrainingCluster


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
    cluster: "TrainingCluster", file_system: TrainingFileSystem | None, datasets: Sequence[Dataset]
) -> TrainingFileSystem | None:
    """Return the file system with the data sets linked; without one, make it if there are data sets.

    Args:
        cluster: The cluster, whose network is made.
        file_system: The one that the cluster was given, or None.
        datasets: What to link.
    """
    if file_system is None and datasets:
        return TrainingFileSystem(cluster, "FileSystem", network=cluster.network, datasets=datasets)
    if file_system is not None:
        for dataset in datasets:
            file_system.add_dataset(dataset)
    return file_system


def make_node_groups(
    cluster: "TrainingCluster", together: ClusterContext, powertools_layer: lambda_.ILayerVersion | None
) -> dict[str, NodeFleet]:
    """Make the nodes of every group and return them by name.

    Args:
        cluster: The cluster, whose role, instance profile, file system and control of the engine are made.
        together: The node groups, checked.
        powertools_layer: As for `ClusterFunction`.
    """
    # In a scope of their own, so that a group may be called as its users like.
    scope = Construct(cluster, "NodeGroups")
    reservations = (
        ReservationFunction(
            cluster,
            "ReservationFunction",
            cluster_name=cluster.cluster_name,
            alert_topic=cluster.alert_topic,
            powertools_layer=powertools_layer,
            encryption_key=cluster.encryption_key,
        )
        if any(nodes.group.reserves_in_placement_group for nodes in together.nodes)
        else None
    )
    fleets = {
        nodes.group.name: NodeFleet(
            scope,
            nodes.group.name,
            cluster_name=cluster.cluster_name,
            network=cluster.network,
            node_group=nodes.group,
            role=cluster.role,
            job_role=cluster.job_role,
            instance_profile=cluster.instance_profile,
            mount=cluster.mount,
            environment=None if cluster.checkpoints is None else cluster.checkpoints.environment,
            idle_policy=nodes.policy,
            encryption_key=cluster.encryption_key,
            collector=None if cluster.prometheus is None else cluster.prometheus.collector,
            runs_table=cluster.runs_table.table_name,
            _checked=nodes,
            _owners=cluster.orchestrator,
            _reservations=reservations,
        )
        for nodes in together.nodes
    }
    warn_of_moving_images(cluster, {name: fleet.moving_images for name, fleet in fleets.items()})
    return fleets


def make_prometheus(cluster: "TrainingCluster", observability: Observability | None) -> ClusterPrometheus | None:
    """Make the workspace of Prometheus that the nodes write to. None: `observability` is not given.

    Args:
        cluster: The cluster.
        observability: What is observed.
    """
    if observability is None:
        return None
    made = ClusterPrometheus(
        cluster,
        "Prometheus",
        cluster_name=cluster.cluster_name,
        observability=observability,
        alert_topic=cluster.alert_topic,
        encryption_key=cluster.encryption_key,
    )
    # The collector is no process of root's.
    made.grant_write(cluster.job_role if cluster.orchestrator.serves_job_role else cluster.role)
    return made


def start_with_groups(cluster: "TrainingCluster") -> None:
    """Have CloudFormation make the power function when it is done with the groups and their lifecycle hooks.

    A group that gets its nodes before would make the deployment wait for them, and no hook would hold nodes that are
    launched before it is there.

    Args:
        cluster: The cluster, with its health function, which makes hooks.
    """
    for fleet in cluster.node_groups:
        hooks: list[CfnResource] = [
            one for one in fleet.node.children if isinstance(one, autoscaling.CfnLifecycleHook)
        ]
        cluster.power.function.node.add_dependency(*(hooks or [fleet.owner]))


def make_idle_stop(
    cluster: "TrainingCluster",
    common: GuardrailArguments,
    policy: IdlePolicy | None,
    *,
    policies: Mapping[str, IdlePolicy],
    facts: Sequence[InstanceTypeInfo],
) -> IdleStop | None:
    """Make what stops idle nodes. None: every node group's policy is off.

    Args:
        cluster: The cluster.
        common: What all guardrails take.
        policy: The cluster's policy as it was given.
        policies: When the nodes of each group are idle.
        facts: Facts about instance types that the catalog does not have.
    """
    if all(each.is_off for each in policies.values()):
        return None
    groups = {each.node_group.name: each for each in cluster.node_groups}
    return IdleStop(
        cluster,
        "IdleStop",
        **common,
        policy=policy,
        node_groups={name: IdleGroup.of(fleet, policies[name]) for name, fleet in groups.items()},
        power=cluster.power,
        hydration=cluster.hydration,
        gpu_counts={info.name: info.nvidia_gpu_count for info in facts if info.has_nvidia_gpus},
    )


def make_billing_alarms(
    cluster: "TrainingCluster", common: GuardrailArguments, budget: Budget | None
) -> BillingAlarms | None:
    """Make what keeps the billing alarms. None: there is no budget.

    Args:
        cluster: The cluster.
        common: What all guardrails take.
        budget: What may be spent.
    """
    if budget is None:
        return None
    return BillingAlarms(
        cluster,
        "BillingAlarms",
        budget=budget,
        name=cluster.cluster_name,
        alert_topic=cluster.alert_topic,
        powertools_layer=common["powertools_layer"],
        encryption_key=cluster.encryption_key,
    )


def watch_checkpoints(
    cluster: "TrainingCluster", common: GuardrailArguments, checkpoints: CheckpointStore | None
) -> CheckpointWatch | None:
    """Let jobs write checkpoints, say where they are, and make what alarms when a new one is missing.

    Args:
        cluster: The cluster.
        common: What all guardrails take.
        checkpoints: Where training keeps its checkpoints. None: nowhere, and nothing is made.
    """
    if checkpoints is None:
        return None
    if not checkpoints.place.directory:
        checkpoints.grant_read_write(cluster.job_role)
    ssm.StringParameter(
        cluster,
        "CheckpointPlace",
        parameter_name=place_parameter(cluster.cluster_name),
        description="Where the checkpoints of the training cluster are",
        string_value=Stack.of(cluster).to_json_string(encode(checkpoints.place)),
    )
    return CheckpointWatch(
        cluster,
        "CheckpointWatch",
        cluster_name=cluster.cluster_name,
        checkpoints=checkpoints,
        alert_topic=cluster.alert_topic,
        powertools_layer=common["powertools_layer"],
        encryption_key=cluster.encryption_key,
    )


def make_hydration(cluster: "TrainingCluster", common: GuardrailArguments) -> DatasetHydration | None:
    """Make what preloads and releases data sets. None: no data set asks for it.

    Args:
        cluster: The cluster.
        common: What all guardrails take.
    """
    files = cluster.file_system
    if files is None or not any(dataset.is_maintained for dataset in files.datasets):
        return None
    if any(dataset.preload for dataset in files.datasets):
        allow_run_command(cluster.role)
    return DatasetHydration(cluster, "Hydration", **common, file_system=files)


def make_spend(
    cluster: "TrainingCluster",
    common: GuardrailArguments,
    budget: Budget | None,
    *,
    counted: Collection[object],
    dashboards: int,
) -> ClusterSpend | None:
    """Make what counts the cluster's dollars. None: there is no budget.

    Args:
        cluster: The cluster, of which everything else is made.
        common: What all guardrails take.
        budget: What may be spent.
        counted: Networks and file systems that other clusters count.
        dashboards: How many dashboards are made.
    """
    if budget is None:
        return None
    groups = {each.node_group.name: each for each in cluster.node_groups}
    of_nodes = {name: cluster.orchestrator.node_units(fleet) for name, fleet in groups.items()}
    of_engine = cluster.orchestrator.hourly_units(cluster)
    refuse({"budget": engine_price_problems(budget, [of_engine, *of_nodes.values()], Stack.of(cluster).region)})
    fixed = fixed_parts(
        cluster,
        network=None if cluster.network in counted else cluster.network,
        file_system=None if cluster.file_system in counted else cluster.file_system,
        groups=len(groups),
        own_alarms=alarm_count(budget),
        own_function=scheduled_function(),
        dashboards=dashboards,
        orchestrator=of_engine,
    )
    return ClusterSpend(
        cluster,
        "Spend",
        **common,
        budget=budget,
        node_groups={name: SpendGroup.of(fleet, as_floats(of_nodes[name])) for name, fleet in groups.items()},
        fixed=fixed,
        starts=cluster.orchestrator.billing_starts(cluster),
        prices=budget.prices,
        power=cluster.power,
    )


def add_backup_topic(cluster: "TrainingCluster", backup: sns.ITopic | None) -> None:
    """Send to a backup topic the cluster's alarms, and what its functions cannot publish to the alert topic.

    Args:
        cluster: The cluster, of which all functions are made.
        backup: The backup topic. None: there is none.
    """
    if backup is None:
        return
    forward_alarms(
        cluster,
        cluster.cluster_name,
        alert_topic=cluster.alert_topic,
        backup=backup,
        queue=cluster.power.failed_events,
    )
    for guardrail in cluster.guardrails:
        guardrail.add_backup_topic(backup)


def make_dashboard(cluster: "TrainingCluster") -> ClusterDashboard:
    """Make the CloudWatch dashboard of everything that is made.

    Args:
        cluster: The cluster.
    """
    parts = (
        cluster.power.dashboard_row(),
        accelerator_row(cluster.cluster_name, cluster.node_groups),
        run_row(cluster.cluster_name),
        *cluster.orchestrator.rows(cluster),
        *(guardrail.dashboard_row() for guardrail in cluster.guardrails if guardrail is not cluster.power),
        None if cluster.file_system is None else file_system_row(cluster.file_system),
    )
    return ClusterDashboard(
        cluster,
        "Dashboard",
        cluster_name=cluster.cluster_name,
        rows=[row for row in parts if row is not None],
        alarms=[each for each in cluster.node.find_all() if isinstance(each, cloudwatch.Alarm)],
    )


def describe_parts(cluster: "TrainingCluster") -> ssm.StringParameter:
    """Make the parameter by which the command `training-cluster` finds the parts.

    Args:
        cluster: The cluster.
    """
    kind = cluster.orchestrator.kind
    description = ClusterDescription(
        functions={
            kind_of(each.spec.package): FunctionDescription(
                invoke=each.function_name, log_group=each.log_group.log_group_name
            )
            for each in cluster.guardrails
        },
        alert_topic=cluster.alert_topic.topic_arn,
        state_table=cluster.state.table_name,
        runs_table=cluster.runs_table.table_name,
        resume_document=cluster.resume_document.document.ref,
        dashboard="" if cluster.dashboard is None else cluster.dashboard.dashboard_name,
        orchestrator="" if kind is OrchestratorKind.NONE else kind.value,
        access={output.name: output.value for output in cluster.orchestrator.outputs(cluster)},
    )
    return ssm.StringParameter(
        cluster,
        "Description",
        parameter_name=description_parameter(cluster.cluster_name),
        simple_name=False,  # it begins with a slash, and may be known at deployment only
        description="The parts of the training cluster, for the command training-cluster",
        string_value=Stack.of(cluster).to_json_string(description.values()),
    )
