"""The table in which the nodes of a training run agree on who takes part, and since when."""

from aws_cdk import RemovalPolicy
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct

from cdk_training_cluster.core.acknowledgements import acknowledge
from cdk_training_cluster.core.state.cluster_state import keep_tags_of_dynamodb, let_use_key

_ACTIONS = ("GetItem", "PutItem", "UpdateItem", "DeleteItem", "Query")


REPLACED_PARTITIONS = "replaced-before-service/*"
"""The partitions in which nodes count those that were replaced before they entered service."""


def make_runs_table(
    scope: Construct, nodes: iam.IRole, jobs: iam.IRole, encryption_key: kms.IKey | None
) -> dynamodb.Table:
    """Make the table of a cluster's runs, and let its jobs read and write it.

    Nodes of a run find each other in it, so that no host of the run has to live for that. It is billed by request and
    deleted with its stack: what it holds is of no use after a run. Nodes may write the partitions of their count,
    which jobs may not reach where they have a role of their own.

    Resources: one `AWS::DynamoDB::Table`.

    Args:
        scope: The cluster.
        nodes: The nodes' role.
        jobs: The jobs' role, which is that of the nodes where jobs have none of their own.
        encryption_key: The KMS key that encrypts the table. None: a key that AWS owns does.

    Sources: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/TTL.html and
    https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Expressions.ConditionExpressions.html
    """
    table = dynamodb.Table(
        scope,
        "Runs",
        partition_key=dynamodb.Attribute(name="run", type=dynamodb.AttributeType.STRING),
        sort_key=dynamodb.Attribute(name="key", type=dynamodb.AttributeType.STRING),
        billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST,
        time_to_live_attribute="expires",
        encryption=None if encryption_key is None else dynamodb.TableEncryption.CUSTOMER_MANAGED,
        encryption_key=encryption_key,
        removal_policy=RemovalPolicy.DESTROY,
    )
    keep_tags_of_dynamodb(table, "runs table")
    acknowledge(table, "AwsSolutions-DDB3", "Its items are of no use after the run that wrote them.")
    actions = [f"dynamodb:{action}" for action in _ACTIONS]
    iam.Grant.add_to_principal(grantee=jobs, actions=actions, resource_arns=[table.table_arn])
    for role in dict.fromkeys((jobs, nodes)):
        let_use_key(role, encryption_key)
    if jobs is not nodes:
        _separate(table, nodes, jobs)
    return table


def _separate(table: dynamodb.Table, nodes: iam.IRole, jobs: iam.IRole) -> None:
    """Let nodes alone write the partitions of their count.

    A request without the key matches ForAllValues, and does not match ForAnyValue. So what is allowed asks for the
    key too. What names one of the partitions among others is denied, whatever else is granted.
    https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_condition-single-vs-multi-valued-context-keys.html
    """
    counted = {"dynamodb:LeadingKeys": [REPLACED_PARTITIONS]}
    nodes.add_to_principal_policy(
        iam.PolicyStatement(
            actions=["dynamodb:PutItem"],
            resources=[table.table_arn],
            conditions={"ForAllValues:StringLike": counted, "Null": {"dynamodb:LeadingKeys": "false"}},
        )
    )
    jobs.add_to_principal_policy(
        iam.PolicyStatement(
            effect=iam.Effect.DENY,
            actions=["dynamodb:*"],
            resources=[table.table_arn],
            conditions={"ForAnyValue:StringLike": counted},
        )
    )
