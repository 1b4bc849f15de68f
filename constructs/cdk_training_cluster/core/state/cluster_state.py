"""The table in which a cluster's functions keep what has to outlive a run."""

from collections.abc import Iterator
from typing import Annotated

import jsii
from aws_cdk import AspectPriority, Aspects, Aws, IAspect, RemovalPolicy
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct, IConstruct

from cdk_training_cluster.core.acknowledgements import warn
from cdk_training_cluster.validation import text_problems
from cdk_training_cluster.validation.checks import shown
from cdk_training_cluster.validation.kinds import checked
from cluster_contract.state import StateAttribute, StatePart

_READS = ["dynamodb:GetItem", "dynamodb:Query"]
_WRITES = ["dynamodb:PutItem"]

# The parts whose function reads all items with one request and writes many with one, which is all it does.
_AT_ONCE = frozenset({StatePart.IDLE})
_AT_ONCE_ACTIONS = ["dynamodb:BatchWriteItem", "dynamodb:Query"]
_KEY_USES = [
    "kms:Decrypt",
    "kms:DescribeKey",
    "kms:Encrypt",
    "kms:GenerateDataKey",
    "kms:GenerateDataKeyWithoutPlaintext",
    "kms:ReEncryptFrom",
    "kms:ReEncryptTo",
]

_ABOVE_ANY_PRIORITY = 2**31


def _no_snapshot(setting: str, value: object) -> Iterator[str]:
    # https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/aws-attribute-deletionpolicy.html
    if not isinstance(value, RemovalPolicy) or value is RemovalPolicy.SNAPSHOT:
        given = "SNAPSHOT, which no table has" if value is RemovalPolicy.SNAPSHOT else shown(value)
        yield f"{setting} must be RemovalPolicy.DESTROY, RETAIN or RETAIN_ON_UPDATE_OR_DELETE, got {given}"


@jsii.implements(IAspect)
class _OnlyTagsOfDynamoDb:
    """Leave off the table what DynamoDB does not take as a tag, such as an e-mail address, which other services take.

    Source: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/TaggingRestrictions.html
    """

    def __init__(self, called: str) -> None:
        """Take what warnings call the table."""
        self._called = called

    def visit(self, node: IConstruct) -> None:
        """Look at the tags of a resource, when all that CDK gives it are there.

        Args:
            node: A construct of the table's tree.
        """
        if not isinstance(node, dynamodb.CfnTable):
            return
        for key, value in node.tags.tag_values().items():
            problems = text_problems("its key", key, "dynamodbTagKey") or text_problems(
                "its value", value, "dynamodbTagValue"
            )
            for problem in problems:
                node.tags.remove_tag(key, _ABOVE_ANY_PRIORITY)
                warn(
                    node,
                    "stateTableTag",
                    f"the {self._called} goes without the tag {key!r}, which DynamoDB does not take: {problem}.",
                )


def keep_tags_of_dynamodb(table: dynamodb.Table, called: str) -> None:
    """Leave off a table what DynamoDB does not take as a tag, with a warning.

    Args:
        table: The table.
        called: What warnings call it.
    """
    # CDK gives resources their tags by aspects too, which run before this one.
    Aspects.of(table).add(_OnlyTagsOfDynamoDb(called), priority=AspectPriority.READONLY)


def let_use_key(grantee: iam.IGrantable, encryption_key: kms.IKey | None) -> None:
    """Let a principal use the key that encrypts tables, for DynamoDB only, which uses it in the principal's name.

    Args:
        grantee: Who reads or writes items.
        encryption_key: The key. None: a key that AWS owns encrypts the tables.
    """
    if encryption_key is None:
        return
    service = f"dynamodb.{Aws.REGION}.{Aws.URL_SUFFIX}"
    iam.Grant.add_to_principal(
        grantee=grantee,
        actions=_KEY_USES,
        resource_arns=[encryption_key.key_arn],
        conditions={"StringEquals": {"kms:ViaService": service}},
    )


class ClusterState(Construct):
    """Make the table of a cluster's functions: which node groups are stopped, and which warnings were sent.

    Each function writes one part of it, which its role is limited to. The table is billed by request, and DynamoDB
    can restore it to any second of the last 35 days. DynamoDB's deletion protection is off: a stack whose creation
    fails takes the table away again, which that would refuse. A tag that DynamoDB's documents do not allow is left
    off, with a warning.

    Resources: one `AWS::DynamoDB::Table`.

    Attributes:
        table_name: The table's name.
        table_arn: The table's ARN.

    Sources: https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-dynamodb-table.html,
    https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/specifying-conditions.html,
    https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/TTL.html and
    https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/encryption.usagenotes.html
    """

    @checked
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        encryption_key: kms.IKey | None = None,
        removal_policy: Annotated[RemovalPolicy, _no_snapshot] = RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
    ) -> None:
        """Make the table.

        Args:
            scope: The parent construct.
            id: The construct's id.
            encryption_key: The KMS key that encrypts the table; it can be given, changed and removed later.
                Default: - a key that AWS owns.
            removal_policy: What becomes of the table when its stack is deleted. One that is kept is not found again:
                a new stack makes a new table. Default: - it is kept.
        """
        super().__init__(scope, id)
        self._encryption_key = encryption_key
        self._written = set[str]()
        self._table = dynamodb.Table(
            self,
            "Resource",
            partition_key=dynamodb.Attribute(name=StateAttribute.PART.value, type=dynamodb.AttributeType.STRING),
            sort_key=dynamodb.Attribute(name=StateAttribute.NAME.value, type=dynamodb.AttributeType.STRING),
            billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST,
            time_to_live_attribute=StateAttribute.EXPIRES.value,
            point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
                point_in_time_recovery_enabled=True
            ),
            encryption=None if encryption_key is None else dynamodb.TableEncryption.CUSTOMER_MANAGED,
            encryption_key=encryption_key,
            removal_policy=removal_policy,
        )
        keep_tags_of_dynamodb(self._table, "state table")
        self.table_name: str = self._table.table_name
        self.table_arn: str = self._table.table_arn

    def grant_read(self, grantee: iam.IGrantable, part: StatePart, cluster_name: str) -> None:
        """Let a function read one part of one cluster's state.

        Args:
            grantee: The function's role.
            part: The part.
            cluster_name: The cluster's name.
        """
        self._grant(grantee, part.key(cluster_name), _READS)

    def grant_read_write(self, grantee: iam.IGrantable, part: StatePart, cluster_name: str) -> None:
        """Let a function read and write one part of one cluster's state, as the only one.

        Args:
            grantee: The function's role.
            part: The part.
            cluster_name: The cluster's name.

        Raises:
            ValueError: Another function writes it already: each would undo what the other does.
        """
        key = part.key(cluster_name)
        if key in self._written:
            raise ValueError(
                f"the part {part.value} of the cluster {cluster_name} in the state table has a writer already: give "
                "the other cluster another name, or another ClusterState"
            )
        self._written.add(key)
        self._grant(grantee, key, _AT_ONCE_ACTIONS if part in _AT_ONCE else _READS + _WRITES)

    def _grant(self, grantee: iam.IGrantable, key: str, actions: list[str]) -> None:
        iam.Grant.add_to_principal(
            grantee=grantee,
            actions=actions,
            resource_arns=[self.table_arn],
            conditions={"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": [key]}},
        )
        let_use_key(grantee, self._encryption_key)
