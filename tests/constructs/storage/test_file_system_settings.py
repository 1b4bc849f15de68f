"""The settings of a file system beside each other: every rule of FSx's, and what is made of what is left out."""

from typing import Any, cast

import pytest
from aws_cdk import CfnParameter, Token
from aws_cdk import aws_logs as logs
from aws_cdk import aws_s3 as s3

from cdk_training_cluster import ClusterNetwork, Dataset, TrainingFileSystem
from cdk_training_cluster.prices import UNITS
from cdk_training_cluster.storage.file_system_rules import file_system_problems
from cdk_training_cluster.storage.file_system_settings import FileSystemSettings
from synthesis import ZONE, new_stack, only

_HDD = {"deployment_type": "PERSISTENT_1", "storage_type": "HDD", "drive_cache_type": "READ"}
_SCRATCH = {"deployment_type": "SCRATCH_2"}
_TIERING = {"storage_type": "INTELLIGENT_TIERING"}
_TAKEN: dict[str, dict[str, Any]] = {
    "PERSISTENT_2": {"storage_capacity_gib": 4800, "throughput_mbps_per_tib": 1000},
    "PERSISTENT_2 with EFA": {"efa_enabled": True, "storage_capacity_gib": 9600, "throughput_mbps_per_tib": 500},
    "PERSISTENT_2 with metadata IOPS": {"metadata_iops": 36000},
    "Intelligent-Tiering": {**_TIERING, "throughput_capacity_mbps": 8000, "data_read_cache_gib": 262144},
    "Intelligent-Tiering with EFA and no cache": {**_TIERING, "efa_enabled": True, "data_read_cache_gib": 0},
    "PERSISTENT_1": {"deployment_type": "PERSISTENT_1", "throughput_mbps_per_tib": 50},
    "HDD at 12": {**_HDD, "throughput_mbps_per_tib": 12, "storage_capacity_gib": 12000},
    "HDD at 40": {**_HDD, "throughput_mbps_per_tib": 40, "storage_capacity_gib": 3600},
    "SCRATCH_2": {**_SCRATCH, "storage_capacity_gib": 2400, "datasets": 1},
    "SCRATCH_1": {"deployment_type": "SCRATCH_1", "storage_capacity_gib": 3600},
    "backups": {
        "automatic_backup_retention_days": 90,
        "daily_automatic_backup_start_time": "03:30",
        "copy_tags_to_backups": True,
    },
    "2.12": {"file_system_type_version": "2.12"},
    "a log group": {"log_group_name": "/aws/fsx-team"},
}
_REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"storage_type": "HDD"}, "storage_type must be SSD or INTELLIGENT_TIERING for PERSISTENT_2, got 'HDD'"),
    (
        {"storage_capacity_gib": 3600},
        "storage_capacity_gib must be 1200 or a multiple of 2400 for PERSISTENT_2, got 3600",
    ),
    (
        {"efa_enabled": True, "storage_capacity_gib": 1200},
        "storage_capacity_gib must be a multiple of 19200 for PERSISTENT_2 with EFA at 250 MB/s/TiB, got 1200",
    ),
    (
        {**_HDD, "throughput_mbps_per_tib": 12, "storage_capacity_gib": 1800},
        "storage_capacity_gib must be a multiple of 6000 for PERSISTENT_1 HDD at 12 MB/s/TiB, got 1800",
    ),
    (
        {**_TIERING, "storage_capacity_gib": 1200},
        "storage_capacity_gib is not for PERSISTENT_2 INTELLIGENT_TIERING, which grows with what is stored, got 1200"
        ": leave it out",
    ),
    (
        {"throughput_mbps_per_tib": 200},
        "throughput_mbps_per_tib must be 125, 250, 500 or 1000 for PERSISTENT_2, got 200",
    ),
    (
        {"deployment_type": "PERSISTENT_1"},
        "throughput_mbps_per_tib must be 50, 100 or 200 for PERSISTENT_1, got nothing",
    ),
    (
        {**_SCRATCH, "throughput_mbps_per_tib": 200},
        "throughput_mbps_per_tib is not for SCRATCH_2, got 200: leave it out",
    ),
    (
        {**_TIERING, "throughput_capacity_mbps": 6000},
        "throughput_capacity_mbps must be a multiple of 4000 up to 2000000, got 6000",
    ),
    (
        {"throughput_capacity_mbps": 4000},
        "throughput_capacity_mbps is for PERSISTENT_2 INTELLIGENT_TIERING only, got 4000: leave it out",
    ),
    (
        {**_TIERING, "data_read_cache_gib": 31},
        "data_read_cache_gib must be 0 or from 32 to 131072 for 4000 MB/s, got 31",
    ),
    (
        {"data_read_cache_gib": 32},
        "data_read_cache_gib is for PERSISTENT_2 INTELLIGENT_TIERING only, got 32: leave it out",
    ),
    (
        {**_SCRATCH, "efa_enabled": True},
        "efa_enabled must be False for SCRATCH_2, got True: only PERSISTENT_2 has EFA",
    ),
    (
        {"metadata_iops": 2000},
        "metadata_iops must be 'AUTOMATIC', 1500, 3000, 6000 or a multiple of 12000 up to 192000 for PERSISTENT_2, "
        "got 2000",
    ),
    (
        {**_TIERING, "metadata_iops": "AUTOMATIC"},
        "metadata_iops must be 6000 or 12000 for PERSISTENT_2 INTELLIGENT_TIERING, got 'AUTOMATIC'",
    ),
    ({**_SCRATCH, "metadata_iops": 1500}, "metadata_iops is for PERSISTENT_2 only, got 1500: leave it out"),
    (
        {**_HDD, "throughput_mbps_per_tib": 12, "drive_cache_type": None},
        "drive_cache_type must be READ or NONE for PERSISTENT_1 HDD, got nothing",
    ),
    ({"drive_cache_type": "READ"}, "drive_cache_type is for PERSISTENT_1 HDD only, got 'READ': leave it out"),
    (
        {"file_system_type_version": "2.12", "metadata_iops": 1500},
        "file_system_type_version must be 2.15 with metadata IOPS or EFA, got '2.12'",
    ),
    (
        {**_SCRATCH, "encryption_key": "key"},
        "encryption_key is for persistent file systems only, got one for SCRATCH_2: leave it out",
    ),
    (
        {**_SCRATCH, "automatic_backup_retention_days": 7},
        "automatic_backup_retention_days must be 0 for SCRATCH_2, which takes no backups, got 7",
    ),
    (
        {"automatic_backup_retention_days": 7, "datasets": 1},
        "automatic_backup_retention_days must be 0 beside datasets or exported checkpoints, got 7: FSx takes no "
        "backups of a file system that is linked to S3",
    ),
    (
        {"daily_automatic_backup_start_time": "03:30"},
        "daily_automatic_backup_start_time must have backups to start: set automatic_backup_retention_days, or leave "
        "it out",
    ),
    (
        {"copy_tags_to_backups": True, "datasets": 1},
        "copy_tags_to_backups must be False for a scratch or linked file system, which has no backups, got True",
    ),
    (
        {**_TIERING, "datasets": 1},
        "datasets and exported checkpoints cannot be linked to PERSISTENT_2 INTELLIGENT_TIERING: choose PERSISTENT_2 "
        "with SSD",
    ),
    (
        {"log_level": "DISABLED", "log_group_name": "/aws/fsx/pod"},
        "log_group must be left out where log_level is DISABLED",
    ),
    ({"log_group_name": "pod"}, "log_group must have a name that starts with /aws/fsx, got 'pod'"),
    (
        {"throughput_mbps_per_tib": Token.as_number({"Ref": "Throughput"})},
        "storage_capacity_gib must be given where throughput_mbps_per_tib is known at deployment only",
    ),
]


@pytest.mark.parametrize("settings", _TAKEN.values(), ids=_TAKEN)
def test_what_fsx_makes(settings: dict[str, Any]) -> None:
    assert list(file_system_problems(FileSystemSettings(**settings))) == []


@pytest.mark.parametrize(("settings", "message"), _REFUSED, ids=[message.split()[0] for _, message in _REFUSED])
def test_what_fsx_refuses_is_one_sentence(settings: dict[str, Any], message: str) -> None:
    assert [problem.message for problem in file_system_problems(FileSystemSettings(**settings))] == [message]


@pytest.mark.parametrize(
    ("settings", "capacity", "configuration"),
    [
        (
            {**_TIERING},
            None,
            {
                "ThroughputCapacity": 4000,
                "DataReadCacheConfiguration": {"SizingMode": "PROPORTIONAL_TO_THROUGHPUT_CAPACITY"},
                "MetadataConfiguration": {"Mode": "USER_PROVISIONED", "Iops": 6000},
            },
        ),
        (
            {"efa_enabled": True, "throughput_mbps_per_tib": 1000},
            4800,
            {
                "EfaEnabled": True,
                "PerUnitStorageThroughput": 1000,
                "MetadataConfiguration": {"Mode": "AUTOMATIC"},
            },
        ),
        ({**_HDD, "throughput_mbps_per_tib": 12}, 6000, {"PerUnitStorageThroughput": 12, "DriveCacheType": "READ"}),
        (_SCRATCH, 1200, {}),
    ],
)
def test_what_is_left_out_is_what_fsx_demands(
    settings: dict[str, Any], capacity: int | None, configuration: dict[str, Any]
) -> None:
    stack = new_stack()
    network = ClusterNetwork(stack, "Network", availability_zone=ZONE)
    TrainingFileSystem(stack, "FileSystem", network=network, **settings)
    made = only(stack, "AWS::FSx::FileSystem")["Properties"]
    backups = {} if settings is _SCRATCH else {"AutomaticBackupRetentionDays": 0}
    assert made.get("StorageCapacity") == capacity
    no_logs = {} if settings == _TIERING else {"LogConfiguration": {"Level": "DISABLED"}}
    assert made["LustreConfiguration"] == {
        **no_logs,
        "DeploymentType": settings.get("deployment_type", "PERSISTENT_2"),
        "DataCompressionType": "LZ4",
        **backups,
        **configuration,
    }


def test_logs_go_to_a_group_of_the_name_that_fsx_writes_to() -> None:
    stack = new_stack()
    network = ClusterNetwork(stack, "Network", availability_zone=ZONE)
    group = logs.LogGroup.from_log_group_name(stack, "Log", "/aws/fsx/pod")
    TrainingFileSystem(stack, "FileSystem", network=network, log_group=group)
    made = only(stack, "AWS::FSx::FileSystem")["Properties"]["LustreConfiguration"]["LogConfiguration"]
    assert made["Level"] == "WARN_ERROR"
    assert made["Destination"]["Fn::Join"][1][-1].endswith(":log-group:/aws/fsx/pod")
    with pytest.raises(
        ValueError, match=r"^log_group must have a name that starts with /aws/fsx, got none: give it log_group_name$"
    ):
        TrainingFileSystem(stack, "Other", network=network, log_group=logs.LogGroup(stack, "Nameless"))


def test_a_dataset_that_comes_later_is_held_against_the_same_rules() -> None:
    stack = new_stack()
    network = ClusterNetwork(stack, "Network", availability_zone=ZONE)
    files = TrainingFileSystem(stack, "FileSystem", network=network, automatic_backup_retention_days=7)
    with pytest.raises(
        ValueError, match=r"^automatic_backup_retention_days must be 0 beside datasets or exported checkpoints, got 7"
    ):
        files.add_dataset(Dataset(bucket=s3.Bucket(stack, "Corpus"), file_system_path="/data"))


@pytest.mark.parametrize(
    ("settings", "units"),
    [
        ({}, {"fsx-persistent-2-250": 1200}),
        ({"metadata_iops": 12000}, {"fsx-persistent-2-250": 1200, "fsx-metadata-iops": 10500}),
        ({"metadata_iops": 6000, "storage_capacity_gib": 9600}, {"fsx-persistent-2-250": 9600}),
        (
            {"metadata_iops": 48000, "storage_capacity_gib": 72000},
            {"fsx-persistent-2-250": 72000, "fsx-metadata-iops": 12000},
        ),
        ({**_HDD, "throughput_mbps_per_tib": 40}, {"fsx-persistent-1-hdd-40-read": 1800}),
        (_SCRATCH, {"fsx-scratch-2": 1200}),
        (
            {**_TIERING, "throughput_capacity_mbps": 8000},
            {
                "fsx-intelligent-tiering-mbps": 8000,
                "fsx-intelligent-tiering-read-cache": 40000,
                "fsx-metadata-iops": 6000,
            },
        ),
    ],
)
def test_what_is_billed_has_a_name_whether_its_price_is_known_or_not(
    settings: dict[str, Any], units: dict[str, int]
) -> None:
    billed = FileSystemSettings(**settings).units_of_a_month() or {}
    assert {name: int(count) for name, count in billed.items()} == units
    assert units.keys() <= UNITS.keys()


def test_of_a_size_that_is_known_at_deployment_only_nothing_is_billed_by_guess() -> None:
    size = CfnParameter(new_stack(), "Size", type="Number").value_as_number
    assert FileSystemSettings(storage_capacity_gib=cast(int, size)).units_of_a_month() is None
