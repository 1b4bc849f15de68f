"""Where training keeps its checkpoints: `checkpoints:` in a cluster file."""

from typing import Annotated

from pydantic import ConfigDict, Field, model_validator

from cdk_training_cluster.storage.checkpoint_store import DAYS, MAX_WORK
from cdk_training_cluster.storage.exported_checkpoints import DEFAULT_DIRECTORY, KEEP_VERSIONS
from cdk_training_cluster.storage.express_checkpoints import BUCKET_NAME, ZONE_ID
from cdk_training_cluster.validation import bounds
from cdk_training_cluster_file import fields
from cdk_training_cluster_file.forms import Text, text_of, within
from cdk_training_cluster_file.model_base import Settings

_DAYS = bounds.Whole(minimum=1, maximum=DAYS.maximum // DAYS.minimum)
_KEY_ARN = "arn:aws:kms:us-west-2:111122223333:key/0a1b2c3d-4e5f-6789-abcd-ef0123456789"


class ReplicaSettings(Settings):
    """A bucket, as a rule of another region, that gets a copy of every file."""

    bucket: fields.BucketName = Field(examples=["my-checkpoints-us-west-2"])
    """An existing bucket of the same account, with versioning enabled."""

    region: fields.RegionName = Field(examples=["us-west-2"])
    """The region that it is in."""

    encryption_key: fields.KeyArn | None = Field(default=None, examples=[_KEY_ARN])
    """The KMS key that encrypts the copies; needed where the cluster has one. Left out: the bucket's own."""


class ExportedSettings(Settings):
    """A directory of the file system; FSx copies its files to a versioned bucket, which is kept."""

    file_system_path: fields.FileSystemPath = Field(default=DEFAULT_DIRECTORY, examples=["/checkpoints"])
    """The directory, seen from the top of the file system. On the nodes CHECKPOINT_DIR names it."""

    bucket: fields.BucketName | None = Field(default=None, examples=["my-checkpoints"])
    """An existing bucket, whose versions and lifecycle stay as they are. Left out: the foundation makes one."""

    prefix: fields.Prefix = Field(default="", examples=["runs/"])
    """How the keys start, such as runs/. Left out: the whole bucket."""

    keep_versions: Annotated[int, within(KEEP_VERSIONS)] | None = Field(default=None, examples=[5])
    """How many older versions of an overwritten file are kept: 1 to 100. Left out: 3."""

    keep_deleted_days: Annotated[int, within(_DAYS)] | None = Field(default=None, examples=[90])
    """How many days deleted files and older versions are kept. Left out: 30."""

    expire_after_days: Annotated[int, within(_DAYS)] | None = Field(default=None, examples=[365])
    """After how many days S3 deletes from the bucket also what is still on the file system. Left out: never."""

    replicate_to: ReplicaSettings | None = None
    """A bucket that gets a copy of every file. Left out: none."""


class ExpressSettings(Settings):
    """A directory bucket of S3 Express One Zone in the nodes' zone, which is kept. It has no versions and no copy in
    another zone."""

    zone_id: Annotated[str, text_of(ZONE_ID)] | None = Field(default=None, examples=["use1-az4"])
    """The id of the nodes' zone, needed with an existing network. Left out: the subnet's own."""

    bucket: Annotated[str, Text(pattern=BUCKET_NAME.pattern.pattern, must=f"be {BUCKET_NAME.wanted}")] | None = Field(
        default=None, examples=["runs--use1-az4--x-s3"]
    )
    """An existing directory bucket of the zone. Left out: the foundation makes one."""

    encryption_key: fields.KeyArn | None = Field(
        default=None, examples=["arn:aws:kms:us-east-1:111122223333:key/0a1b2c3d-4e5f-6789-abcd-ef0123456789"]
    )
    """The KMS key that encrypts the bucket. Left out: S3's own keys for an existing bucket, the cluster's
    encryption_key for one that the foundation makes."""

    expire_after_days: Annotated[int, within(_DAYS)] | None = Field(default=None, examples=[7])
    """After how many days S3 deletes an object, also the newest. Left out: never."""


class CheckpointSettings(Settings):
    """Where training keeps its checkpoints. {} means an exported directory."""

    model_config = ConfigDict(json_schema_extra={"not": {"required": ["exported", "express"]}})

    exported: ExportedSettings | None = None
    """A directory of the file system whose files FSx copies to a bucket. CHECKPOINT_DIR names it on the nodes."""

    express: ExpressSettings | None = None
    """A directory bucket in the nodes' zone. CHECKPOINT_URL names it on the nodes."""

    max_minutes_without_checkpoint: Annotated[int, within(MAX_WORK)] = 60
    """After how many minutes of accelerators' work without a new checkpoint an alarm reports it: 10 to 1440, in steps
    of 5."""

    @property
    def directory_settings(self) -> ExportedSettings | None:
        """The exported directory. None: checkpoints go to a directory bucket."""
        return None if self.express is not None else self.exported or ExportedSettings()

    @model_validator(mode="after")
    def _is_one_of_both(self) -> "CheckpointSettings":
        if self.exported is not None and self.express is not None:
            raise ValueError("must name one of exported and express, got both; leave one out")
        return self
