"""The function's state between runs: an item for each node group in the cluster's state table."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial

from aws_lambda_powertools import Logger

from cluster_common.errors import AWS_ERRORS, error_text
from cluster_common.owners.groups import OwnedGroup
from cluster_common.owners.node_owner import Owners
from cluster_common.power_records import GroupState, Notice, Order, Record
from cluster_common.state_table import NO_ITEM, StateChangedError, StateItem, StateTable
from cluster_common.tags import tag_value
from cluster_contract.tags import POWER_TAG
from cluster_power.groups import Group

_ATTEMPTS = 5
"""How often a change is written that runs beside another: each time on what the other has written."""

_FORGOTTEN_AFTER = timedelta(days=14)
"""For how long what is gone may come back as it was: CloudFormation may roll back the deployment that removed it."""

# The stack that a cluster's functions belong to: one that is deployed anew begins anew.
_STACK = "stack"
_OWNERS = "owners"


class UnreadableStateError(Exception):
    """Say that the state of the cluster could not be read. Nothing was changed."""


@dataclass(frozen=True, kw_only=True)
class _Stored:
    """An item as it was read or written last.

    Attributes:
        state: What it says.
        item: The item, for the condition of the next write.
        unreadable: Why it cannot be read. Empty: it can.
    """

    state: GroupState = field(default_factory=GroupState)
    item: StateItem = NO_ITEM
    unreadable: str = ""


_NOTHING = _Stored()


class StateStore:
    """Load and save what is recorded of node groups, together with what owns their nodes.

    What another stack has recorded, a cluster of the same name that was destroyed, counts as never seen, unless what
    owned the nodes then is there: so it is where CloudFormation moves a cluster from one stack to another.
    """

    def __init__(self, owners: Owners, table: StateTable, stack_id: str, logger: Logger) -> None:
        self.owners = owners
        self._table = table
        self._stack_id = stack_id
        self._logger = logger
        self._stored: dict[str, _Stored] = {}
        self._present = set[str]()

    def read(self) -> None:
        """Read all items.

        Raises:
            UnreadableStateError: The table cannot be read: then nothing is known, and nothing may be sized.
        """
        try:
            self._stored = {name: self._parse(name, item) for name, item in self._table.read_all().items()}
        except AWS_ERRORS as error:
            raise UnreadableStateError(
                f"the state table {self._table.name} could not be read ({error_text(error)}): nothing was changed; "
                "the next run reads it again, and a refused command has to be sent again"
            ) from error

    @property
    def unreadable(self) -> dict[str, str]:
        """Why items cannot be read, by node group."""
        return {name: stored.unreadable for name, stored in self._stored.items() if stored.unreadable}

    @property
    def orders(self) -> dict[str, Order]:
        """What node groups are meant to be, of all of which that is known."""
        orders = {name: stored.state.order for name, stored in self._stored.items()}
        return {name: order for name, order in orders.items() if order}

    @property
    def notices(self) -> dict[str, Notice]:
        """The last notice of a stop by its schedule that each node group was given, where there is one."""
        notices = {name: stored.state.notice for name, stored in self._stored.items()}
        return {name: notice for name, notice in notices.items() if notice}

    @property
    def unconfirmed(self) -> dict[str, Order]:
        """The stops for which the size 0 was set and did not show yet, by node group."""
        stops = {name: stored.state.unconfirmed for name, stored in self._stored.items()}
        return {name: order for name, order in stops.items() if order}

    def load(self, groups: Iterable[OwnedGroup]) -> list[Group]:
        """Return groups that were read, each with its record."""
        groups = list(groups)
        self._present |= {group.name for group in groups}
        for name, stored in self._stored.items():
            if self._is_foreign(stored.item):
                self._stored[name] = self._parse(name, stored.item)
        return [Group.recorded(group, self._of(group).state) for group in map(self._with_node_group, groups)]

    def describe(self, group: Group) -> Group | None:
        """Read one group and its record again. None: it is gone, or another cluster's."""
        fresh = self.owners.of(group).describe(group)
        if fresh is None:
            return None
        self._read_again(_key(self._with_node_group(fresh)))
        return self.load([fresh])[0]

    def order(self, node_group: str, order: Order, *, unless_changed: bool = False) -> None:
        """Record what a node group is meant to be. The order that is recorded last holds.

        Args:
            node_group: The node group.
            order: What is ordered.
            unless_changed: Whether to give way to another run that has changed the item since it was read.

        Raises:
            StateChangedError: Another run has changed it.
        """
        self._write(node_group, lambda state: state.with_order(order), attempts=1 if unless_changed else _ATTEMPTS)

    def save(self, group: Group, **changes: object) -> None:
        """Record changes of a group, by the names of the record's attributes; the others stay.

        Raises:
            StateChangedError: Something else was ordered of it since it was read, or another size was set.
        """

        def change(state: GroupState) -> GroupState:
            _check_still(state, group)
            if "terminated" in changes and state.record(group.name).terminated != group.record.terminated:
                raise StateChangedError(f"nodes of {group.node_group} were terminated by command at the same moment")
            return state.with_changes(group.name, changes)

        self._write(_key(group), change)

    def save_stop(self, groups: Sequence[Group], order: Order) -> None:
        """Record a stop of all the owners of a node group's nodes, which were brought to zero.

        Raises:
            StateChangedError: Something else was ordered since they were read, or another size was set.
        """

        def change(state: GroupState) -> GroupState:
            for group in groups:
                _check_still(state, group)
            state = state.with_order(order)
            for group in groups:
                state = state.with_changes(group.name, {"size": 0, "desired": None})
            return state

        self._write(_key(groups[0]), change)

    def save_unconfirmed(self, groups: Sequence[Group], order: Order) -> None:
        """Record a stop of the owners of a node group's nodes which may have been brought to zero.

        Raises:
            StateChangedError: Something else was ordered since they were read, or another size was set.
        """

        def change(state: GroupState) -> GroupState:
            for group in groups:
                _check_still(state, group)
            return replace(state, unconfirmed=replace(order, sizes={}))

        self._write(_key(groups[0]), change)

    def save_notice(self, node_group: str, notice: Notice) -> None:
        """Record that a stop by its schedule is near.

        Raises:
            StateChangedError: Another run has changed the item since it was read.
        """
        self._write(node_group, lambda state: replace(state, notice=notice), attempts=1)

    def forget_size(self, group: Group) -> None:
        """Record that the size of a group has to be set again, whatever was ordered of it meanwhile.

        It is dated after all that was recorded of the group, so that a run that has yet to record a size is refused.
        """

        def change(state: GroupState) -> GroupState:
            since = state.record(group.name).since
            later = since + timedelta(seconds=1) if since else None
            return state.with_changes(group.name, {"size": None, "since": later})

        self._write(_key(group), change)

    def has_order(self, node_group: str, order: Order) -> bool | None:
        """Read a node group's item again, and say whether it holds an order. None: it could not be read."""
        try:
            self._read_again(node_group)
        except AWS_ERRORS:
            return None
        return self._stored[node_group].state.order == order

    def annotate(self, group: Group) -> None:
        """Write on what owns a group's nodes what is ordered of it, where it says something else.

        It is for operators. Only a run of the schedule writes it, so that it also becomes right after a run that was
        interrupted.
        """
        order = self._of(group).state.order
        text = tag_value(str(order)) if order else ""
        if group.deleting or group.tags.get(POWER_TAG, "") == text:
            return
        try:
            self.owners.of(group).tag(group, {POWER_TAG: text})
        except AWS_ERRORS as error:
            self._logger.warning(
                f"{group.node_group}: the tag {POWER_TAG} of {group.name} could not be written ({error_text(error)})"
            )

    def prune(self, groups: Iterable[Group], known: Iterable[str], now: datetime) -> None:
        """Let what has been gone for a while be forgotten: owners, and node groups that left the cluster's file.

        What comes back before that is as it was: a deployment that is rolled back must end no node.

        Args:
            groups: All groups of the cluster that there are.
            known: The node groups in the file.
            now: The time.
        """
        present: dict[str, set[str]] = {}
        for group in groups:
            present.setdefault(_key(group), set()).add(group.name)
        for name, stored in list(self._stored.items()):
            owners = present.get(name, set())
            if self._is_foreign(stored.item) and not self._is_taken_over(stored.item):
                continue
            if name in known or owners:
                change = partial(_without_gone, present=owners, now=now)
                self._write(name, change, attempts=1)
            elif stored.item.expires is None:
                self._write(name, lambda state: state, expires=now + _FORGOTTEN_AFTER, attempts=1)

    def _write(
        self,
        name: str,
        change: Callable[[GroupState], GroupState],
        *,
        attempts: int = _ATTEMPTS,
        expires: datetime | None = None,
    ) -> None:
        written: GroupState | None = None
        for attempt in range(attempts):
            stored = self._stored.get(name, _NOTHING)
            if written is not None and stored.state == written:
                return  # It was written, and the answer was lost.
            written = change(stored.state)
            is_marked = stored.item.expires is not None or self._is_foreign(stored.item)
            if written == stored.state and not (stored.unreadable or is_marked or expires):
                return
            values = {_STACK: self._stack_id, **written.to_values()}
            try:
                item = self._table.write(name, values, seen=stored.item, expires=expires)
            except StateChangedError:
                self._read_again(name)
                if attempt == attempts - 1 and self._stored[name].state != written:
                    raise
            else:
                self._stored[name] = _Stored(state=written, item=item)
                return

    def _with_node_group(self, group: OwnedGroup) -> OwnedGroup:
        """Return a group as that of the node group that it is recorded for, whatever its tag says.

        No deployment moves an owner to another node group, and others may write the tag.
        """
        recorded = [name for name, stored in self._stored.items() if group.name in stored.state.owners]
        if not recorded or group.node_group in recorded:
            return group
        configured = [name for name in recorded if name in self.owners.of(group).node_groups]
        return replace(group, node_group=configured[0], is_configured=True) if len(configured) == 1 else group

    def _of(self, group: OwnedGroup) -> _Stored:
        return self._stored.get(_key(group), _NOTHING)

    def _read_again(self, name: str) -> None:
        self._stored[name] = self._parse(name, self._table.read(name))

    def _is_foreign(self, item: StateItem) -> bool:
        return bool(item.values.get(_STACK, self._stack_id) != self._stack_id)

    def _is_taken_over(self, item: StateItem) -> bool:
        """Say whether an owner that another stack has recorded is among those that were read."""
        owners = item.values.get(_OWNERS)
        return isinstance(owners, Mapping) and not self._present.isdisjoint(owners)

    def _parse(self, name: str, item: StateItem) -> _Stored:
        if self._is_foreign(item) and not self._is_taken_over(item):
            return _Stored(item=item)
        try:
            return _Stored(state=GroupState.from_values(item.values), item=item)
        except ValueError as error:
            what = (
                f"the item {name} of the state table {self._table.name} does not hold what the power function writes"
            )
            return _Stored(
                item=item, unreadable=f"{what} ({error}): start or stop the node group, which writes it anew"
            )


def _key(group: OwnedGroup) -> str:
    """Return the name of the item that a group is recorded in; one that lost its tag has an item of its own."""
    return group.node_group or group.name


def _without_gone(state: GroupState, *, present: Collection[str], now: datetime) -> GroupState:
    """Return a state that says since when owners are gone, and nothing of those that have been for long."""
    owners: dict[str, Record] = {}
    for name, own in state.owners.items():
        gone = None if name in present else own.gone or now
        if gone is None or now - gone < _FORGOTTEN_AFTER:
            owners[name] = replace(own, gone=gone)
    return replace(state, owners=owners)


def _check_still(state: GroupState, group: Group) -> None:
    if state.record(group.name).ordered != group.record.ordered:
        raise StateChangedError(f"{group.node_group} was given another command at the same moment")


def ordered(groups: Iterable[Group], orders: Mapping[str, Order]) -> list[Group]:
    """Return groups as they are once orders are recorded."""
    return [
        _once_ordered(group, orders[group.node_group]) if group.node_group in orders else group for group in groups
    ]


def _once_ordered(group: Group, order: Order) -> Group:
    record = GroupState(owners={group.name: group.record}).with_order(order).record(group.name)
    return replace(group, record=record, is_unrecorded=group.is_unrecorded and group.name not in order.sizes)
