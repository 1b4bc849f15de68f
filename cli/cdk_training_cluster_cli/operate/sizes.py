"""`training-cluster start`, `stop` and `terminate`: sends the command, shows the answer, and waits for the nodes."""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from time import monotonic
from typing import Any

import typer

from cdk_training_cluster_cli.core.output import Document, Table, check_format, show
from cdk_training_cluster_cli.core.target import Target
from cdk_training_cluster_cli.core.times import parse_span
from cdk_training_cluster_cli.operate.nodes import ListedNode, find_nodes, named_node
from cdk_training_cluster_cli.operate.power import NotDoneError, PowerFunction
from cdk_training_cluster_cli.operate.wait import Waiting, wait_for
from cdk_training_cluster_file.problems import printable

_FORMATS = ("table", "json")
_NO = 1
_LONGEST_WAIT = timedelta(days=1)


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What the commands that act on sizes are given.

    Attributes:
        reason: Why. None: no reason is given.
        wait: Whether to wait until the nodes are there, or gone.
        timeout: How long.
        output: How to show it: `table` or `json`.
        pause: Waits for some seconds.
        asks: Whether to ask before nodes are terminated.
        clock: Returns the seconds of a clock that only goes on.
    """

    reason: str | None = None
    wait: bool = False
    timeout: str = "30m"
    output: str = "table"
    pause: Callable[[float], object]
    asks: bool = False
    clock: Callable[[], float] = monotonic

    def __post_init__(self) -> None:
        """Check what is given before AWS is asked.

        Raises:
            ValueError: A setting is not allowed.
        """
        check_format(self.output, formats=_FORMATS)
        parse_span("--timeout", self.timeout, most=_LONGEST_WAIT)

    def waiting(self, action: str) -> Waiting:
        """Return how to wait.

        Args:
            action: The command.
        """
        timeout = parse_span("--timeout", self.timeout, most=_LONGEST_WAIT)
        return Waiting(action=action, timeout=timeout, given=self.timeout, pause=self.pause, clock=self.clock)


def run(action: str, target: Target, asked: Asked, node_groups: Sequence[str]) -> int:
    """Start or stop node groups, and return the exit status.

    Args:
        action: `start` or `stop`.
        target: The cluster.
        asked: What was given.
        node_groups: The node groups' names. Empty: all.

    Raises:
        ValueError: AWS or the power function refuses.
    """
    power = PowerFunction(target=target, pause=asked.pause)
    if action == "stop" and asked.asks:
        nodes = {one["node_group"]: int(one["alive"]) for one in power.status(node_groups)["node_groups"]}
        if any(nodes.values()) and not _agreed(_stops(nodes)):
            return _NO
    try:
        answer = power.command(action, node_groups, asked.reason)
    except NotDoneError as error:
        return _not_done(error)
    if asked.wait:
        waiting = asked.waiting(action)
        answer = {**wait_for(waiting, answer, lambda: power.status(node_groups)), "action": action}
        _show(asked, answer)
        return 0 if all(map(waiting.is_done, answer["node_groups"])) else _NO
    _show(asked, answer)
    return 0


def terminate(target: Target, asked: Asked, names: Sequence[str]) -> int:
    """Terminate single nodes, and return the exit status.

    Args:
        target: The cluster.
        asked: What was given.
        names: The nodes, as users name them.

    Raises:
        ValueError: As for `run`, or no live node of the cluster is named so.
    """
    power, nodes = PowerFunction(target=target, pause=asked.pause), find_nodes(target)
    chosen = list(dict.fromkeys(named_node(name, nodes, target.name) for name in names))
    if asked.asks and not _agreed(f"Terminate {', '.join(map(_called, chosen))}? {_LOST}"):
        return _NO
    answers = []
    for group in dict.fromkeys(node.node_group for node in chosen):
        ids = [node.id for node in chosen if node.node_group == group]
        try:
            answers.append(power.command("terminate", [group], asked.reason, instance_ids=ids))
        except NotDoneError as error:
            return _not_done(error)
    answer: Mapping[str, Any] = {
        **answers[0],
        "node_groups": [one for each in answers for one in each["node_groups"]],
    }
    going = {one for group in answer["node_groups"] for one in group.get("terminated", ())}
    left = {node.id for node in chosen}

    def look() -> Mapping[str, Any]:
        left.intersection_update(node.id for node in find_nodes(target))
        return {**answer, "left": sorted(left)}

    if asked.wait and going:
        answer = wait_for(asked.waiting("terminate"), look(), look)
    _show(asked, answer)
    done = going >= {node.id for node in chosen} and not answer.get("left")
    return 0 if done else _NO


_LOST = "Work since the last checkpoint, and what is on the nodes' disks, is lost."


def _stops(nodes: Mapping[str, int]) -> str:
    counts = ", ".join(f"{count} of {name}" for name, count in nodes.items() if count)
    count = sum(nodes.values())
    return f"Stop {count} {'node' if count == 1 else 'nodes'} ({counts})? {_LOST}"


def _called(node: ListedNode) -> str:
    return f"{node.name} ({node.id})"


def _agreed(question: str) -> bool:
    """Ask on standard error, where the answer of the command is not."""
    agreed = typer.confirm(question, err=True)
    if not agreed:
        sys.stderr.write("Nothing was changed.\n")
    return agreed


def _not_done(error: NotDoneError) -> int:
    sys.stderr.write(f"error: {printable(str(error))}\n")
    return _NO


def _show(asked: Asked, answer: Mapping[str, Any]) -> None:
    groups = answer["node_groups"]
    table = Table(
        title=f"{answer['cluster']}: {answer['action']}",
        headings=("Node group", "Nodes", "Wanted", "State"),
        rows=tuple(
            (one["node_group"], str(one["in_service"]), str(one["wanted"]), one["state"] or "new") for one in groups
        ),
        numbers=(1, 2),
    )
    left = [f"{one} still lives" for one in answer.get("left", ())]
    notes = (("Now", (*(str(one["reason"]) for one in groups), *left)),)
    show(asked.output, Document(tables=(table,), notes=notes), answer)
