"""The function's state between runs: an item for each node group, each node and each bad serial."""

from collections.abc import Callable, Collection
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TypeVar

from cluster_common.state_table import NO_ITEM, StateChangedError, StateItem, StateTable
from cluster_contract.codec import encode, read
from cluster_contract.health_settings import SERIALS_REMEMBERED
from cluster_health.node_records import NodeRecord
from cluster_health.records import BadSerial, GroupRecord

_GROUP, _NODE, _SERIAL = "group/", "node/", "serial/"

_ATTEMPTS = 5
"""How often a change of a node's item is tried beside other runs: each time on what these have written."""

_FORGOTTEN_AFTER = timedelta(days=7)
"""For how long it is kept what a node has reported that is gone.

https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/TTL.html
"""

_T = TypeVar("_T")


class HealthStore:
    """Load and save what is known of nodes, node groups and serials."""

    def __init__(self, table: StateTable, now: datetime) -> None:
        """Read nothing yet.

        Args:
            table: The function's part of the state table.
            now: The time.
        """
        self.now: datetime = now
        self._table = table
        self._items: dict[str, StateItem] = {}
        self._parsed: dict[str, tuple[StateItem, object]] = {}

    def read(self) -> None:
        """Read all items."""
        self._items = self._table.read_all()

    @property
    def nodes(self) -> dict[str, NodeRecord]:
        """What is known of nodes, by their ids. One whose item cannot be read has not reported."""
        return self._of(_NODE, NodeRecord)

    @property
    def bad_serials(self) -> dict[str, BadSerial]:
        """The accelerators of nodes that were replaced, by their serials."""
        return self._of(_SERIAL, BadSerial)

    def group(self, name: str) -> GroupRecord:
        """Return the repairs of a node group.

        Args:
            name: The node group.

        Raises:
            ValueError: Its item does not hold what this function writes.
        """
        item = self._items.get(_GROUP + name, NO_ITEM)
        try:
            return read(GroupRecord, item.values)
        except (TypeError, ValueError) as error:
            what = f"the item {_GROUP}{name} of the state table {self._table.name} does not hold what the health "
            raise ValueError(f"{what}function writes ({error}): delete the item") from None

    def save_group(self, name: str, record: GroupRecord) -> None:
        """Record the repairs of a node group.

        Args:
            name: The node group.
            record: Its repairs.

        Raises:
            StateChangedError: Another run has changed them since they were read.
        """
        key = _GROUP + name
        self._items[key] = self._table.write(key, encode(record), seen=self._items.get(key, NO_ITEM))

    def change_node(self, instance_id: str, node_group: str, change: Callable[[NodeRecord], NodeRecord]) -> None:
        """Change what is known of a node, on top of what other runs have written.

        Args:
            instance_id: The node.
            node_group: Its node group.
            change: Returns what is to be known.

        Raises:
            StateChangedError: Other runs keep changing it.
        """
        key = _NODE + instance_id
        for attempt in range(_ATTEMPTS):
            before = self.nodes.get(instance_id, NodeRecord(node_group=node_group))
            after = change(before)
            if after == before and self._items.get(key, NO_ITEM).version is not None:
                return
            try:
                self._write(key, encode(after), None)
            except StateChangedError:
                self._items[key] = self._table.read(key)
                if attempt == _ATTEMPTS - 1:
                    raise
            else:
                return

    def remember_serials(self, serials: Collection[str], instance_id: str, reason: str) -> None:
        """Remember the accelerators that a node is replaced for, from now on where one broke before.

        Args:
            serials: Their serials.
            instance_id: The node.
            reason: Why it is replaced.
        """
        for serial in serials:
            bad = BadSerial(instance_id=instance_id, at=self.now, reason=reason)
            self._write(_SERIAL + serial, encode(bad), self.now + SERIALS_REMEMBERED)

    def forget_gone(self, present: Collection[str]) -> None:
        """Let what is known of nodes be forgotten that are gone, and keep it of those that are there.

        Args:
            present: The nodes that there are.

        Raises:
            StateChangedError: Another run has changed what is known of one.
        """
        for instance_id, node in self.nodes.items():
            key = _NODE + instance_id
            is_kept, is_present = self._items[key].expires is None, instance_id in present
            if is_kept and not is_present:
                gone = replace(node, faults=(), faulty_since=None, down_since=None)
                self._write(key, encode(gone), self.now + _FORGOTTEN_AFTER)
            elif is_present and not is_kept:
                self._write(key, encode(node), None)

    def _write(self, key: str, values: dict[str, object], expires: datetime | None) -> None:
        self._items[key] = self._table.write(key, values, seen=self._items.get(key, NO_ITEM), expires=expires)

    def _of(self, prefix: str, kind: type[_T]) -> dict[str, _T]:
        found: dict[str, _T] = {}
        for key, item in self._items.items():
            if key.startswith(prefix):
                one = self._parse(key, item, kind)
                if isinstance(one, kind):
                    found[key.removeprefix(prefix)] = one
        return found

    def _parse(self, key: str, item: StateItem, kind: type[_T]) -> object:
        """Return what an item says, which a large cluster's run asks for often. None: it cannot be read."""
        known = self._parsed.get(key)
        if known is None or known[0] is not item:
            try:
                known = item, read(kind, item.values)
            except (TypeError, ValueError):
                known = item, None
            self._parsed[key] = known
        return known[1]
