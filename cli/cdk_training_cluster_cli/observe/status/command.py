"""`training-cluster status`: shows a cluster once, or again and again."""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from rich.console import Console
from rich.padding import Padding
from rich.progress_bar import ProgressBar
from rich.table import Table as RichTable
from rich.text import Text

from cdk_training_cluster_cli.core.output import (
    Table,
    check_format,
    json_text,
    one_line,
    print_paragraph,
    print_table,
    terminal,
)
from cdk_training_cluster_cli.core.target import resolve
from cdk_training_cluster_cli.observe.ages import moment_text
from cdk_training_cluster_cli.observe.deployed import at_this_moment
from cdk_training_cluster_cli.observe.status.part import Bar, Item
from cdk_training_cluster_cli.observe.status.report import Status, ask_status
from cdk_training_cluster_file.problems import printable

_FORMATS = ("table", "json")
_EVERY_SECONDS = 15
_BAR = 30
_FAILED = 1
_STYLES = {"ALARM": "red", "unknown: ": "yellow"}


@dataclass(frozen=True, kw_only=True)
class StatusOptions:
    """Options of the `status` command.

    Attributes:
        output: As `table` or `json`.
        watch: Whether to go on until the user interrupts.
        wait: Whether to go on until every data set is done or has failed.
        all: Whether every node is shown.
    """

    output: str = "table"
    watch: bool = False
    wait: bool = False
    all: bool = False


def run(
    cluster: str, wanted: StatusOptions, *, region: str | None, profile: str | None, pause: Callable[[float], object]
) -> int:
    """Show on standard output what is known of a cluster, and return the exit status.

    Args:
        cluster: The cluster file, or the name of a deployed cluster.
        wanted: How to show it.
        region: The region. None: the file's, or the AWS configuration's.
        profile: The profile of the AWS configuration. None: the default one.
        pause: Waits for some seconds.

    Raises:
        ValueError: A setting is not allowed, or the cluster is not found.
        ClusterFileError: The file is wrong.
    """
    check_format(wanted.output, option="--output", formats=_FORMATS)
    target = resolve(cluster, region=region, profile=profile, asker="status")
    console, before = terminal(), list[str]()
    while True:
        status = ask_status(at_this_moment(target))
        if wanted.output == "json":
            sys.stdout.write(f"{json_text(status.values())}\n")
            sys.stdout.flush()
        elif console.is_terminal:
            if wanted.watch or wanted.wait:
                console.clear()
            _show(status, console, all=wanted.all)
        else:
            before = _write_changes(status, before, all=wanted.all)
        if not (wanted.watch or (wanted.wait and status.waits)):
            return _FAILED if status.has_failed else 0
        pause(_EVERY_SECONDS)


def _show(status: Status, console: Console, *, all: bool) -> None:
    console.print(
        f"[bold]{status.cluster.name}[/bold] in {status.cluster.target.region} at {moment_text(status.cluster.now)}"
    )
    for title, items in status.sections(all=all):
        console.print(f"[bold]{title}[/bold]")
        bars = [item for item in items if isinstance(item, Bar)]
        if bars:
            console.print(_bars(bars))
        for item in items:
            _print(item, console)


def _print(item: Item, console: Console) -> None:
    if isinstance(item, Table):
        print_table(console, item)
    elif isinstance(item, str):
        style = next((style for start, style in _STYLES.items() if item.startswith(start)), "")
        print_paragraph(console, item, style=style, first=" ")


def _bars(bars: list[Bar]) -> Padding:
    grid = RichTable.grid(padding=(0, 1))
    grid.add_column(no_wrap=True)
    grid.add_column()
    grid.add_column(overflow="fold")
    for each in bars:
        known = each.percent is not None
        bar = ProgressBar(total=100 if known else None, completed=each.percent or 0, width=_BAR, animation_time=0)
        grid.add_row(Text(printable(each.name)), bar, Text(printable(each.text)))
    return Padding(grid, (0, 0, 0, 1))


def _write_changes(status: Status, before: list[str], *, all: bool) -> list[str]:
    """Write the lines that have changed, and return them all."""
    now = list(lines(status, all=all))
    sys.stdout.writelines(f"{one_line(line)}\n" for line in now if line not in before)
    sys.stdout.flush()
    return now


def lines(status: Status, *, all: bool = False) -> Iterator[str]:
    """Yield a line for each thing that is known; each says what it is about.

    Args:
        status: What is known.
        all: Whether every node is shown.
    """
    for title, items in status.sections(all=all):
        for item in items:
            match item:
                case Table():
                    about = f"{title}: {item.title}: " if item.title else f"{title}: "
                    yield from (f"{about}{', '.join(row)}" for row in item.rows)
                case Bar():
                    yield f"{title}: {item.name}: {item.text}"
                case _:
                    yield f"{title}: {item}"
