"""What FSx refuses of the settings of a file system beside each other, as its documents say it."""

from collections.abc import Iterator

from cdk_training_cluster.storage.deployment_types import MAX_THROUGHPUT_MBPS, READ_CACHE_GIB_PER_STEP, kind_of
from cdk_training_cluster.storage.file_system_settings import AUTOMATIC, FileSystemSettings
from cdk_training_cluster.validation.checks import is_unknown, shown
from cdk_training_cluster.validation.rule import Problem, Rules, broken

_CREATE = "https://docs.aws.amazon.com/fsx/latest/APIReference/API_CreateFileSystem.html"
_LUSTRE = "https://docs.aws.amazon.com/fsx/latest/APIReference/API_CreateFileSystemLustreConfiguration.html"
_LINKS = "https://docs.aws.amazon.com/fsx/latest/LustreGuide/create-dra-linked-data-repo.html"
_BACKUPS = "https://docs.aws.amazon.com/fsx/latest/LustreGuide/using-backups-fsx.html"

_RULES: Rules[FileSystemSettings] = Rules()


def file_system_problems(settings: FileSystemSettings) -> Iterator[Problem]:
    """Yield what FSx would refuse.

    Args:
        settings: The settings.
    """
    return broken(_RULES, settings)


def _only(setting: str, value: object, allowed: str) -> str:
    return f"{setting} is {allowed}, got {shown(value)}: leave it out"


@_RULES.rule("storageClass", _CREATE, "storage_type")
def _storage_class(settings: FileSystemSettings) -> Iterator[str]:
    if settings.kind is None:
        allowed = [each for each in ("SSD", "HDD", "INTELLIGENT_TIERING") if kind_of(settings.deployment_type, each)]
        yield (
            f"storage_type must be {' or '.join(allowed)} for {settings.deployment_type}, got "
            f"{shown(settings.storage_type)}"
        )


@_RULES.rule("storageCapacity", _CREATE, "storage_capacity_gib")
def _storage_capacity(settings: FileSystemSettings) -> Iterator[str]:
    kind, gib = settings.kind, settings.storage_capacity_gib
    if kind is None or is_unknown(gib):
        return
    if gib is None:
        if kind.provisioned and is_unknown(settings.mbps_per_tib):
            yield "storage_capacity_gib must be given where throughput_mbps_per_tib is known at deployment only"
        return
    if not kind.tiers:
        yield _only("storage_capacity_gib", gib, f"not for {settings.words}, which grows with what is stored")
        return
    efa = settings.efa_enabled and kind.efa
    tier = settings.tier
    if tier is None and not efa and len({(each.first_gib, each.step_gib) for each in kind.tiers}) == 1:
        tier = kind.tiers[0]
    if tier is None or tier.takes(gib, efa=efa):
        return
    at = "" if settings.storage_type == "SSD" and not efa else f" at {tier.mbps_per_tib} MB/s/TiB"
    with_efa = " with EFA" if efa else ""
    first = "" if efa else "".join(f"{each} or " for each in tier.first_gib)
    step = tier.efa_step_gib if efa else tier.step_gib
    yield (
        f"storage_capacity_gib must be {first}a multiple of {step} for {settings.words}{with_efa}{at}, got "
        f"{shown(gib)}"
    )


@_RULES.rule("throughputTier", _LUSTRE, "throughput_mbps_per_tib")
def _throughput_tier(settings: FileSystemSettings) -> Iterator[str]:
    kind, given = settings.kind, settings.throughput_mbps_per_tib
    if kind is None or is_unknown(given):
        return
    if not kind.provisioned:
        if given is not None:
            yield _only("throughput_mbps_per_tib", given, f"not for {settings.words}")
        return
    *others, last = (str(tier.mbps_per_tib) for tier in kind.tiers)
    if settings.tier is None:
        got = "nothing" if given is None else shown(given)
        yield f"throughput_mbps_per_tib must be {', '.join(others)} or {last} for {settings.words}, got {got}"


@_RULES.rule("throughputCapacity", _LUSTRE, "throughput_capacity_mbps")
def _throughput_capacity(settings: FileSystemSettings) -> Iterator[str]:
    kind, given = settings.kind, settings.throughput_capacity_mbps
    if kind is None or given is None or is_unknown(given):
        return
    step = kind.throughput_step_mbps
    if step is None:
        yield _only("throughput_capacity_mbps", given, "for PERSISTENT_2 INTELLIGENT_TIERING only")
    elif not 0 < given <= MAX_THROUGHPUT_MBPS or given % step:
        yield (
            f"throughput_capacity_mbps must be a multiple of {step} up to {MAX_THROUGHPUT_MBPS}, got {shown(given)}"
        )


@_RULES.rule(
    "dataReadCache",
    "https://docs.aws.amazon.com/fsx/latest/APIReference/API_LustreReadCacheConfiguration.html",
    "data_read_cache_gib",
)
def _data_read_cache(settings: FileSystemSettings) -> Iterator[str]:
    kind, given, capacity = settings.kind, settings.data_read_cache_gib, settings.throughput_capacity
    if kind is None or given is None or is_unknown(given):
        return
    step = kind.throughput_step_mbps
    if step is None:
        yield _only("data_read_cache_gib", given, "for PERSISTENT_2 INTELLIGENT_TIERING only")
    elif capacity is not None and not is_unknown(capacity) and given != 0:
        smallest, largest = (each * capacity // step for each in READ_CACHE_GIB_PER_STEP)
        if not smallest <= given <= largest:
            yield (
                f"data_read_cache_gib must be 0 or from {smallest} to {largest} for {capacity} MB/s, got "
                f"{shown(given)}"
            )


@_RULES.rule("efa", "https://docs.aws.amazon.com/fsx/latest/LustreGuide/efa-file-systems.html", "efa_enabled")
def _efa(settings: FileSystemSettings) -> Iterator[str]:
    if settings.efa_enabled and settings.kind is not None and not settings.kind.efa:
        yield f"efa_enabled must be False for {settings.words}, got True: only PERSISTENT_2 has EFA"


@_RULES.rule(
    "metadataIops",
    "https://docs.aws.amazon.com/fsx/latest/APIReference/API_CreateFileSystemLustreMetadataConfiguration.html",
    "metadata_iops",
)
def _metadata_iops(settings: FileSystemSettings) -> Iterator[str]:
    kind, given = settings.kind, settings.metadata_iops
    if kind is None or given is None or is_unknown(given):
        return
    if not kind.metadata_iops:
        yield _only("metadata_iops", given, "for PERSISTENT_2 only")
        return
    *few, last = kind.metadata_iops
    more = last < kind.max_metadata_iops
    automatic = kind.tiers != ()
    if (given == AUTOMATIC and automatic) or (isinstance(given, int) and kind.takes_metadata_iops(given)):
        return
    numbers = [f"'{AUTOMATIC}'"] if automatic else []
    numbers += [str(each) for each in few]
    numbers.append(f"a multiple of {last} up to {kind.max_metadata_iops}" if more else str(last))
    yield f"metadata_iops must be {', '.join(numbers[:-1])} or {numbers[-1]} for {settings.words}, got {shown(given)}"


@_RULES.rule("driveCache", _LUSTRE, "drive_cache_type")
def _drive_cache(settings: FileSystemSettings) -> Iterator[str]:
    kind, given = settings.kind, settings.drive_cache_type
    if kind is None:
        return
    if kind.drive_cache and given is None:
        yield f"drive_cache_type must be READ or NONE for {settings.words}, got nothing"
    if not kind.drive_cache and given is not None:
        yield _only("drive_cache_type", given, "for PERSISTENT_1 HDD only")


@_RULES.rule("lustreVersion", _CREATE, "file_system_type_version")
def _lustre_version(settings: FileSystemSettings) -> Iterator[str]:
    if settings.file_system_type_version != "2.15" and settings.provisioned_metadata_iops is not None:
        yield (
            f"file_system_type_version must be 2.15 with metadata IOPS or EFA, got "
            f"{shown(settings.file_system_type_version)}"
        )


@_RULES.rule("scratchKey", _CREATE, "encryption_key")
def _scratch_key(settings: FileSystemSettings) -> Iterator[str]:
    if settings.encryption_key is not None and settings.kind is not None and not settings.kind.persistent:
        yield f"encryption_key is for persistent file systems only, got one for {settings.words}: leave it out"


@_RULES.rule("backups", _BACKUPS, "automatic_backup_retention_days")
def _backups(settings: FileSystemSettings) -> Iterator[str]:
    days = settings.automatic_backup_retention_days
    if is_unknown(days) or not days or settings.kind is None:
        return
    if not settings.kind.persistent:
        yield f"automatic_backup_retention_days must be 0 for {settings.words}, which takes no backups, got {days}"
    elif settings.datasets:
        yield (
            f"automatic_backup_retention_days must be 0 beside datasets or exported checkpoints, got {days}: FSx "
            "takes no backups of a file system that is linked to S3"
        )


@_RULES.rule("backupTime", _LUSTRE, "daily_automatic_backup_start_time")
def _backup_time(settings: FileSystemSettings) -> Iterator[str]:
    if settings.daily_automatic_backup_start_time is not None and settings.automatic_backup_retention_days == 0:
        yield (
            "daily_automatic_backup_start_time must have backups to start: set automatic_backup_retention_days, or "
            "leave it out"
        )


@_RULES.rule("backupTags", _LUSTRE, "copy_tags_to_backups")
def _backup_tags(settings: FileSystemSettings) -> Iterator[str]:
    scratch = settings.kind is not None and not settings.kind.persistent
    if settings.copy_tags_to_backups and (scratch or settings.datasets):
        yield "copy_tags_to_backups must be False for a scratch or linked file system, which has no backups, got True"


@_RULES.rule("links", _LINKS, "datasets")
def _links(settings: FileSystemSettings) -> Iterator[str]:
    if settings.datasets and settings.kind is not None and not settings.kind.links:
        yield (
            f"datasets and exported checkpoints cannot be linked to {settings.words}: choose PERSISTENT_2 with SSD"
        )


@_RULES.rule(
    "logGroup",
    "https://docs.aws.amazon.com/fsx/latest/APIReference/API_LustreLogCreateConfiguration.html",
    "log_group",
)
def _log_group(settings: FileSystemSettings) -> Iterator[str]:
    name = settings.log_group_name
    if name is None:
        return
    if settings.log_level == "DISABLED":
        yield "log_group must be left out where log_level is DISABLED"
    if not is_unknown(name) and not name.startswith("/aws/fsx"):
        got = shown(name) if name else "none: give it log_group_name"
        yield f"log_group must have a name that starts with /aws/fsx, got {got}"
