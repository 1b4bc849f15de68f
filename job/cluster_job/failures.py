"""What happened to the worlds of a run: whether it may start its processes again, and which node failed first.

A world is what one rendezvous joined: nodes with their ranks. Each node writes when it joined one, when its own
processes failed, and that it left. Counts of restarts are not asked: they differ between agents
(https://github.com/pytorch/pytorch/issues/108158).

A world **advanced** when its processes did 10 steps more than any world before it, or one step more from a later
checkpoint: one step more alone may be the same failure, which some ranks see before they count the step. Nothing is
known of scripts that do not train with `Run.steps`.

- A failure after which nothing is known, or the run had not advanced, spends 1 of the restarts; others spend 1/4.
- The run ends at the third failure in a row of a world that had not advanced, if it is known and no node is to blame.
"""

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from enum import Enum


@dataclass(frozen=True, kw_only=True)
class Standing:
    """How far a run has come.

    Attributes:
        best: The most steps that a world has done. 0: no script has said any.
        saved: The most steps with which a world began, those of its checkpoint. None: there was no world.
        fruitless: How many worlds in a row failed that had not advanced.
    """

    best: int = 0
    saved: int | None = None
    fruitless: int = 0


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
        hung: Whether they were ended because the other ranks waited for one of them.
        start: How many steps were done when the processes began. None: the script does not say.
        steps: How many were done when they ended. None: as above.
        before: How far the run had come before this world.
    """

    world: str
    node: str
    joined: float
    failed: float | None = None
    ended: float | None = None
    by_script: bool = False
    hung: bool = False
    start: int | None = None
    steps: int | None = None
    before: "Standing" = Standing()

    def to_json(self) -> bytes:
        """Return it as the table holds it."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def from_json(cls, text: bytes) -> "Membership":
        """Return what the table holds.

        Args:
            text: The value of an item.
        """
        found = json.loads(text)
        return cls(**{**found, "before": Standing(**found.get("before", {}))})


@dataclass(frozen=True, kw_only=True)
class RestartPolicy:
    """How often a run may fail.

    Attributes:
        restarts: The failures within the window after which the processes start again; one more ends the run.
        window_seconds: The window.
        first_failures: A node that failed first so often within the window is left out.
        no_progress_restarts: The run ends after so many failures in a row without progress. 0: it does not.
    """

    restarts: int = 5
    window_seconds: float = 3600
    first_failures: int = 3
    no_progress_restarts: int = 3


class Decision(Enum):
    """What a node does that wants to join the next world."""

    JOIN = "join"
    END = "the restart budget is used up"
    REPEAT = "the run fails again and again without progress"
    LEAVE = "the node failed first too often"


# What agents see of failures is that exact: twice torchrun's interval for looking at processes, and their clocks.
_SAME_SECONDS = 0.3

_PROGRESS_STEPS = 10
_PROGRESS_COST = 0.25


def decide(history: Sequence[Membership], node: str, now: float, policy: RestartPolicy) -> Decision:
    """Decide whether a node joins the next world.

    Args:
        history: What nodes have written, this one's last end included.
        node: The node.
        now: The time, in seconds since 1970.
        policy: The limits.
    """
    since = now - policy.window_seconds
    broken = [one for one in _told(history) if max(map(_last, one[0])) >= since and is_broken(one[0])]
    if sum(_PROGRESS_COST if has_advanced else 1 for _, has_advanced, _ in broken) > policy.restarts:
        return Decision.END
    if 0 < policy.no_progress_restarts <= standing(history).fruitless:
        return Decision.REPEAT
    first = [first_to_fail(members) for members, _, _ in broken]
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

    That is the one whose rank the others waited for, the one that was lost without a word, or the one whose processes
    were ended by a signal other than SIGABRT clearly before all others failed. Processes that end by themselves fail
    where the script does, often on rank 0 only, which stays on one node: that says nothing about the node, and a GPU
    that is broken drains it. A node asks about itself, after it has written its own end: it takes no other's silence
    for its own.

    Args:
        members: The members of a world that is broken.
    """
    if len(members) == 1:
        return None
    hung = [one.node for one in members if one.hung]
    if hung:
        return hung[0] if len(hung) == 1 else None
    lost = [one.node for one in members if one.failed is None and one.ended is None]
    if lost:
        return lost[0] if len(lost) == 1 else None
    times = sorted((one.failed, one.node, one.by_script) for one in members if one.failed is not None)
    clear = len(times) == 1 or times[1][0] - times[0][0] > _SAME_SECONDS
    _, node, by_script = times[0]
    return node if clear and not by_script else None


def advanced(before: Standing, members: Sequence[Membership]) -> bool | None:
    """Return whether a world did what no world before it had done. None: its script does not say.

    A script that has said its steps before, and ends without one, has not advanced.

    Args:
        before: How far the run had come.
        members: The members of the world.
    """
    steps = max((one.steps for one in members if one.steps is not None), default=None)
    start = max((one.start for one in members if one.start is not None), default=0)
    if steps is None:
        return False if before.best else None
    known = max(before.best, start)
    from_later = before.saved is not None and start > before.saved
    return steps >= known + _PROGRESS_STEPS or (steps > known and from_later)


def standing(history: Sequence[Membership]) -> Standing:
    """Return how far a run has come, after its last world.

    Args:
        history: What nodes have written.
    """
    *_, (_, _, found) = [((), None, Standing()), *_told(history)]
    return found


def _told(history: Sequence[Membership]) -> Iterable[tuple[Sequence[Membership], bool | None, Standing]]:
    """Yield the members of each world, whether it advanced, and how far the run had come after it."""
    worlds: dict[str, list[Membership]] = {}
    for one in history:
        worlds.setdefault(one.world, []).append(one)
    found: Standing | None = None
    for members in sorted(worlds.values(), key=lambda members: min(one.joined for one in members)):
        if found is None:  # what lies before is known from what the members of the first world have written
            found = max((one.before for one in members), key=lambda one: (one.best, one.fruitless))
        has_advanced = advanced(found, members)
        found = _after(found, members, has_advanced)
        yield members, has_advanced, found


def _after(before: Standing, members: Sequence[Membership], has_advanced: bool | None) -> Standing:
    # A node that has not written its end may have been lost, and is to blame then.
    all_ended = all(one.failed is not None or one.ended is not None for one in members)
    is_fruitless = has_advanced is False and is_broken(members) and all_ended and first_to_fail(members) is None
    starts = [one.start for one in members if one.start is not None]
    known = [*starts, *([] if before.saved is None else [before.saved])]
    return Standing(
        best=max(before.best, *(one.steps or 0 for one in members)),
        saved=max(known, default=None),
        fruitless=0 if has_advanced else before.fruitless + is_fruitless,
    )


def _last(one: Membership) -> float:
    return one.failed or one.ended or one.joined
