"""The table in which the nodes of a training run agree on who takes part, and since when."""

from aws_cdk import RemovalPolicy
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct

from cdk_training_cluster.acknowledgements import acknowledge
from cdk_training_cluster.state.cluster_state import keep_tags_of_dynamodb, let_use_key

_ACTIONS = ("GetItem", "PutItem", "UpdateItem", "DeleteItem", "Query")


def make_runs_table(scope: Construct, *, nodes: iam.IGrantable, encryption_key: kms.IKey | None) -> dynamodb.Table:
    """Make the table of a cluster's runs, and let its nodes read and write it.

    Nodes of a run find each other in it, so that no host of the run has to live for that. It is billed by request and
    deleted with its stack: what it holds is of no use after a run.

    Resources: one `AWS::DynamoDB::Table`.

    Args:
        scope: The cluster.
        nodes: The nodes' role.
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
    iam.Grant.add_to_principal(
        grantee=nodes, actions=[f"dynamodb:{action}" for action in _ACTIONS], resource_arns=[table.table_arn]
    )
    let_use_key(nodes, encryption_key)
    return table
