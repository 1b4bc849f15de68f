"""The logs of a cluster's Slurm in CloudWatch Logs.

Source: https://docs.aws.amazon.com/pcs/latest/userguide/monitoring_scheduler-logs.html
"""

from aws_cdk import Names, RemovalPolicy
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from aws_cdk import aws_pcs as pcs
from constructs import Construct

from cdk_training_cluster.core.encryption import KeyUser, allow

# Scheduler and ended jobs; not the audit log, which is nine tenths of all that Slurm logs.
# https://docs.aws.amazon.com/pcs/latest/userguide/monitoring_scheduler-audit-logs.html
_LOGS = {"SchedulerLogs": "PCS_SCHEDULER_LOGS", "JobLogs": "PCS_JOBCOMP_LOGS"}
# https://docs.aws.amazon.com/AmazonCloudWatchLogs/latest/APIReference/API_PutDeliverySource.html
_MAX_NAME = 60 - len("-MEDIUM")


def deliver_logs(scope: Construct, cluster: pcs.CfnCluster, *, encryption_key: kms.IKey | None) -> logs.LogGroup:
    """Deliver the logs of the scheduler and of ended jobs to a log group.

    Args:
        scope: The training cluster.
        cluster: The cluster of AWS PCS.
        encryption_key: The KMS key that encrypts the log group. None: CloudWatch's own.
    """
    allow(scope, encryption_key, KeyUser.LOGS)
    group = logs.LogGroup(
        scope,
        "SlurmLogs",
        # With this beginning CloudWatch allows the delivery by itself.
        # https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/AWS-logs-and-resource-policy.html
        log_group_name=f"/aws/vendedlogs/pcs/{Names.unique_resource_name(cluster, max_length=100)}",
        retention=logs.RetentionDays.THREE_MONTHS,
        removal_policy=RemovalPolicy.DESTROY,
        encryption_key=encryption_key,
    )
    before: logs.CfnDelivery | None = None
    for part_id, kind in _LOGS.items():
        part = Construct(scope, part_id)
        name = Names.unique_resource_name(part, max_length=_MAX_NAME, separator="-")
        # With another size the cluster is another one, and so is its source, for which the name would be taken.
        source = logs.CfnDeliverySource(
            part, "Source", name=f"{name}-{cluster.size}", resource_arn=cluster.attr_arn, log_type=kind
        )
        destination = logs.CfnDeliveryDestination(
            part, "Destination", name=name, destination_resource_arn=group.log_group_arn
        )
        delivery = logs.CfnDelivery(
            part, "Delivery", delivery_source_name=source.name, delivery_destination_arn=destination.attr_arn
        )
        # It names the source by its name, which CloudFormation takes for no reference.
        delivery.node.add_dependency(source)
        if before is not None:
            # CloudWatch refuses deliveries that share an end and are made or deleted at the same time.
            # https://github.com/hashicorp/terraform-provider-aws/issues/42194
            delivery.node.add_dependency(before)
        before = delivery
    return group
