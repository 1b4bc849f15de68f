"""FSx's rules of file systems: what it makes, and what it changes of one that there is."""

from typing import Any

import pytest

from local_aws.refusal import Refusal
from local_aws.services.lustre_rules import check_file_system, check_update

_SSD = {"DeploymentType": "PERSISTENT_2", "PerUnitStorageThroughput": 250}
_AUTOMATIC = {"MetadataConfiguration": {"Mode": "AUTOMATIC"}}
_HDD = {"DeploymentType": "PERSISTENT_1", "PerUnitStorageThroughput": 12, "DriveCacheType": "READ"}
_TIERING = {
    "DeploymentType": "PERSISTENT_2",
    "ThroughputCapacity": 8000,
    "DataReadCacheConfiguration": {"SizingMode": "NO_CACHE"},
    "MetadataConfiguration": {"Mode": "USER_PROVISIONED", "Iops": 6000},
}


@pytest.mark.parametrize(
    ("storage", "capacity", "configuration"),
    [
        ("SSD", 1200, _SSD),
        ("SSD", 19200, {**_SSD, **_AUTOMATIC, "EfaEnabled": True}),
        ("SSD", 1200, {"DeploymentType": "PERSISTENT_1", "PerUnitStorageThroughput": 50}),
        ("HDD", 6000, _HDD),
        ("SSD", 1200, {"DeploymentType": "SCRATCH_2"}),
        ("SSD", 3600, {"DeploymentType": "SCRATCH_1"}),
        ("INTELLIGENT_TIERING", None, _TIERING),
    ],
)
def test_every_kind_is_made(storage: str, capacity: int | None, configuration: dict[str, Any]) -> None:
    check_file_system(storage, capacity, configuration)


@pytest.mark.parametrize(
    ("storage", "capacity", "configuration"),
    [
        ("HDD", 6000, {**_SSD, "DriveCacheType": "READ"}),
        ("HDD", 6000, {key: value for key, value in _HDD.items() if key != "DriveCacheType"}),
        ("HDD", 1800, _HDD),
        ("SSD", 1200, {"DeploymentType": "SCRATCH_2", "PerUnitStorageThroughput": 200}),
        ("SSD", 1200, {"DeploymentType": "SCRATCH_2", "AutomaticBackupRetentionDays": 7}),
        ("SSD", 1200, {"DeploymentType": "SCRATCH_2", **_AUTOMATIC}),
        ("SSD", 1200, {**_SSD, "ThroughputCapacity": 4000}),
        ("INTELLIGENT_TIERING", 1200, _TIERING),
        ("INTELLIGENT_TIERING", None, {**_TIERING, "ThroughputCapacity": 6000}),
        ("INTELLIGENT_TIERING", None, {**_TIERING, **_AUTOMATIC}),
    ],
)
def test_what_is_none_is_refused(storage: str, capacity: int | None, configuration: dict[str, Any]) -> None:
    with pytest.raises(Refusal):
        check_file_system(storage, capacity, configuration)


def _described(storage: str, capacity: int | None, configuration: dict[str, Any]) -> dict[str, Any]:
    return {"StorageType": storage, "StorageCapacity": capacity, "LustreConfiguration": configuration}


_PLAIN, _EFA = _described("SSD", 2400, _SSD), _described("SSD", 19200, {**_SSD, **_AUTOMATIC, "EfaEnabled": True})


@pytest.mark.parametrize(
    ("described", "request_", "reason"),
    [
        (_PLAIN, {"StorageCapacity": 4800}, None),
        (_PLAIN, {"StorageCapacity": 1200}, "must be greater than the current storage capacity 2400"),
        (_PLAIN, {"LustreConfiguration": {"PerUnitStorageThroughput": 500}}, None),
        (_EFA, {"LustreConfiguration": {"PerUnitStorageThroughput": 500}}, "of an EFA-enabled or HDD file system"),
        (_EFA, {"StorageCapacity": 21600}, "Must be a multiple of 19200"),
        (
            _described("HDD", 6000, _HDD),
            {"LustreConfiguration": {"PerUnitStorageThroughput": 40}},
            "of an EFA-enabled or HDD file system",
        ),
        (
            _described("SSD", 1200, {"DeploymentType": "SCRATCH_1"}),
            {"StorageCapacity": 2400},
            "The storage capacity of this file system cannot be changed",
        ),
        (
            _described("INTELLIGENT_TIERING", None, _TIERING),
            {"LustreConfiguration": {"ThroughputCapacity": 4000}},
            "can only be increased",
        ),
        (
            {**_PLAIN, "LustreConfiguration": {**_PLAIN["LustreConfiguration"], **_AUTOMATIC}},
            {"StorageCapacity": 4800, "LustreConfiguration": _AUTOMATIC},
            "cannot be scaled concurrently",
        ),
        (_PLAIN, {"LustreConfiguration": _AUTOMATIC}, "cannot be added to a file system that was created without"),
        (
            _described(
                "INTELLIGENT_TIERING", None, {**_TIERING, "MetadataConfiguration": {"Mode": "x", "Iops": 12000}}
            ),
            {"LustreConfiguration": {"MetadataConfiguration": {"Mode": "USER_PROVISIONED", "Iops": 6000}}},
            "Metadata Iops can only be increased",
        ),
    ],
)
def test_only_what_can_grow_or_change_does(
    described: dict[str, Any], request_: dict[str, Any], reason: str | None
) -> None:
    if reason is None:
        check_update(described, request_, linked=False)
        return
    with pytest.raises(Refusal, match=reason):
        check_update(described, request_, linked=False)


def test_a_linked_one_takes_no_backups() -> None:
    backups = {"LustreConfiguration": {"AutomaticBackupRetentionDays": 7}}
    check_update(_PLAIN, backups, linked=False)
    with pytest.raises(Refusal, match="cannot have automatic backups"):
        check_update(_PLAIN, backups, linked=True)
