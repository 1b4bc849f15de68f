"""What is to be remembered of groups: what was ordered, and what was adopted."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from cluster_power.callers import OrderAction
from cluster_power.groups import Group
from cluster_power.memory import Memory, State
from cluster_power.orders import Order
from cluster_power.situation import Situation

FUNCTION = "cluster_power"
"""Who changed a state that nobody ordered."""


def new_memories(groups: Sequence[Group], situation: Situation, order: Order) -> dict[str, Memory]:
    """Return what is to be remembered before any size is set, by the owner's name.

    An order is remembered first, so that a tick finishes what a crash interrupts. A tick remembers only
    groups that the function has never seen: they start, or stay at zero in a cluster that is stopped. A stop that
    is carried out at once or not at all is remembered last, and passes over what could not be written back.
    """
    if order.action is OrderAction.TICK:
        return _adoptions(groups, situation)
    if order.action in (OrderAction.STATUS, OrderAction.TERMINATE):
        return {}
    state = State.RUNNING if order.action is OrderAction.START else State.STOPPED
    memories: dict[str, Memory] = {}
    for group in groups:
        if group.deleting or group.node_group not in order.node_groups or not situation.is_configured(group):
            continue
        memory = group.memory
        if order.now_or_never and memory.unreadable:
            continue
        window = situation.window(group.node_group, group)
        size = situation.wanted(group.node_group, replace(group, memory=replace(memory, state=state)), window)
        size = memory.size if size is None else size
        if memory.state is state and memory.size == size == group.desired and not memory.unreadable:
            continue  # Already so: who ordered it first, and why, stays.
        memories[group.name] = replace(
            memory, state=state, size=None, by=order.by, reason=order.reason, since=situation.now, unreadable=""
        )
    return memories


def remember(groups: Sequence[Group], memories: Mapping[str, Memory]) -> list[Group]:
    """Return the groups as they are once the memories are written on them."""
    return [replace(group, memory=memories.get(group.name, group.memory)) for group in groups]


def is_stopped(groups: Sequence[Group], situation: Situation) -> bool:
    """Say whether there are groups whose state is known, and all of them are stopped.

    What a deploy has left behind of a node group that is no longer in the file does not count: no order reaches it.
    """
    counting = (group for group in groups if not group.deleting and group.node_group in situation.settings.groups)
    return {group.memory.state for group in counting} - {None} == {State.STOPPED}


def _adoptions(groups: Sequence[Group], situation: Situation) -> dict[str, Memory]:
    if situation.unread:
        return {}  # One that is not seen may run: then the cluster is not stopped.
    new = [group for group in groups if group.is_new and situation.is_configured(group)]
    # What was ordered outlives the owner that it was ordered of.
    inherited = {
        group.name: Memory(
            state=State.STOPPED,
            by=FUNCTION,
            reason="it was stopped before a deploy replaced what owns its nodes",
            since=situation.now,
        )
        for group in new
        if group.node_group in situation.stopped
    }
    memory = (
        Memory(
            state=State.STOPPED,
            by=FUNCTION,
            reason="the cluster was stopped when this node group came",
            since=situation.now,
        )
        if is_stopped(remember(groups, inherited), situation)
        else Memory(state=State.RUNNING, by=FUNCTION, reason="first start after the deploy", since=situation.now)
    )
    return {group.name: memory for group in new} | inherited
