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

_SCRATCH = ("SCRATCH_1", "SCRATCH_2")
_PERSISTENT = ("PERSISTENT_1", "PERSISTENT_2")
# First sizes in GiB and the step between larger ones, by deployment type.
_CAPACITY_STEPS = {
    "SCRATCH_1": ((1200, 2400), 3600),
    "SCRATCH_2": ((1200,), 2400),
    "PERSISTENT_1": ((1200,), 2400),
    "PERSISTENT_2": ((1200,), 2400),
}
# MB/s/TiB by deployment and storage type.
_THROUGHPUTS = {
    ("PERSISTENT_1", "SSD"): (50, 100, 200),
    ("PERSISTENT_1", "HDD"): (12, 40),
    ("PERSISTENT_2", "SSD"): (125, 250, 500, 1000),
}
_HDD_STEPS = {12: 6000, 40: 1800}
_EFA_STEPS = {125: 38400, 250: 19200, 500: 9600, 1000: 4800}
_METADATA_IOPS = (1500, 3000, 6000, 12000)
_MOST_METADATA_IOPS = 192000
_MOST_LINKS = 8
_MOST_CHUNK_MIB = 512000
_EVENTS = {"NEW", "CHANGED", "DELETED"}


def lustre_version(configuration: Mapping[str, Any], asked: str | None) -> str:
    """Return the file system's Lustre version; refuse one that the deployment type lacks."""
    with_metadata = bool(configuration.get("MetadataConfiguration"))
    persistent_2 = configuration.get("DeploymentType") == "PERSISTENT_2"
    if asked is None:
        return ("2.15" if with_metadata else "2.12") if persistent_2 else "2.10"
    allowed = ("2.15",) if persistent_2 and with_metadata else ("2.12", "2.15")
    if not persistent_2:
        allowed = ("2.10", *allowed)
    if asked not in allowed:
        raise Refusal(
            "BadRequest",
            f"Invalid FileSystemTypeVersion {asked} for {configuration.get('DeploymentType')}. "
            f"Must be one of {', '.join(allowed)}.",
        )
    return asked


def check_file_system(storage_type: str, capacity: int | None, configuration: Mapping[str, Any]) -> None:
    """Raise what FSx answers if it would not make the file system."""
    deployment = configuration.get("DeploymentType", "SCRATCH_1")
    if deployment not in (*_SCRATCH, *_PERSISTENT):
        raise Refusal("BadRequest", f"Invalid Lustre deployment type: {deployment}.")
    if storage_type == "INTELLIGENT_TIERING":
        _check_tiering(deployment, capacity, configuration)
    else:
        _check_throughput(deployment, storage_type, configuration)
        _check_capacity(deployment, storage_type, capacity, configuration)
    _check_metadata(deployment, configuration)
    _check_efa(deployment, storage_type, capacity, configuration)
    _check_backups_and_paths(deployment, configuration)


def _check_tiering(deployment: str, capacity: int | None, configuration: Mapping[str, Any]) -> None:
    if deployment != "PERSISTENT_2":
        raise Refusal("BadRequest", f"INTELLIGENT_TIERING storage needs PERSISTENT_2, not {deployment}.")
    if capacity is not None or configuration.get("PerUnitStorageThroughput") is not None:
        raise Refusal(
            "BadRequest",
            "StorageCapacity and PerUnitStorageThroughput cannot be given with INTELLIGENT_TIERING storage.",
        )
    throughput = configuration.get("ThroughputCapacity")
    if throughput is None or throughput <= 0 or throughput % 4000:
        raise Refusal("BadRequest", f"Invalid ThroughputCapacity: {throughput}. Must be a multiple of 4000.")
    if not configuration.get("DataReadCacheConfiguration"):
        raise Refusal("BadRequest", "INTELLIGENT_TIERING storage needs a DataReadCacheConfiguration.")


def _check_throughput(deployment: str, storage_type: str, configuration: Mapping[str, Any]) -> None:
    throughput = configuration.get("PerUnitStorageThroughput")
    if deployment in _SCRATCH:
        if throughput is not None:
            raise Refusal("BadRequest", f"PerUnitStorageThroughput cannot be given for {deployment}.")
        return
    allowed = _THROUGHPUTS.get((deployment, storage_type))
    if allowed is None:
        raise Refusal("BadRequest", f"Storage type {storage_type} is not offered for {deployment}.")
    if throughput not in allowed:
        raise Refusal(
            "InvalidPerUnitStorageThroughput",
            f"The storage throughput (MB/s/TiB) value should be one of [{','.join(map(str, allowed))}].",
        )
    if storage_type == "HDD" and configuration.get("DriveCacheType") not in {"NONE", "READ"}:
        raise Refusal("BadRequest", "DriveCacheType is required for storage type HDD.")


def _check_capacity(
    deployment: str, storage_type: str, capacity: int | None, configuration: Mapping[str, Any]
) -> None:
    if storage_type == "HDD":
        step = _HDD_STEPS[configuration["PerUnitStorageThroughput"]]
        first: tuple[int, ...] = ()
    else:
        first, step = _CAPACITY_STEPS[deployment]
    if capacity is None or not (capacity in first or (capacity > 0 and capacity % step == 0)):
        sizes = " or ".join([*map(str, first), f"a multiple of {step}"])
        raise Refusal("BadRequest", f"Invalid Lustre FS storage capacity: {capacity}. Must be {sizes}.")


def _check_metadata(deployment: str, configuration: Mapping[str, Any]) -> None:
    metadata = configuration.get("MetadataConfiguration")
    if not metadata:
        return
    if deployment != "PERSISTENT_2":
        raise Refusal("BadRequest", f"MetadataConfiguration needs PERSISTENT_2, not {deployment}.")
    mode, iops = metadata.get("Mode"), metadata.get("Iops")
    if mode not in {"AUTOMATIC", "USER_PROVISIONED"}:
        raise Refusal("BadRequest", f"Invalid metadata configuration mode: {mode}.")
    if mode == "AUTOMATIC" and iops is not None:
        raise Refusal("BadRequest", "Metadata Iops cannot be given in AUTOMATIC mode.")
    if mode == "USER_PROVISIONED" and not (
        iops in _METADATA_IOPS or (iops and iops % 12000 == 0 and iops <= _MOST_METADATA_IOPS)
    ):
        raise Refusal(
            "BadRequest",
            f"Invalid metadata Iops: {iops}. Must be 1500, 3000, 6000, 12000 or a multiple of 12000 up to 192000.",
        )


def _check_efa(deployment: str, storage_type: str, capacity: int | None, configuration: Mapping[str, Any]) -> None:
    if not configuration.get("EfaEnabled"):
        return
    if deployment != "PERSISTENT_2" or not configuration.get("MetadataConfiguration"):
        raise Refusal("BadRequest", "EfaEnabled needs PERSISTENT_2 with a MetadataConfiguration.")
    if storage_type == "SSD":
        step = _EFA_STEPS[configuration["PerUnitStorageThroughput"]]
        if capacity is None or capacity % step:
            raise Refusal(
                "BadRequest",
                f"Invalid Lustre FS storage capacity: {capacity}. Must be a multiple of {step} for an EFA-enabled "
                f"file system with {configuration['PerUnitStorageThroughput']} MB/s/TiB.",
            )


def _check_backups_and_paths(deployment: str, configuration: Mapping[str, Any]) -> None:
    if deployment in _SCRATCH and configuration.get("AutomaticBackupRetentionDays"):
        raise Refusal("BadRequest", f"Automatic backups are not offered for {deployment}.")
    legacy = [name for name in ("ImportPath", "ExportPath", "AutoImportPolicy") if configuration.get(name)]
    if deployment == "PERSISTENT_2" and legacy:
        raise Refusal(
            "BadRequest",
            f"{', '.join(legacy)} cannot be given for PERSISTENT_2: use a data repository association.",
        )


def _overlap(first: str, second: str) -> bool:
    first, second = first.rstrip("/") + "/", second.rstrip("/") + "/"
    return first.startswith(second) or second.startswith(first)


def check_association(
    request: Mapping[str, Any],
    *,
    deployment: str,
    storage_type: str,
    version: str,
    configuration: Mapping[str, Any],
    others: Iterable[Mapping[str, Any]],
) -> None:
    """Raise what FSx answers if it would not link the bucket.

    https://docs.aws.amazon.com/fsx/latest/APIReference/API_CreateDataRepositoryAssociation.html

    Args:
        request: The parameters of CreateDataRepositoryAssociation.
        deployment: The file system's deployment type.
        storage_type: The file system's storage type.
        version: The file system's Lustre version.
        configuration: The file system's LustreConfiguration.
        others: The associations that the file system has already.
    """
    if deployment == "SCRATCH_1" or storage_type == "INTELLIGENT_TIERING" or version == "2.10":
        raise Refusal(
            "BadRequest",
            "Data repository associations are supported on Lustre 2.12 and 2.15 file systems, excluding SCRATCH_1 "
            f"and INTELLIGENT_TIERING; this one is {deployment}, {storage_type}, version {version}.",
        )
    if configuration.get("AutomaticBackupRetentionDays"):
        raise Refusal("BadRequest", "A file system with automatic backups cannot have data repository associations.")
    if configuration.get("ImportPath"):
        raise Refusal("BadRequest", "A file system with an ImportPath cannot have data repository associations.")
    others = list(others)
    if len(others) >= _MOST_LINKS:
        raise Refusal("ServiceLimitExceeded", f"A file system can have {_MOST_LINKS} data repository associations.")
    path, repository = request["FileSystemPath"], request["DataRepositoryPath"]
    if not path.startswith("/"):
        raise Refusal("BadRequest", f"The file system path {path} must start with a forward slash.")
    if not repository.startswith("s3://"):
        raise Refusal("BadRequest", f"The data repository path {repository} must start with s3://.")
    for other in others:
        if _overlap(path, other["FileSystemPath"]):
            raise Refusal(
                "BadRequest",
                f"The file system path {path} overlaps with {other['FileSystemPath']} of {other['AssociationId']}.",
            )
        if _overlap(repository, other["DataRepositoryPath"]):
            raise Refusal(
                "BadRequest",
                f"The data repository path {repository} overlaps with {other['DataRepositoryPath']} of "
                f"{other['AssociationId']}.",
            )
    check_association_settings(request)


def check_association_settings(request: Mapping[str, Any]) -> None:
    """Raise what FSx answers to a wrong chunk size or a wrong event; an update is checked alike."""
    chunk = request.get("ImportedFileChunkSize")
    if chunk is not None and not 1 <= chunk <= _MOST_CHUNK_MIB:
        raise Refusal("BadRequest", f"ImportedFileChunkSize must be 1 to {_MOST_CHUNK_MIB} MiB, got {chunk}.")
    for policy in (request.get("S3") or {}).values():
        unknown = set(policy.get("Events") or []) - _EVENTS
        if unknown:
            raise Refusal("BadRequest", f"Unknown event {', '.join(sorted(unknown))}.")
