"""What a principal needs who looks at a cluster with `training-cluster status`, `events`, `logs` and `why`."""

from collections.abc import Sequence

from aws_cdk import ArnFormat, Stack
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam

from cdk_training_cluster.functions.guardrail import Guardrail

# The functions that `status` asks; through no alias, so that they do no more than on their schedule: the alias of the
# health function brings the reports of nodes.
_ASKED = ("cluster_power", "cluster_health", "cluster_idle", "cluster_spend")

# None of these can be limited to resources, or those are not known before they are there.
# https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonec2.html and the lists beside it
_READS = (
    "autoscaling:DescribeAutoScalingGroups",
    "autoscaling:DescribeScalingActivities",
    "cloudformation:DescribeStackEvents",
    "cloudformation:DescribeStackResources",
    "cloudwatch:DescribeAlarms",
    "ec2:DescribeInstances",
    "ec2:DescribeInstanceStatus",
    "ec2:DescribeSpotFleetRequestHistory",
    "ec2:DescribeSpotFleetRequests",
    "ec2:GetConsoleOutput",
)


def grant_look(
    grantee: iam.IGrantable, guardrails: Sequence[Guardrail], parameters: Sequence[str], runs_table: dynamodb.ITable
) -> iam.Grant:
    """Let a principal look at a cluster, and change nothing.

    Args:
        grantee: A role, user or function.
        guardrails: The cluster's functions.
        parameters: The names of the SSM parameters in which the cluster says what it is and how far it is.
        runs_table: The table in which its training runs report.
    """
    stack = Stack.of(guardrails[0])
    statements = {
        ("lambda:InvokeFunction",): [
            each.function.function_arn for each in guardrails if each.spec.package in _ASKED
        ],
        ("ssm:GetParameter", "ssm:GetParameters"): [
            # A name begins with the slash that an ARN has behind `parameter`.
            stack.format_arn(service="ssm", resource=f"parameter{name}", arn_format=ArnFormat.NO_RESOURCE_NAME)
            for name in parameters
        ],
        ("dynamodb:Query",): [runs_table.table_arn],
        ("logs:FilterLogEvents",): [each.log_group.log_group_arn for each in guardrails],
        _READS: ["*"],
    }
    grants = [
        iam.Grant.add_to_principal(grantee=grantee, actions=list(actions), resource_arns=arns)
        for actions, arns in statements.items()
    ]
    if runs_table.encryption_key is not None:
        grants.append(runs_table.encryption_key.grant_decrypt(grantee))
    first, *others = grants
    for other in others:
        first = first.combine(other)
    return first
