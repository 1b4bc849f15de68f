"""What of a file system never changes: a deployed one is neither replaced nor does it ignore a setting."""

from typing import Any

import pytest
from aws_cdk import aws_kms as kms

from cdk_training_cluster import ClusterNetwork, TrainingFileSystem
from synthesis import ZONE, new_stack, resources

_KEY = "arn:aws:kms:us-east-1:111122223333:key/0a1b2c3d-4e5f-6789-abcd-ef0123456789"


def _parameter(cidr: str = "10.0.0.0/16", **settings: Any) -> tuple[str, dict[str, Any]]:
    stack = new_stack()
    network = ClusterNetwork(stack, "Network", availability_zone=ZONE, cidr=cidr)
    if "encryption_key" in settings:
        settings["encryption_key"] = kms.Key.from_key_arn(stack, "Key", settings["encryption_key"])
    TrainingFileSystem(stack, "FileSystem", network=network, **settings)
    ((name, parameter),) = resources(stack, "AWS::SSM::Parameter").items()
    return name, parameter["Properties"]


@pytest.mark.parametrize(
    "settings",
    [
        {"storage_capacity_gib": 4800},
        {"throughput_mbps_per_tib": 1000},
        {"data_compression_type": "NONE"},
        {"automatic_backup_retention_days": 7},
        {"weekly_maintenance_start_time": "7:03:30"},
        {"log_level": "WARN_ONLY"},
    ],
)
def test_what_fsx_changes_in_place_changes_nothing_of_the_parameter(settings: dict[str, Any]) -> None:
    assert _parameter(**settings) == _parameter()


@pytest.mark.parametrize(
    "settings",
    [
        {"deployment_type": "SCRATCH_2"},
        {"storage_type": "INTELLIGENT_TIERING"},
        {"efa_enabled": True},
        {"metadata_iops": 1500},
        {"file_system_type_version": "2.12"},
        {"copy_tags_to_backups": True},
        {"encryption_key": _KEY},
        {"cidr": "10.1.0.0/16"},
    ],
)
def test_what_never_changes_makes_another_logical_id_of_the_same_name(settings: dict[str, Any]) -> None:
    (name, parameter), (other_name, other) = _parameter(), _parameter(**settings)
    assert other_name != name
    assert other["Name"] == parameter["Name"]
    assert other["Value"] != parameter["Value"]


def test_the_tier_is_fixed_with_efa_alone() -> None:
    slow, fast = (_parameter(efa_enabled=True, throughput_mbps_per_tib=mbps)[0] for mbps in (250, 500))
    assert slow != fast


def test_the_parameter_of_settings_that_are_deployed_keeps_its_id() -> None:
    # Another id would keep every deployed file system from being changed.
    name, parameter = _parameter()
    assert name.startswith("FileSystemFixedSettingse7552f48")
    assert parameter["Name"]["Fn::Join"][1][-1] == "/FileSystem/fixed-settings"
