"""A bucket that outlives its stack."""

from collections.abc import Sequence

from aws_cdk import RemovalPolicy
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct


def kept_bucket(
    scope: Construct,
    id: str,
    *,
    lifecycle_rules: Sequence[s3.LifecycleRule],
    encryption_key: kms.IKey | None = None,
    replication_rule: s3.ReplicationRule | None = None,
    replication_role: iam.IRole | None = None,
    access_logs_bucket: s3.IBucket | None = None,
    access_logs_prefix: str | None = None,
) -> s3.Bucket:
    """Make a private, versioned, encrypted bucket that stays when its stack goes, with its policy.

    Args:
        scope: The parent construct.
        id: The bucket's id.
        lifecycle_rules: What S3 deletes, and when.
        encryption_key: The KMS key that encrypts it. Default: - S3's own keys.
        replication_rule: What S3 copies to another bucket. Default: - nothing.
        replication_role: What S3 copies as. Default: - nothing is copied.
        access_logs_bucket: Where S3 writes who asked for what. Default: - nowhere.
        access_logs_prefix: How the keys of these logs start. Default: - with nothing of their own.
    """
    bucket = s3.Bucket(
        scope,
        id,
        block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
        encryption=s3.BucketEncryption.S3_MANAGED if encryption_key is None else s3.BucketEncryption.KMS,
        encryption_key=encryption_key,
        # One data key for many objects: without, each read of one asks KMS, which bills and throttles.
        bucket_key_enabled=None if encryption_key is None else True,
        versioned=True,
        lifecycle_rules=list(lifecycle_rules),
        replication_rules=None if replication_rule is None else [replication_rule],
        replication_role=replication_role,
        server_access_logs_bucket=access_logs_bucket,
        server_access_logs_prefix=access_logs_prefix,
        enforce_ssl=True,
        removal_policy=RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE,
    )
    if bucket.policy is not None:
        # The bucket stays when the stack goes, and so does what it demands of its readers.
        bucket.policy.apply_removal_policy(RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE)
    return bucket
