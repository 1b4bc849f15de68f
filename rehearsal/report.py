"""What a person sees of a rehearsal.

Names, ids and reasons are not ours: nothing here is read as rich's markup, or a [value] in brackets would vanish.
"""

import sys
from collections.abc import Mapping, Sequence
from typing import IO, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

_NUMBERS = ("nodes", "NICs", "EFA")
_WHOLE = ("name", "type", *_NUMBERS)


def make_console(file: IO[str] | None = None, *, width: int | None = None) -> Console:
    """Return a console that prints text as it is.

    Args:
        file: Where to. Default: - standard output.
        width: Columns. Default: - the terminal's, or 80.
    """
    return Console(file=file or sys.stdout, width=width, markup=False, emoji=False, highlight=False)


def show_deployed(console: Console, found: Mapping[str, Any]) -> None:
    """Show what came up: node groups, file system with data sets, and the stacks.

    Args:
        console: Where to show it.
        found: What was read back.
    """
    nodes = table_of("Node groups")
    for heading in ("name", "type", "nodes", "NICs", "EFA", "market", "placement group"):
        nodes.add_column(
            heading,
            justify="right" if heading in _NUMBERS else "left",
            no_wrap=heading in _WHOLE,
            overflow="fold",
        )
    for group in found["node_groups"]:
        keys = (
            "name",
            "instance_type",
            "count_running",
            "network_interfaces",
            "efa_interfaces",
            "market",
            "placement_group",
        )
        nodes.add_row(*("-" if group[key] is None else _shown(group[key]) for key in keys))
    console.print(nodes)
    console.print(_purchases(found["node_groups"]))
    system = found["file_system"]
    if system is not None:
        storage = table_of("File system", "id", "type", "GiB", "MB/s per TiB", "state")
        storage.add_row(
            system["id"],
            f"{system['type']} {system['deployment_type']} {system['data_compression']}",
            str(system["storage_capacity_gib"]),
            str(system["throughput_mbps_per_tib"]),
            system["lifecycle"],
        )
        console.print(storage)
    if found["datasets"]:
        links = table_of("Datasets", "directory", "shows", "objects", "state")
        for link in found["datasets"]:
            links.add_row(
                link["file_system_path"],
                link["data_repository_path"],
                str(link["objects"]),
                link["lifecycle"],
            )
        console.print(links)
    show_stacks(console, found["stacks"])


def _purchases(groups: Sequence[Mapping[str, Any]]) -> Table:
    table = table_of("What was bought", "name", "run by", "nodes from", "reserved here", "warm pool")
    for group in groups:
        reservation, pool = group["reservation"], group["warm_pool"]
        table.add_row(
            group["name"],
            group.get("run_by") or _run_by(group),
            ", ".join(f"{count} {source}" for source, count in group["bought_from"].items()) or "-",
            "-" if reservation is None else f"{reservation['instances']}, until {reservation['ends'] or 'cancelled'}",
            "-" if pool is None else _pool(pool),
        )
    return table


def _run_by(group: Mapping[str, Any]) -> str:
    return "Auto Scaling group" if group["spot_fleet"] is None else f"Spot Fleet {group['spot_fleet']}"


def _pool(pool: Mapping[str, Any]) -> str:
    waiting = ", ".join(f"{count} {state}" for state, count in pool["states"].items())
    return f"up to {pool['size']}, now {waiting or 'none'}"


def show_stacks(console: Console, stacks: Mapping[str, Mapping[str, Any]]) -> None:
    """Show stacks with their status and how many resources they hold.

    Args:
        console: Where to show it.
        stacks: What was read back, by name.
    """
    table = table_of("Stacks", "name", "status", "resources", "protected")
    for name, stack in stacks.items():
        table.add_row(
            name,
            stack["status"],
            str(sum(stack["resources"].values())),
            "yes" if stack["termination_protection"] else "no",
        )
    console.print(table)


def show_kept(console: Console, kept: Mapping[str, Sequence[str]], untouched: Mapping[str, Sequence[str]]) -> None:
    """Show what is left when both stacks are gone.

    Args:
        console: Where to show it.
        kept: Ids of what the cluster had made, by what they are.
        untouched: Ids of what was there before it.
    """
    table = table_of("Left when both stacks are gone", "what", "ids")
    for what, ids in kept.items():
        if ids or what in _ASKED_FOR:
            table.add_row(what, ", ".join(ids) or "none")
    console.print(table)
    yours = [*untouched.get("buckets", ()), *untouched.get("capacity reservations", ())]
    if yours:
        console.print(f"As it was before: {', '.join(yours)}", soft_wrap=True)


# What a reader wants to see gone, or kept, even where there is none.
_ASKED_FOR = (
    "file systems",
    "buckets",
    "state tables",
    "NAT gateways",
    "addresses",
    "nodes",
    "capacity reservations",
)


def show_failure(console: Console, sentence: str) -> None:
    """Show why a rehearsal could not go on.

    Args:
        console: Where to show it.
        sentence: The reason.
    """
    console.print(Text.assemble(("failed: ", "red"), sentence), soft_wrap=True)


def show_not_rehearsed(console: Console, what: Sequence[str]) -> None:
    """Show which stories were left out.

    Args:
        console: Where to show it.
        what: Each with its reason.
    """
    for each in what:
        console.print(Text.assemble(("not rehearsed: ", "yellow"), each), soft_wrap=True)


def show_differences(console: Console, differences: Sequence[str], *, finished: bool) -> None:
    """Show what differs from the cluster file, or that nothing does.

    Args:
        console: Where to show it.
        differences: A sentence each.
        finished: Whether the rehearsal saw everything; only then can all be well.
    """
    if finished and not differences:
        console.print(Text("Everything is as the cluster file says.", "green"))
    for difference in differences:
        console.print(Text.assemble(("differs: ", "red"), difference), soft_wrap=True)


def table_of(title: str, *headings: str) -> Table:
    """Return an empty table.

    Args:
        title: What it shows.
        *headings: Those of its columns.
    """
    table = Table(title=title, title_justify="left")
    for heading in headings:
        table.add_column(heading, no_wrap=heading in _WHOLE and heading != "type", overflow="fold")
    return table


def _shown(value: object) -> str:
    """Return a value as people read it; where nodes differ, all of theirs."""
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
