"""How people and the command `training-cluster` find the parts of a cluster: stack outputs, and a parameter."""

from collections.abc import Sequence
from dataclasses import dataclass

from aws_cdk import CfnOutput, Stack
from aws_cdk import aws_ssm as ssm
from constructs import Construct

from cdk_training_cluster.cluster.base import SharedParts
from cdk_training_cluster.cluster.orchestrator import Orchestrator
from cdk_training_cluster.core.state import ClusterState
from cdk_training_cluster.functions import Guardrail
from cdk_training_cluster.guardrails import ResumeDocument
from cdk_training_cluster.guardrails.money.cost_budget import CostBudget
from cdk_training_cluster.observability import ClusterDashboard
from cluster_contract.description import ClusterDescription, FunctionDescription, description_parameter, kind_of


@dataclass(frozen=True, kw_only=True)
class NamedParts:
    """Hold the parts of a cluster that people and the command `training-cluster` find by name.

    Attributes:
        cluster_name: The cluster's name.
        guardrails: All the functions that watch it.
        shared: What the nodes share.
        security_group: The id of the nodes' security group.
        state: What the functions remember.
        resume_document: What starts node groups again.
        dashboard: The CloudWatch dashboard. None: there is none.
        cost_budget: The AWS budget. None: there is none.
        orchestrator: The orchestrator that launches the nodes.
    """

    cluster_name: str
    guardrails: Sequence[Guardrail]
    shared: SharedParts
    security_group: str
    state: ClusterState
    resume_document: ResumeDocument
    dashboard: ClusterDashboard | None
    cost_budget: CostBudget | None
    orchestrator: Orchestrator


def make_outputs(scope: Construct, parts: NamedParts) -> None:
    """Make the outputs of a cluster.

    Args:
        scope: Where they are made; those of a stack have the names that the documentation uses.
        parts: Its parts.
    """
    CfnOutput(scope, "AlertTopicArn", value=parts.shared.alert_topic.topic_arn)
    CfnOutput(
        scope,
        "RunsTableName",
        description="Nodes of a training run find each other in it",
        value=parts.shared.runs_table.table_name,
    )
    for guardrail in parts.guardrails:
        CfnOutput(scope, guardrail.spec.output, value=guardrail.function_name)
    if parts.cost_budget is not None:
        CfnOutput(
            scope,
            "ActivateCostTagCommand",
            description="Lets the AWS budget count the bill of the cluster; run it once an organization, in the "
            "management account, a day after the first deployment",
            value=parts.cost_budget.activation_command,
        )
    CfnOutput(
        scope,
        "ResumeCommand",
        description="Starts every node group again; --parameters NodeGroups=<name> starts one",
        value=parts.resume_document.command,
    )
    for output in parts.orchestrator.outputs(parts.cluster_name):
        CfnOutput(scope, output.name, description=output.description, value=output.value)
    if parts.shared.prometheus is not None:
        CfnOutput(scope, "PrometheusUrl", description="For a data source", value=parts.shared.prometheus.query_url)


def describe_parts(scope: Construct, parts: NamedParts) -> ssm.StringParameter:
    """Make the parameter by which the command `training-cluster` finds the parts.

    Args:
        scope: The cluster.
        parts: Its parts.
    """
    kind = parts.orchestrator.kind
    description = ClusterDescription(
        functions={
            kind_of(each.spec.package): FunctionDescription(
                invoke=each.function_name, log_group=each.log_group.log_group_name
            )
            for each in parts.guardrails
        },
        alert_topic=parts.shared.alert_topic.topic_arn,
        state_table=parts.state.table_name,
        runs_table=parts.shared.runs_table.table_name,
        security_group=parts.security_group,
        resume_document=parts.resume_document.document.ref,
        dashboard="" if parts.dashboard is None else parts.dashboard.dashboard_name,
        orchestrator=kind.value if kind.traits.runs_jobs else "",
        access={output.name: output.value for output in parts.orchestrator.outputs(parts.cluster_name)},
    )
    return ssm.StringParameter(
        scope,
        "Description",
        parameter_name=description_parameter(parts.cluster_name),
        simple_name=False,  # it begins with a slash, and may be known at deployment only
        description="The parts of the training cluster, for the command training-cluster",
        string_value=Stack.of(scope).to_json_string(description.values()),
    )
