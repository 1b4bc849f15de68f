"""What a person sees of a rehearsal."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

_LONGEST = 24
_NUMBERS = ("nodes", "NICs", "EFA")


def show_deployed(console: Console, found: Mapping[str, Any]) -> None:
    """Show what came up: node groups, file system with data sets, and the stacks.

    Args:
        console: Where to show it.
        found: What was read back.
    """
    nodes = Table(title="Node groups", title_justify="left")
    for heading in ("name", "type", "nodes", "NICs", "EFA", "market", "placement group"):
        nodes.add_column(
            heading, justify="right" if heading in _NUMBERS else "left", no_wrap=heading != "placement group"
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
        nodes.add_row(*("-" if group[key] is None else _short(str(group[key])) for key in keys))
    console.print(nodes)
    system = found["file_system"]
    if system is not None:
        storage = Table(title="File system", title_justify="left")
        for heading in ("id", "type", "GiB", "MB/s per TiB", "state"):
            storage.add_column(heading)
        storage.add_row(
            system["id"],
            f"{system['type']} {system['deployment_type']} {system['data_compression']}",
            str(system["storage_capacity_gib"]),
            str(system["throughput_mbps_per_tib"]),
            system["lifecycle"],
        )
        console.print(storage)
    if found["datasets"]:
        links = Table(title="Datasets", title_justify="left")
        for heading in ("directory", "shows", "objects", "state"):
            links.add_column(heading, overflow="fold")
        for link in found["datasets"]:
            links.add_row(
                link["file_system_path"],
                link["data_repository_path"],
                str(link["objects"]),
                link["lifecycle"],
            )
        console.print(links)
    show_stacks(console, found["stacks"])


def _short(name: str) -> str:
    """Return the end of a generated name: what tells it from others. The JSON file has all of it."""
    return name if len(name) <= _LONGEST else f"…{name[-_LONGEST + 1 :]}"


def show_stacks(console: Console, stacks: Mapping[str, Mapping[str, Any]]) -> None:
    """Show stacks with their status and how many resources they hold.

    Args:
        console: Where to show it.
        stacks: What was read back, by name.
    """
    table = Table(title="Stacks", title_justify="left")
    for heading in ("name", "status", "resources", "protected"):
        table.add_column(heading)
    for name, stack in stacks.items():
        table.add_row(
            name,
            stack["status"],
            str(sum(stack["resources"].values())),
            "yes" if stack["termination_protection"] else "no",
        )
    console.print(table)


def show_kept(console: Console, kept: Mapping[str, Sequence[str]]) -> None:
    """Show what is left when both stacks are gone.

    Args:
        console: Where to show it.
        kept: Ids, by what they are.
    """
    table = Table(title="Left when both stacks are gone", title_justify="left")
    table.add_column("what")
    table.add_column("ids", overflow="fold")
    for what, ids in kept.items():
        table.add_row(what, ", ".join(ids) or "none")
    console.print(table)


def show_differences(console: Console, differences: Sequence[str]) -> None:
    """Show what differs from the cluster file, or that nothing does.

    Args:
        console: Where to show it.
        differences: A sentence each.
    """
    if not differences:
        console.print("[green]Everything is as the cluster file says.[/green]")
    for difference in differences:
        console.print(f"[red]differs:[/red] {difference}", highlight=False)
