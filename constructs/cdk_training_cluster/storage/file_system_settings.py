"""The settings of a file system beside each other: what FSx takes, and what it makes of what is left out."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from aws_cdk import aws_fsx as fsx

from cdk_training_cluster.storage.deployment_types import (
    AUTOMATIC_READ_CACHE_GIB_PER_STEP,
    INTELLIGENT_TIERING_PRICES,
    FileSystemKind,
    ThroughputTier,
    automatic_metadata_iops,
    kind_of,
)
from cdk_training_cluster.validation.checks import is_unknown

AUTOMATIC = "AUTOMATIC"
"""Metadata IOPS that FSx provisions by the storage capacity."""

# Of the type that people choose without saying so; the others have none that suits most.
_DEFAULT_MBPS_PER_TIB = {"PERSISTENT_2": 250}


@dataclass(frozen=True, kw_only=True)
class FileSystemSettings:
    """Settings of a file system that depend on each other; `TrainingFileSystem` says what each means."""

    deployment_type: str = "PERSISTENT_2"
    storage_type: str = "SSD"
    storage_capacity_gib: int | None = None
    throughput_mbps_per_tib: int | None = None
    throughput_capacity_mbps: int | None = None
    data_read_cache_gib: int | None = None
    efa_enabled: bool = False
    metadata_iops: int | str | None = None
    data_compression_type: str = "LZ4"
    drive_cache_type: str | None = None
    file_system_type_version: str = "2.15"
    encryption_key: object = None
    log_level: str | None = None
    log_group_name: str | None = None
    log_group_arn: str | None = None
    weekly_maintenance_start_time: str | None = None
    automatic_backup_retention_days: int = 0
    daily_automatic_backup_start_time: str | None = None
    copy_tags_to_backups: bool = False
    datasets: int = 0

    @property
    def kind(self) -> FileSystemKind | None:
        """What the deployment type with the storage class can do; None: FSx has no such file system."""
        return kind_of(self.deployment_type, self.storage_type)

    @property
    def words(self) -> str:
        """The deployment type, with the storage class where it is not SSD."""
        return self.deployment_type if self.storage_type == "SSD" else f"{self.deployment_type} {self.storage_type}"

    @property
    def mbps_per_tib(self) -> int | None:
        """The throughput for each TiB; None: it is not known, or does not depend on the capacity."""
        given = self.throughput_mbps_per_tib
        if given is None and self.kind is not None and self.kind.provisioned:
            given = _DEFAULT_MBPS_PER_TIB.get(self.deployment_type)
        return given

    @property
    def tier(self) -> ThroughputTier | None:
        """What it can be at its throughput; None: that is not known, or does not depend on the capacity."""
        return None if self.kind is None or is_unknown(self.mbps_per_tib) else self.kind.tier(self.mbps_per_tib)

    @property
    def capacity_gib(self) -> int | None:
        """The storage capacity: the smallest where none is given; None: it grows with what is stored."""
        if self.storage_capacity_gib is not None or self.tier is None:
            return self.storage_capacity_gib
        return self.tier.smallest_gib(1, efa=self.efa_enabled)

    @property
    def total_mbps(self) -> Decimal | None:
        """The throughput of the whole in MB/s; None: it is known at deployment only.

        https://docs.aws.amazon.com/fsx/latest/LustreGuide/ssd-storage.html
        """
        if self.tier is None:
            given = self.throughput_capacity
            return None if given is None or is_unknown(given) else Decimal(given)
        gib = self.capacity_gib
        return None if gib is None or is_unknown(gib) else Decimal(gib) / 1024 * self.tier.mbps_per_tib

    def describe(self) -> str:
        """Return its size and its throughput for people, and its type where that is not PERSISTENT_2 with SSD."""
        which = "" if self.words == "PERSISTENT_2" else f"{self.words}, "
        with_efa = " with EFA" if self.efa_enabled else ""
        if self.tier is None:
            return f"{which}{self.throughput_capacity:,} MB/s{with_efa}"
        return f"{which}{self.capacity_gib:,} GiB at {self.tier.mbps_per_tib} MB/s/TiB{with_efa}"

    @property
    def throughput_capacity(self) -> int | None:
        """The throughput in MB/s where it does not depend on the storage capacity."""
        step = None if self.kind is None else self.kind.throughput_step_mbps
        return self.throughput_capacity_mbps or step

    @property
    def provisioned_metadata_iops(self) -> int | str | None:
        """The metadata IOPS: those that FSx demands where none are given; None: there is no such configuration."""
        if self.metadata_iops is not None:
            return self.metadata_iops
        if self.storage_type == "INTELLIGENT_TIERING" and self.kind is not None:
            return self.kind.metadata_iops[0]
        return AUTOMATIC if self.efa_enabled else None

    def configuration(self) -> dict[str, Any]:
        """Return the Lustre configuration as CDK takes it; what FSx does by itself is left out."""
        lustre = fsx.CfnFileSystem
        kind = self.kind
        made: dict[str, Any] = {
            "deployment_type": self.deployment_type,
            "data_compression_type": self.data_compression_type,
            "per_unit_storage_throughput": self.mbps_per_tib,
            "throughput_capacity": self.throughput_capacity,
            "drive_cache_type": self.drive_cache_type,
            "efa_enabled": True if self.efa_enabled else None,
            "weekly_maintenance_start_time": self.weekly_maintenance_start_time,
            "daily_automatic_backup_start_time": self.daily_automatic_backup_start_time,
            "copy_tags_to_backups": True if self.copy_tags_to_backups else None,
            # A file system with S3 links takes no backups, and one without may be given links later.
            "automatic_backup_retention_days": self.automatic_backup_retention_days
            if kind is None or kind.persistent
            else None,
        }
        level = self.log_level or ("DISABLED" if self.log_group_arn is None else "WARN_ERROR")
        # UpdateFileSystem keeps what is left out: a level that is taken away would stay.
        if level != "DISABLED" or kind is None or kind.links:
            made["log_configuration"] = lustre.LogConfigurationProperty(level=level, destination=self.log_group_arn)
        iops = self.provisioned_metadata_iops
        if iops is not None:
            made["metadata_configuration"] = (
                lustre.MetadataConfigurationProperty(mode=AUTOMATIC)
                if iops == AUTOMATIC
                else lustre.MetadataConfigurationProperty(mode="USER_PROVISIONED", iops=iops)  # type: ignore[arg-type]  # a number here
            )
        if kind is not None and kind.throughput_step_mbps is not None:
            made["data_read_cache_configuration"] = self._read_cache()
        return {name: value for name, value in made.items() if value is not None}

    def fixed(self) -> dict[str, object]:
        """Return what of the settings can never change; what has its default and was always fixed is left out.

        https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-properties-fsx-filesystem-lustreconfiguration.html
        says "Replacement" of some, and FSx changes the others of no file system: UpdateFileSystem does not take EFA,
        a throughput for each TiB with EFA or of HDD storage, nor a metadata configuration where there was none.
        """
        tier_changes = self.kind is not None and self.kind.tier_changes and not self.efa_enabled
        settings: dict[str, object] = {
            "deployment_type": self.deployment_type,
            "storage_type": self.storage_type,
            "efa_enabled": self.efa_enabled or None,
            "throughput_mbps_per_tib": None if tier_changes else self.mbps_per_tib,
            "metadata_configuration": self.provisioned_metadata_iops is not None or None,
            "drive_cache_type": self.drive_cache_type,
            "file_system_type_version": None
            if self.file_system_type_version == "2.15"
            else self.file_system_type_version,
            "copy_tags_to_backups": self.copy_tags_to_backups or None,
        }
        return {name: value for name, value in settings.items() if value is not None}

    def units_of_a_month(self) -> dict[str, Decimal] | None:
        """Return what AWS bills for a month, by the names in the price list; None: it is known at deployment only.

        https://aws.amazon.com/fsx/lustre/pricing/
        """
        iops = self.provisioned_metadata_iops
        if self.kind is None or any(map(is_unknown, (self.capacity_gib, self.mbps_per_tib, iops))):
            return None
        units: dict[str, Decimal] = {}
        if self.tier is not None and self.capacity_gib is not None:
            cached = "-read" if self.drive_cache_type == "READ" else ""
            units[f"{self.tier.price}{cached}"] = Decimal(self.capacity_gib)
        step, capacity = self.kind.throughput_step_mbps, self.throughput_capacity
        if step is not None and capacity is not None:
            cache = self.data_read_cache_gib
            if is_unknown(capacity) or is_unknown(cache):
                return None
            automatic = AUTOMATIC_READ_CACHE_GIB_PER_STEP * capacity // step
            counts = (capacity, automatic if cache is None else cache)
            units |= zip(INTELLIGENT_TIERING_PRICES, map(Decimal, counts), strict=True)
        included = 0 if self.capacity_gib is None else automatic_metadata_iops(self.capacity_gib)
        if isinstance(iops, int) and iops > included:
            units["fsx-metadata-iops"] = Decimal(iops - included)
        return units

    def _read_cache(self) -> fsx.CfnFileSystem.DataReadCacheConfigurationProperty:
        gib = self.data_read_cache_gib
        if gib is None:
            return fsx.CfnFileSystem.DataReadCacheConfigurationProperty(
                sizing_mode="PROPORTIONAL_TO_THROUGHPUT_CAPACITY"
            )
        if gib == 0:
            return fsx.CfnFileSystem.DataReadCacheConfigurationProperty(sizing_mode="NO_CACHE")
        return fsx.CfnFileSystem.DataReadCacheConfigurationProperty(sizing_mode="USER_PROVISIONED", size_gib=gib)
