"""Waits until nodes are there, or gone, and shows on standard error how far it is."""

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

from cdk_training_cluster_file.problems import printable

# At first little time, since what is small is done soon.
_FIRST, _EVERY = timedelta(seconds=2), timedelta(seconds=15)
# Decisions of the power function in which no waiting brings nodes.
_HOPELESS = frozenset({"waiting", "over", "unusable", "held", "blocked", "unconfigured", "absent", "deleting"})


@dataclass(frozen=True, kw_only=True)
class Waiting:
    """What is waited for.

    Attributes:
        action: The command: `start`, `stop` or `terminate`.
        timeout: How long it is waited for.
        given: The same, as the user gave it.
        pause: Waits for some seconds.
        clock: Returns the seconds of a clock that only goes on.
    """

    action: str
    timeout: timedelta
    given: str
    pause: Callable[[float], object]
    clock: Callable[[], float]

    def is_done(self, group: Mapping[str, Any]) -> bool:
        """Say whether a node group is as the command wants it.

        Args:
            group: What the power function says of it.
        """
        if self.action == "stop":
            return not group["alive"]
        # An orchestrator that sizes a group by itself launches nodes for jobs, and none for a start.
        there = bool(group.get("scheduler_sized")) or int(group["in_service"]) >= int(group["wanted"])
        return there and group["decision"] not in _HOPELESS

    def is_over(self, answer: Mapping[str, Any]) -> bool:
        """Say whether nothing is left to wait for.

        Args:
            answer: What is known.
        """
        if self.action == "terminate":
            return not answer["left"]
        groups = answer["node_groups"]
        return all(self.is_done(one) or (self.action == "start" and one["decision"] in _HOPELESS) for one in groups)


def wait_for(waiting: Waiting, answer: Mapping[str, Any], look: Callable[[], Mapping[str, Any]]) -> Mapping[str, Any]:
    """Look again and again until nothing is left to wait for or the time is over, and return what is known then.

    A look that fails is said, and the next one follows: the command was done, and only its outcome is not known yet.

    Args:
        waiting: What is waited for.
        answer: What is known.
        look: Returns what is known now.
    """
    console = Console(stderr=True, highlight=False)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[now]}"))
    said = set[str]()
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bars:
        tasks = {name: bars.add_task(escape(name), total=total, now="") for name, _, total, _ in _counts(answer)}
        pause, end = _FIRST.total_seconds(), waiting.clock() + waiting.timeout.total_seconds()
        while True:
            for name, done, _, now in _counts(answer):
                bars.update(tasks[name], completed=done, now=escape(printable(now)))
                if not console.is_terminal:
                    _say(now, said)
            if waiting.is_over(answer):
                return answer
            left = end - waiting.clock()
            if left <= 0:
                break
            waiting.pause(min(pause, left))
            pause = min(2 * pause, _EVERY.total_seconds())
            try:
                answer = look()
            except ValueError as error:
                _say(f"looking again, since {error}", said)
    sys.stderr.write(f"not yet after {waiting.given}: {waiting.action} goes on without this command\n")
    return answer


def _say(text: str, said: set[str]) -> None:
    """Write a line that was not written before."""
    if text not in said:
        sys.stderr.write(f"{printable(text)}\n")
        said.add(text)


def _counts(answer: Mapping[str, Any]) -> Iterator[tuple[str, int, int, str]]:
    """Yield the name, the nodes that there are and should be, and a sentence of each group."""
    for one in answer["node_groups"]:
        wanted, alive = int(one["wanted"]), int(one["alive"])
        done = int(one["in_service"]) if wanted else alive
        yield one["node_group"], done, max(wanted, alive), str(one["reason"])
