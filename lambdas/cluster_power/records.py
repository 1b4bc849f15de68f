"""What the function records of a node group: one item of the cluster's state table, with an entry for each owner."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, TypeVar

from cluster_common.times import parse_time, time_text
from cluster_contract.state import PowerState as State

__all__ = ["NO_RECORD", "Desired", "GroupState", "Order", "Record", "State", "Termination"]

_T = TypeVar("_T")

# The largest number that Auto Scaling takes.
_MAX_SIZE = 2**31 - 1


@dataclass(frozen=True, kw_only=True)
class Order:
    """What a node group is meant to be from now on.

    Attributes:
        state: Whether it is meant to run.
        by: Who orders that.
        reason: Why.
        since: When it was ordered.
        limit: The most nodes that a limited node group gets. Default: - its count.
        sizes: The owners that it is ordered of, by their names or ids, with the size that each keeps. None: the size
            has to be set again.
    """

    state: State
    by: str
    reason: str
    since: datetime
    limit: int | None = None
    sizes: Mapping[str, int | None] = field(default_factory=dict, compare=False)

    def __str__(self) -> str:
        nodes = "1 node" if self.limit == 1 else f"{self.limit} nodes"
        limited = "" if self.limit is None else f" to {nodes} until a start,"
        return f"{self.state}{limited} by {self.by} since {time_text(self.since)}: {self.reason}"


@dataclass(frozen=True, kw_only=True)
class Termination:
    """The last command to terminate single nodes of a group.

    Attributes:
        at: When it was applied.
        text: When, by whom and why, as people are told.
        ids: The nodes that Auto Scaling was asked to terminate, or was about to be.
    """

    at: datetime
    text: str
    ids: tuple[str, ...] = ()

    @classmethod
    def new(cls, at: datetime, by: str, reason: str, ids: Sequence[str]) -> "Termination":
        """Return what is to be recorded, exactly as it will be read back."""
        at = at.replace(microsecond=0)
        return cls(at=at, text=f"{time_text(at)} by {by}: {reason}", ids=tuple(ids))


@dataclass(frozen=True, kw_only=True)
class Desired:
    """Why the desired capacity is another than the size: EC2 lacks nodes, or some were terminated by command.

    Attributes:
        sizes: The desired capacity. Until it is sure that it was set, also what was set before.
        at: When.
        goal: How many nodes the group is to have since some were terminated. Default: - its size.
    """

    sizes: tuple[int, ...]
    at: datetime
    goal: int | None = None


@dataclass(frozen=True, kw_only=True)
class Record:
    """What the function has recorded of one owner of a node group's nodes.

    Attributes:
        state: Whether the node group is meant to run. None: the function has not seen it yet.
        by: Who ordered the state.
        reason: Why.
        limit: The most nodes that the node group gets while it is limited. None: its count.
        size: The last size that the function set. None: there is none, or it has to be set again.
        since: When the state was ordered, or the size set after that.
        told: The keys of the alerts that people were sent, and were not told the end of.
        terminated: The last command to terminate single nodes. None: there was none.
        desired: What explains a desired capacity other than the size. None: nothing does.
        gone: When a tick first did not find the owner. None: it is there.
    """

    state: State | None = None
    by: str = ""
    reason: str = ""
    limit: int | None = None
    size: int | None = None
    since: datetime | None = None
    told: tuple[str, ...] = ()
    terminated: Termination | None = None
    desired: Desired | None = None
    gone: datetime | None = None

    @property
    def ordered(self) -> tuple[object, ...]:
        """What an order or a new size changes; what ticks note and tell changes at any time."""
        return self.state, self.limit, self.size, self.by, self.reason, self.since


NO_RECORD = Record()
"""What is recorded of a group that the function has never seen."""


@dataclass(frozen=True, kw_only=True)
class GroupState:
    """What is recorded of a node group, whatever owns its nodes: a deployment may replace that.

    Attributes:
        order: What it is meant to be. None: the function has not seen it yet.
        owners: What was recorded of each owner, by its name or id. An owner's own `since` is None until it was sized
            after the order.
    """

    order: Order | None = None
    owners: Mapping[str, Record] = field(default_factory=dict)

    def record(self, owner: str) -> Record:
        """Return what is recorded of one owner."""
        own, order = self.owners.get(owner, NO_RECORD), self.order
        if order is None:
            return own
        since = own.since or order.since
        return replace(own, state=order.state, by=order.by, reason=order.reason, limit=order.limit, since=since)

    def with_order(self, order: Order) -> "GroupState":
        """Return the state once something else is ordered: an owner keeps its size, or it has to be set again."""
        state = GroupState(
            order=order, owners={name: replace(own, size=None, since=None) for name, own in self.owners.items()}
        )
        for name, size in order.sizes.items():
            state = state.with_changes(name, {"size": size, "desired": None})
        return state

    def with_changes(self, owner: str, changes: Mapping[str, Any]) -> "GroupState":
        """Return the state once attributes of an owner's record, by their names, have changed."""
        own = replace(self.owners.get(owner, NO_RECORD), **changes)
        return replace(self, owners={**self.owners, owner: own})

    def to_values(self) -> dict[str, Any]:
        """Return the attributes of the item; what is not there is left out."""
        order = self.order
        ordered = (
            {
                "state": order.state.value,
                "by": order.by,
                "reason": order.reason,
                "since": time_text(order.since),
                **_given(limit=order.limit),
            }
            if order
            else {}
        )
        return {**ordered, "owners": {name: _owner_values(own) for name, own in self.owners.items()}}

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> "GroupState":
        """Read the attributes of an item; unknown ones are left out.

        Raises:
            ValueError: They are not what this function writes.
        """
        order = None
        if "state" in values:
            order = Order(
                state=State(values["state"]),
                by=_text(values, "by"),
                reason=_text(values, "reason"),
                since=_time(values, "since"),
                limit=_size(values.get("limit")) if values["state"] == State.LIMITED else None,
            )
        owners = _expect(dict, values, "owners") if "owners" in values else {}
        return cls(order=order, owners={name: _owner(_expect(dict, owners, name)) for name in owners})


def _owner_values(own: Record) -> dict[str, Any]:
    terminated, desired = own.terminated, own.desired
    values: dict[str, Any] = {
        "size": own.size,
        "since": time_text(own.since) if own.since else None,
        "told": list(own.told) or None,
        "terminated": terminated
        and {"at": time_text(terminated.at), "text": terminated.text, "ids": list(terminated.ids)},
        "desired": desired
        and {"sizes": list(desired.sizes), "at": time_text(desired.at), **_given(goal=desired.goal)},
        "gone": time_text(own.gone) if own.gone else None,
    }
    return _given(**values)


def _given(**values: object) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _owner(values: Mapping[str, Any]) -> Record:
    return Record(
        size=_size(values["size"]) if "size" in values else None,
        since=_time(values, "since") if "since" in values else None,
        told=_texts(values, "told"),
        terminated=_termination(_expect(dict, values, "terminated")) if "terminated" in values else None,
        desired=_desired(_expect(dict, values, "desired")) if "desired" in values else None,
        gone=_time(values, "gone") if "gone" in values else None,
    )


def _termination(values: Mapping[str, Any]) -> Termination:
    return Termination(at=_time(values, "at"), text=_text(values, "text"), ids=_texts(values, "ids"))


def _desired(values: Mapping[str, Any]) -> Desired:
    goal = _size(values["goal"]) if "goal" in values else None
    sizes = tuple(_size(one) for one in _expect(list, values, "sizes"))
    if not sizes:
        raise ValueError("sizes must name at least one size, got []")
    return Desired(sizes=sizes, at=_time(values, "at"), goal=goal)


def _size(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MAX_SIZE:
        raise ValueError(f"a size must be a whole number from 0 to {_MAX_SIZE}, got {value!r}")
    return value


def _time(values: Mapping[str, Any], name: str) -> datetime:
    return parse_time(_text(values, name))


def _text(values: Mapping[str, Any], name: str) -> str:
    return _expect(str, values, name)


def _texts(values: Mapping[str, Any], name: str) -> tuple[str, ...]:
    return tuple(_text({name: one}, name) for one in _expect(list, values, name)) if name in values else ()


def _expect(kind: type[_T], values: Mapping[str, Any], name: str) -> _T:
    value = values.get(name)
    if isinstance(value, kind):
        return value
    raise ValueError(f"{name} must be {_KINDS[kind]}, got {value!r}")


_KINDS: Mapping[object, str] = {str: "text", list: "a list", dict: "a mapping"}
