"""What is to be recorded of groups: what was ordered, and what was adopted."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from cluster_power.callers import Action
from cluster_power.commands import Command
from cluster_power.context import Context
from cluster_power.groups import Group
from cluster_power.records import Record, State

FUNCTION = "cluster_power"
"""Who changed a state that nobody ordered."""


def new_records(groups: Sequence[Group], context: Context, command: Command) -> dict[str, Record]:
    """Return what is to be recorded before any size is set, by the owner's name.

    An order is recorded first, so that a tick finishes what a crash interrupts. A tick remembers only
    groups that the function has never seen: they start, or stay at zero in a cluster that is stopped. A stop that
    is applied at once or not at all is recorded last, and passes over what could not be written back.
    """
    if command.action is Action.TICK:
        return _adoptions(groups, context)
    if command.action in (Action.STATUS, Action.TERMINATE):
        return {}
    state = State.RUNNING if command.action is Action.START else State.STOPPED
    records: dict[str, Record] = {}
    for group in groups:
        if group.deleting or group.node_group not in command.node_groups or not context.is_configured(group):
            continue
        record = group.record
        if command.all_or_nothing and record.unreadable:
            continue
        window = context.window(group.node_group, group)
        size = context.wanted(group.node_group, replace(group, record=replace(record, state=state)), window)
        size = record.size if size is None else size
        if record.state is state and record.size == size == group.desired and not record.unreadable:
            continue  # Already so: who ordered it first, and why, stays.
        records[group.name] = replace(
            record, state=state, size=None, by=command.by, reason=command.reason, since=context.now, unreadable=""
        )
    return records


def with_records(groups: Sequence[Group], records: Mapping[str, Record]) -> list[Group]:
    """Return the groups as they are once the records are written on them."""
    return [replace(group, record=records.get(group.name, group.record)) for group in groups]


def is_stopped(groups: Sequence[Group], context: Context) -> bool:
    """Say whether there are groups whose state is known, and all of them are stopped.

    What a deploy has left behind of a node group that is no longer in the file does not count: no order reaches it.
    """
    counting = (group for group in groups if not group.deleting and group.node_group in context.settings.groups)
    return {group.record.state for group in counting} - {None} == {State.STOPPED}


def _adoptions(groups: Sequence[Group], context: Context) -> dict[str, Record]:
    if context.unread:
        return {}  # One that is not seen may run: then the cluster is not stopped.
    new = [group for group in groups if group.is_new and context.is_configured(group)]
    # What was ordered outlives the owner that it was ordered of.
    inherited = {
        group.name: Record(
            state=State.STOPPED,
            by=FUNCTION,
            reason="it was stopped before a deploy replaced what owns its nodes",
            since=context.now,
        )
        for group in new
        if group.node_group in context.stopped
    }
    record = (
        Record(
            state=State.STOPPED,
            by=FUNCTION,
            reason="the cluster was stopped when this node group came",
            since=context.now,
        )
        if is_stopped(with_records(groups, inherited), context)
        else Record(state=State.RUNNING, by=FUNCTION, reason="first start after the deploy", since=context.now)
    )
    return {group.name: record for group in new} | inherited
