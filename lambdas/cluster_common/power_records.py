"""What the power function records of a node group, and the health function reads.

It is one item of the cluster's state table, with an entry for each owner.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Annotated, Any

from cluster_common.times import time_text
from cluster_contract.codec import Open, Within, encode, read
from cluster_contract.state import PowerState as State

__all__ = ["NO_RECORD", "Desired", "GroupState", "Notice", "Order", "Record", "State", "Termination"]

# Up to the largest number that Auto Scaling takes.
_Size = Annotated[int, Within(minimum=0, maximum=2**31 - 1)]


@dataclass(frozen=True, kw_only=True)
class Order(Open):
    """What a node group is meant to be from now on.

    Attributes:
        state: Whether it is meant to run.
        by: Who orders that.
        reason: Why.
        since: When it was ordered.
        limit: The most nodes that a limited node group gets. Default: - its count.
        sizes: The owners that it is ordered of, by their names or ids, with the size that each keeps. None: the size
            has to be set again.
        lost: Whether it stands for an order whose record was lost.
    """

    state: State
    by: str
    reason: str
    since: datetime
    limit: _Size | None = None
    lost: bool = False
    sizes: Mapping[str, int | None] = field(default_factory=dict, compare=False)

    def __post_init__(self) -> None:
        """Refuse a limit of a node group that is not limited, and a limited one without.

        Raises:
            ValueError: It is so.
        """
        if (self.limit is not None) != (self.state is State.LIMITED):
            raise ValueError(f"limit goes with the state {State.LIMITED}, got {self.limit!r} with {self.state}")

    def without_nodes(self, since: datetime, reason: str) -> "Order":
        """Return the order of a limited node group that its schedule or the idle function stops: the limit holds."""
        return replace(self, limit=0, since=since, reason=f"{self.reason}; {reason}", sizes={})

    def __str__(self) -> str:
        nodes = "1 node" if self.limit == 1 else f"{self.limit} nodes"
        limited = "" if self.limit is None else f" to {nodes} until a start,"
        return f"{self.state}{limited} by {self.by} since {time_text(self.since)}: {self.reason}"


@dataclass(frozen=True, kw_only=True)
class Notice(Open):
    """That the alert topic is notified of a stop by the node group's schedule.

    Attributes:
        window_end: The end of the window that the stop is for.
        at: When it was first found; the stop comes no sooner after it than the schedule's warning says.
    """

    window_end: datetime
    at: datetime


@dataclass(frozen=True, kw_only=True)
class Termination(Open):
    """The last command to terminate single nodes of a group.

    Attributes:
        at: When it was applied.
        text: When, by whom and why, as answers and messages say it.
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
class Desired(Open):
    """Why the desired capacity is another than the size: EC2 lacks nodes, or some were terminated or are in Standby.

    Attributes:
        sizes: The desired capacity. Until it is sure that it was set, also what was set before.
        at: When.
        goal: How many nodes the group is to have since some were terminated. Default: - its size.
        standby: The nodes in Standby, or gone from there, whose places the desired capacity does not count.
    """

    sizes: tuple[_Size, ...]
    at: datetime
    goal: _Size | None = None
    standby: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse no size.

        Raises:
            ValueError: There is none.
        """
        if not self.sizes:
            raise ValueError("sizes must name at least one size, got none")


@dataclass(frozen=True, kw_only=True)
class Record(Open):
    """What the function has recorded of one owner of a node group's nodes.

    Attributes:
        state: Whether the node group is meant to run. None: the function has not seen it yet.
        by: Who ordered the state.
        reason: Why.
        limit: The most nodes that the node group gets while it is limited. None: its count.
        size: The last size that the function set. None: there is none, or it has to be set again.
        since: When the state was ordered, or the size set after that.
        ordered_at: When the state was ordered.
        told: The keys of the alerts that were sent and whose end was not.
        terminated: The last command to terminate single nodes. None: there was none.
        desired: What explains a desired capacity other than the size. None: nothing does.
        gone: When a run first did not find the owner. None: it is there.
    """

    state: State | None = None
    by: str = ""
    reason: str = ""
    limit: _Size | None = None
    size: _Size | None = None
    since: datetime | None = None
    ordered_at: datetime | None = None
    told: tuple[str, ...] = ()
    terminated: Termination | None = None
    desired: Desired | None = None
    gone: datetime | None = None

    @property
    def is_stopped(self) -> bool:
        """Whether no node is to run until a start: it is stopped, or limited to 0 nodes."""
        return self.state is State.STOPPED or self.limit == 0

    @property
    def ordered(self) -> tuple[object, ...]:
        """What a command or a new size changes; the rest changes at any time."""
        return self.state, self.limit, self.size, self.by, self.reason, self.since


NO_RECORD = Record()
"""What is recorded of a group that the function has never seen."""


# What has an attribute of its own in the item.
_OTHERS = ("notice", "unconfirmed")


@dataclass(frozen=True, kw_only=True)
class GroupState(Open):
    """What is recorded of a node group, whatever owns its nodes: a deployment may replace that.

    Attributes:
        order: What it is meant to be. None: the function has not seen it yet.
        owners: What was recorded of each owner, by its name or id. An owner's own `since` is None until it was sized
            after the order.
        notice: The last notice of a stop by its schedule. None: none was given.
        unconfirmed: The stop for which the size 0 was set and did not show yet. None: there is none.
    """

    order: Order | None = None
    owners: Mapping[str, Record] = field(default_factory=dict)
    notice: Notice | None = None
    unconfirmed: Order | None = None

    def record(self, owner: str) -> Record:
        """Return what is recorded of one owner."""
        own, order = self.owners.get(owner, NO_RECORD), self.order
        if order is None:
            return own
        since = own.since or order.since
        own = replace(own, since=since, ordered_at=order.since)
        return replace(own, state=order.state, by=order.by, reason=order.reason, limit=order.limit)

    def with_order(self, order: Order) -> "GroupState":
        """Return the state once something else is ordered: an owner keeps its size, or it has to be set again."""
        owners = {name: replace(own, size=None, since=None) for name, own in self.owners.items()}
        state = replace(self, order=order, owners=owners, unconfirmed=None)
        for name, size in order.sizes.items():
            state = state.with_changes(name, {"size": size, "desired": None})
        return state

    def with_changes(self, owner: str, changes: Mapping[str, Any]) -> "GroupState":
        """Return the state once attributes of an owner's record, by their names, have changed."""
        own = replace(self.owners.get(owner, NO_RECORD), **changes)
        return replace(self, owners={**self.owners, owner: own})

    def to_values(self) -> dict[str, Any]:
        """Return the attributes of the item; what is as by default is left out."""
        order = encode(replace(self.order, sizes={})) if self.order else {}
        others = {name: encode(one) for name in _OTHERS if (one := getattr(self, name))}
        return {**order, **others, "owners": {name: encode(own) for name, own in self.owners.items()}}

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> "GroupState":
        """Read the attributes of an item; unknown ones are left out.

        Raises:
            ValueError: They are not what this function writes.
        """
        order = {"order": values} if "state" in values else {}
        others = {name: values[name] for name in _OTHERS if name in values}
        return read(cls, {"owners": values.get("owners", {}), **order, **others})
