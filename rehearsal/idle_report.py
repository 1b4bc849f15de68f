"""What a person sees of the idle stop: who worked, who was idle, what was made of it, and why."""

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Table

from rehearsal.idle_story import IdleStory
from rehearsal.report import table_of


def show_idle(console: Console, story: IdleStory) -> None:
    """Show what the function said of the nodes in the first hour, and at the end.

    Args:
        console: Where to show it.
        story: What was reported and what came of it.
    """
    first = {node["instance_id"]: node for node in story.ticks[0]["nodes"]}
    console.print(_table("Idle stop, after an hour of work, silence and idleness", first, story.reported))
    warned = next((tick["minutes_later"] for tick in story.ticks if _has(tick, "warn")), None)
    if warned is not None:
        console.print(f"All of them idle: people were warned {warned} minutes later.")
    end = story.ticks[-1]["minutes_later"]
    console.print(_table(f"Idle stop, {end} minutes later", story.last, dict.fromkeys(story.last, "idle")))
    console.print(f"{len(story.stopped)} of {len(story.reported)} nodes were stopped in {len(story.ticks)} runs.")


def _table(title: str, nodes: Mapping[str, Mapping[str, Any]], reported: Mapping[str, str]) -> Table:
    """Return a table with one row for nodes of which all is the same."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for one, node in nodes.items():
        verdict = "stopped" if node["stopped"] else node["verdict"]
        why = node["reason"].removeprefix(f"{one} ").removeprefix(f"of {node['node_group']} ")
        alike.setdefault((node["node_group"], reported.get(one, "-"), verdict, why), []).append(one)
    table = table_of(title, "node group", "nodes", "reported", "verdict", "why")
    for (group, what, verdict, why), ids in alike.items():
        table.add_row(group, str(len(ids)) if len(ids) > 1 else ids[0], what, verdict, why)
    return table


def _has(tick: Mapping[str, Any], verdict: str) -> bool:
    return any(node["verdict"] == verdict for node in tick["nodes"])
