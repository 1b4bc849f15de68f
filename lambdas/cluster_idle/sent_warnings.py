"""What the function keeps in the cluster's state table: the warnings that it has sent, and its daily reminders.

What is lost or cannot be read was never sent: the function warns again, and stops nothing before that warning's time.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any

from cluster_common.errors import AWS_ERRORS
from cluster_common.failures import Failures
from cluster_common.packed_ids import pack, unpack
from cluster_common.state_table import StateTable
from cluster_common.times import parse_time, time_text
from cluster_contract.codec import Open, encode, read
from cluster_idle.instances import Owner

_REFUSED_FOR = timedelta(days=1)

# DynamoDB takes 400 KB in an item: beside 1,000 refusals fit the packed ids of 25,000 nodes.
# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
_MAX_REFUSALS = 1000

_ITSELF = Owner.itself("").key
_EACH_ITSELF = Owner.itself("*").key

_REMINDED_AT = "reminded_at"


@dataclass(frozen=True, kw_only=True, slots=True)
class Refusal(Open):
    """A stop that AWS or the power function refused.

    Attributes:
        at: When.
        code: With which error code, or who refused it.
    """

    at: datetime
    code: str

    @property
    def ends(self) -> datetime:
        """From when on the stop is tried again."""
        return self.at + _REFUSED_FOR

    def is_recent(self, now: datetime) -> bool:
        """Say whether it was within the last day."""
        return timedelta() <= now - self.at < _REFUSED_FOR


@dataclass(frozen=True, kw_only=True, slots=True)
class UnreportedStop(Open):
    """A stop that a run began, until its message is sent: the run may end in between.

    Attributes:
        at: When it began.
        ids: The ids of the instances.
        text: What the message says of it.
    """

    at: datetime
    ids: tuple[str, ...]
    text: str


@dataclass(frozen=True, kw_only=True, slots=True)
class SentWarning(Open):
    """The warning of nodes that are stopped together, and what became of it.

    Attributes:
        idle_since: Since when they were idle when it was sent.
        stop_at: When they are stopped.
        nodes: How many nodes their group had then.
        owners: The keys of what owned them then: the nodes of another owner would be stopped in another way.
        dry_run: Whether it said that nothing is stopped.
        idle_until: When it was sent, or when they were last seen idle after that. None: it was not sent yet.
        reported: Whether a message said that a dry run would have stopped them.
        refusals: The last refusal to stop an instance or the whole group, by its id or name.
        unreported: The stop of which no message was sent yet. None: there is none.
    """

    idle_since: datetime
    stop_at: datetime
    nodes: int
    owners: tuple[str, ...]
    dry_run: bool = False
    idle_until: datetime | None = None
    reported: bool = False
    refusals: Mapping[str, Refusal] = field(default_factory=dict)
    unreported: UnreportedStop | None = None

    def refusal(self, name: str, now: datetime) -> Refusal | None:
        """Return the refusal to stop an instance or a group, if it was within the last day."""
        found = self.refusals.get(name)
        return found if found is not None and found.is_recent(now) else None

    def to_values(self) -> dict[str, object]:
        """Return the attributes of its item, which keeps the latest 1,000 refusals only."""
        latest = sorted(self.refusals.items(), key=lambda named: named[1].at)[-_MAX_REFUSALS:]
        stop = self.unreported
        owners = (_EACH_ITSELF,) if stop and self.owners == _themselves(stop.ids) else _each(self.owners, pack)
        packed = replace(stop, ids=pack(stop.ids)) if stop else None
        return encode(replace(self, refusals=dict(latest), owners=owners, unreported=packed))

    @classmethod
    def from_values(cls, values: Mapping[str, Any]) -> "SentWarning":
        """Read what `to_values` wrote.

        Raises:
            ValueError: It is something else.
        """
        found = read(cls, values)
        stop = replace(found.unreported, ids=unpack(found.unreported.ids)) if found.unreported else None
        if found.owners == (_EACH_ITSELF,):
            return replace(found, owners=_themselves(stop.ids if stop else ()), unreported=stop)
        return replace(found, owners=_each(found.owners, unpack), unreported=stop)


def _themselves(ids: Iterable[str]) -> tuple[str, ...]:
    """Return the keys of instances that nothing owns."""
    return tuple(f"{_ITSELF}{one}" for one in sorted(ids))


def _each(owners: Iterable[str], change: Callable[[Iterable[str]], tuple[str, ...]]) -> tuple[str, ...]:
    """Return keys of owners, with the ids of instances that nothing owns packed or unpacked."""
    changed: list[str] = []
    for is_itself, group in groupby(owners, lambda one: one.startswith(_ITSELF)):
        together = list(group)
        if is_itself:
            together = [f"{_ITSELF}{one}" for one in change(one.removeprefix(_ITSELF) for one in together)]
        changed += together
    return tuple(changed)


class IdleRecords:
    """The items of the state table: one for each warning, and one for each tag that a reminder names.

    Attributes:
        warnings: The warnings, by the names of what is stopped together.
        reminders: When the last reminder of a tag was sent, by the key of what carries the tag.
    """

    def __init__(self, table: StateTable, failures: Failures, pause: Callable[[float], None]) -> None:
        """Read nothing yet.

        Args:
            table: The function's part of the state table.
            failures: Where it is kept what failed.
            pause: Waits for some seconds.
        """
        self._table = table
        self._failures = failures
        self._pause = pause
        self.warnings: dict[str, SentWarning] = {}
        self.reminders: dict[str, datetime] = {}
        self._unreadable: set[str] = set()

    def read(self) -> bool:
        """Read all items, and say whether that was possible."""
        try:
            items = self._table.read_all()
        except AWS_ERRORS as error:
            self._failures.add(f"the state table {self._table.name}", "could not be read", error)
            return False
        for name, item in items.items():
            try:
                if _REMINDED_AT in item.values:
                    self.reminders[name] = parse_time(item.values[_REMINDED_AT])
                else:
                    self.warnings[name] = SentWarning.from_values(item.values)
            except (TypeError, ValueError):
                self._unreadable.add(name)
        return True

    def save(self, warnings: Mapping[str, SentWarning | None]) -> bool:
        """Write warnings, or delete those that are None, and say whether that was possible."""
        changed = {name: one for name, one in warnings.items() if one != self.warnings.get(name)}
        values = {name: one.to_values() if one else None for name, one in changed.items()}
        if not self._write(values):
            return False
        self.warnings = {name: one for name, one in {**self.warnings, **changed}.items() if one is not None}
        return True

    def save_reminders(self, reminders: Mapping[str, datetime | None]) -> bool:
        """Write when reminders were sent, or delete those that are None, likewise."""
        values = {key: {_REMINDED_AT: time_text(at)} if at else None for key, at in reminders.items()}
        if not self._write(values):
            return False
        self.reminders = {key: at for key, at in {**self.reminders, **reminders}.items() if at is not None}
        return True

    def _write(self, items: Mapping[str, Mapping[str, Any] | None]) -> bool:
        unreadable = dict.fromkeys(self._unreadable)
        if not items and not unreadable:
            return True
        try:
            self._table.write_many({**unreadable, **items}, self._pause)
        except AWS_ERRORS as error:
            self._failures.add(f"the state table {self._table.name}", "could not be written", error)
            return False
        self._unreadable = set()
        return True
