"""What a person sees of the idle stop: who worked, who was idle, what was made of it, and why."""

from collections.abc import Iterable, Mapping
from typing import Any

from rich.console import Console
from rich.table import Table

from rehearsal.idle_story import IdleStory
from rehearsal.report import table_of


def show_idle(console: Console, story: IdleStory) -> None:
    """Show what the function said of the nodes in the first hour, and what became of them.

    Args:
        console: Where to show it.
        story: What was reported and what came of it.
    """
    rows = [(node, story.reported.get(node["instance_id"], "-")) for node in story.ticks[0]["nodes"]]
    console.print(_table("Idle stop, after an hour of work, silence and idleness", "reported", rows))
    console.print(f"All of them idle from now on{_warned(story)}.", soft_wrap=True)
    rows = [(node, f"{node['minutes_later']} min") for node in story.last.values()]
    console.print(_table("Idle stop, what became of them", "after", rows))
    console.print(f"{len(story.stopped)} of {len(story.last)} nodes were stopped in {len(story.ticks)} runs.")


def _table(title: str, what: str, rows: Iterable[tuple[Mapping[str, Any], str]]) -> Table:
    """Return a table with one row for nodes of which all is the same."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for node, told in sorted(rows, key=lambda row: str(row[0]["node_group"])):
        verdict = "stopped" if node["stopped"] else node["verdict"]
        why = node["reason"].removeprefix(f"{node['instance_id']} ").removeprefix(f"of {node['node_group']} ")
        alike.setdefault((node["node_group"], told, verdict, why), []).append(node["instance_id"])
    table = table_of(title, "node group", "nodes", what, "verdict", "why")
    for (group, told, verdict, why), ids in alike.items():
        table.add_row(group, str(len(ids)) if len(ids) > 1 else ids[0], told, verdict, why)
    return table


def _warned(story: IdleStory) -> str:
    """Say of which node groups people are warned, and how many minutes after the first run: the end of a sentence."""
    first: dict[str, int] = {}
    for tick in story.ticks:
        for node in tick["nodes"]:
            if node["verdict"] == "warn":
                first.setdefault(node["node_group"], tick["minutes_later"])
    found: dict[int, list[str]] = {}
    for group, minutes in first.items():
        found.setdefault(minutes, []).append(group)
    told = [
        f"of {', '.join(sorted(groups))} {f'{minutes} minutes later' if minutes else 'at once'}"
        for minutes, groups in sorted(found.items())
    ]
    return f": people are warned {' and '.join(told)}" if told else ""
