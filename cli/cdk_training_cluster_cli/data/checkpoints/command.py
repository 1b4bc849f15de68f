"""`training-cluster checkpoints`: reads what a user wrote, and shows checkpoints and what became of them."""

import os
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from threading import Event

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

from cdk_training_cluster_cli.core.aws_errors import plain_refusals
from cdk_training_cluster_cli.core.output import Document, Table, check_format, one_line, show
from cdk_training_cluster_cli.core.session import aws_session
from cdk_training_cluster_cli.core.sizes import size_text
from cdk_training_cluster_cli.data.checkpoints.reading import Advance, FileProblemError, FileResult, Outcome
from cdk_training_cluster_cli.data.checkpoints.restore import check_name, restore_to_directory, restore_to_prefix
from cdk_training_cluster_cli.data.checkpoints.source import Source, find_source, place_of_url
from cdk_training_cluster_cli.data.checkpoints.verify import verify
from cluster_contract.checkpoints import MARKERS, Checkpoint

_FAILED, _SIZE_ONLY = 1, 3
_SHOWN = 10


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What every command about checkpoints is given.

    Attributes:
        source: A cluster file, a bucket, or `s3://bucket/prefix`.
        region: The region. None: the cluster file's, or the profile's.
        profile: The profile of the AWS configuration. None: the default one.
        output: How to show it.
    """

    source: str
    region: str | None
    profile: str | None
    output: str

    def open(self) -> Source:
        """Return where the checkpoints lie.

        Raises:
            ValueError: A setting is not allowed, or AWS does not say.
        """
        check_format(self.output, option="--output")
        return find_source(self.source, aws_session("checkpoints", self.profile), self.region)


def run_list(asked: Asked) -> None:
    """Show the checkpoints of a place on standard output.

    Args:
        asked: What the command was given.

    Raises:
        ValueError: AWS does not list them.
    """
    source = asked.open()
    found = source.found()
    rows = [_values(source, each) for each in found]
    table = Table(
        title=f"Checkpoints in {source.url}",
        headings=("Checkpoint", "Files", "Size", "Newest file", "Complete"),
        rows=tuple(
            (
                each.name,
                f"{each.files:,}",
                size_text(each.bytes),
                f"{each.newest:%Y-%m-%d %H:%M:%S} UTC",
                "yes" if each.complete else "no",
            )
            for each in found
        ),
        numbers=(1, 2),
    )
    conclusion = "" if found else f"No checkpoints in {source.url}."
    show(asked.output, Document(tables=(table,), notes=(), conclusion=conclusion), {"checkpoints": rows})


def run_verify(asked: Asked, name: str, directory: Path | None) -> int:
    """Prove a checkpoint, show what was found, and return the exit status.

    Args:
        asked: What the command was given.
        name: The checkpoint's name.
        directory: The local copy of the place. None: the cluster's own, where it is mounted here.

    Raises:
        ValueError: There is no such checkpoint, or AWS does not list it.
    """
    source = asked.open()
    checkpoint, files, doubts = source.checkpoint(name)
    _warn(doubts)
    copy = _local_copy(source, checkpoint.name, directory)
    with _progress(f"verify {checkpoint.name}", checkpoint.bytes) as advance:
        results = verify(source.client, files, advance, directory=copy)
    problems = () if checkpoint.complete else (_incomplete(checkpoint),)
    beside = f", the same as {copy}" if copy is not None else ""
    done = f"verified in {source.url}{checkpoint.name}/{beside}"
    return _show(asked, source, _Report(checkpoint=checkpoint, results=results, done=done, problems=problems))


def run_restore(asked: Asked, name: str, destination: str, *, force: bool, at: str | None) -> int:
    """Restore a checkpoint, show what became of it, and return the exit status.

    Args:
        asked: What the command was given.
        name: The checkpoint's name.
        destination: The directory, or `s3://bucket/prefix`, in which it is to appear under its name.
        force: Whether to replace what is there and differs.
        at: The time whose versions to restore. None: the checkpoint as it is.

    Raises:
        ValueError: There is no such checkpoint, AWS does not list it, or something else is at the place.
    """
    time = None if at is None else _time(at)
    source = asked.open()
    checkpoint, files, doubts = source.checkpoint(name, time)
    problems: tuple[str, ...] = () if checkpoint.complete else (_incomplete(checkpoint),)
    if time is None:
        _warn(doubts)
    else:
        problems += doubts
    _warn(source.foreign_owner(files, os.getuid()))
    act: partial[tuple[FileResult, ...]]
    if destination.startswith("s3://"):
        place = place_of_url(destination)
        target = Source(client=source.client, place=place)
        where = f"s3://{place.bucket}/{place.prefix}{checkpoint.name}/"
        act = partial(restore_to_prefix, source, files, target, checkpoint.name, force=force)
    else:
        check_name(checkpoint.name)
        local = Path(destination) / checkpoint.name
        where = str(local)
        act = partial(restore_to_directory, source, files, local, force=force)
    with plain_refusals(where), _progress(f"restore {checkpoint.name}", checkpoint.bytes) as advance:
        results = act(advance=advance)
    done = f"restored to {where}"
    return _show(asked, source, _Report(checkpoint=checkpoint, results=results, done=done, problems=problems))


def _warn(doubts: Sequence[str]) -> None:
    for doubt in doubts:
        sys.stderr.write(f"warning: {one_line(doubt)}\n")


def _time(text: str) -> datetime:
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        raise ValueError(f"--version-of must be a time with its zone, such as 2026-11-22T18:00:00Z, got {text!r}")
    return found.astimezone(UTC)


def _local_copy(source: Source, name: str, directory: Path | None) -> Path | None:
    if directory is not None:
        if not directory.is_dir():
            raise ValueError(f"--directory must be a directory, got {str(directory)!r}")
        check_name(name)
        return directory / name
    own = Path(source.place.directory) / name
    return own if source.place.directory and own.is_dir() else None


def _incomplete(checkpoint: Checkpoint) -> str:
    markers = " nor ".join(sorted(MARKERS))
    return f"{checkpoint.name} has neither {markers}: it may be only a part of a checkpoint"


def _values(source: Source, checkpoint: Checkpoint) -> dict[str, object]:
    return {
        "name": checkpoint.name,
        "files": checkpoint.files,
        "bytes": checkpoint.bytes,
        "newest": checkpoint.newest.isoformat(),
        "complete": checkpoint.complete,
        "where": f"{source.url}{checkpoint.name}/",
    }


@dataclass(frozen=True, kw_only=True)
class _Report:
    """What became of a checkpoint."""

    checkpoint: Checkpoint
    results: Sequence[FileResult]
    done: str
    problems: Sequence[str] = ()

    @property
    def status(self) -> int:
        """The exit status."""
        outcomes = {each.outcome for each in self.results}
        if Outcome.FAILED in outcomes or self.problems:
            return _FAILED
        return _SIZE_ONLY if Outcome.SIZE_ONLY in outcomes else 0

    @property
    def conclusion(self) -> str:
        """What is said last."""
        failed = any(each.outcome is Outcome.FAILED for each in self.results)
        if self.problems and not failed:
            return f"Every file of {self.checkpoint.name} is {self.done}, but it may not be a whole checkpoint."
        if failed:
            return f"{self.checkpoint.name} is not {self.done}."
        proven = "every file is proven"
        if self.status == _SIZE_ONLY:
            proven = "of some files S3 keeps no checksum that can be compared, and only their sizes are proven"
        return f"{self.checkpoint.name} is {self.done}: {proven}."


def _show(asked: Asked, source: Source, report: _Report) -> int:
    values: Mapping[str, object] = {
        "checkpoint": _values(source, report.checkpoint),
        "outcome": {0: "proven", _SIZE_ONLY: "size only", _FAILED: "failed"}[report.status],
        "problems": list(report.problems),
        "files": [{**vars(each), "outcome": each.outcome.value} for each in report.results],
    }
    show(asked.output, _document(report), values)
    return report.status


def _document(report: _Report) -> Document:
    counts, sizes = Counter[tuple[Outcome, str]](), Counter[tuple[Outcome, str]]()
    for each in report.results:
        kind = (each.outcome, each.algorithm)
        counts[kind] += 1
        sizes[kind] += each.bytes
    table = Table(
        title=report.checkpoint.name,
        headings=("Result", "Checksum", "Files", "Size"),
        rows=tuple(
            (kind[0].value, kind[1] or "-", f"{counts[kind]:,}", size_text(sizes[kind])) for kind in sorted(counts)
        ),
        numbers=(2, 3),
    )
    failures = [f"{each.path}: {each.problem}" for each in report.results if each.outcome is Outcome.FAILED]
    left = len(failures) - _SHOWN
    more = [f"{left:,} more: --output json has them"] if left > 0 else []
    notes = (("Problems", (*report.problems, *failures[:_SHOWN], *more)),)
    return Document(tables=(table,), notes=notes, conclusion=report.conclusion)


@contextmanager
def _progress(what: str, total: int) -> Iterator[Advance]:
    """Show on standard error how far it is, where that is a terminal."""
    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn())
    console = Console(stderr=True)
    stopped = Event()
    with Progress(
        *columns, TimeRemainingColumn(), console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        task = bar.add_task(escape(one_line(what)), total=total)

        def advance(count: int) -> None:
            if stopped.is_set():
                raise FileProblemError("the command was interrupted")
            bar.advance(task, count)

        try:
            yield advance
        except BaseException:
            stopped.set()
            raise
