"""`training-cluster status`: shows a cluster's data once, or again and again."""

import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.progress_bar import ProgressBar
from rich.table import Table

from cdk_training_cluster_stacks.showing import check_format, json_text
from cdk_training_cluster_stacks.status.report import OVER, Status, ask_status
from cdk_training_cluster_stacks.storage.sizes import size_text
from cdk_training_cluster_stacks.target import resolve
from cluster_contract.checkpoints import Checkpoint
from cluster_contract.hydration import DatasetProgress, HydrationStep

_FORMATS = ("table", "json")
_EVERY_SECONDS = 15
# The hydration function runs every minute, and writes as long as something changes.
_SILENT = timedelta(minutes=10)
_BAR = 30
_FAILED = 1
_MINUTE, _HOUR, _DAY = 60, 3600, 86_400

_STEPS = {
    HydrationStep.LINKING: "FSx links the bucket",
    HydrationStep.IMPORTING: "FSx imports names and sizes",
    HydrationStep.WAITING: "waits for a node that runs",
    HydrationStep.RESTORING: "contents are restored",
    HydrationStep.FINISHING: "a node checks that all files have their contents",
    HydrationStep.DONE: "all files have their contents",
    HydrationStep.FAILED: "has failed",
}


def run(
    text: str,
    *,
    region: str | None,
    profile: str | None,
    output: str,
    watch: bool,
    wait: Callable[[float], object],
) -> int:
    """Show on standard output what is known of a cluster's data, and return the exit status.

    Args:
        text: The cluster file, or the name of a deployed cluster.
        region: The region. None: the file's, or that of the AWS configuration.
        profile: The profile of the AWS configuration. None: the default one.
        output: How to show it: `table` or `json`.
        watch: Whether to go on until every data set is done or has failed.
        wait: Waits for some seconds.

    Raises:
        ValueError: A setting is not allowed, or AWS does not answer.
        ClusterFileError: The file is wrong.
    """
    check_format(output, formats=_FORMATS)
    target = resolve(text, region=region, profile=profile, asker="status")

    def ask() -> Status:
        return ask_status(target.session, target.name, target.region, datetime.now(UTC))

    console = Console(highlight=False)
    if output == "json":
        last = _json(ask, watch=watch, wait=wait)
    elif watch and console.is_terminal:
        last = _live(ask, console, wait)
    else:
        last = _plain(ask, console, watch=watch, wait=wait)
    return _FAILED if last.failed else 0


def _json(ask: Callable[[], Status], *, watch: bool, wait: Callable[[float], object]) -> Status:
    status = ask()
    sys.stdout.write(f"{json_text(status.values())}\n")
    while watch and not status.over:
        wait(_EVERY_SECONDS)
        status = ask()
        sys.stdout.write(f"{json_text(status.values())}\n")
    return status


def _live(ask: Callable[[], Status], console: Console, wait: Callable[[float], object]) -> Status:
    status = ask()
    with Live(_bars(status), console=console, auto_refresh=False) as shown:
        while not status.over:
            wait(_EVERY_SECONDS)
            status = ask()
            shown.update(_bars(status), refresh=True)
    return status


def _plain(ask: Callable[[], Status], console: Console, *, watch: bool, wait: Callable[[float], object]) -> Status:
    """Write a line for each thing that is known and, while watching, for each that has changed."""
    status, before = ask(), set[str]()
    while True:
        if console.is_terminal:
            console.print(_bars(status))
        else:
            now = list(lines(status))
            sys.stdout.writelines(f"{line}\n" for line in now if line not in before)
            before = set(now)
        if not watch or status.over:
            return status
        wait(_EVERY_SECONDS)
        status = ask()


def lines(status: Status) -> Iterator[str]:
    """Yield a sentence for each thing that is known.

    Args:
        status: What is known.
    """
    yield from (f"{path}: {_words(each)}" for path, each in sorted(status.datasets.items()))
    yield from _rest(status)


def _rest(status: Status) -> Iterator[str]:
    if not status.hydrates and not status.place:
        yield (
            f"Cluster {status.cluster!r} has reported no progress in {status.region}: it is not deployed there, or "
            "its file has neither preloaded data sets nor checkpoints."
        )
        return
    if status.hydrates and status.written is None:
        yield "The hydration function has not reported its progress yet: it runs every minute."
    if status.written is not None and not status.over and status.time - status.written > _SILENT:
        yield (
            f"The hydration function last reported its progress {_span(status.time - status.written)} ago: see its "
            "alarms and its log."
        )
    if status.place:
        yield _last(status)


def _last(status: Status) -> str:
    newest, complete = status.newest, status.complete
    if newest is None:
        return f"No checkpoint is in {status.place} yet."
    if complete is None:
        return f"No complete checkpoint is in {status.place}: the newest, {_of(newest, status)}, has no marker."
    said = f"The last complete checkpoint is {_of(complete, status)}, {size_text(complete.bytes)}, in {status.place}."
    return said if newest == complete else f"{said} A newer one, {_of(newest, status)}, is not complete."


def _of(checkpoint: Checkpoint, status: Status) -> str:
    return f"{checkpoint.name}, written {_span(status.time - checkpoint.written)} ago"


def _words(progress: DatasetProgress) -> str:
    """Return how far a data set is."""
    parts = [_STEPS[progress.step]]
    if progress.reason:
        parts = [f"{_STEPS[progress.step]}: {progress.reason}"]
    percent = progress.percent
    if percent is not None and progress.step not in OVER:
        parts.append(f"{percent:.1f} %")
    if progress.files:
        total = f"{progress.files:,}{'' if progress.counted else ' or more'} files"
        parts.append(f"{progress.restored_files:,} of {total} ({size_text(progress.restored_bytes)})")
    if progress.step is HydrationStep.RESTORING and progress.bytes_per_second:
        parts.append(f"{size_text(progress.bytes_per_second)}/s from {progress.nodes} nodes")
    if progress.step is HydrationStep.RESTORING and progress.seconds_left is not None:
        parts.append(f"{_span(timedelta(seconds=progress.seconds_left))} left")
    if progress.failed_files:
        parts.append(f"{progress.failed_files:,} files failed")
    return ", ".join(parts)


def _bars(status: Status) -> RenderableType:
    grid = Table.grid(padding=(0, 1))
    grid.add_column(no_wrap=True)
    grid.add_column()
    grid.add_column(overflow="fold")
    for path, each in sorted(status.datasets.items()):
        known = each.percent is not None
        bar = ProgressBar(total=100 if known else None, completed=each.percent or 0, width=_BAR, animation_time=0)
        grid.add_row(escape(path), bar, escape(_words(each)))
    return Group(grid, *(escape(line) for line in _rest(status)))


def _span(time: timedelta) -> str:
    """Return a span of time for display: its two largest units."""
    seconds = max(int(time.total_seconds()), 0)
    if seconds < _MINUTE:
        return f"{seconds} s"
    if seconds < _HOUR:
        return f"{seconds // _MINUTE} min"
    if seconds < _DAY:
        return f"{seconds // _HOUR} h {seconds % _HOUR // _MINUTE} min"
    return f"{seconds // _DAY} d {seconds % _DAY // _HOUR} h"
