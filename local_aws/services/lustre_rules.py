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

_MADE = ("PERSISTENT_2", "SSD")
_FIRST_CAPACITY, _STEP = 1200, 2400
# GiB of which an EFA-enabled file system has a multiple, by MB/s/TiB.
_EFA_STEPS = {125: 38400, 250: 19200, 500: 9600, 1000: 4800}
_METADATA_IOPS = (1500, 3000, 6000, 12000)
_MOST_LINKS = 8


def _wrong(message: str) -> Refusal:
    return Refusal("BadRequest", message)


def lustre_version(configuration: Mapping[str, Any], asked: str | None) -> str:
    """Return the file system's Lustre version; refuse one that it cannot have."""
    allowed = ("2.15",) if configuration.get("MetadataConfiguration") else ("2.12", "2.15")
    if asked is not None and asked not in allowed:
        raise _wrong(f"Invalid FileSystemTypeVersion {asked} for PERSISTENT_2. Must be one of {', '.join(allowed)}.")
    return asked or allowed[0]


def check_file_system(storage_type: str, capacity: int | None, configuration: Mapping[str, Any]) -> None:
    """Raise what FSx answers if it would not make the file system.

    Raises:
        NotImplementedError: for other deployments than SSD storage of the type PERSISTENT_2.
    """
    deployment, throughput = configuration["DeploymentType"], configuration.get("PerUnitStorageThroughput")
    if (deployment, storage_type) != _MADE:
        raise NotImplementedError(f"FSx for Lustre of the type {deployment} with {storage_type} storage")
    if throughput not in _EFA_STEPS:
        raise Refusal(
            "InvalidPerUnitStorageThroughput",
            f"The storage throughput (MB/s/TiB) value should be one of [{','.join(map(str, _EFA_STEPS))}].",
        )
    if capacity is None or (capacity != _FIRST_CAPACITY and capacity % _STEP):
        raise _wrong(
            f"Invalid Lustre FS storage capacity: {capacity}. Must be {_FIRST_CAPACITY} or a multiple of {_STEP}."
        )
    metadata = configuration.get("MetadataConfiguration")
    if metadata:
        _check_metadata(metadata["Mode"], metadata.get("Iops"))
    if configuration.get("EfaEnabled") and not metadata:
        raise _wrong("EfaEnabled needs PERSISTENT_2 with a MetadataConfiguration.")
    if configuration.get("EfaEnabled") and capacity % _EFA_STEPS[throughput]:
        raise _wrong(
            f"Invalid Lustre FS storage capacity: {capacity}. Must be a multiple of {_EFA_STEPS[throughput]} for an "
            f"EFA-enabled file system with {throughput} MB/s/TiB."
        )
    legacy = [name for name in ("ImportPath", "ExportPath", "AutoImportPolicy") if configuration.get(name)]
    if legacy:
        raise _wrong(f"{', '.join(legacy)} cannot be given for PERSISTENT_2: use a data repository association.")


def _check_metadata(mode: str, iops: int | None) -> None:
    if mode == "AUTOMATIC" and iops is not None:
        raise _wrong("Metadata Iops cannot be given in AUTOMATIC mode.")
    if mode == "USER_PROVISIONED" and iops not in _METADATA_IOPS and (not iops or iops % 12000):
        raise _wrong(
            f"Invalid metadata Iops: {iops}. Must be 1500, 3000, 6000, 12000 or a multiple of 12000 up to 192000."
        )


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
