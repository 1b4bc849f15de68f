"""The settings of a data set: a part of a bucket that a file system shows as a directory."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated, Protocol

from aws_cdk import aws_s3 as s3

from cdk_training_cluster.checks import is_unknown, shown
from cdk_training_cluster.validation import text_problems
from cdk_training_cluster.validation.kinds import checked
from cdk_training_cluster.validation.rule import Found, Problem, Rules, broken

# https://docs.aws.amazon.com/fsx/latest/LustreGuide/create-dra-linked-data-repo.html
MAXIMUM_DATASETS = 8


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


@checked
@dataclass(frozen=True, kw_only=True)
class Dataset:
    """Name a part of an S3 bucket that the file system shows as a directory.

    The link brings names and sizes at once and follows the bucket; a file's contents come when it is first read.
    Nothing is written back to the bucket.

    Attributes:
        bucket: The bucket, in the file system's region. Do not let CDK manage event notifications on it: FSx keeps
            one there (named `FSx`) that CDK would overwrite.
        prefix: The keys to show, such as `tokens/`. Default: - the whole bucket.
        file_system_path: Where the file system shows them, such as `/data`.

    Raises:
        ValueError: The path or the prefix is not one that a link can have.

    Source: https://docs.aws.amazon.com/fsx/latest/LustreGuide/create-dra-linked-data-repo.html
    """

    bucket: s3.IBucket
    file_system_path: Annotated[str, _path]
    prefix: Annotated[str, _prefix] = ""

    @property
    def directory(self) -> str:
        """The path without a trailing slash; `/` stays `/`."""
        return self.file_system_path.rstrip("/") or "/"

    @property
    def data_repository_path(self) -> str:
        """The S3 address as FSx takes it, such as `s3://bucket/tokens/`."""
        prefix = self.prefix if not self.prefix or self.prefix.endswith("/") else f"{self.prefix}/"
        return f"s3://{self.bucket.bucket_name}/{prefix}"


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
