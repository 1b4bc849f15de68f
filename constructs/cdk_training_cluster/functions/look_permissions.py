"""What a principal needs who looks at a cluster with `training-cluster status`, `events`, `logs` and `why`."""

from collections.abc import Mapping, Sequence

from aws_cdk import ArnFormat, Stack
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam

from cdk_training_cluster.core.conditions import HERE, in_this_region
from cdk_training_cluster.functions.guardrail import Guardrail
from cluster_contract.billing import BILLING_REGION
from cluster_contract.tags import CLUSTER_TAG

# The functions that `status` asks; through no alias, so that they do no more than on their schedule: the alias of the
# health function brings the reports of nodes.
_ASKED = ("cluster_power", "cluster_health", "cluster_idle", "cluster_spend")

# These cannot be limited to resources, or their resources have no names before the deployment. None of them returns
# what can hold secrets of others, as a console or the properties in the events of a stack can.
# https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonec2.html and the lists beside it
_READS = (
    "autoscaling:DescribeAutoScalingGroups",
    "autoscaling:DescribeScalingActivities",
    "cloudformation:DescribeStackResources",
    "ec2:DescribeInstances",
    "ec2:DescribeInstanceStatus",
    "ec2:DescribeSpotFleetRequestHistory",
    "ec2:DescribeSpotFleetRequests",
)


def grant_look(
    grantee: iam.IGrantable,
    cluster_name: str,
    guardrails: Sequence[Guardrail],
    parameters: Sequence[str],
    runs_table: dynamodb.ITable,
) -> iam.Grant:
    """Let a principal look at a cluster, and change nothing.

    Args:
        grantee: A role, user or function.
        cluster_name: The value of the cluster's tag on its nodes.
        guardrails: The cluster's functions.
        parameters: The names of the SSM parameters in which the cluster says what it is and how far it is.
        runs_table: The table in which its training runs report.
    """
    stack = Stack.of(guardrails[0])
    billed = {"StringEquals": {"aws:RequestedRegion": [HERE.region, BILLING_REGION]}}
    nodes = {"StringEquals": {f"aws:ResourceTag/{CLUSTER_TAG}": cluster_name}}
    statements: list[tuple[Sequence[str], Sequence[str], Mapping[str, Mapping[str, object]]]] = [
        (
            ["lambda:InvokeFunction"],
            [each.function.function_arn for each in guardrails if each.spec.package in _ASKED],
            {},
        ),
        (
            ["ssm:GetParameter", "ssm:GetParameters"],
            # A name begins with the slash that an ARN has behind `parameter`.
            [
                stack.format_arn(service="ssm", resource=f"parameter{name}", arn_format=ArnFormat.NO_RESOURCE_NAME)
                for name in parameters
            ],
            {},
        ),
        (["dynamodb:Query"], [runs_table.table_arn], {}),
        (["logs:FilterLogEvents"], [each.log_group.log_group_arn for each in guardrails], {}),
        (["ec2:GetConsoleOutput"], [HERE.arn("ec2", "instance/*")], nodes),
        (["cloudformation:DescribeStackEvents"], [HERE.arn("cloudformation", f"stack/{stack.stack_name}/*")], {}),
        (["cloudwatch:DescribeAlarms"], ["*"], billed),
        (_READS, ["*"], in_this_region()),
    ]
    if runs_table.encryption_key is not None:
        # DynamoDB uses the key in the principal's name; it encrypts more than the table.
        # https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/encryption.usagenotes.html
        by_dynamodb = {"StringEquals": {"kms:ViaService": f"dynamodb.{HERE.region}.{HERE.url_suffix}"}}
        statements.append((["kms:Decrypt"], [runs_table.encryption_key.key_arn], by_dynamodb))
    first, *others = (
        iam.Grant.add_to_principal(
            grantee=grantee, actions=list(actions), resource_arns=list(arns), conditions=conditions or None
        )
        for actions, arns, conditions in statements
    )
    for other in others:
        first = first.combine(other)
    return first
