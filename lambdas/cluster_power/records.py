"""What the function records of a node group, as tags on what owns its nodes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TypeVar

from cluster_common.tags import tag_value
from cluster_common.times import parse_time, time_text

_PREFIX = "cdk-training-cluster:power-"
STATE_TAG = f"{_PREFIX}state"
SIZE_TAG = f"{_PREFIX}size"
BY_TAG = f"{_PREFIX}by"
REASON_TAG = f"{_PREFIX}reason"
SINCE_TAG = f"{_PREFIX}since"
TOLD_TAG = f"{_PREFIX}told"
TERMINATED_TAG = f"{_PREFIX}terminated"
DESIRED_TAG = f"{_PREFIX}desired"

NONE = "none"
"""What a size or problem tag says when there is none; tags are overwritten, never deleted."""

_T = TypeVar("_T")


class State(StrEnum):
    """Whether a node group is meant to run."""

    RUNNING = "running"
    STOPPED = "stopped"


@dataclass(frozen=True, kw_only=True)
class Termination:
    """The last order to terminate single nodes of a group.

    Attributes:
        at: When it was applied.
        text: When, by whom and why, as the tag says it.
    """

    at: datetime
    text: str

    @classmethod
    def new(cls, at: datetime, by: str, reason: str) -> "Termination":
        """Return what is to be recorded, exactly as it will be read back."""
        return cls(at=at.replace(microsecond=0), text=tag_value(f"{time_text(at)} by {by}: {reason}"))

    @classmethod
    def from_tag(cls, text: str) -> "Termination | None":
        """Read the tag. It explains a size and decides nothing: where it cannot be read, there is none."""
        try:
            return cls(at=parse_time(text.partition(" ")[0]), text=text)
        except ValueError:
            return None


@dataclass(frozen=True, kw_only=True)
class Desired:
    """Why the desired capacity is another than the size: EC2 lacks nodes, or some were terminated by order.

    Attributes:
        sizes: The desired capacity. Until it is sure that it was set, also what was set before.
        at: When.
        goal: How many nodes the group is to have since some were terminated. Default: - its size.
    """

    sizes: tuple[int, ...]
    at: datetime
    goal: int | None = None

    @property
    def text(self) -> str:
        """What the tag says."""
        return " ".join([*map(str, self.sizes), time_text(self.at), *([] if self.goal is None else [str(self.goal)])])

    @classmethod
    def from_tag(cls, text: str) -> "Desired":
        """Read the tag.

        Raises:
            ValueError: It says what the function never writes.
        """
        *sizes, last = text.split()
        goal = _size(last) if last.isdigit() else None
        at = last if goal is None or not sizes else sizes.pop()
        if not sizes:
            raise ValueError(text)
        return cls(sizes=tuple(map(_size, sizes)), at=parse_time(at), goal=goal)


@dataclass(frozen=True, kw_only=True)
class Record:
    """What the function records of a group, in tags on what owns its nodes.

    Attributes:
        state: Whether the group is meant to run. None: the function has not seen the group yet.
        size: The last size the function set. None: there is none, or it has to be set again.
        by: Who ordered the state.
        reason: Why.
        since: When the function last changed state or size.
        told: The keys of the alerts that people were sent, and were not told the end of.
        terminated: The last order to terminate single nodes. None: there was none.
        desired: What explains a desired capacity other than the size. None: nothing does.
        unreadable: A sentence that says which tag holds what the function never writes. Empty: none.
        spoiled: Those tags; the next order overwrites them.
    """

    state: State | None = None
    size: int | None = None
    by: str = ""
    reason: str = ""
    since: datetime | None = None
    told: tuple[str, ...] = ()
    terminated: Termination | None = None
    desired: Desired | None = None
    unreadable: str = ""
    spoiled: tuple[str, ...] = ()

    @property
    def ordered(self) -> tuple[object, ...]:
        """What an order or a new size changes; what ticks note and tell changes at any time."""
        return self.state, self.size, self.by, self.reason, self.since

    @classmethod
    def from_tags(cls, tags: Mapping[str, str]) -> "Record":
        """Read a group's tags. What cannot be read is said, never guessed."""
        unreadable: dict[str, str] = {}
        state = _read(tags, STATE_TAG, State, unreadable)
        size = _read(tags, SIZE_TAG, _size, unreadable)
        if state is None and size is not None and not unreadable:
            unreadable[SIZE_TAG] = f"the tag {SIZE_TAG} is there and {STATE_TAG} is not"
        return cls(
            state=state,
            size=size,
            by=tags.get(BY_TAG, ""),
            reason=tags.get(REASON_TAG, ""),
            since=_read(tags, SINCE_TAG, parse_time, unreadable),
            told=_read(tags, TOLD_TAG, _words, unreadable) or (),
            terminated=Termination.from_tag(tags.get(TERMINATED_TAG, "")),
            desired=_read(tags, DESIRED_TAG, Desired.from_tag, unreadable),
            unreadable="; ".join(unreadable.values()),
            spoiled=tuple(unreadable),
        )

    def to_tags(self) -> dict[str, str]:
        """Return the tags that say what was ordered; what is noted or told is tagged on its own."""
        return dict.fromkeys(self.spoiled, NONE) | changed_tags(
            state=self.state, size=self.size, by=self.by, reason=self.reason, since=self.since
        )


def changed_tags(**changes: object) -> dict[str, str]:
    """Return the tags that say what attributes of a record are now.

    Args:
        **changes: The attributes, by name. None: there is none.
    """
    written = {name: (_TAGS[name], value) for name, value in changes.items()}
    return {tag: NONE if value in (None, ()) else _text(value) for tag, value in written.values()}


def _text(value: object) -> str:
    if isinstance(value, datetime):
        return time_text(value)
    if isinstance(value, tuple):
        return " ".join(value)
    return value.text if isinstance(value, Desired | Termination) else str(value)


_TAGS = {
    "state": STATE_TAG,
    "size": SIZE_TAG,
    "by": BY_TAG,
    "reason": REASON_TAG,
    "since": SINCE_TAG,
    "told": TOLD_TAG,
    "terminated": TERMINATED_TAG,
    "desired": DESIRED_TAG,
}

NO_RECORD = Record()
"""What is recorded of a group that the function has never seen."""


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def _size(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise ValueError(text)
    return int(text)


def _read(tags: Mapping[str, str], key: str, parse: Callable[[str], _T], unreadable: dict[str, str]) -> _T | None:
    text = tags.get(key, "")
    if text in ("", NONE):
        return None
    try:
        return parse(text)
    except ValueError:
        unreadable[key] = f"the tag {key} says {text!r}"
        return None
