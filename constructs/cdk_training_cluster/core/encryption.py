"""A customer's KMS key: which statements its policy needs, and how a key that is made in CDK gets them.

Identities of the account get their permission from IAM, as the key's statement on the account's root lets them;
AWS's services and their service-linked roles need a statement of the key's own policy.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk.region_info import RegionInfo
from constructs import Construct

from cdk_training_cluster.core.acknowledgements import warn
from cdk_training_cluster.core.conditions import HERE
from cdk_training_cluster.validation.checks import is_unknown

Statement = dict[str, Any]

KEY_USER_METADATA = "cdk-training-cluster:encryption-key-user"
"""The metadata of a construct that says which `KeyUser` it has."""

_USE = ["kms:Encrypt", "kms:Decrypt", "kms:ReEncrypt*", "kms:GenerateDataKey*"]


class KeyUser(Enum):
    """What uses the key in its own name: its statements in the policy, and the document that asks for them."""

    LOGS = "https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/encrypt-log-data-kms.html"
    ALARMS = "https://repost.aws/knowledge-center/cloudwatch-configure-alarm-sns"
    BUDGETS = "https://docs.aws.amazon.com/cost-management/latest/userguide/budgets-sns-policy.html#protect-sns-sse"
    EVENTS = "https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-key-management.html"
    AUTO_SCALING = "https://docs.aws.amazon.com/autoscaling/ec2/userguide/key-policy-requirements-EBS-encryption.html"
    SPOT = (
        "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/service-linked-roles-spot-instance-requests.html"
        "#spot-instance-service-linked-roles-access-to-cmks"
    )
    SPOT_FLEET = (
        "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-fleet-prerequisites.html"
        "#spot-fleet-service-linked-roles-access-to-cmks"
    )
    PCS = "https://docs.aws.amazon.com/pcs/latest/userguide/encrypted-ebs-kms.html"
    PROMETHEUS = (
        "https://docs.aws.amazon.com/prometheus/latest/userguide/AMP-alertmanager-receiver-AMPpermission.html"
    )
    DATASETS = "https://docs.aws.amazon.com/fsx/latest/LustreGuide/s3-server-side-encryption-support.html"


_SERVICE_LINKED_ROLES: Mapping[KeyUser, tuple[str, str]] = {
    KeyUser.AUTO_SCALING: ("autoscaling.amazonaws.com", "AWSServiceRoleForAutoScaling"),
    KeyUser.SPOT: ("spot.amazonaws.com", "AWSServiceRoleForEC2Spot"),
    KeyUser.PCS: ("pcs.amazonaws.com", "AWSServiceRoleForPCS"),
    KeyUser.SPOT_FLEET: ("spotfleet.amazonaws.com", "AWSServiceRoleForEC2SpotFleet"),
}


@dataclass(frozen=True, kw_only=True)
class KeyPlace:
    """Where a key is used.

    Attributes:
        account: The account.
        region: The region.
        partition: The partition.
        url_suffix: The end of the partition's domain names.
    """

    account: str = field(default_factory=lambda: HERE.account_id)
    region: str = field(default_factory=lambda: HERE.region)
    partition: str = field(default_factory=lambda: HERE.partition)
    url_suffix: str = field(default_factory=lambda: HERE.url_suffix)

    @classmethod
    def known(cls, *, account: str, region: str) -> "KeyPlace":
        """Return a place without tokens.

        Args:
            account: The account.
            region: The region, which says what the partition is.
        """
        info = RegionInfo.get(region)
        partition, url_suffix = info.partition or "aws", info.domain_suffix or "amazonaws.com"
        return cls(account=account, region=region, partition=partition, url_suffix=url_suffix)


def allow(scope: Construct, key: kms.IKey | None, *users: KeyUser) -> None:
    """Let services use a key; where its policy is made elsewhere, warn of what it has to hold.

    Args:
        scope: What is encrypted with it.
        key: The key. None: nothing is encrypted with one.
        users: The services.
    """
    if not _added(scope, key, *users):
        warn(
            Stack.of(scope),
            "encryptionKeyPolicy",
            "the policy of encryption_key is managed outside this app and must let AWS's services use the key: "
            "otherwise log groups are refused, alarms cannot be published and nodes end with Client.InternalError at "
            "launch. See docs/security.md for its statements; `training-cluster key-policy <file>` prints them.",
        )


def allow_dataset(scope: Construct, bucket: s3.IBucket) -> None:
    """Let FSx use the key of a linked bucket; where its policy is made elsewhere, warn with the statement.

    Args:
        scope: What links the bucket.
        bucket: The bucket; without a key of KMS nothing is needed.
    """
    if not _added(scope, bucket.encryption_key, KeyUser.DATASETS):
        stack = Stack.of(scope)
        place = KeyPlace.known(
            account="<account>" if is_unknown(stack.account) else stack.account,
            region="<region>" if is_unknown(stack.region) else stack.region,
        )
        warn(
            stack,
            "datasetKeyPolicy",
            f"dataset bucket {bucket.node.path}: its key's policy is managed outside this app and must let FSx read "
            f"the bucket, or the link is MISCONFIGURED. The statement: {json.dumps(_datasets(place, bucket))}",
        )


def _added(scope: Construct, key: kms.IKey | None, *users: KeyUser) -> bool:
    """Add the services' statements to a key's policy; False: it is made elsewhere."""
    if key is None:
        return True
    for user in users:
        # `training-cluster key-policy` reads it, for the policy of a key that is made elsewhere.
        scope.node.add_metadata(KEY_USER_METADATA, user.name)
    statements = [iam.PolicyStatement.from_json(statement) for statement in key_statements(KeyPlace(), *users)]
    return all(key.add_to_resource_policy(statement, True).statement_added for statement in statements)


def key_statements(place: KeyPlace, *users: KeyUser) -> Iterator[Statement]:
    """Return the statements that let services use a key, each with a `Sid` of its own.

    Args:
        place: Where the key is used.
        users: The services.
    """
    for user in users:
        if user in _SERVICE_LINKED_ROLES:
            yield from _volume_statements(place, *_SERVICE_LINKED_ROLES[user])
        else:
            yield _STATEMENTS[user](place)


def key_policy(place: KeyPlace, *users: KeyUser) -> Statement:
    """Return a whole key policy, with the statement that lets IAM decide about the account's own identities.

    Args:
        place: Where the key is used.
        users: The services.
    """
    root = f"arn:{place.partition}:iam::{place.account}:root"
    # https://docs.aws.amazon.com/kms/latest/developerguide/key-policy-default.html
    account = {"Sid": "Account", "Effect": "Allow", "Principal": {"AWS": root}, "Action": "kms:*", "Resource": "*"}
    return {"Version": "2012-10-17", "Statement": [account, *key_statements(place, *users)]}


def _allow_use(
    sid: str, principal: Statement, action: str | list[str], condition: Statement | None = None
) -> Statement:
    whole = {"Sid": sid, "Effect": "Allow", "Principal": principal, "Action": action, "Resource": "*"}
    return whole if condition is None else {**whole, "Condition": condition}


def _volume_statements(place: KeyPlace, service: str, role: str) -> Iterator[Statement]:
    name = role.removeprefix("AWSServiceRoleFor")
    principal = {"AWS": f"arn:{place.partition}:iam::{place.account}:role/aws-service-role/{service}/{role}"}
    yield _allow_use(f"{name}Volumes", principal, [*_USE, "kms:DescribeKey"])
    condition = {"Bool": {"kms:GrantIsForAWSResource": "true"}}
    yield _allow_use(f"{name}VolumeGrants", principal, "kms:CreateGrant", condition)


def _logs(place: KeyPlace) -> Statement:
    log_groups = f"arn:{place.partition}:logs:{place.region}:{place.account}:log-group:*"
    principal = {"Service": f"logs.{place.region}.{place.url_suffix}"}
    condition = {"ArnLike": {"kms:EncryptionContext:aws:logs:arn": log_groups}}
    return _allow_use("LogGroups", principal, [*_USE, "kms:Describe*"], condition)


def _service(sid: str, service: str) -> Statement:
    # Without a condition: AWS shows aws:SourceAccount for both, but EventBridge is documented to give none to topics,
    # and a condition that is not met loses messages without an error.
    return _allow_use(sid, {"Service": service}, ["kms:Decrypt", "kms:GenerateDataKey*"])


def _datasets(place: KeyPlace, bucket: s3.IBucket | None = None) -> Statement:
    """Return the statement for linked buckets, limited to one whose name is known.

    AWS's own statement names the bucket in S3's encryption context. The policy of a key that is made in CDK cannot:
    a bucket made there names its key, and the two resources would wait for each other. The region is the file
    system's, which is the bucket's: a link that imports what changes does not reach another.
    https://docs.aws.amazon.com/fsx/latest/LustreGuide/fsx-data-repositories.html
    """
    # FSx makes a role for each file system, named for it: a policy cannot name what is not there yet.
    roles = (
        f"arn:{place.partition}:iam::{place.account}:role/aws-service-role/s3.data-source.lustre.fsx.amazonaws.com/"
        "AWSServiceRoleForFSxS3Access_*"
    )
    context = {}
    if bucket is not None and not is_unknown(bucket.bucket_name):
        # S3 gives the bucket where it has a bucket key, else the object.
        arn = f"arn:{place.partition}:s3:::{bucket.bucket_name}"
        context = {"kms:EncryptionContext:aws:s3:arn": [arn, f"{arn}/*"]}
    via = {"kms:CallerAccount": place.account, "kms:ViaService": f"s3.{place.region}.{place.url_suffix}"}
    condition = {"StringEquals": via, "ArnLike": {"aws:PrincipalArn": roles, **context}}
    return _allow_use("LinkedBuckets", {"AWS": "*"}, [*_USE, "kms:DescribeKey"], condition)


_STATEMENTS: Mapping[KeyUser, Callable[[KeyPlace], Statement]] = {
    KeyUser.LOGS: _logs,
    KeyUser.ALARMS: lambda _: _service("Alarms", "cloudwatch.amazonaws.com"),
    KeyUser.BUDGETS: lambda _: _service("Budgets", "budgets.amazonaws.com"),
    KeyUser.EVENTS: lambda _: _service("UndeliveredEvents", "events.amazonaws.com"),
    KeyUser.PROMETHEUS: lambda _: _service("Prometheus", "aps.amazonaws.com"),
    KeyUser.DATASETS: _datasets,
}
