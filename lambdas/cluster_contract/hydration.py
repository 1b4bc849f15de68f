"""What is agreed on of hydration: the function's settings, what nodes are asked and answer, and the progress.

Three readers: the function that asks, the program `cluster-node` on the nodes, which cannot import this module and
has the same fields, and the command `training-cluster status`, which reads the progress from an SSM parameter.
"""

import base64
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Annotated, ClassVar

from cluster_contract.codec import FunctionSettings, Open, Within, encode, read, variable

COMMAND_SECONDS = 360
"""For how long a node may work at one command, after which Systems Manager ends it."""

# DynamoDB takes no number of more than 38 digits.
_Count = Annotated[int, Within(minimum=0, maximum=2**62)]


class HydrationAction(StrEnum):
    """What a node is asked to do."""

    BEGIN = "begin"
    """Take the markers of earlier runs away, so that jobs wait for this one."""

    RESTORE = "restore"
    """Restore the files of one shard, for some seconds."""

    FINISH = "finish"
    """Look whether every selected file has its contents and, if so, write the marker that jobs wait for."""

    FAIL = "fail"
    """Write the marker that tells waiting jobs why the run has failed."""


@dataclass(frozen=True, kw_only=True)
class HydrationRequest:
    """What a node is asked, as the parameter `Request` of the SSM document: all fields, as JSON, in base64.

    Attributes:
        action: What to do.
        run: The run, which names the directory of its progress files. A new one walks anew, and skips what has its
            contents.
        directory: The data set's directory on the node, such as `/fsx/data`.
        mount_point: Where the file system is mounted.
        shard: Which shard, from 0.
        shards: How many shards there are. Another number walks anew, likewise.
        seconds: For how long to work at most. What is left is for the next request with the same run and shards.
        patterns: Which files: those whose path below the directory matches one. Empty: all.
        max_bytes: How much is selected at most, in the order of the paths. None: all.
        reason: Why the run has failed, for `fail`.
    """

    action: HydrationAction
    run: str
    directory: str
    mount_point: str
    shard: int = 0
    shards: int = 1
    seconds: int = 240
    patterns: tuple[str, ...] = ()
    max_bytes: int | None = None
    reason: str = ""

    def to_parameter(self) -> str:
        """Return the request as the SSM document takes it."""
        return base64.b64encode(json.dumps(asdict(self), separators=(",", ":")).encode()).decode()


@dataclass(frozen=True, kw_only=True)
class FileFailure(Open):
    """A file that could not be restored.

    Attributes:
        path: Its path on the node.
        error: What the Lustre client said last.
    """

    path: str
    error: str


@dataclass(frozen=True, kw_only=True)
class HydrationAnswer(Open):
    """What a node answers: the last line of its standard output, as JSON.

    Attributes:
        run: The run that was asked for.
        shard: The shard that was asked for.
        shards: How many shards there are.
        files: The selected files of the shard, as far as they are counted.
        bytes: Their bytes.
        restored_files: Those of them that are known to have their contents, by this run or from before.
        restored_bytes: Their bytes.
        failed_files: Those that could not be restored.
        failures: The first of them.
        copying: Whether Lustre said, when it was last asked, that it copies one of the files now.
        counted: Whether `files` and `bytes` are complete.
        finished: After `restore`: whether nothing of the shard is left to try. After `finish`: whether every selected
            file has its contents. A `finish` that has counted and found less is an offer to begin a new run; one that
            has not counted ran out of time, and goes on with the next request.
        shortage: Why the space of the file system does not suffice for the next file. None: it does.
    """

    run: str
    shard: _Count
    shards: _Count
    files: _Count
    bytes: _Count
    restored_files: _Count
    restored_bytes: _Count
    failed_files: _Count = 0
    failures: tuple[FileFailure, ...] = ()
    copying: bool = False
    counted: bool = False
    finished: bool = False
    shortage: str | None = None


def parse_answer(output: str) -> HydrationAnswer:
    """Read a node's answer from what it wrote to standard output.

    Args:
        output: The whole output, or its beginning.

    Raises:
        ValueError: Its last line is no answer.
    """
    last = output.strip().rpartition("\n")[2]
    try:
        answer = json.loads(last)
        json.dumps(answer, ensure_ascii=False).encode()  # No service takes half a character.
    except RecursionError as error:
        raise ValueError(str(error)) from error
    return read(HydrationAnswer, answer)


class HydrationStep(StrEnum):
    """How far a data set is."""

    LINKING = "linking"
    """FSx makes the link to the bucket."""

    IMPORTING = "importing"
    """FSx imports names and sizes of the bucket's objects."""

    WAITING = "waiting"
    """No node runs that could restore files."""

    RESTORING = "restoring"
    """Nodes restore the contents."""

    FINISHING = "finishing"
    """A node looks whether all is there."""

    DONE = "done"
    """All selected files have their contents."""

    FAILED = "failed"
    """It cannot go on: `reason` says why and what to do."""


@dataclass(frozen=True, kw_only=True)
class DatasetProgress(Open):
    """How far one data set is.

    Attributes:
        step: The step.
        since: When the step began.
        files: The selected files, as far as they are counted.
        bytes: Their bytes.
        counted: Whether these two are complete.
        restored_files: Those that have their contents.
        restored_bytes: Their bytes.
        failed_files: Those that could not be restored.
        nodes: How many nodes restore them.
        bytes_per_second: How fast, over the last minutes. None: it is not known.
        seconds_left: For how long yet, at that rate. None: it is not known.
        reason: Why it has failed.
    """

    step: HydrationStep
    since: datetime
    files: int = 0
    bytes: int = 0
    counted: bool = False
    restored_files: int = 0
    restored_bytes: int = 0
    failed_files: int = 0
    nodes: int = 0
    bytes_per_second: int | None = None
    seconds_left: int | None = None
    reason: str | None = None

    @property
    def percent(self) -> float | None:
        """How much of the bytes is there, 0 to 100. None: there is nothing to compare with."""
        if self.step is HydrationStep.DONE:
            return 100.0
        return min(100.0, 100 * self.restored_bytes / self.bytes) if self.counted and self.bytes else None


@dataclass(frozen=True, kw_only=True)
class HydrationProgress(Open):
    """How far all data sets of a cluster are, as the SSM parameter holds it.

    Attributes:
        time: When it was written; it is written as long as something changes.
        datasets: The data sets, by their directories on the nodes.
    """

    time: datetime
    datasets: Mapping[str, DatasetProgress]

    _SETTLES: ClassVar[timedelta] = timedelta(minutes=15)

    # https://docs.aws.amazon.com/systems-manager/latest/userguide/parameter-store-advanced-parameters.html
    _MAX_BYTES: ClassVar[int] = 4096

    def to_parameter(self) -> str:
        """Return the value of the parameter; where it is too long, reasons are left out first, and then data sets."""
        kept = dict(self.datasets)
        reasons = [name for name, each in kept.items() if each.reason]
        while True:
            text = json.dumps(encode(HydrationProgress(time=self.time, datasets=kept)), separators=(",", ":"))
            # Systems Manager refuses what looks like a reference. JSON has two opening braces only inside of texts.
            # https://docs.aws.amazon.com/systems-manager/latest/APIReference/API_PutParameter.html
            text = text.replace("{{", "{\\u007b")
            if len(text) <= self._MAX_BYTES or not kept:
                return text
            if reasons:
                name = reasons.pop()
                kept[name] = replace(kept[name], reason=None)
            else:
                kept.popitem()

    def restored_by_nodes(self, now: datetime) -> tuple[str, ...]:
        """Return the data sets for which nodes run although no job does: they are restored, or were a moment ago.

        A moment is 15 minutes. What was written before that says nothing of now: the function may have stopped.

        Args:
            now: The time.
        """
        recent = now - self._SETTLES
        works, pauses = (
            (HydrationStep.RESTORING, HydrationStep.FINISHING),
            (HydrationStep.WAITING, HydrationStep.DONE),
        )
        return tuple(
            directory
            for directory, each in sorted(self.datasets.items())
            if (each.step in works and self.time >= recent) or (each.step in pauses and each.since >= recent)
        )


def progress_parameter(cluster: str) -> str:
    """Return the name of the SSM parameter that holds a cluster's progress.

    Args:
        cluster: The cluster's name.
    """
    return f"/training-cluster/{cluster}/hydration"


def parse_progress(value: str) -> HydrationProgress | None:
    """Read the parameter's value. None: the function has not written yet.

    Args:
        value: The value.

    Raises:
        ValueError: It is no progress.
    """
    raw = json.loads(value)
    return read(HydrationProgress, raw) if raw else None


@dataclass(frozen=True, kw_only=True)
class HydratedDataset:
    """A data set that the function maintains.

    Attributes:
        path: Its directory on the file system, such as `/data`.
        preload: Whether its contents are restored.
        patterns: Which files; empty: all.
        max_gib: How much at most. None: all.
        release_after: For how long a file must not have been used before FSx may free its space. None: never.
        source: What it shows, as far as that is known before the deployment; what shows something else is hydrated
            anew.
    """

    path: str
    source: str = ""
    preload: bool = False
    patterns: tuple[str, ...] = ()
    max_gib: int | None = None
    release_after: timedelta | None = None


@dataclass(frozen=True, kw_only=True)
class HydrationFunctionSettings(FunctionSettings):
    """The settings of the hydration function.

    Attributes:
        cluster: The cluster's name, the value of the tag on its nodes.
        file_system: The file system's id.
        mount_point: Where the nodes mount it.
        security_group: The id of the security group of the nodes' primary network interfaces.
        datasets: What is maintained.
        document: The SSM document that nodes run. Empty: nothing is preloaded.
        topic_arn: The SNS topic that gets the messages.
        state_table: The name of the cluster's state table.
        region: The region of all of these.
        function: The function's own name, which Lambda says.
    """

    environment_variable = "CLUSTER_HYDRATION_SETTINGS"

    cluster: str
    file_system: str
    mount_point: str
    security_group: str
    datasets: tuple[HydratedDataset, ...]
    document: str = ""
    topic_arn: str = variable("ALERT_TOPIC_ARN")
    state_table: str = variable("STATE_TABLE")
    region: str = variable("AWS_REGION")
    function: str = variable("AWS_LAMBDA_FUNCTION_NAME")


DATASET_DIMENSION = "Dataset"
"""The dimension of metrics that holds a data set's directory on the nodes."""


class HydrationMetric(StrEnum):
    """The metrics of the hydration function."""

    SUCCESSFUL_TICKS = "SuccessfulHydrationTicks"
    """1 for a tick that did its work; no data otherwise. By cluster."""

    FAILED_DATASETS = "FailedDatasets"
    """How many data sets cannot go on. By cluster."""

    FILES = "HydratedFiles"
    """The files that have their contents. By cluster and data set, while it is hydrated; so are the following."""

    BYTES = "HydratedBytes"
    """Their bytes."""

    PERCENT = "HydratedPercent"
    """How much of the bytes is there, 0 to 100."""

    BYTES_PER_SECOND = "HydratedBytesPerSecond"
    """How fast contents come."""

    SECONDS_LEFT = "HydrationSecondsLeft"
    """For how long yet, at that rate."""
