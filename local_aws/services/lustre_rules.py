"""The rules by which FSx refuses a Lustre file system or a data repository association: pure functions.

Sources: https://docs.aws.amazon.com/fsx/latest/APIReference/API_CreateFileSystem.html,
https://docs.aws.amazon.com/fsx/latest/APIReference/API_CreateFileSystemLustreConfiguration.html,
https://docs.aws.amazon.com/fsx/latest/LustreGuide/managing-storage-capacity.html and
https://docs.aws.amazon.com/fsx/latest/LustreGuide/efa-file-systems.html. Messages as FSx gives them where a
public report of one exists (https://github.com/aws-samples/amazon-eks-autonomous-driving-data-service/issues/12,
https://github.com/kubernetes-sigs/aws-fsx-csi-driver/pull/232).
"""

from collections.abc import Iterable, Mapping
from typing import Any

from local_aws.refusal import Refusal

# The first capacities and the step in GiB, by deployment type, storage class and MB/s/TiB; None: that is no setting.
_CAPACITIES: Mapping[tuple[str, str], Mapping[int | None, tuple[tuple[int, ...], int]]] = {
    ("SCRATCH_1", "SSD"): {None: ((1200, 2400), 3600)},
    ("SCRATCH_2", "SSD"): {None: ((1200,), 2400)},
    ("PERSISTENT_1", "SSD"): dict.fromkeys((50, 100, 200), ((1200,), 2400)),
    ("PERSISTENT_1", "HDD"): {12: ((), 6000), 40: ((), 1800)},
    ("PERSISTENT_2", "SSD"): dict.fromkeys((125, 250, 500, 1000), ((1200,), 2400)),
}
_TIERING = ("PERSISTENT_2", "INTELLIGENT_TIERING")
_TIERING_STEP, _MOST_MBPS = 4000, 2_000_000
# GiB of which an EFA-enabled file system has a multiple, by MB/s/TiB.
_EFA_STEPS = {125: 38400, 250: 19200, 500: 9600, 1000: 4800}
_METADATA_IOPS, _MOST_METADATA_IOPS = (1500, 3000, 6000, 12000), 192_000
_TIERING_METADATA_IOPS = (6000, 12000)
_MOST_LINKS = 8


def _wrong(message: str) -> Refusal:
    return Refusal("BadRequest", message)


def lustre_version(configuration: Mapping[str, Any], asked: str | None) -> str:
    """Return the file system's Lustre version; refuse one that it cannot have."""
    newest = configuration["DeploymentType"] == "PERSISTENT_2"
    allowed = ["2.12", "2.15"] if newest else ["2.10", "2.12", "2.15"]
    if configuration.get("MetadataConfiguration"):
        allowed = ["2.15"]
    if asked is not None and asked not in allowed:
        raise _wrong(
            f"Invalid FileSystemTypeVersion {asked} for {configuration['DeploymentType']}. Must be one of "
            f"{', '.join(allowed)}."
        )
    return asked or allowed[0]


def check_file_system(
    storage_type: str, capacity: int | None, configuration: Mapping[str, Any], *, key: str | None = None
) -> None:
    """Raise what FSx answers if it would not make the file system.

    Args:
        storage_type: The storage class.
        capacity: The storage capacity in GiB.
        configuration: The LustreConfiguration.
        key: The KMS key that is asked for.
    """
    deployment, throughput = configuration["DeploymentType"], configuration.get("PerUnitStorageThroughput")
    kind, persistent = (deployment, storage_type), deployment.startswith("PERSISTENT")
    if kind == _TIERING:
        _check_tiering(capacity, configuration)
    elif kind in _CAPACITIES:
        _check_capacity(_CAPACITIES[kind], capacity, throughput)
        _not_for(kind, configuration, "ThroughputCapacity", "DataReadCacheConfiguration")
    else:
        raise _wrong(f"StorageType {storage_type} cannot be given for {deployment}.")
    if (storage_type == "HDD") != ("DriveCacheType" in configuration):
        raise _wrong("DriveCacheType is required for HDD storage, and for no other.")
    metadata = configuration.get("MetadataConfiguration")
    if metadata and deployment != "PERSISTENT_2":
        raise _wrong("MetadataConfiguration needs PERSISTENT_2.")
    if metadata:
        _check_metadata(metadata["Mode"], metadata.get("Iops"), tiering=kind == _TIERING)
    if configuration.get("EfaEnabled") and not metadata:
        raise _wrong("EfaEnabled needs PERSISTENT_2 with a MetadataConfiguration.")
    if configuration.get("EfaEnabled"):
        _check_efa_capacity(capacity, throughput)
    if not persistent and (configuration.get("AutomaticBackupRetentionDays") or key):
        raise _wrong(f"Backups and KMS keys are for persistent file systems, not for {deployment}.")
    legacy = [name for name in ("ImportPath", "ExportPath", "AutoImportPolicy") if configuration.get(name)]
    if legacy:
        raise _wrong(f"{', '.join(legacy)} cannot be given for {deployment}: use a data repository association.")


def _check_capacity(
    allowed: Mapping[int | None, tuple[tuple[int, ...], int]], capacity: int | None, throughput: int | None
) -> None:
    if throughput not in allowed:
        raise Refusal(
            "InvalidPerUnitStorageThroughput",
            f"The storage throughput (MB/s/TiB) value should be one of [{','.join(map(str, allowed))}].",
        )
    first, step = allowed[throughput]
    if capacity is None or capacity <= 0 or (capacity not in first and capacity % step):
        either = "".join(f"{each} or " for each in first)
        raise _wrong(f"Invalid Lustre FS storage capacity: {capacity}. Must be {either}a multiple of {step}.")


def _check_efa_capacity(capacity: int | None, throughput: int | None) -> None:
    if throughput is not None and capacity is not None and capacity % _EFA_STEPS[throughput]:
        raise _wrong(
            f"Invalid Lustre FS storage capacity: {capacity}. Must be a multiple of {_EFA_STEPS[throughput]} for an "
            f"EFA-enabled file system with {throughput} MB/s/TiB."
        )


def _check_tiering(capacity: int | None, configuration: Mapping[str, Any]) -> None:
    if capacity is not None:
        raise _wrong("StorageCapacity cannot be given for INTELLIGENT_TIERING.")
    _not_for(_TIERING, configuration, "PerUnitStorageThroughput")
    mbps = configuration.get("ThroughputCapacity")
    if not mbps or mbps % _TIERING_STEP or mbps > _MOST_MBPS:
        raise _wrong(f"ThroughputCapacity must be a multiple of {_TIERING_STEP} up to {_MOST_MBPS}, not {mbps}.")
    if not configuration.get("DataReadCacheConfiguration") or not configuration.get("MetadataConfiguration"):
        raise _wrong("INTELLIGENT_TIERING needs a DataReadCacheConfiguration and a MetadataConfiguration.")


def _not_for(kind: tuple[str, str], configuration: Mapping[str, Any], *names: str) -> None:
    given = [name for name in names if name in configuration]
    if given:
        raise _wrong(f"{', '.join(given)} cannot be given for {' with '.join(kind)} storage.")


def _check_metadata(mode: str, iops: int | None, *, tiering: bool) -> None:
    if mode == "AUTOMATIC" and (iops is not None or tiering):
        raise _wrong("Metadata Iops cannot be given in AUTOMATIC mode, which INTELLIGENT_TIERING does not have.")
    if mode == "AUTOMATIC":
        return
    multiple = not tiering and bool(iops) and iops % 12000 == 0 and iops <= _MOST_METADATA_IOPS  # type: ignore[operator]
    if iops not in (_TIERING_METADATA_IOPS if tiering else _METADATA_IOPS) and not multiple:
        raise _wrong(
            f"Invalid metadata Iops: {iops}. Must be 1500, 3000, 6000, 12000 or a multiple of 12000 up to 192000; "
            "6000 or 12000 with INTELLIGENT_TIERING."
        )


def check_update(described: Mapping[str, Any], request: Mapping[str, Any], *, linked: bool) -> None:
    """Raise what FSx answers if it would not change the file system, however long ago the last change was.

    https://docs.aws.amazon.com/fsx/latest/APIReference/API_UpdateFileSystem.html and
    https://docs.aws.amazon.com/fsx/latest/LustreGuide/managing-throughput-capacity.html;
    https://docs.aws.amazon.com/fsx/latest/LustreGuide/managing-metadata-performance.html is of both at once.

    Args:
        described: The file system.
        request: The parameters of UpdateFileSystem.
        linked: Whether it has data repository associations.
    """
    before, new = described["LustreConfiguration"], request.get("LustreConfiguration", {})
    capacity, had = request.get("StorageCapacity"), described["StorageCapacity"]
    if capacity is not None and (had is None or before["DeploymentType"] == "SCRATCH_1"):
        raise _wrong("The storage capacity of this file system cannot be changed.")
    if capacity is not None and capacity <= had:
        raise _wrong(f"StorageCapacity {capacity} must be greater than the current storage capacity {had}.")
    tier = new.get("PerUnitStorageThroughput")
    if tier is not None and (before.get("EfaEnabled") or described["StorageType"] == "HDD"):
        raise _wrong("PerUnitStorageThroughput of an EFA-enabled or HDD file system cannot be changed.")
    if new.get("ThroughputCapacity") is not None and new["ThroughputCapacity"] < before.get("ThroughputCapacity", 0):
        raise _wrong("ThroughputCapacity can only be increased.")
    if "MetadataConfiguration" in new and capacity is not None:
        raise _wrong("Metadata performance and storage capacity cannot be scaled concurrently.")
    if "MetadataConfiguration" in new:
        _check_more_metadata(before.get("MetadataConfiguration"), new["MetadataConfiguration"])
    if linked and new.get("AutomaticBackupRetentionDays"):
        raise _wrong("A file system with data repository associations cannot have automatic backups.")
    check_file_system(described["StorageType"], capacity or had, {**before, **new})


def _check_more_metadata(before: Mapping[str, Any] | None, new: Mapping[str, Any]) -> None:
    """https://docs.aws.amazon.com/fsx/latest/LustreGuide/managing-metadata-performance.html"""
    if before is None:
        raise _wrong("A MetadataConfiguration cannot be added to a file system that was created without one.")
    if new.get("Iops", before.get("Iops", 0)) < before.get("Iops", 0):
        raise _wrong("Metadata Iops can only be increased.")


def _overlap(first: str, second: str) -> bool:
    first, second = first.rstrip("/") + "/", second.rstrip("/") + "/"
    return first.startswith(second) or second.startswith(first)


def check_association(
    request: Mapping[str, Any], configuration: Mapping[str, Any], others: Iterable[Mapping[str, Any]]
) -> None:
    """Raise what FSx answers if it would not link the bucket.

    https://docs.aws.amazon.com/fsx/latest/APIReference/API_CreateDataRepositoryAssociation.html

    Args:
        request: The parameters of CreateDataRepositoryAssociation.
        configuration: The file system's LustreConfiguration.
        others: The associations that the file system has already.
    """
    if configuration["DeploymentType"] == "SCRATCH_1" or configuration.get("ThroughputCapacity"):
        raise _wrong("SCRATCH_1 and INTELLIGENT_TIERING file systems cannot have data repository associations.")
    if configuration.get("AutomaticBackupRetentionDays"):
        raise _wrong("A file system with automatic backups cannot have data repository associations.")
    others = list(others)
    if len(others) >= _MOST_LINKS:
        raise Refusal("ServiceLimitExceeded", f"A file system can have {_MOST_LINKS} data repository associations.")
    path, repository = request["FileSystemPath"], request["DataRepositoryPath"]
    if not path.startswith("/"):
        raise _wrong(f"The file system path {path} must start with a forward slash.")
    if not repository.startswith("s3://"):
        raise _wrong(f"The data repository path {repository} must start with s3://.")
    for other in others:
        for what, name in (("file system path", "FileSystemPath"), ("data repository path", "DataRepositoryPath")):
            if _overlap(request[name], other[name]):
                raise _wrong(f"The {what} {request[name]} overlaps with {other[name]} of {other['AssociationId']}.")
