"""The alarm on nodes that are billed and could not be set up."""

from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_sns as sns
from constructs import Construct

from cdk_training_cluster.core.runbooks import runbook
from cdk_training_cluster.nodes.node_metrics import node_metric
from cluster_contract.metrics import NODE_METRICS
from cluster_contract.tags import CLUSTER_TAG


def make_bootstrap_alarm(scope: Construct, cluster_name: str, topic: sns.ITopic) -> cloudwatch.Alarm:
    """Make the alarm on nodes that could not be set up.

    Args:
        scope: The cluster.
        cluster_name: Its name.
        topic: What it notifies.
    """
    # A job that adds numbers below zero would hide a failure from a sum.
    failures = node_metric(NODE_METRICS.bootstrap_failed, cluster_name, statistic="Maximum")
    alarm = failures.create_alarm(
        scope,
        "BootstrapFailed",
        alarm_description=f"{cluster_name}: a node could not be set up, and is billed without working. Look "
        f"in the metric {NODE_METRICS.bootstrap_failed} by NodeGroup for the node's group. This command "
        f"prints the node and the failed step: `{_failed_nodes_command(cluster_name)}`. Mend that step, and "
        f"terminate the node: its group launches another. Runbook: {runbook('node', 'BootstrapFailed')}",
        threshold=1,
        evaluation_periods=1,
        comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
        # Nodes speak up only when they fail.
        treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
    )
    alarm.add_alarm_action(actions.SnsAction(topic))
    return alarm


def _failed_nodes_command(cluster_name: str) -> str:
    """Return a command that shows the ids of nodes whose console says that a step failed.

    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instance-console.html
    """
    nodes = (
        f"aws ec2 describe-instances --filters Name=tag:{CLUSTER_TAG},Values={cluster_name} "
        "Name=instance-state-name,Values=running --query 'Reservations[].Instances[].InstanceId' --output text"
    )
    console = "aws ec2 get-console-output --latest --instance-id $i --query Output --output text"
    return f"for i in $({nodes}); do {console} | grep 'bootstrap failed' | sed s/^/$i:/; done"
