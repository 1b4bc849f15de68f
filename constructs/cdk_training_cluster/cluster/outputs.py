"""The outputs of a cluster's stack that the documentation names."""

from typing import TYPE_CHECKING

from aws_cdk import CfnOutput
from constructs import Construct

if TYPE_CHECKING:
    from cdk_training_cluster.cluster.training_cluster import TrainingCluster


def make_outputs(scope: Construct, cluster: "TrainingCluster") -> None:
    """Make the outputs of a cluster.

    Args:
        scope: Where they are made; those of a stack have the names that the documentation uses.
        cluster: The cluster.
    """
    CfnOutput(scope, "AlertTopicArn", value=cluster.alert_topic.topic_arn)
    CfnOutput(
        scope,
        "RunsTableName",
        description="Nodes of a training run find each other in it",
        value=cluster.runs_table.table_name,
    )
    for guardrail in cluster.guardrails:
        CfnOutput(scope, guardrail.spec.output, value=guardrail.function_name)
    if cluster.cost_budget is not None:
        CfnOutput(
            scope,
            "ActivateCostTagCommand",
            description="Lets the AWS budget count the bill of the cluster; run it once an organization, in the "
            "management account, a day after the first deployment",
            value=cluster.cost_budget.activation_command,
        )
    CfnOutput(
        scope,
        "ResumeCommand",
        description="Starts every node group again; --parameters NodeGroups=<name> starts one",
        value=cluster.resume_document.command,
    )
    for output in cluster.orchestrator.outputs(cluster):
        CfnOutput(scope, output.name, description=output.description, value=output.value)
    if cluster.prometheus is not None:
        CfnOutput(scope, "PrometheusUrl", description="For a data source", value=cluster.prometheus.query_url)
