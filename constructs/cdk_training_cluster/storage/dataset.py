"""The settings of a data set: a part of a bucket that a file system shows as a directory."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Protocol

from aws_cdk import Duration
from aws_cdk import aws_s3 as s3
from constructs import IConstruct

from cdk_training_cluster.validation import text_problems
from cdk_training_cluster.validation.bounds import Minutes, Whole
from cdk_training_cluster.validation.checks import is_unknown, shown
from cdk_training_cluster.validation.kinds import checked
from cdk_training_cluster.validation.rule import Found, Problem, Rules, broken, refuse

# https://docs.aws.amazon.com/fsx/latest/LustreGuide/create-dra-linked-data-repo.html
MAXIMUM_DATASETS = 8
# https://docs.aws.amazon.com/fsx/latest/APIReference/API_CreateDataRepositoryAssociation.html
CHUNK_MIB = Whole(minimum=1, maximum=512_000)
PRELOAD_GIB = Whole(minimum=1)
_DAY = 24 * 60
RELEASE_DAYS = Whole(minimum=1, maximum=3650)
# FSx counts whole days. https://docs.aws.amazon.com/fsx/latest/APIReference/API_DurationSinceLastAccess.html
RELEASE_AFTER = Minutes(minimum=RELEASE_DAYS.minimum * _DAY, maximum=RELEASE_DAYS.maximum * _DAY, step=_DAY)
# All of a data set's patterns travel to the nodes in one parameter of a Run Command.
MAX_PATTERNS, MAX_PATTERN_LENGTH = 20, 256


class DatasetEvent(StrEnum):
    """What happens to an object or a file, and a link passes on to its other side."""

    NEW = "NEW"
    """It is made."""

    CHANGED = "CHANGED"
    """Its contents or its attributes change."""

    DELETED = "DELETED"
    """It is deleted."""


def _path(setting: str, value: object) -> Iterator[str]:
    if not isinstance(value, str):
        yield f"{setting} must be a directory, such as '/data', got {shown(value)}"
    elif (not value.startswith("/") or "//" in value) and not is_unknown(value):
        yield f"{setting} must start with one /, such as '/data', got {shown(value)}"
    else:
        yield from text_problems(setting, value, "fileSystemPath")


def _prefix(setting: str, value: object) -> Iterator[str]:
    if not isinstance(value, str):
        yield f"{setting} must be a key prefix, such as 'tokens/', got {shown(value)}"
    elif value.startswith(("/", "s3:")) and not is_unknown(value):
        yield f"{setting} must be a key prefix without a leading /, such as 'tokens/', got {shown(value)}"
    else:
        yield from text_problems(setting, f"s3://{value}", "dataRepositoryPath")


def _patterns(setting: str, patterns: Sequence[object]) -> Iterator[str]:
    if not 1 <= len(patterns) <= MAX_PATTERNS:
        yield f"{setting} must have from 1 to {MAX_PATTERNS} patterns, got {len(patterns)}: use wider patterns"
    for pattern in patterns:
        if not isinstance(pattern, str) or not 1 <= len(pattern) <= MAX_PATTERN_LENGTH or is_unknown(pattern):
            yield (
                f"{setting} must have patterns of 1 to {MAX_PATTERN_LENGTH} characters that are known when the "
                f"template is made, such as '*.bin', got {shown(pattern)}"
            )
        elif pattern.startswith("/"):
            yield (
                f"{setting} must have patterns relative to the dataset's directory, such as 'train/*.bin', got "
                f"{shown(pattern)}: leave out the leading /"
            )


def _preload(setting: str, value: object) -> Iterator[str]:
    if isinstance(value, bool):
        return
    if isinstance(value, Sequence) and not isinstance(value, str):
        yield from _patterns(setting, value)
    else:
        yield f"{setting} must be True, False or a list of patterns, such as ['*.bin'], got {shown(value)}"


@checked
@dataclass(frozen=True, kw_only=True)
class Dataset:
    """Name a part of an S3 bucket that the file system shows as a directory.

    The link brings names and sizes at once and follows the bucket; a file's contents come when it is first read, or
    before, if `preload` says so.

    Attributes:
        bucket: The bucket; in the file system's region, unless `import_events` is empty. Do not let CDK manage event
            notifications on it: FSx keeps one there (named `FSx`) that CDK would overwrite.
        prefix: The keys to show, such as `tokens/`. Default: - the whole bucket.
        file_system_path: Where the file system shows them, such as `/data`.
        import_events: Which changes of objects reach the file system. Default: - all three.
        export_events: Which changes of files reach the bucket. Default: - none: nothing is written to it.
        chunk_size_mib: How many MiB of a file lie on one disk of the file system, 1 to 512000.
            Default: - FSx's own, 1024.
        preload: Whether the cluster's nodes load the contents before they are read: True, or patterns of the paths
            below the directory, such as `train/*.bin`, of which each file must match one. The deployment does not
            wait for it; jobs can, with `wait-for-dataset`. Default: - False.
        preload_max_gib: How many GiB are loaded at most, in the order of the paths. Default: - all that match.
        release_after: After how many days without a read or write FSx frees the space of files whose contents are in
            the bucket; they are loaded again when they are read. A task does it each day. Default: - never.

    Raises:
        ValueError: The path or the prefix is not one that a link can have, or settings contradict each other.

    Sources: https://docs.aws.amazon.com/fsx/latest/LustreGuide/create-dra-linked-data-repo.html and
    https://docs.aws.amazon.com/fsx/latest/LustreGuide/release-files-dra.html
    """

    bucket: s3.IBucket
    file_system_path: Annotated[str, _path]
    prefix: Annotated[str, _prefix] = ""
    import_events: Sequence[DatasetEvent] = tuple(DatasetEvent)
    export_events: Sequence[DatasetEvent] = ()
    chunk_size_mib: Annotated[int, CHUNK_MIB] | None = None
    preload: Annotated[bool | Sequence[str], _preload] = False
    preload_max_gib: Annotated[int, PRELOAD_GIB] | None = None
    release_after: Annotated[Duration, RELEASE_AFTER] | None = None

    def __post_init__(self) -> None:
        """Check the settings together.

        Raises:
            ValueError: A setting contradicts another; every reason, a line each.
        """
        refuse(contradictions(self))

    @property
    def patterns(self) -> tuple[str, ...]:
        """The patterns of the files that are preloaded; none: all, or nothing is preloaded."""
        return () if isinstance(self.preload, bool) else tuple(self.preload)

    @property
    def is_maintained(self) -> bool:
        """Whether anything is left to do once the link is made: to preload it or to release its files."""
        return bool(self.preload) or self.release_after is not None

    @property
    def directory(self) -> str:
        """The path without a trailing slash; `/` stays `/`."""
        return self.file_system_path.rstrip("/") or "/"

    @property
    def data_repository_path(self) -> str:
        """The S3 address as FSx takes it, such as `s3://bucket/tokens/`."""
        prefix = self.prefix if not self.prefix or self.prefix.endswith("/") else f"{self.prefix}/"
        return f"s3://{self.bucket.bucket_name}/{prefix}"


class Preloaded(Protocol):
    """What is looked at of one data set by itself."""

    @property
    def preload(self) -> bool | Sequence[str]:
        """Whether it is preloaded, or the patterns of what is."""

    @property
    def preload_max_gib(self) -> int | None:
        """How much of it is preloaded at most."""


def contradictions(dataset: Preloaded) -> dict[str, list[str]]:
    """Say which settings of one data set contradict each other, by setting.

    Args:
        dataset: The data set.
    """
    if dataset.preload_max_gib is None or dataset.preload:
        return {}
    sentence = f"preload_max_gib limits what is preloaded, got {dataset.preload_max_gib} without preload: add preload"
    return {"preload_max_gib": [sentence]}


@dataclass(frozen=True, kw_only=True)
class Link:
    """A data set beside the file system that shows it.

    Attributes:
        dataset: The data set.
        region: The file system's region.
    """

    dataset: Dataset
    region: str


_LINK_RULES: Rules[Link] = Rules()


def link_problems(link: Link) -> list[Problem]:
    """Say why FSx would refuse a link, or why data would be lost by it.

    Args:
        link: The link.
    """
    return list(broken(_LINK_RULES, link))


@_LINK_RULES.rule(
    "importRegion",
    "https://docs.aws.amazon.com/fsx/latest/LustreGuide/create-dra-linked-data-repo.html",
    "import_events",
)
def _import_from_another_region(link: Link) -> Iterator[str]:
    region = link.dataset.bucket.env.region
    known = not is_unknown(region) and not is_unknown(link.region)
    if link.dataset.import_events and known and region != link.region:
        yield (
            f"the dataset at {link.dataset.directory} must have a bucket in {link.region}, the file system's region, "
            f"got one in {region}: FSx imports changes within a region only; set import_events=[] or copy the data"
        )


@_LINK_RULES.rule(
    "exportedDeletions",
    "https://docs.aws.amazon.com/AmazonS3/latest/userguide/DeletingObjects.html",
    "export_events",
)
def _deletions_of_a_bucket_that_is_emptied(link: Link) -> Iterator[str]:
    if DatasetEvent.DELETED in link.dataset.export_events and auto_delete(link.dataset.bucket) is not None:
        yield (
            f"the dataset at {link.dataset.directory} must not export DELETED to a bucket with auto_delete_objects, "
            "which is emptied with its stack: a file and its object would be deleted by either; take away one of them"
        )


def auto_delete(bucket: s3.IBucket) -> IConstruct | None:
    """Return what empties a bucket before CloudFormation deletes it. None: nothing does.

    Args:
        bucket: The bucket.
    """
    return bucket.node.try_find_child("AutoDeleteObjectsCustomResource")


class Linked(Protocol):
    """What is looked at of a data set that is linked to a file system."""

    @property
    def directory(self) -> str:
        """Where the file system shows it, without a trailing slash."""

    @property
    def prefix(self) -> str:
        """The keys that are shown, as the user spelled them."""

    @property
    def data_repository_path(self) -> str:
        """What is shown, as FSx takes it, such as `s3://bucket/tokens/`."""


_LINKS = "https://docs.aws.amazon.com/fsx/latest/LustreGuide/create-dra-linked-data-repo.html"

_DATASET_RULES: Rules[Sequence[Linked]] = Rules()


def overlaps(datasets: Sequence[Linked]) -> list[Problem]:
    """Say which data sets FSx would refuse to link beside each other.

    Paths on the file system must not nest, nor may prefixes of one bucket; `/` can only stand alone.

    Args:
        datasets: All that would be linked to one file system.
    """
    return list(broken(_DATASET_RULES, datasets))


@_DATASET_RULES.rule("mostDatasets", _LINKS, "datasets")
def _too_many(datasets: Sequence[Linked]) -> Iterator[str]:
    if len(datasets) > MAXIMUM_DATASETS:
        yield f"a file system takes at most {MAXIMUM_DATASETS} datasets, got {len(datasets)}"


@_DATASET_RULES.rule("nestedDirectories", _LINKS)
def _nested_directories(datasets: Sequence[Linked]) -> Iterator[Found]:
    for place, first, second in _pairs(datasets):
        if _nests(first.directory, second.directory):
            yield (
                ("datasets", place, "file_system_path"),
                f"the datasets at {first.directory} and {second.directory} overlap: file_system_path must not lie in "
                "another dataset's; choose directories side by side",
            )


@_DATASET_RULES.rule("nestedPrefixes", _LINKS)
def _nested_prefixes(datasets: Sequence[Linked]) -> Iterator[Found]:
    for place, first, second in _pairs(datasets):
        if _nests(first.data_repository_path, second.data_repository_path):
            yield (
                ("datasets", place, "prefix"),
                f"the datasets at {first.directory} and {second.directory} overlap: their prefixes {first.prefix!r} "
                f"and {second.prefix!r} lie in each other in one bucket; link the outer one alone",
            )


def _pairs(datasets: Sequence[Linked]) -> Iterator[tuple[int, Linked, Linked]]:
    """Yield each data set, with its place, beside each before it."""
    for place, second in enumerate(datasets):
        yield from ((place, first, second) for first in datasets[:place])


def _nests(first: str, second: str) -> bool:
    # A token's text is its own identity: two buckets of one template have different ones.
    outer, inner = sorted((first.rstrip("/") + "/", second.rstrip("/") + "/"), key=len)
    return inner.startswith(outer)
