"""The settings of a data set: a part of a bucket that a file system shows as a directory."""

from collections.abc import Sequence
from dataclasses import dataclass

from aws_cdk import aws_s3 as s3

from cdk_training_cluster.checks import interface_problems, is_unknown
from cdk_training_cluster.validation import text_problems

# https://docs.aws.amazon.com/fsx/latest/LustreGuide/create-dra-linked-data-repo.html
MAXIMUM_DATASETS = 8


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
    file_system_path: str
    prefix: str = ""

    def __post_init__(self) -> None:
        """Check the settings that need no other."""
        path = self.file_system_path
        problems = interface_problems(
            "bucket", self.bucket, "bucket_arn", "a bucket of CDK, such as s3.Bucket.from_bucket_name(…)"
        )
        if not isinstance(path, str):
            problems.append(f"file_system_path must be a directory, such as '/data', got {path!r}")
        if not isinstance(self.prefix, str):
            problems.append(f"prefix must be a key prefix, such as 'tokens/', got {self.prefix!r}")
        if problems:
            raise ValueError("\n".join(problems))
        if (not path.startswith("/") or "//" in path) and not is_unknown(path):
            raise ValueError(f"file_system_path must start with one /, such as '/data', got {path!r}")
        problems = [
            *text_problems("file_system_path", path, "fileSystemPath"),
            *text_problems("prefix", f"s3://{self.prefix}", "dataRepositoryPath"),
        ]
        if problems:
            raise ValueError("\n".join(problems))
        if self.prefix.startswith(("/", "s3:")) and not is_unknown(self.prefix):
            raise ValueError(
                f"prefix must be a key prefix without a leading /, such as 'tokens/', got {self.prefix!r}"
            )

    @property
    def directory(self) -> str:
        """The path without a trailing slash; `/` stays `/`."""
        return self.file_system_path.rstrip("/") or "/"

    @property
    def data_repository_path(self) -> str:
        """The S3 address as FSx takes it, such as `s3://bucket/tokens/`."""
        prefix = self.prefix if not self.prefix or self.prefix.endswith("/") else f"{self.prefix}/"
        return f"s3://{self.bucket.bucket_name}/{prefix}"


def overlaps(datasets: Sequence[Dataset]) -> list[str]:
    """Say which data sets FSx would refuse to link beside each other, a sentence each.

    Paths on the file system must not nest, nor may prefixes of one bucket; `/` can only stand alone.
    https://docs.aws.amazon.com/fsx/latest/LustreGuide/create-dra-linked-data-repo.html

    Args:
        datasets: All that would be linked to one file system.
    """
    found = []
    if len(datasets) > MAXIMUM_DATASETS:
        found.append(f"a file system takes at most {MAXIMUM_DATASETS} datasets, got {len(datasets)}")
    for index, second in enumerate(datasets):
        for first in datasets[:index]:
            if _nests(first.directory, second.directory):
                found.append(
                    f"the datasets at {first.directory} and {second.directory} overlap: file_system_path must "
                    "not lie in another dataset's; choose directories side by side"
                )
            if _nests(first.data_repository_path.rstrip("/"), second.data_repository_path.rstrip("/")):
                found.append(
                    f"the datasets at {first.directory} and {second.directory} overlap: their prefixes "
                    f"{first.prefix!r} and {second.prefix!r} lie in each other in one bucket; link the outer one "
                    "alone"
                )
    return found


def _nests(first: str, second: str) -> bool:
    # A token's text is its own identity: two buckets of one template have different ones.
    outer, inner = sorted((first.rstrip("/") + "/", second.rstrip("/") + "/"), key=len)
    return inner.startswith(outer)
