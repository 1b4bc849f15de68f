"""What the function remembers of a node group, as tags on what owns its nodes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import TypeVar

_PREFIX = "cdk-training-cluster:power-"
STATE_TAG = f"{_PREFIX}state"
SIZE_TAG = f"{_PREFIX}size"
BY_TAG = f"{_PREFIX}by"
REASON_TAG = f"{_PREFIX}reason"
SINCE_TAG = f"{_PREFIX}since"
PROBLEM_TAG = f"{_PREFIX}problem"
SURPLUS_TAG = f"{_PREFIX}surplus"
SURPLUS_SINCE_TAG = f"{_PREFIX}surplus-since"
LEFT_SINCE_TAG = f"{_PREFIX}left-since"
OUTSIDE_SINCE_TAG = f"{_PREFIX}outside-since"
CLOSING_TAG = f"{_PREFIX}closing"
BLOCK_TAG = f"{_PREFIX}block"

NONE = "none"
"""What a size or problem tag says when there is none; tags are overwritten, never deleted."""

_T = TypeVar("_T")


class State(StrEnum):
    """Whether a node group is meant to run."""

    RUNNING = "running"
    STOPPED = "stopped"


@dataclass(frozen=True, kw_only=True)
class Memory:
    """What the function remembers of a group, in tags on what owns its nodes.

    Attributes:
        state: Whether the group is meant to run. None: the function has not seen the group yet.
        size: The last size the function set. None: there is none, or it has to be set again.
        by: Who ordered the state.
        reason: Why.
        since: When the function last changed state or size.
        problems: The kinds of problems of missing nodes that were reported since the last time all was well.
        surplus: The same of nodes too many.
        surplus_since: Since when more nodes have been seen alive than should be. None: no more are.
        left_since: Since when nodes have been seen to run in it although it has left the cluster. None: none do.
        outside_since: Since when nodes have been seen to run outside their reservation. None: none do.
        closing: When its nodes go at the end of its Capacity Block, or when its reservation ends, as people were last
            told. None: they were not.
        block: The Capacity Block that it was last given nodes for. None: it never was.
        unreadable: A sentence that says which tag holds what the function never writes. Empty: none.
    """

    state: State | None = None
    size: int | None = None
    by: str = ""
    reason: str = ""
    since: datetime | None = None
    problems: tuple[str, ...] = ()
    surplus: tuple[str, ...] = ()
    surplus_since: datetime | None = None
    left_since: datetime | None = None
    outside_since: datetime | None = None
    closing: datetime | None = None
    block: str | None = None
    unreadable: str = ""

    @classmethod
    def from_tags(cls, tags: Mapping[str, str]) -> "Memory":
        """Read a group's tags. What cannot be read is said, never guessed."""
        unreadable: list[str] = []
        state = _read(tags, STATE_TAG, State, unreadable)
        size = _read(tags, SIZE_TAG, _size, unreadable)
        if state is None and size is not None and not unreadable:
            unreadable.append(f"the tag {SIZE_TAG} is there and {STATE_TAG} is not")
        return cls(
            state=state,
            size=size,
            by=tags.get(BY_TAG, ""),
            reason=tags.get(REASON_TAG, ""),
            since=_read(tags, SINCE_TAG, _time, unreadable),
            problems=_read(tags, PROBLEM_TAG, _words, unreadable) or (),
            surplus=_read(tags, SURPLUS_TAG, _words, unreadable) or (),
            surplus_since=_read(tags, SURPLUS_SINCE_TAG, _time, unreadable),
            left_since=_read(tags, LEFT_SINCE_TAG, _time, unreadable),
            outside_since=_read(tags, OUTSIDE_SINCE_TAG, _time, unreadable),
            closing=_read(tags, CLOSING_TAG, _time, unreadable),
            block=_read(tags, BLOCK_TAG, str, unreadable),
            unreadable="; ".join(unreadable),
        )

    def to_tags(self) -> dict[str, str]:
        """Return the tags that say what was ordered; what is noted or told is tagged on its own."""
        return {
            STATE_TAG: self.state.value if self.state else NONE,
            SIZE_TAG: NONE if self.size is None else str(self.size),
            BY_TAG: self.by,
            REASON_TAG: self.reason,
            SINCE_TAG: time_text(self.since) if self.since else NONE,
        }


NO_MEMORY = Memory()
"""What is remembered of a group that the function has never seen."""


def time_text(moment: datetime) -> str:
    """Return a time to the second, as a tag can hold it."""
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _time(text: str) -> datetime:
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def _size(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise ValueError(text)
    return int(text)


def _read(tags: Mapping[str, str], key: str, parse: Callable[[str], _T], unreadable: list[str]) -> _T | None:
    text = tags.get(key, "")
    if text in ("", NONE):
        return None
    try:
        return parse(text)
    except ValueError:
        unreadable.append(f"the tag {key} says {text!r}")
        return None
