"""What happened to the worlds of a run: whether it may start its processes again, and which node failed first.

A world is what one rendezvous joined: nodes with their ranks. Each node writes when it joined one, when its own
processes failed, and that it left. Counts of restarts are not asked: they differ between agents
(https://github.com/pytorch/pytorch/issues/108158).
"""

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from enum import Enum


@dataclass(frozen=True, kw_only=True)
class Membership:
    """A node's time in a world, in seconds since 1970.

    Attributes:
        world: The world.
        node: The node.
        joined: When it joined.
        failed: When its own processes failed. None: they did not.
        ended: When it ended them for another reason: others failed or came, or the node is drained. None: it did not.
        by_script: Whether they ended themselves: with an exit status, as after an exception, or by SIGABRT.
    """

    world: str
    node: str
    joined: float
    failed: float | None = None
    ended: float | None = None
    by_script: bool = False

    def to_json(self) -> bytes:
        """Return it as the table holds it."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def from_json(cls, text: bytes) -> "Membership":
        """Return what the table holds.

        Args:
            text: The value of an item.
        """
        return cls(**json.loads(text))


@dataclass(frozen=True, kw_only=True)
class RestartPolicy:
    """How often a run may fail.

    Attributes:
        restarts: The failures within the window after which the processes start again; one more ends the run.
        window_seconds: The window.
        first_failures: A node that failed first so often within the window is left out.
    """

    restarts: int = 5
    window_seconds: float = 3600
    first_failures: int = 3


class Decision(Enum):
    """What a node does that wants to join the next world."""

    JOIN = "join"
    END = "the restart budget is used up"
    LEAVE = "the node failed first too often"


# What agents see of failures is that exact: twice torchrun's interval for looking at processes, and their clocks.
_SAME_SECONDS = 0.3


def decide(history: Sequence[Membership], node: str, now: float, policy: RestartPolicy) -> Decision:
    """Decide whether a node joins the next world.

    Args:
        history: What nodes have written, this one's last end included.
        node: The node.
        now: The time, in seconds since 1970.
        policy: The limits.
    """
    broken = [members for members in _recent(history, now - policy.window_seconds) if is_broken(members)]
    if len(broken) > policy.restarts:
        return Decision.END
    first = [first_to_fail(members) for members in broken]
    return Decision.LEAVE if first.count(node) >= policy.first_failures else Decision.JOIN


def is_broken(members: Sequence[Membership]) -> bool:
    """Return whether a failure ended a world.

    Where a node ended its processes first, because it is drained or others came, those of the rest fail as well:
    that is no failure. Nor is what cannot be told from it.

    Args:
        members: The members of one world.
    """
    failures = [one.failed for one in members if one.failed is not None]
    ends = [one.ended for one in members if one.ended is not None]
    return bool(failures) and min(failures) + _SAME_SECONDS < min(ends, default=math.inf)


def first_to_fail(members: Sequence[Membership]) -> str | None:
    """Return the node that broke a world; None: it cannot be told, as of a node that was alone.

    That is the one that was lost without a word, or the one whose processes were ended by a signal other than SIGABRT
    clearly before all others failed. Processes that end by themselves fail where the script does, often on rank 0
    only, which stays on one node: that says nothing about the node, and a GPU that is broken drains it. A node asks
    about itself, after it has written its own end: it takes no other's silence for its own.

    Args:
        members: The members of a world that is broken.
    """
    if len(members) == 1:
        return None
    lost = [one.node for one in members if one.failed is None and one.ended is None]
    if lost:
        return lost[0] if len(lost) == 1 else None
    times = sorted((one.failed, one.node, one.by_script) for one in members if one.failed is not None)
    clear = len(times) == 1 or times[1][0] - times[0][0] > _SAME_SECONDS
    _, node, by_script = times[0]
    return node if clear and not by_script else None


def _recent(history: Sequence[Membership], since: float) -> Iterable[Sequence[Membership]]:
    worlds: dict[str, list[Membership]] = {}
    for one in history:
        worlds.setdefault(one.world, []).append(one)
    return [members for members in worlds.values() if max(map(_last, members)) >= since]


def _last(one: Membership) -> float:
    return one.failed or one.ended or one.joined
