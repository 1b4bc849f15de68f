"""The copy of a bucket that S3 keeps in another bucket, such as one of another region."""

from aws_cdk import CfnResource
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from cdk_training_cluster.core.acknowledgements import acknowledge
from cdk_training_cluster.core.retention import keep


def replication_rule(destination: s3.IBucket) -> s3.ReplicationRule:
    """Return the rule that copies every object, but no deletion.

    Args:
        destination: The bucket that gets the copies, with its key if it has one.
    """
    return s3.ReplicationRule(
        id="checkpoints",
        destination=destination,
        # S3 takes no rule with a filter, as CDK writes them, without one.
        # https://docs.aws.amazon.com/AmazonS3/latest/API/API_ReplicationRule.html
        priority=1,
        # A checkpoint that is deleted by mistake is still there.
        delete_marker_replication=False,
        kms_key=destination.encryption_key,
        # S3 takes a destination's key only with this criterion, whatever encrypts the source.
        # https://docs.aws.amazon.com/AmazonS3/latest/API/API_Destination.html
        sse_kms_encrypted_objects=None if destination.encryption_key is None else True,
    )


def replication_role(scope: Construct, id: str) -> iam.Role:
    """Make the role that S3 copies as, without permissions; CDK's own would have one name for all buckets.

    Args:
        scope: The parent construct.
        id: The role's id.
    """
    return iam.Role(
        scope,
        id,
        assumed_by=iam.ServicePrincipal("s3.amazonaws.com"),
        description="Copies checkpoints to another bucket",
    )


def permit_replication(
    role: iam.Role, source: s3.IBucket, destination: s3.IBucket, encryption_key: kms.IKey | None
) -> None:
    """Let the role read one bucket and write replicas into the other, and keep it as long as the bucket.

    Args:
        role: The role.
        source: The bucket that is copied.
        destination: The bucket that gets the copies.
        encryption_key: The key of the source.

    Source: https://docs.aws.amazon.com/AmazonS3/latest/userguide/setting-repl-config-perm-overview.html
    """
    for actions, resource in (
        (("s3:GetReplicationConfiguration", "s3:ListBucket"), source.bucket_arn),
        (
            ("s3:GetObjectVersionForReplication", "s3:GetObjectVersionAcl", "s3:GetObjectVersionTagging"),
            source.arn_for_objects("*"),
        ),
        (("s3:ReplicateObject", "s3:ReplicateTags"), destination.arn_for_objects("*")),
    ):
        role.add_to_policy(iam.PolicyStatement(actions=list(actions), resources=[resource]))
    if encryption_key is not None:
        role.add_to_policy(iam.PolicyStatement(actions=["kms:Decrypt"], resources=[encryption_key.key_arn]))
    if destination.encryption_key is not None:
        key_arn = destination.encryption_key.key_arn
        role.add_to_policy(iam.PolicyStatement(actions=["kms:Encrypt"], resources=[key_arn]))
    acknowledge(role, "AwsSolutions-IAM5", "S3 replicates all objects of the one bucket into the other.")
    for child in role.node.find_all():
        if isinstance(child, CfnResource):
            keep(child)
