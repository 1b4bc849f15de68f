"""A directory of the file system whose files FSx copies to a bucket as they are written."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Annotated

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from constructs import Construct

from cdk_training_cluster.core.acknowledgements import acknowledge
from cdk_training_cluster.core.times import to_duration
from cdk_training_cluster.storage.buckets import kept_bucket
from cdk_training_cluster.storage.checkpoint_store import (
    ABANDONED_UPLOADS,
    DEFAULT_MAX_WORK,
    CheckpointStore,
    Days,
    MaxWork,
)
from cdk_training_cluster.storage.dataset import Dataset, DatasetEvent
from cdk_training_cluster.storage.file_system import TrainingFileSystem
from cdk_training_cluster.storage.replication import permit_replication, replication_role, replication_rule
from cdk_training_cluster.validation.bounds import Whole
from cdk_training_cluster.validation.kinds import checked
from cluster_contract.checkpoints import DIRECTORY_VARIABLE, CheckpointPlace

# https://docs.aws.amazon.com/AmazonS3/latest/API/API_NoncurrentVersionExpiration.html
KEEP_VERSIONS = Whole(minimum=1, maximum=100)
DEFAULT_KEEP_VERSIONS = 3
DEFAULT_KEEP_DELETED = timedelta(days=30)
DEFAULT_DIRECTORY = "/checkpoints"


class ExportedCheckpoints(CheckpointStore):
    """Copy a directory of the file system to a bucket as its files change, and keep what is overwritten or deleted.

    Training writes to the directory that `CHECKPOINT_DIR` names, at the file system's speed; FSx copies each file to
    the bucket minutes after it is closed, in no promised order, and deletes an object when its file is deleted.
    Nothing that happens in the bucket changes the file system.

    The bucket is versioned. Of a file that is overwritten, the newest `keep_versions` older versions are kept; of a
    deleted checkpoint, its files; both for `keep_deleted`. S3's lifecycle knows objects, not directories: it cannot
    count checkpoints, so scripts delete the directories that they no longer need. A checkpoint whose files are still
    on the file system is never deleted, unless `expire_after` is given.

    Replication to a bucket of another region copies every file, of finished and of unfinished checkpoints, in no
    promised order: S3 can choose by prefix and by tag, not by a marker, and FSx tags no object. Deletions are not
    replicated.

    Resources: `AWS::S3::Bucket` with its `BucketPolicy`, both kept when the stack goes, and an
    `AWS::FSx::DataRepositoryAssociation`; with replication an `AWS::IAM::Role` with a policy.

    Attributes:
        bucket: The bucket.
        file_system: The file system.

    Sources: https://docs.aws.amazon.com/fsx/latest/LustreGuide/autoexport-data-repo-dra.html,
    https://docs.aws.amazon.com/AmazonS3/latest/userguide/lifecycle-conflicts.html and
    https://docs.aws.amazon.com/AmazonS3/latest/userguide/replication.html
    """

    @checked
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        file_system: TrainingFileSystem,
        file_system_path: str = DEFAULT_DIRECTORY,
        bucket: s3.IBucket | None = None,
        prefix: str = "",
        keep_versions: Annotated[int, KEEP_VERSIONS] | None = None,
        keep_deleted: Days | None = None,
        expire_after: Days | None = None,
        replicate_to: s3.IBucket | None = None,
        max_work_without_checkpoint: MaxWork | None = None,
        encryption_key: kms.IKey | None = None,
    ) -> None:
        """Make the bucket and link the directory to it.

        Args:
            scope: The parent construct.
            id: The construct's id.
            file_system: The file system that the nodes mount, of a kind that takes links to S3.
            file_system_path: The directory, seen from the top of the file system; it overlaps with no data set.
            bucket: An existing bucket, such as one that an earlier stack kept. Its versions, lifecycle and
                replication are as its owner set them. Default: - one is made.
            prefix: What the keys start with, such as `runs/`. Default: - the whole bucket.
            keep_versions: How many older versions of an overwritten file are kept, 1 to 100. Default: - 3.
            keep_deleted: How long deleted files and older versions are kept, in days. Default: - 30 days.
            expire_after: After how many days S3 deletes also what is still on the file system from the bucket.
                Default: - never.
            replicate_to: A versioned bucket that gets a copy of every file, with its key if it has one.
                Default: - none.
            max_work_without_checkpoint: How long accelerators may work without a new checkpoint until an
                alarm goes off. Default: - 60 minutes.
            encryption_key: The KMS key that encrypts the bucket that is made. Default: - S3's own keys.

        Raises:
            ValueError: The directory or the prefix overlaps with a data set, the file system takes no links, or a
                setting of the bucket is given beside a bucket that exists.
        """
        super().__init__(scope, id)
        _check(
            bucket,
            keep_versions=keep_versions,
            keep_deleted=keep_deleted,
            expire_after=expire_after,
            replicate_to=replicate_to,
            encryption_key=encryption_key,
        )
        self.file_system = file_system
        self.max_work_without_checkpoint: Duration = max_work_without_checkpoint or to_duration(DEFAULT_MAX_WORK)
        self.bucket: s3.IBucket = bucket or self._make_bucket(
            lifecycle_rules(
                keep_versions or DEFAULT_KEEP_VERSIONS,
                keep_deleted or to_duration(DEFAULT_KEEP_DELETED),
                expire_after,
            ),
            replicate_to,
            encryption_key,
        )
        self.bucket_arn: str = self.bucket.bucket_arn
        link = Dataset(
            bucket=self.bucket,
            prefix=prefix,
            file_system_path=file_system_path,
            import_events=(),
            export_events=tuple(DatasetEvent),
        )
        file_system.add_dataset(link)
        mount_point = file_system.mount_point.rstrip("/")
        directory = f"{mount_point}{link.directory}".rstrip("/")
        self.place: CheckpointPlace = CheckpointPlace(
            bucket=self.bucket.bucket_name,
            prefix=prefix if not prefix or prefix.endswith("/") else f"{prefix}/",
            directory=directory,
        )
        self.environment: dict[str, str] = {DIRECTORY_VARIABLE: directory}

    def grant_read(self, grantee: iam.IGrantable) -> iam.Grant:
        """See `CheckpointStore.grant_read`."""
        return self.bucket.grant_read(grantee, f"{self.place.prefix}*")

    def grant_read_write(self, grantee: iam.IGrantable) -> iam.Grant:
        """See `CheckpointStore.grant_read_write`; jobs that write to the directory do not need it."""
        return self.bucket.grant_read_write(grantee, f"{self.place.prefix}*")

    def grant_list(self, grantee: iam.IGrantable) -> iam.Grant:
        """See `CheckpointStore.grant_list`; other prefixes of the bucket stay hidden, and so does HeadBucket.

        Source: https://docs.aws.amazon.com/AmazonS3/latest/userguide/amazon-s3-policy-keys.html
        """
        prefix = self.place.prefix
        return iam.Grant.add_to_principal(
            grantee=grantee,
            actions=["s3:ListBucket"],
            resource_arns=[self.bucket.bucket_arn],
            conditions={"StringLike": {"s3:prefix": f"{prefix}*"}} if prefix else None,
        )

    def metric_oldest_waiting_export(
        self, *, statistic: str = "Average", period: Duration | None = None
    ) -> cloudwatch.Metric:
        """Return for how many seconds the oldest change of the file system has waited for its export.

        It is of all directories of the file system that are exported.

        Args:
            statistic: Default: - `Average`.
            period: How much time a point covers. Default: - 5 minutes.

        Source: https://docs.aws.amazon.com/fsx/latest/LustreGuide/fs-metrics.html
        """
        return cloudwatch.Metric(
            namespace="AWS/FSx",
            metric_name="AgeOfOldestQueuedMessage",
            dimensions_map={"FileSystemId": self.file_system.file_system_id, "Publisher": "AutoExport"},
            statistic=statistic,
            period=period or Duration.minutes(5),
        )

    def _make_bucket(
        self, rules: list[s3.LifecycleRule], replicate_to: s3.IBucket | None, key: kms.IKey | None
    ) -> s3.Bucket:
        role = None if replicate_to is None else replication_role(self, "ReplicationRole")
        bucket = kept_bucket(
            self,
            "Bucket",
            lifecycle_rules=rules,
            encryption_key=key,
            replication_rule=None if replicate_to is None else replication_rule(replicate_to),
            replication_role=role,
        )
        if role is not None and replicate_to is not None:
            permit_replication(role, bucket, replicate_to, key)
        acknowledge(
            bucket,
            "AwsSolutions-S1",
            "Checkpoints come from FSx, file by file; who may ask for an audit turns on CloudTrail data events.",
        )
        return bucket


def _check(bucket: s3.IBucket | None, **settings: object) -> None:
    """Refuse settings for a bucket that exists, and a replication that S3 would not make.

    S3 encrypts a replica of what a key of KMS encrypts with a key of the replica's region.
    https://docs.aws.amazon.com/AmazonS3/latest/userguide/replication-config-for-kms-objects.html
    """
    given = [name for name, value in settings.items() if value is not None]
    problems = list(_problems(bucket, given, settings["replicate_to"]))
    if problems:
        raise ValueError("\n".join(problems))


def _problems(bucket: s3.IBucket | None, given: list[str], replica: object) -> Iterator[str]:
    if bucket is not None and given:
        yield (
            f"bucket must not be given with {', '.join(given)}: nothing here changes a bucket that exists; leave out "
            "bucket, or set them on the bucket itself"
        )
    has_key = getattr(replica, "encryption_key", None) is not None
    if {"encryption_key", "replicate_to"} <= set(given) and not has_key:
        yield (
            "replicate_to must be a bucket with its encryption_key where encryption_key is given: S3 replicates what "
            "a KMS key encrypts only to another KMS key; import it with s3.Bucket.from_bucket_attributes"
        )


def lifecycle_rules(
    keep_versions: int, keep_deleted: Duration, expire_after: Duration | None
) -> list[s3.LifecycleRule]:
    """Return the rules; where two hold for a version, S3 follows the one that deletes it first.

    `keep_versions` alone would keep the only version of each deleted file for ever: none is newer.

    Args:
        keep_versions: How many older versions of a file are kept.
        keep_deleted: How long deleted files and older versions are kept.
        expire_after: After how long every file is deleted. None: never.

    Source: https://docs.aws.amazon.com/AmazonS3/latest/userguide/lifecycle-conflicts.html
    """
    rules = [
        s3.LifecycleRule(
            id="deleted-files",
            noncurrent_version_expiration=keep_deleted,
            abort_incomplete_multipart_upload_after=to_duration(ABANDONED_UPLOADS),
            # S3 takes no such element beside an expiration in days.
            expired_object_delete_marker=True,
        ),
        s3.LifecycleRule(
            id="older-versions",
            noncurrent_version_expiration=Duration.days(1),
            noncurrent_versions_to_retain=keep_versions,
        ),
    ]
    return rules if expire_after is None else [*rules, s3.LifecycleRule(id="expired", expiration=expire_after)]
