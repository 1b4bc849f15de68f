"""The guardrails and the dashboard of a cluster: functions that make them of values that exist."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from aws_cdk import CfnResource, Stack
from aws_cdk import aws_autoscaling as autoscaling
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sqs as sqs
from aws_cdk import aws_ssm as ssm
from constructs import Construct

from cdk_training_cluster.cluster.base import ClusterBase, SharedParts
from cdk_training_cluster.cluster.orchestrator import Orchestrator
from cdk_training_cluster.core.dashboards.rows import DashboardRow
from cdk_training_cluster.core.state import ClusterState
from cdk_training_cluster.functions import FunctionArguments, Guardrail, GuardrailArguments, forward_alarms
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
from cdk_training_cluster.guardrails.money.fixed_parts import as_floats, fixed_parts, orchestrator_price_problems
from cdk_training_cluster.guardrails.money.spend import alarm_count, scheduled_function
from cdk_training_cluster.guardrails.power import ClusterPower, PowerGroup
from cdk_training_cluster.instance_types import InstanceTypeInfo
from cdk_training_cluster.nodes import IdlePolicy, NodeFleet
from cdk_training_cluster.nodes.dashboard import accelerator_row
from cdk_training_cluster.nodes.node_role import allow_run_command
from cdk_training_cluster.nodes.rules import ClusterContext
from cdk_training_cluster.nodes.runs import run_row
from cdk_training_cluster.observability import ClusterDashboard
from cdk_training_cluster.storage import CheckpointStore, TrainingFileSystem
from cdk_training_cluster.storage.dashboard import file_system_row
from cdk_training_cluster.validation.rule import refuse
from cluster_contract.checkpoints import place_parameter
from cluster_contract.codec import encode


def guardrail_arguments(
    base: ClusterBase, shared: SharedParts, state: ClusterState, powertools_layer: lambda_.ILayerVersion | None
) -> GuardrailArguments:
    """Return what all guardrails take.

    Args:
        base: What the cluster has.
        shared: What its nodes share.
        state: Where functions remember what they did.
        powertools_layer: As for `ClusterFunction`.
    """
    return {
        "cluster_name": base.cluster_name,
        "alert_topic": shared.alert_topic,
        "state": state,
        "powertools_layer": powertools_layer,
        "encryption_key": base.encryption_key,
    }


def make_power(
    scope: Construct, common: GuardrailArguments, together: ClusterContext, fleets: Mapping[str, NodeFleet]
) -> ClusterPower:
    """Make what starts and stops the nodes.

    Args:
        scope: The cluster.
        common: What all guardrails take.
        together: The node groups, checked.
        fleets: The nodes of every group, by its name.
    """
    policies = _policies_of(together)
    groups = {
        nodes.group.name: PowerGroup.of(fleets[nodes.group.name], policies[nodes.group.name], nodes.schedule)
        for nodes in together.nodes
    }
    return ClusterPower(scope, "Power", **common, groups=groups)


def _policies_of(together: ClusterContext) -> dict[str, IdlePolicy]:
    """Return when the nodes of each group are idle."""
    return {nodes.group.name: nodes.policy for nodes in together.nodes if nodes.policy is not None}


def start_with_groups(power: ClusterPower, fleets: Iterable[NodeFleet]) -> None:
    """Have CloudFormation make the power function when it is done with the groups and their lifecycle hooks.

    A group that gets its nodes before would make the deployment wait for them, and no hook would hold nodes that are
    launched before it is there.

    Args:
        power: The power function.
        fleets: The nodes of every group, with the hooks that the health function makes.
    """
    for fleet in fleets:
        hooks: list[CfnResource] = [
            one for one in fleet.node.children if isinstance(one, autoscaling.CfnLifecycleHook)
        ]
        power.function.node.add_dependency(*(hooks or [fleet.owner]))


def make_idle_stop(
    scope: Construct,
    common: GuardrailArguments,
    together: ClusterContext,
    fleets: Mapping[str, NodeFleet],
    *,
    power: ClusterPower,
    hydration: DatasetHydration | None,
    facts: Sequence[InstanceTypeInfo],
) -> IdleStop | None:
    """Make what stops idle nodes. None: every node group's policy is off.

    Args:
        scope: The cluster.
        common: What all guardrails take.
        together: The node groups, checked.
        fleets: The nodes of every group, by its name.
        power: What stops them.
        hydration: What preloads and releases data sets, or None.
        facts: Facts about instance types that the catalog does not have.
    """
    policies = _policies_of(together)
    if all(each.is_off for each in policies.values()):
        return None
    return IdleStop(
        scope,
        "IdleStop",
        **common,
        policy=together.policy,
        node_groups={name: IdleGroup.of(fleet, policies[name]) for name, fleet in fleets.items()},
        power=power,
        hydration=hydration,
        gpu_counts={info.name: info.nvidia_gpu_count for info in facts if info.has_nvidia_gpus},
    )


def make_billing_alarms(scope: Construct, common: GuardrailArguments, budget: Budget | None) -> BillingAlarms | None:
    """Make what keeps the billing alarms. None: there is no budget.

    Args:
        scope: The cluster.
        common: What all guardrails take.
        budget: What may be spent.
    """
    if budget is None:
        return None
    name = common["cluster_name"]
    return BillingAlarms(scope, "BillingAlarms", budget=budget, name=name, **_of_its_function(common))


def _of_its_function(common: GuardrailArguments) -> FunctionArguments:
    """Return what guardrails without state take."""
    return {
        "alert_topic": common["alert_topic"],
        "powertools_layer": common.get("powertools_layer"),
        "encryption_key": common.get("encryption_key"),
    }


def watch_checkpoints(
    scope: Construct, common: GuardrailArguments, checkpoints: CheckpointStore | None, job_role: iam.Role
) -> CheckpointWatch | None:
    """Let jobs write checkpoints, say where they are, and make what alarms when a new one is missing.

    Args:
        scope: The cluster.
        common: What all guardrails take.
        checkpoints: Where training keeps its checkpoints. None: nowhere, and nothing is made.
        job_role: The jobs' role.
    """
    if checkpoints is None:
        return None
    if not checkpoints.place.directory:
        checkpoints.grant_read_write(job_role)
    ssm.StringParameter(
        scope,
        "CheckpointPlace",
        parameter_name=place_parameter(common["cluster_name"]),
        description="Where the checkpoints of the training cluster are",
        string_value=Stack.of(scope).to_json_string(encode(checkpoints.place)),
    )
    return CheckpointWatch(
        scope,
        "CheckpointWatch",
        cluster_name=common["cluster_name"],
        checkpoints=checkpoints,
        **_of_its_function(common),
    )


def make_hydration(
    scope: Construct, common: GuardrailArguments, files: TrainingFileSystem | None, role: iam.Role
) -> DatasetHydration | None:
    """Make what preloads and releases data sets. None: no data set asks for it.

    Args:
        scope: The cluster.
        common: What all guardrails take.
        files: The file system that the nodes mount. None: there is none.
        role: The nodes' role.
    """
    if files is None or not any(dataset.is_maintained for dataset in files.datasets):
        return None
    if any(dataset.preload for dataset in files.datasets):
        allow_run_command(role)
    return DatasetHydration(scope, "Hydration", **common, file_system=files)


def make_spend(
    base: ClusterBase,
    common: GuardrailArguments,
    budget: Budget | None,
    *,
    orchestrator: Orchestrator,
    fleets: Mapping[str, NodeFleet],
    power: ClusterPower,
    counted: Collection[object],
    dashboards: int,
) -> ClusterSpend | None:
    """Make what counts the cluster's dollars. None: there is no budget.

    Args:
        base: What the cluster has; everything else in its scope is made.
        common: What all guardrails take.
        budget: What may be spent.
        orchestrator: The orchestrator that launches the nodes.
        fleets: The nodes of every group, by its name.
        power: What starts and stops them.
        counted: Networks and file systems that other clusters count.
        dashboards: How many dashboards are made.
    """
    if budget is None:
        return None
    of_nodes = {name: orchestrator.node_units(fleet) for name, fleet in fleets.items()}
    of_orchestrator = orchestrator.hourly_units()
    refuse(
        {
            "budget": orchestrator_price_problems(
                budget, [of_orchestrator, *of_nodes.values()], Stack.of(base.scope).region
            )
        }
    )
    fixed = fixed_parts(
        base.scope,
        network=None if base.network in counted else base.network,
        file_system=None if base.file_system in counted else base.file_system,
        groups=len(fleets),
        own_alarms=alarm_count(budget),
        own_function=scheduled_function(),
        dashboards=dashboards,
        orchestrator=of_orchestrator,
    )
    return ClusterSpend(
        base.scope,
        "Spend",
        **common,
        budget=budget,
        node_groups={name: SpendGroup.of(fleet, as_floats(of_nodes[name])) for name, fleet in fleets.items()},
        fixed=fixed,
        starts=orchestrator.billing_starts(),
        prices=budget.prices,
        power=power,
    )


def add_backup_topic(
    scope: Construct,
    common: GuardrailArguments,
    backup: sns.ITopic | None,
    *,
    guardrails: Iterable[Guardrail],
    queue: sqs.Queue,
) -> None:
    """Send to a backup topic the cluster's alarms, and what its functions cannot publish to the alert topic.

    Args:
        scope: The cluster.
        common: What all guardrails take.
        backup: The backup topic. None: there is none.
        guardrails: All the functions that watch the cluster.
        queue: Where events go that cannot be delivered.
    """
    if backup is None:
        return
    forward_alarms(
        scope,
        common["cluster_name"],
        alert_topic=common["alert_topic"],
        backup=backup,
        queue=queue,
    )
    for guardrail in guardrails:
        guardrail.add_backup_topic(backup)


def make_dashboard(
    base: ClusterBase, fleets: Sequence[NodeFleet], guardrails: Sequence[Guardrail], rows: Sequence[DashboardRow]
) -> ClusterDashboard:
    """Make the CloudWatch dashboard of everything that is made.

    Args:
        base: What the cluster has.
        fleets: The nodes of every group.
        guardrails: All the functions that watch the cluster, the power function first.
        rows: The rows of the orchestrator.
    """
    power, *others = guardrails
    parts = (
        power.dashboard_row(),
        accelerator_row(base.cluster_name, fleets),
        run_row(base.cluster_name),
        *rows,
        *(guardrail.dashboard_row() for guardrail in others),
        None if base.file_system is None else file_system_row(base.file_system),
    )
    return ClusterDashboard(
        base.scope,
        "Dashboard",
        cluster_name=base.cluster_name,
        rows=[row for row in parts if row is not None],
        alarms=[each for each in base.scope.node.find_all() if isinstance(each, cloudwatch.Alarm)],
    )
