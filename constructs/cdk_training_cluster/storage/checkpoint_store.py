"""Where checkpoints are kept: what every store of them is."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Annotated, TypeAlias

from aws_cdk import Duration
from aws_cdk import aws_iam as iam
from constructs import Construct

from cdk_training_cluster.validation.bounds import Minutes
from cluster_contract.checkpoints import CheckpointPlace

_DAY = 24 * 60

# Metrics are read in periods of 5 minutes.
MAX_WORK = Minutes(minimum=10, maximum=_DAY, step=5)
MaxWork: TypeAlias = Annotated[Duration, MAX_WORK]
"""How long the accelerators may work without a new checkpoint."""

DEFAULT_MAX_WORK = timedelta(minutes=60)

# S3's lifecycle counts days. https://docs.aws.amazon.com/AmazonS3/latest/userguide/intro-lifecycle-rules.html
DAYS = Minutes(minimum=_DAY, maximum=3650 * _DAY, step=_DAY)
Days: TypeAlias = Annotated[Duration, DAYS]
"""Whole days."""

# What a failed upload leaves behind is billed and seen in no listing.
ABANDONED_UPLOADS = timedelta(days=7)


class CheckpointStore(Construct):
    """A place for checkpoints that outlives its stack: `ExportedCheckpoints` or `ExpressCheckpoints`.

    A checkpoint is a directory in it, such as `step-1000/`. It is complete when the directory itself holds the
    `.metadata` of torch.distributed.checkpoint, which that writes last, or a file `.complete`, which any other script
    writes as its last.

    Attributes:
        place: The bucket, the prefix and the directory.
        bucket_arn: The bucket's ARN.
        environment: The environment variables by which training scripts find it: `CHECKPOINT_DIR` or
            `CHECKPOINT_URL`.
        max_work_without_checkpoint: How long accelerators may work without a new checkpoint until an alarm goes off.
        zone_id: The id of the zone that it is in. None: it is in no single zone, or that is not known before the
            deployment.
    """

    place: CheckpointPlace
    bucket_arn: str
    environment: Mapping[str, str]
    max_work_without_checkpoint: Duration
    zone_id: str | None = None

    def grant_read(self, grantee: iam.IGrantable) -> iam.Grant:
        """Let a principal list and read checkpoints.

        Args:
            grantee: A role, user or function.
        """
        raise NotImplementedError

    def grant_read_write(self, grantee: iam.IGrantable) -> iam.Grant:
        """Let a principal list, read, write and delete checkpoints in the bucket.

        Args:
            grantee: A role, user or function.
        """
        raise NotImplementedError

    def grant_list(self, grantee: iam.IGrantable) -> iam.Grant:
        """Let a principal list checkpoints.

        Args:
            grantee: A role, user or function.
        """
        raise NotImplementedError
