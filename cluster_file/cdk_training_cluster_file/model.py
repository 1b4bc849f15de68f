"""The shape of a cluster file: every setting, its default and what it means.

The words are AWS's. What depends on more than one setting is in `rules`; what AWS itself would refuse is
checked once more by the constructs that the stacks are made of.
"""

from typing import Annotated, Literal, TypedDict

from pydantic import ConfigDict, Field

from cdk_training_cluster import Budget, Dataset, HealthPolicy, IdlePolicy, Schedule
from cdk_training_cluster.network import DEFAULT_CIDR
from cdk_training_cluster.storage import file_system_settings
from cdk_training_cluster.storage.dataset import MAX_PATTERN_LENGTH, MAX_PATTERNS, MAXIMUM_DATASETS
from cdk_training_cluster_file import fields
from cdk_training_cluster_file.budget import BudgetSettings
from cdk_training_cluster_file.checkpoints import CheckpointSettings
from cdk_training_cluster_file.derivation import ModelOf
from cdk_training_cluster_file.fields import Flag
from cdk_training_cluster_file.forms import Text
from cdk_training_cluster_file.health import HealthSettings
from cdk_training_cluster_file.idle import IdleSettings
from cdk_training_cluster_file.instance_type_facts import FACTS_EXAMPLE, InstanceTypeFacts
from cdk_training_cluster_file.model_base import Settings
from cdk_training_cluster_file.node_group import NodeGroupSettings
from cdk_training_cluster_file.observability import ObservabilitySettings
from cdk_training_cluster_file.orchestrators import NONE, OrchestratorChoice
from cdk_training_cluster_file.schedule import ScheduleSettings

MOST_TAGS = 20
"""Of the 50 tags that AWS lets a group have, the functions write up to 30."""

_KEY_ARN = "arn:aws:kms:us-east-1:111122223333:key/0a1b2c3d-4e5f-6789-abcd-ef0123456789"


_Event = Literal["NEW", "CHANGED", "DELETED"]
_Pattern = Annotated[
    str,
    Text(
        pattern=r"(?!/)[^\x00]+",
        must="be a pattern of paths below the directory, without a / in front, such as train/*.bin",
        longest=MAX_PATTERN_LENGTH,
    ),
]
_PATTERNS = Field(min_length=1, max_length=MAX_PATTERNS)


class NetworkSettings(Settings):
    """An existing VPC and subnet for the cluster to live in, in place of ones made for it."""

    vpc_id: fields.VpcId = Field(examples=["vpc-0a1b2c3d4e5f67890"])
    """The VPC that the subnet belongs to."""

    subnet_id: fields.SubnetId = Field(examples=["subnet-0a1b2c3d4e5f67890"])
    """The one subnet for nodes and file system. It needs a way out: a NAT gateway, or endpoints."""

    availability_zone: fields.AvailabilityZone | None = Field(default=None, examples=["us-east-1b"])
    """The zone the subnet is in. May be left out; if it is given it has to be the cluster's."""


class ExistingFileSystem(Settings):
    """An FSx for Lustre file system that exists, such as one that a destroyed foundation has kept."""

    file_system_id: fields.FileSystemId = Field(examples=["fs-0a1b2c3d4e5f67890"])
    """Its id."""

    mount_name: fields.MountName = Field(examples=["abcdefgh"])
    """Its mount name, which aws fsx describe-file-systems shows."""

    security_group_id: fields.SecurityGroupId | None = Field(default=None, examples=["sg-0a1b2c3d4e5f67890"])
    """Its security group, which gets rules for the nodes. Left out: none are added, because its groups let the nodes
    in already."""


BESIDE_EXISTING = ("existing", "mount_point", "efa_enabled")
"""The settings of a file system that exists; FSx knows the others."""


class FileSystemSettings(Settings):
    """An FSx for Lustre file system, mounted on every node and kept when stacks go. Its deployment type, storage
    class, EFA, place and key are fixed at its first deployment: one that would change them fails."""

    model_config = ConfigDict(
        json_schema_extra={
            "if": {"required": ["existing"]},
            "then": {"propertyNames": {"enum": [*BESIDE_EXISTING]}},
        }
    )

    existing: ExistingFileSystem | None = None
    """A file system that exists, in the cluster's network. Beside it only mount_point and efa_enabled, as it was
    made, may be given. Left out: one is made."""

    deployment_type: Literal["PERSISTENT_2", "PERSISTENT_1", "SCRATCH_2", "SCRATCH_1"] = "PERSISTENT_2"
    """Scratch file systems lose their data when a server fails. Fixed at the first deployment."""

    storage_type: Literal["SSD", "HDD", "INTELLIGENT_TIERING"] = "SSD"
    """HDD is for PERSISTENT_1, Intelligent-Tiering for PERSISTENT_2. Fixed at the first deployment."""

    storage_capacity_gib: fields.Count | None = Field(default=None, examples=[4800])
    """Size in GiB, for PERSISTENT_2 with SSD 1200 or a multiple of 2400. It can grow later, not shrink. Left out: the
    smallest. Intelligent-Tiering has none."""

    throughput_mbps_per_tib: fields.Count | None = Field(default=None, examples=[250])
    """Throughput in MB/s for each TiB of storage: 125, 250, 500 or 1000 for PERSISTENT_2 with SSD, of which some
    regions offer 125 and 250 only; 50, 100 or 200 for PERSISTENT_1 with SSD; 12 or 40 with HDD. Left out: 250 for
    PERSISTENT_2."""

    throughput_capacity_mbps: fields.Count | None = Field(default=None, examples=[8000])
    """Throughput of Intelligent-Tiering in MB/s, a multiple of 4000. It can grow, not shrink. Left out: 4000."""

    data_read_cache_gib: fields.Whole | None = Field(default=None, examples=[20000])
    """SSD read cache of Intelligent-Tiering in GiB; 0 is none. Left out: 20,000 for each 4,000 MB/s."""

    efa_enabled: Flag = False
    """Whether nodes reach it through their Elastic Fabric Adapters. PERSISTENT_2 only. Fixed at the first
    deployment."""

    metadata_iops: fields.Count | Literal["AUTOMATIC"] | None = Field(default=None, examples=[12000])
    """Metadata operations a second: 1500, 3000, 6000, 12000 or a multiple of 12000 for PERSISTENT_2 with SSD, 6000 or
    12000 with Intelligent-Tiering, or AUTOMATIC by the size. They can grow later, but only if they were given at the
    first deployment. Left out: AUTOMATIC with EFA, 6000 with Intelligent-Tiering, or what FSx has without."""

    data_compression_type: Literal["LZ4", "NONE"] = "LZ4"
    """Whether what is written is compressed."""

    drive_cache_type: Literal["READ", "NONE"] | None = None
    """Whether HDD storage has an SSD cache of a fifth of its size; to be given with HDD. Fixed at the first
    deployment."""

    file_system_type_version: Literal["2.12", "2.15"] = "2.15"
    """Lustre's version."""

    mount_point: fields.MountPoint = "/fsx"
    """Where the nodes mount it."""

    encryption_key: fields.KeyArn | None = Field(default=None, examples=[_KEY_ARN])
    """The KMS key that encrypts it. Fixed at the first deployment. Left out: AWS's own key for FSx."""

    log_level: Literal["WARN_ERROR", "WARN_ONLY", "ERROR_ONLY", "DISABLED"] | None = None
    """Which events of datasets go to CloudWatch Logs. Left out: WARN_ERROR if there is a log_group."""

    log_group: fields.LogGroup | None = Field(default=None, examples=["/aws/fsx/base-pod"])
    """An existing log group for them. Left out: /aws/fsx/lustre, which FSx makes."""

    weekly_maintenance_start_time: fields.WeeklyTime | None = Field(default=None, examples=["7:03:30"])
    """When FSx may update it, in UTC: a weekday from 1 (Monday) to 7, and a time. Left out: FSx chooses, or
    keeps the last value."""

    automatic_backup_retention_days: fields.RetentionDays = 0
    """How long daily backups are kept, up to 90 days; 0 is none. Not beside datasets."""

    daily_automatic_backup_start_time: fields.DailyTime | None = Field(default=None, examples=["03:30"])
    """When backups start, in UTC. Left out: FSx chooses, or keeps the last value."""

    copy_tags_to_backups: Flag = False
    """Whether backups get the file system's tags. Fixed at the first deployment."""

    def to_settings(self, datasets: int = 0) -> file_system_settings.FileSystemSettings:
        """Return the settings that depend on each other, as the library checks them.

        Args:
            datasets: How many data sets are linked.
        """
        own = self.model_dump(exclude={"existing", "mount_point", "log_group"})
        return file_system_settings.FileSystemSettings(**own, log_group_name=self.log_group, datasets=datasets)


class DatasetSettings(Settings, ModelOf[Dataset]):
    """A part of an S3 bucket, shown as a directory; each file is loaded when it is first read, or before."""

    file_system_path: fields.FileSystemPath = Field(examples=["/data"])
    """The directory, seen from the top of the file system: /data is /fsx/data on a node."""

    prefix: fields.Prefix = Field(default="", examples=["tokens/"])
    """How the keys start, such as tokens/. Left out: the whole bucket."""

    bucket: fields.BucketName | None = Field(default=None, examples=["my-datasets"])
    """An existing bucket in the cluster's region. Left out: the foundation makes one bucket, which all the
    datasets that name none share, and keeps it when the stack is deleted."""

    import_events: tuple[_Event, ...] = Field(default=("NEW", "CHANGED", "DELETED"), examples=[["NEW", "CHANGED"]])
    """Which changes of objects reach the file system. With [] the bucket may be in another region."""

    export_events: tuple[_Event, ...] = Field(default=(), examples=[["NEW", "CHANGED", "DELETED"]])
    """Which changes of files reach the bucket. Left out: none."""

    chunk_size_mib: int | None = None
    """How many MiB of a file lie on one disk of the file system: 1 to 512000. Left out: 1024."""

    preload: Flag | Annotated[tuple[_Pattern, ...], _PATTERNS] = Field(default=False, examples=[["train/*.bin"]])
    """Whether the nodes load the contents before they are read: true, or patterns of paths below the directory. The
    deployment does not wait for it."""

    preload_max_gib: int | None = Field(default=None, examples=[2000])
    """How many GiB are loaded at most. Left out: all that match."""

    release_after_days: int | None = Field(default=None, examples=[30])
    """After how many days without use the space of files that the bucket has is freed. Left out: never."""

    @property
    def directory(self) -> str:
        """The directory, which has no / at its end but for /."""
        return self.file_system_path

    @property
    def data_repository_path(self) -> str:
        """What is shown, as FSx takes it, in the foundation's bucket if there is no other."""
        # No bucket has such a name; without one, the root would hold every other bucket.
        return f"s3://{self.bucket or '(foundation)'}/{self.prefix}"


class AccessLogSettings(Settings):
    """Where S3 writes who asked for what in the bucket that the foundation makes."""

    bucket: fields.BucketName = Field(examples=["my-access-logs"])
    """An existing bucket in the cluster's region and account, whose policy lets S3's logging service write."""

    prefix: fields.Prefix = Field(default="", examples=["base-pod/"])
    """How the keys of the logs start. Left out: with nothing of its own."""


class AlertSettings(Settings):
    """Who hears of missing capacity, failing functions and unhealthy nodes."""

    emails: tuple[fields.Email, ...] = Field(default=(), examples=[["ml-platform@example.com"]])
    """Addresses that get alarms; AWS asks each one to confirm first."""

    backup_topic_arn: fields.TopicArn | None = Field(
        default=None, examples=["arn:aws:sns:us-east-1:111122223333:on-call"]
    )
    """An SNS topic in the cluster's region that gets each alarm too, and messages that the cluster's own topic
    refuses. Left out: none."""


class GuardrailSettings(TypedDict):
    """The settings of `TrainingCluster` for its guardrails."""

    idle_policy: IdlePolicy | None
    schedule: Schedule | None
    budget: Budget | None
    health: HealthPolicy | None


class ClusterFile(Settings):
    """A training cluster in one file: where it is, what it is made of, and who hears of trouble."""

    name: fields.ClusterName = Field(examples=["base-pod"])
    """The cluster's name, in the names of its two stacks and in the tag on all it is made of."""

    availability_zone: fields.AvailabilityZone = Field(examples=["us-east-1b"])
    """The one Availability Zone for everything: EFA does not leave it. The region follows."""

    account: fields.AccountId | None = Field(default=None, examples=["111122223333"])
    """The AWS account, in quotes. Left out: the one that the deploying credentials belong to."""

    vpc_cidr: fields.VpcCidr = Field(default=DEFAULT_CIDR, examples=["10.20.0.0/16"])
    """The IPv4 range of the VPC that is made. It can never change; choose one that overlaps with no network that
    is to be peered with this one."""

    network: NetworkSettings | None = None
    """An existing VPC and subnet. Left out: a VPC with a public and a private subnet is made."""

    file_system: FileSystemSettings | None = None
    """The shared file system. Left out: none is made."""

    datasets: Annotated[tuple[DatasetSettings, ...], Field(max_length=MAXIMUM_DATASETS)] = ()
    """Parts of S3 buckets that appear in the file system."""

    checkpoints: CheckpointSettings | None = Field(default=None, examples=[{"exported": {"keep_versions": 5}}])
    """Where training keeps its checkpoints, and when an alarm reports that a new one is missing. Left out:
    nowhere."""

    node_groups: Annotated[tuple[NodeGroupSettings, ...], Field(min_length=1)] = Field(
        examples=[[{"name": "workers", "instance_types": ["p5.48xlarge"], "count": 8, "image": "latest"}]]
    )
    """The nodes."""

    orchestrator: OrchestratorChoice = Field(default=NONE, validate_default=True)
    """What runs jobs: none, or an orchestrator as a word or as one key with its settings. none leaves that to you:
    Auto Scaling groups launch the nodes. A change of it ends all running nodes: let their jobs end before you
    deploy it."""

    instance_type_facts: tuple[InstanceTypeFacts, ...] = Field(default=(), examples=[[FACTS_EXAMPLE]])
    """Facts about instance types that are newer than this library's catalog."""

    idle: IdleSettings | None = Field(default=None, examples=[{"window_minutes": 90}])
    """When nodes are idle and what becomes of them then. Left out: the alert topic is notified after 60 minutes
    without work, and nodes are stopped 30 minutes later."""

    schedule: ScheduleSettings | None = Field(
        default=None, examples=[{"windows": ["weekdays 08:00-20:00 Europe/Berlin"]}]
    )
    """When nodes run. Left out: always."""

    alerts: AlertSettings = AlertSettings()
    """Who hears of trouble."""

    budget: BudgetSettings | None = Field(default=None, examples=[{"monthly_usd": 20000}])
    """What may be spent in a month, and what happens then. Left out: nothing watches it."""

    health: HealthSettings | None = Field(default=None, examples=[{"act": True}])
    """What the health function may do with broken nodes. Left out: it only reports them."""

    observability: ObservabilitySettings | None = Field(default=None, examples=[{"prometheus": {}}])
    """What nodes are observed with, beside CloudWatch. Left out: nothing."""

    encryption_key: fields.KeyArn | None = Field(default=None, examples=[_KEY_ARN])
    """The KMS key that encrypts all that the stacks make, but the file system, which has its own setting.
    `training-cluster key-policy` prints the statements that its policy needs. It can be given, changed and removed
    later. Left out: keys that AWS owns or manages."""

    access_logs: AccessLogSettings | None = None
    """Logs of requests to the bucket that the foundation makes. Left out: none."""

    tags: Annotated[dict[fields.TagKey, fields.TagValue], Field(max_length=MOST_TAGS)] = Field(
        default={}, examples=[{"team": "ml-platform"}]
    )
    """Tags for all that the stacks make, where a change of tags replaces nothing; at most 20."""

    powertools_layer_arn: fields.LayerArn | None = Field(
        default=None, examples=["arn:aws:lambda:us-east-1:111122223333:layer:powertools:1"]
    )
    """A Lambda layer with Powertools for Python 3.14 on arm64, for regions where AWS publishes none."""

    dashboard: Flag = True
    """Whether a CloudWatch dashboard is made; from an account's fourth on, each costs 3 USD a month."""

    acknowledge: dict[fields.WarningId, fields.Reason] = Field(
        default={}, examples=[{"latestImage": "we try each new image"}]
    )
    """Warnings that are accepted, by their names, each with the reason; they are said no more. Left out: none."""

    termination_protection: Flag = True
    """Whether CloudFormation refuses to delete the foundation stack."""

    @property
    def region(self) -> str:
        """The region that the Availability Zone is in."""
        return fields.region_of(self.availability_zone)

    def to_guardrails(self) -> GuardrailSettings:
        """Return the guardrails as `TrainingCluster` takes them."""
        return {
            "idle_policy": None if self.idle is None else self.idle.for_constructs(),
            "schedule": None if self.schedule is None else self.schedule.for_constructs(),
            "budget": self.to_budget(),
            "health": None if self.health is None else self.health.for_constructs(),
        }

    def to_budget(self) -> Budget | None:
        """Return the budget as the constructs take it; None: there is none."""
        if self.budget is None:
            return None
        emails = self.alerts.emails if self.budget.emails is None else self.budget.emails
        return self.budget.for_constructs(emails=emails)

    @property
    def encryption_keys(self) -> tuple[str, ...]:
        """The keys that the file names, each once: the cluster's, then the file system's."""
        keys = (self.encryption_key, None if self.file_system is None else self.file_system.encryption_key)
        return tuple(dict.fromkeys(key for key in keys if key is not None))

    @property
    def foundation_stack_name(self) -> str:
        """The name of the stack that keeps: network, file system and buckets."""
        return f"{self.name}-foundation"

    @property
    def cluster_stack_name(self) -> str:
        """The name of the stack that comes and goes: nodes and what watches them."""
        return f"{self.name}-cluster"
