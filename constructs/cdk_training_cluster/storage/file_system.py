"""The file system that the nodes share, fed from S3."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, TypeAlias

import jsii
from aws_cdk import ArnFormat, Aws, CfnResource, Fn, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_fsx as fsx
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from constructs import Construct

from cdk_training_cluster.core.acknowledgements import warn
from cdk_training_cluster.core.encryption import allow_dataset
from cdk_training_cluster.core.retention import keep
from cdk_training_cluster.network import ClusterNetwork
from cdk_training_cluster.nodes import MountPoint
from cdk_training_cluster.storage import lustre_access
from cdk_training_cluster.storage.dataset import Dataset, DatasetEvent, Link, auto_delete, link_problems, overlaps
from cdk_training_cluster.storage.deployment_types import DEPLOYMENT_TYPES, STORAGE_TYPES
from cdk_training_cluster.storage.file_system_metrics import FileSystemMetrics
from cdk_training_cluster.storage.file_system_rules import file_system_problems
from cdk_training_cluster.storage.file_system_settings import FileSystemSettings
from cdk_training_cluster.storage.fixed_settings import keep_fixed, place_of
from cdk_training_cluster.validation.bounds import Form, OneOf, Whole
from cdk_training_cluster.validation.checks import is_unknown
from cdk_training_cluster.validation.kinds import checked, checked_together
from cdk_training_cluster.validation.rule import Problem, SettingsError
from cdk_training_cluster.validation.templates.checks import check_templates

# https://docs.aws.amazon.com/fsx/latest/APIReference/API_CreateFileSystemLustreConfiguration.html
DeploymentType: TypeAlias = Annotated[str, OneOf(DEPLOYMENT_TYPES)]
StorageType: TypeAlias = Annotated[str, OneOf(STORAGE_TYPES)]
CompressionType: TypeAlias = Annotated[str, OneOf(("LZ4", "NONE"))]
DriveCacheType: TypeAlias = Annotated[str, OneOf(("READ", "NONE"))]
# https://docs.aws.amazon.com/fsx/latest/LustreGuide/lustre-version-release-notes.html
LustreVersion: TypeAlias = Annotated[str, OneOf(("2.12", "2.15"), ": S3 links need one of them")]
LOG_LEVELS = ("WARN_ERROR", "WARN_ONLY", "ERROR_ONLY", "DISABLED")
LogLevel: TypeAlias = Annotated[str, OneOf(LOG_LEVELS)]
RETENTION_DAYS = Whole(minimum=0, maximum=90)
RetentionDays: TypeAlias = Annotated[int, RETENTION_DAYS]
_TIME = r"([01][0-9]|2[0-3]):[0-5][0-9]"
DAILY_TIME = Form(pattern=re.compile(_TIME), wanted="a time in UTC, such as '03:30'")
DailyTime: TypeAlias = Annotated[str, DAILY_TIME]
WEEKLY_TIME = Form(
    pattern=re.compile(f"[1-7]:{_TIME}"), wanted="a weekday from 1 (Monday) to 7 and a time in UTC, such as '7:03:30'"
)
WeeklyTime: TypeAlias = Annotated[str, WEEKLY_TIME]


def _together(right: Mapping[str, Any], wrong: Collection[str]) -> Iterator[Problem]:
    """Yield what FSx refuses of settings beside each other."""
    if not {"deployment_type", "storage_type"} & set(wrong):
        yield from file_system_problems(_settings(right))


def _settings(given: Mapping[str, Any]) -> FileSystemSettings:
    """Return the settings that depend on each other, of the arguments that are given."""
    known = {name: value for name, value in given.items() if name in FileSystemSettings.__dataclass_fields__}
    group: logs.ILogGroup | None = given.get("log_group")
    if group is not None:
        known |= {"log_group_name": _name(group), "log_group_arn": _arn(group)}
    return FileSystemSettings(**{**known, "datasets": len(given.get("datasets", ()))})


def _name(group: logs.ILogGroup) -> str:
    """Return a log group's name as far as it is known; nothing: CloudFormation makes one."""
    child = group.node.default_child
    if not isinstance(child, logs.CfnLogGroup):
        return group.log_group_name
    name = Stack.of(group).resolve(child.log_group_name) or ""
    return name if isinstance(name, str) else group.log_group_name


def _arn(group: logs.ILogGroup) -> str:
    # `log_group_arn` ends with `:*`, which stands for the group's streams.
    return Stack.of(group).format_arn(
        service="logs",
        resource="log-group",
        resource_name=group.log_group_name,
        arn_format=ArnFormat.COLON_RESOURCE_NAME,
    )


@jsii.implements(ec2.IConnectable)
class TrainingFileSystem(FileSystemMetrics, Construct):
    """Make an FSx for Lustre file system that outlives its stack.

    It is kept when the stack is deleted and when a change would replace it, and so is what it lives in: its
    security group and the network. Data sets are linked to directories of it; see `Dataset`. A deployment that
    would change what is fixed for ever (deployment type, storage class, EFA, key, place, …) fails before FSx is
    asked: see docs/storage.md. `TrainingFileSystem.from_attributes` uses an existing one.

    Resources: `AWS::FSx::FileSystem`, `AWS::FSx::DataRepositoryAssociation` for each data set,
    `AWS::EC2::SecurityGroup` and the rules between it and the nodes' group, `AWS::SSM::Parameter` with the settings
    that are fixed.

    Source: https://docs.aws.amazon.com/fsx/latest/LustreGuide/using-fsx-lustre.html
    """

    settings: FileSystemSettings | None
    """What it is made of. None: it is not made here."""

    access_rules: tuple[CfnResource, ...] = ()
    """The rules that let nodes reach a file system that is not made here: nodes depend on them. One that is made here
    depends on its rules itself."""

    @checked_together(_together)
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        network: ClusterNetwork,
        deployment_type: DeploymentType = "PERSISTENT_2",
        storage_type: StorageType = "SSD",
        storage_capacity_gib: int | None = None,
        throughput_mbps_per_tib: int | None = None,
        throughput_capacity_mbps: int | None = None,
        data_read_cache_gib: int | None = None,
        efa_enabled: bool = False,
        metadata_iops: int | str | None = None,
        data_compression_type: CompressionType = "LZ4",
        drive_cache_type: DriveCacheType | None = None,
        file_system_type_version: LustreVersion = "2.15",
        datasets: Sequence[Dataset] = (),
        mount_point: MountPoint = "/fsx",
        encryption_key: kms.IKey | None = None,
        log_level: LogLevel | None = None,
        log_group: logs.ILogGroup | None = None,
        weekly_maintenance_start_time: WeeklyTime | None = None,
        automatic_backup_retention_days: RetentionDays = 0,
        daily_automatic_backup_start_time: DailyTime | None = None,
        copy_tags_to_backups: bool = False,
    ) -> None:
        """Make the file system.

        Args:
            scope: The parent construct.
            id: The construct's id.
            network: Where it lives. Its subnet can never change: FSx would need a new, empty file system.
            deployment_type: `PERSISTENT_2`, `PERSISTENT_1`, `SCRATCH_2` or `SCRATCH_1`. Scratch file systems lose
                their data when a server fails. It can never change. Default: - `PERSISTENT_2`.
            storage_type: `SSD`; `INTELLIGENT_TIERING` for PERSISTENT_2; `HDD` for PERSISTENT_1. It can never change.
                Default: - `SSD`.
            storage_capacity_gib: Its size in GiB, such as 1200 or a multiple of 2400 for PERSISTENT_2 with SSD; see
                docs/storage.md for the others. It can grow later, and never shrink. Intelligent-Tiering has none.
                Default: - the smallest that FSx makes: 1200 for PERSISTENT_2 with SSD.
            throughput_mbps_per_tib: Throughput in MB/s for each TiB of storage: 125, 250, 500 or 1000 for
                PERSISTENT_2 with SSD, of which some regions offer 125 and 250 only; 50, 100 or 200 for PERSISTENT_1
                with SSD; 12 or 40 with HDD. It can change later with SSD, unless there is EFA:
                nodes wait while FSx exchanges the servers.
                Default: - 250 for PERSISTENT_2; for PERSISTENT_1 it must be given.
            throughput_capacity_mbps: Throughput of an Intelligent-Tiering file system in MB/s: a multiple of 4000. It
                can grow later. Default: - 4000.
            data_read_cache_gib: SSD read cache of an Intelligent-Tiering file system in GiB; 0 is none. A change
                erases all that it holds.
                Default: - FSx sizes it by the throughput.
            efa_enabled: Whether clients reach it through Elastic Fabric Adapters, and GPUs with GPUDirect Storage, at
                more than 100 Gbps. For PERSISTENT_2. It can never change. Default: - no.
            metadata_iops: Metadata operations a second: 1500, 3000, 6000, 12000 or a multiple of 12000 up to 192000
                for PERSISTENT_2 with SSD, 6000 or 12000 with Intelligent-Tiering, or `AUTOMATIC` by the storage
                capacity. They can grow later, but never be given to a file system that was made without. Default: -
                `AUTOMATIC` with EFA, 6000 with Intelligent-Tiering, none for the others.
            data_compression_type: `LZ4` or `NONE`; a change counts for what is written from then on.
                Default: - `LZ4`.
            drive_cache_type: `READ` gives HDD storage an SSD cache of 20 % of its size; `NONE`. It can never change.
                Default: - none; with HDD it must be given.
            file_system_type_version: Lustre's version: 2.15 or 2.12. Default: - 2.15.
            datasets: What to link. Default: - nothing; see also `add_dataset`.
            mount_point: Where the nodes mount it. Default: - `/fsx`.
            encryption_key: The KMS key that encrypts it, whatever the cluster's `encryption_key` is. It can never be
                given, changed or taken away later. For persistent file systems. Default: - AWS's own key for FSx.
            log_level: Which events of data sets go to CloudWatch Logs: `WARN_ERROR`, `WARN_ONLY`, `ERROR_ONLY` or
                `DISABLED`. Default: - `WARN_ERROR` if there is a `log_group`, else none.
            log_group: Where they go; its name starts with /aws/fsx. Default: - /aws/fsx/lustre, which FSx makes.
            weekly_maintenance_start_time: When FSx may update it, in UTC: `7:03:30` is on Sundays at half past three.
                Default: - FSx chooses, or keeps the last value.
            automatic_backup_retention_days: How long daily backups are kept, up to 90 days; 0 is none. For
                persistent file systems without data sets. Default: - 0.
            daily_automatic_backup_start_time: When backups start, in UTC, such as `03:30`.
                Default: - FSx chooses, or keeps the last value.
            copy_tags_to_backups: Whether backups get the file system's tags. It can never change. Default: - no.

        Raises:
            ValueError: A setting that FSx refuses; data sets that overlap.
        """
        Construct.__init__(self, scope, id)
        check_templates(self)
        settings = _settings(
            {
                "deployment_type": deployment_type,
                "storage_type": storage_type,
                "storage_capacity_gib": storage_capacity_gib,
                "throughput_mbps_per_tib": throughput_mbps_per_tib,
                "throughput_capacity_mbps": throughput_capacity_mbps,
                "data_read_cache_gib": data_read_cache_gib,
                "efa_enabled": efa_enabled,
                "metadata_iops": metadata_iops,
                "data_compression_type": data_compression_type,
                "drive_cache_type": drive_cache_type,
                "file_system_type_version": file_system_type_version,
                "encryption_key": encryption_key,
                "log_level": log_level,
                "log_group": log_group,
                "weekly_maintenance_start_time": weekly_maintenance_start_time,
                "automatic_backup_retention_days": automatic_backup_retention_days,
                "daily_automatic_backup_start_time": daily_automatic_backup_start_time,
                "copy_tags_to_backups": copy_tags_to_backups,
            }
        )
        self.settings: FileSystemSettings | None = settings
        self.efa_enabled: bool = efa_enabled
        self.network: ClusterNetwork = network
        self.mount_point: str = mount_point
        self.storage_capacity_gib: int | None = settings.capacity_gib
        self.throughput_mbps_per_tib: int | None = settings.mbps_per_tib
        group = lustre_access.make_group(self, network, efa=efa_enabled)
        rules = lustre_access.make_rules(self, network, group.attr_group_id, efa=efa_enabled)
        file_system = fsx.CfnFileSystem(
            self,
            "Resource",
            file_system_type="LUSTRE",
            file_system_type_version=file_system_type_version,
            storage_type=storage_type,
            storage_capacity=settings.capacity_gib,
            subnet_ids=[network.node_subnet.subnet_id],
            security_group_ids=[group.attr_group_id],
            kms_key_id=None if encryption_key is None else encryption_key.key_arn,
            lustre_configuration=fsx.CfnFileSystem.LustreConfigurationProperty(**settings.configuration()),
        )
        key = {} if encryption_key is None else {"encryption_key": encryption_key.key_arn}
        fixed = keep_fixed(self, {**settings.fixed(), **place_of(network.node_subnet), **key})
        # FSx looks for its ports in the group's rules before it makes anything.
        # https://docs.aws.amazon.com/fsx/latest/LustreGuide/cannot-create-fs.html
        file_system.node.add_dependency(*rules, fixed)
        keep(file_system)
        if settings.kind is not None and not settings.kind.persistent:
            warn(
                self,
                "scratchFileSystem",
                f"a {deployment_type} file system loses data when one of its servers fails: keep only copies there.",
            )
        network.retain()
        self.file_system_id: str = file_system.ref
        self.dns_name: str = file_system.attr_dns_name
        self.mount_name: str = file_system.attr_lustre_mount_name
        self._share(group.attr_group_id, datasets)

    @classmethod
    @checked
    def from_attributes(
        cls,
        scope: Construct,
        id: str,
        *,
        network: ClusterNetwork,
        file_system_id: str,
        mount_name: str,
        security_group: ec2.ISecurityGroup | None = None,
        dns_name: str | None = None,
        efa_enabled: bool = False,
        datasets: Sequence[Dataset] = (),
        mount_point: MountPoint = "/fsx",
    ) -> "TrainingFileSystem":
        """Use an existing file system, such as one that its stack has kept.

        Its network is kept when the stack is deleted, as that of any file system. What the spend function and `plan`
        say of its price is that it is not known.

        Args:
            scope: The parent construct.
            id: The construct's id.
            network: The network that it lives in.
            file_system_id: Its id, such as `fs-0a1b2c3d4e5f67890`.
            mount_name: Its mount name, which DescribeFileSystems shows.
            security_group: Its security group; rules between it and the nodes' group are added. EC2 refuses rules
                that are there already. Default: - none are added: its groups let the nodes in already.
            dns_name: Its DNS name. Default: - made of its id and the stack's region.
            efa_enabled: Whether it has EFA. Default: - no.
            datasets: What to link to it beside what is linked already. Default: - nothing.
            mount_point: Where the nodes mount it. Default: - `/fsx`.

        Raises:
            ValueError: Data sets that overlap.
        """
        network.retain()
        existing = _ExistingFileSystem(scope, id)
        existing.network, existing.mount_point, existing.efa_enabled = network, mount_point, efa_enabled
        existing.file_system_id, existing.mount_name = file_system_id, mount_name
        existing.dns_name = dns_name or Fn.join(".", [file_system_id, "fsx", Aws.REGION, Aws.URL_SUFFIX])
        if security_group is not None:
            own = security_group.security_group_id
            existing.access_rules = tuple(lustre_access.let_nodes_in(existing, network, own, efa=efa_enabled))
        existing._share(None if security_group is None else security_group.security_group_id, datasets)
        return existing

    def _share(self, group_id: str | None, datasets: Sequence[Dataset]) -> None:
        """Set what every file system has: connections and data sets."""
        groups = (
            []
            if group_id is None
            else [ec2.SecurityGroup.from_security_group_id(self, "Group", group_id, allow_all_outbound=False)]
        )
        self._connections = ec2.Connections(security_groups=groups, default_port=lustre_access.ports())
        self._links = Construct(self, "Datasets")
        self._datasets: list[Dataset] = []
        for dataset in datasets:
            self.add_dataset(dataset)

    @property
    def connections(self) -> ec2.Connections:
        """What the file system lets in and out; rules may be added, the group never swapped."""
        return self._connections

    @property
    def datasets(self) -> tuple[Dataset, ...]:
        """What is linked, in the order it was added."""
        return tuple(self._datasets)

    def add_dataset(self, dataset: Dataset) -> None:
        """Link a data set: its names by an import task, and as the bucket changes; contents when they are first read.

        FSx makes the links of a file system one at a time, so each adds some minutes to a first deployment. The
        directory, bucket and prefix of a link cannot be changed, only taken away in one deployment and made anew in
        the next; the bucket loses nothing.

        Args:
            dataset: What to link and where to show it.

        Raises:
            ValueError: It overlaps with one that is linked already, there are eight, it imports from another region,
                exports deletions to a bucket that is emptied with its stack, or the file system takes no links, or
                backups instead.
        """
        link_settings = Link(dataset=dataset, region=Stack.of(self).region)
        unlinked = () if self.settings is None else file_system_problems(replace(self.settings, datasets=1))
        problems = [*unlinked, *link_problems(link_settings), *overlaps([*self._datasets, dataset])]
        if problems:
            raise SettingsError(problems)
        self._datasets.append(dataset)
        allow_dataset(self, dataset.bucket)
        previous = self._links.node.children[-1:]
        link = fsx.CfnDataRepositoryAssociation(
            self._links,
            _link_id(dataset.directory, len(self._datasets)),
            file_system_id=self.file_system_id,
            file_system_path=dataset.directory,
            data_repository_path=dataset.data_repository_path,
            batch_import_meta_data_on_create=True,
            imported_file_chunk_size=dataset.chunk_size_mib,
            s3=_policies(dataset),
        )
        # FSx makes one at a time; of two that are asked for at once, one may fail.
        link.node.add_dependency(*previous)
        # FSx opens the bucket at once: what its policy demands must be there by then. And what empties the bucket
        # comes after the link at the end, which would pass the deletions on.
        before = (dataset.bucket.policy, auto_delete(dataset.bucket))
        link.node.add_dependency(*(each for each in before if each is not None))


class _ExistingFileSystem(TrainingFileSystem):
    """A file system that is not made here."""

    def __init__(self, scope: Construct, id: str) -> None:
        Construct.__init__(self, scope, id)
        check_templates(self)
        self.settings = None
        self.storage_capacity_gib = self.throughput_mbps_per_tib = None


def _link_id(directory: str, position: int) -> str:
    # Named for its directory, so that taking one data set away does not touch the others.
    return str(position) if is_unknown(directory) else directory.strip("/").replace("/", ".") or "root"


def _policies(dataset: Dataset) -> fsx.CfnDataRepositoryAssociation.S3Property | None:
    """Return which changes a link passes on. None: none."""
    link = fsx.CfnDataRepositoryAssociation
    imported, exported = (
        [event for event in DatasetEvent if event in events]
        for events in (dataset.import_events, dataset.export_events)
    )
    if not imported and not exported:
        return None
    return link.S3Property(
        auto_import_policy=link.AutoImportPolicyProperty(events=imported) if imported else None,
        auto_export_policy=link.AutoExportPolicyProperty(events=exported) if exported else None,
    )
