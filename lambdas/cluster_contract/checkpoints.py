"""Where a cluster keeps its checkpoints, and what a listing of that place says about them.

A checkpoint is a directory with everything below it, such as `step-1000/` or `run-7/step-1000/`. It is complete when
the directory itself holds one of `MARKERS`, and as old as that: what is added later makes it no newer.
torch.distributed.checkpoint renames its `.metadata` into place when all ranks have written; a script that saves in
any other way writes an empty `.complete` as its last file.

FSx exports the files of a directory in no promised order: in an exported bucket the marker may be there before the
last file. `training-cluster checkpoints verify` compares files; a listing alone cannot.

Sources: https://docs.pytorch.org/docs/stable/distributed.checkpoint.html and
https://docs.aws.amazon.com/fsx/latest/LustreGuide/autoexport-data-repo-dra.html
"""

import json
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated, Any, NamedTuple

from cluster_contract.codec import FunctionSettings, Within, read, variable
from cluster_contract.idle import Policy

DIRECTORY_VARIABLE = "CHECKPOINT_DIR"
"""The environment variable on the nodes that names the exported directory, such as `/fsx/checkpoints`."""

URL_VARIABLE = "CHECKPOINT_URL"
"""The environment variable on the nodes that names the directory bucket, such as `s3://runs--use1-az4--x-s3/`."""

MARKERS = frozenset({".complete", ".metadata"})
"""The files that say that the directory which holds them is a complete checkpoint."""

RESTORING = ".training-cluster-restore"
"""How the name of the directory ends in which `training-cluster checkpoints restore` works."""

SET_ASIDE = (".damaged", ".abandoned")
"""The ends of the names of directories that `Run` keeps and no longer uses."""

UNFINISHED = (".partial", RESTORING, *SET_ASIDE)
"""The ends of the names of directories that are no complete checkpoints, whatever they hold."""

DIGESTS = "digests"
"""The key in a marker of `Run` that holds the algorithm and the digest of each file, as S3 writes them."""


@dataclass(frozen=True, kw_only=True)
class CheckpointPlace:
    """Where a cluster's checkpoints lie; the parameter `place_parameter` holds it as JSON.

    Attributes:
        bucket: The bucket. The name of a directory bucket ends in `--x-s3`.
        prefix: What the key of every checkpoint begins with; it ends in `/`. Default: - empty.
        directory: The exported directory as the nodes see it. Default: - empty: nodes write to the bucket itself.
    """

    bucket: str
    prefix: str = ""
    directory: str = ""

    @classmethod
    def parse(cls, text: str) -> "CheckpointPlace":
        """Read the parameter's value.

        Args:
            text: The value.

        Raises:
            ValueError: It is not what the deployment writes.
        """
        return read(cls, json.loads(text))


def place_parameter(cluster: str) -> str:
    """Return the name of the SSM parameter that holds the cluster's `CheckpointPlace`.

    Args:
        cluster: The cluster's name.
    """
    return f"/training-cluster/{cluster}/checkpoints"


@dataclass(frozen=True, kw_only=True)
class CheckpointFunctionSettings(FunctionSettings):
    """The settings of the checkpoint function.

    Attributes:
        cluster: The cluster's name, which its nodes' metrics have as a dimension.
        place: Where the checkpoints are.
        max_work: How long accelerators may work without a new checkpoint.
        below: The utilization, in percent, below which an accelerator does not work.
        topic_arn: The SNS topic that the function's alarms notify.
        tick: The time between two runs.
    """

    environment_variable = "CLUSTER_CHECKPOINTS_SETTINGS"

    cluster: str
    place: CheckpointPlace
    max_work: Annotated[timedelta, Within(above=0)]
    below: float = Policy.below
    topic_arn: str = variable("ALERT_TOPIC_ARN")
    tick: timedelta = timedelta(minutes=5)


class CheckpointMetric(StrEnum):
    """The metrics of the checkpoint function, by cluster."""

    SUCCESSFUL_TICKS = "SuccessfulCheckpointTicks"
    """1 for a run that read the checkpoints and the accelerators' use; no data otherwise."""

    WORK_WITHOUT_CHECKPOINT = "MinutesOfWorkWithoutCheckpoint"
    """How many minutes accelerators have worked since the newest complete checkpoint; 0 while they do not work."""

    AGE = "MinutesSinceCheckpoint"
    """How old the newest complete checkpoint is, in minutes; no data where there is none."""

    CHECKPOINTS = "CompleteCheckpoints"
    """How many complete checkpoints there are."""


class StoredFile(NamedTuple):
    """One file of a listing: its path below the place of the checkpoints, its size and when it was written."""

    path: str
    bytes: int
    modified: datetime


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """One checkpoint.

    Attributes:
        name: Its directory below the place of the checkpoints, such as `step-1000`.
        files: How many files it has, its marker included.
        bytes: Their sizes together.
        newest: When the newest of them was written, in UTC.
        completed: When its marker was written, in UTC. None: it holds none.
    """

    name: str
    files: int
    bytes: int
    newest: datetime
    completed: datetime | None = None

    @property
    def complete(self) -> bool:
        """Whether it holds a marker."""
        return self.completed is not None

    @property
    def written(self) -> datetime:
        """When its marker was written, or its newest file where it holds none."""
        return self.completed or self.newest


def stored_files(contents: Iterable[Mapping[str, Any]], prefix: str = "") -> Iterator[StoredFile]:
    """Return the files of ListObjectsV2's `Contents`, without the objects that stand for directories.

    Args:
        contents: The objects, of all pages and in any order: a directory bucket lists in none.
        prefix: What the keys begin with; the rest is the path.

    Source: https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjectsV2.html
    """
    for one in contents:
        if one["Key"].startswith(prefix) and not one["Key"].endswith("/"):
            yield StoredFile(one["Key"].removeprefix(prefix), one["Size"], one["LastModified"])


def checkpoints(files: Iterable[StoredFile]) -> list[Checkpoint]:
    """Return the checkpoints among files, the newest first.

    Files in no complete checkpoint are an incomplete one: the outermost of their directories that has no complete
    one below it. Files beside checkpoints, such as `latest.txt`, belong to none.

    Args:
        files: All files of the place. They are read once; what is kept grows with the directories, not the files.
    """
    directories: dict[str, Checkpoint] = {}
    complete: dict[str, datetime] = {}
    for file in files:
        directory, _, file_name = file.path.rpartition("/")
        if directory and file_name in MARKERS and not any(part.endswith(UNFINISHED) for part in directory.split("/")):
            complete[directory] = max(file.modified, complete.get(directory, file.modified))
        _add(directories, directory, 1, file.bytes, file.modified)
    ordered = sorted(complete)
    found: dict[str, Checkpoint] = {}
    for directory, one in directories.items():
        chain = _outermost_first(directory)
        name = next((path for path in chain if path in complete or not _holds(path, ordered)), None)
        if name is not None:
            _add(found, name, one.files, one.bytes, one.newest, completed=complete.get(name))
    return sorted(found.values(), key=lambda one: (one.written, one.name), reverse=True)


def newest_complete(found: Iterable[Checkpoint]) -> Checkpoint | None:
    """Return the checkpoint that was completed last, if there is one.

    Args:
        found: The checkpoints.
    """
    return max((one for one in found if one.complete), key=lambda one: (one.written, one.name), default=None)


def _outermost_first(directory: str) -> Iterator[str]:
    """Yield the directories that hold a directory, and then itself. A key may have hundreds of them."""
    if directory:
        yield from (directory[:end] for end, one in enumerate(directory) if one == "/")
        yield directory


def _holds(directory: str, ordered: Sequence[str]) -> bool:
    """Return whether one of the ordered directories lies below a directory."""
    below = f"{directory}/"
    place = bisect_left(ordered, below)
    return place < len(ordered) and ordered[place].startswith(below)


def _add(
    found: dict[str, Checkpoint],
    name: str,
    files: int,
    size: int,
    newest: datetime,
    *,
    completed: datetime | None = None,
) -> None:
    old = found.get(name)
    if old is not None:
        files, size, newest = files + old.files, size + old.bytes, max(newest, old.newest)
    found[name] = Checkpoint(name=name, files=files, bytes=size, newest=newest, completed=completed)
