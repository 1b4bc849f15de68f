"""The desired state of node groups that is recorded before any is sized: what was commanded, and what was adopted."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

from cluster_common.power_records import Notice, Order, State
from cluster_contract.state import Sender
from cluster_contract.tags import POWER_TAG
from cluster_power.callers import Action
from cluster_power.commands import Command
from cluster_power.context import Context
from cluster_power.groups import Group
from cluster_power.schedules import Judgment, ends, removed

_SHOWS_WITHIN = timedelta(minutes=15)
"""How long a size that was set may take to show."""


def new_orders(groups: Sequence[Group], context: Context, command: Command) -> dict[str, Order]:
    """Return what is to be recorded before any size is set, by node group.

    A command is recorded first, so that a later run finishes what a crash interrupts, also of node groups that have
    no owner at the moment. A run of the schedule records only node groups that the function has never seen.
    """
    match command.action:
        case Action.TICK:
            return {**_adoptions(groups, context), **_confirmed(groups, context), **_scheduled(groups, context)}
        case Action.START:
            state = State.RUNNING
        case Action.STOP:
            state = State.STOPPED
        case Action.LIMIT:
            state = State.LIMITED
        case _:
            return {}
    limit = 0 if state is State.LIMITED else None
    order = Order(state=state, by=command.by, reason=command.reason, since=context.now, limit=limit)
    owners = _owners(groups, command.node_groups, context)
    # A node group that has the state already keeps the sender and the reason of its first command.
    if state is State.LIMITED:
        # Of a node group that could not be read it is unknown how many nodes it has.
        seen = {name: every for name, every in owners.items() if name not in context.unread}
        limits = {name: _limit(order, every, context) for name, every in seen.items()}
        return {
            name: limit
            for name, limit in limits.items()
            if not _is_limited(name, limit, context) or _ends_a_schedule(name, command, context)
        }
    return {
        name: replace(_kept(order, context.orders.get(name)), sizes={group.name: None for group in every})
        for name, every in owners.items()
        if not _is_so(name, every, state, context) or _ends_a_schedule(name, command, context)
    }


def _kept(order: Order, before: Order | None) -> Order:
    """Return what a command makes of the order before it: the idle function keeps a limit and another sender's stop.

    Else the next window of a schedule would start nodes that an operator or the budget has stopped.
    """
    if before is None or order.by != Sender.IDLE or before.by == Sender.IDLE:
        return order
    if before.state is State.LIMITED:
        return before.without_nodes(order.since, order.reason)
    return replace(before, since=order.since) if before.state is State.STOPPED else order


def first_order(context: Context) -> Order:
    """Return what a node group is meant to be that the function sees for the first time.

    It runs, if one that is known runs or none is known. It gets no node while all others are stopped or limited, or
    the budget keeps one of them so. What schedules have stopped, or start again, says nothing of others.
    """
    groups = context.settings.groups
    known_orders = ((name, context.orders[name]) for name in groups if name in context.orders)
    orders = [each for name, each in known_orders if not _waits(name, each, context)]
    known = {each.state for each in orders}
    order = Order(state=State.RUNNING, by=Sender.POWER, reason="first start after the deployment", since=context.now)
    spent = next((each for each in orders if each.by == Sender.BUDGET and each.state is not State.RUNNING), None)
    if spent is not None:
        reason = f"the budget was reached when this node group was added: {spent.reason}"
        return replace(order, state=State.LIMITED, reason=reason, limit=0)
    if not known or State.RUNNING in known:
        return order
    if known == {State.STOPPED}:
        reason = "the cluster was stopped when this node group was added"
        return replace(order, state=State.STOPPED, reason=reason)
    return replace(
        order, state=State.LIMITED, reason="the cluster was limited when this node group was added", limit=0
    )


def _waits(name: str, order: Order, context: Context) -> bool:
    """Say whether a node group is stopped until its schedule starts it, or until that is removed."""
    has_schedule = context.settings.schedule(name) is not None
    return ends(order) and (has_schedule or order.by == Sender.SCHEDULE)


def judge_schedules(groups: Sequence[Group], context: Context) -> dict[str, Judgment]:
    """Return what schedules make of their node groups, of all that have one and could be read."""
    owners = _owners(groups, context.settings.groups, context)
    judged = {name: context.judge_schedule(name, each) for name, each in owners.items() if name not in context.unread}
    return {name: judgment for name, judgment in judged.items() if judgment is not None}


def new_notices(groups: Sequence[Group], context: Context) -> dict[str, Notice]:
    """Return the notices that have to be given now of stops by schedules, by node group."""
    return {
        name: judgment.notice
        for name, judgment in judge_schedules(groups, context).items()
        if judgment.notice is not None
    }


def with_orders(context: Context, orders: Mapping[str, Order]) -> Context:
    """Return the context as it is once orders are recorded."""
    return replace(context, orders={**context.orders, **orders})


def _is_so(name: str, owners: Sequence[Group], state: State, context: Context) -> bool:
    order = context.orders.get(name)
    if order is None or order.state is not state or name in {*context.unread, *context.unconfirmed}:
        return False
    return all(_has_size(group, context) for group in owners)


def _owners(groups: Sequence[Group], names: Iterable[str], context: Context) -> dict[str, list[Group]]:
    """Return what owns the nodes of each of some node groups."""
    owners: dict[str, list[Group]] = {name: [] for name in names}
    for group in groups:
        if group.node_group in owners and not group.deleting and context.is_configured(group):
            owners[group.node_group].append(group)
    return owners


def _scheduled(groups: Sequence[Group], context: Context) -> dict[str, Order]:
    """Return what schedules order now of node groups that the function has seen, and that could be read."""
    orders: dict[str, Order] = {}
    for name, owners in _owners(groups, context.settings.groups, context).items():
        order = context.orders.get(name)
        if not owners or order is None or name in context.unread:
            continue
        judgment = context.judge_schedule(name, owners)
        ordered = removed(order, context.now) if judgment is None else judgment.order
        if ordered is not None:
            orders[name] = replace(ordered, sizes={group.name: None for group in owners})
    return orders


def _confirmed(groups: Sequence[Group], context: Context) -> dict[str, Order]:
    """Return the stops that were applied, and of which that shows only now."""
    recent = {name: stop for name, stop in context.unconfirmed.items() if context.now - stop.since <= _SHOWS_WITHIN}
    return {
        name: replace(recent[name], sizes={group.name: 0 for group in owners})
        for name, owners in _owners(groups, recent, context).items()
        if owners and name not in context.unread and not any(group.desired for group in owners)
    }


def _ends_a_schedule(name: str, command: Command, context: Context) -> bool:
    """Say whether a command has to be recorded that changes no size: it decides what a schedule does later."""
    order = context.orders.get(name)
    if context.settings.schedule(name) is None or order is None:
        return False
    notice = context.notices.get(name)
    if command.action is Action.START:
        return notice is not None and notice.at >= order.since
    return ends(order) and command.by != Sender.IDLE


def _is_limited(name: str, limit: Order, context: Context) -> bool:
    """Say whether a node group is stopped, which is stricter, or limited to as many nodes."""
    order = context.orders.get(name)
    return order is not None and (order.state is State.STOPPED or order.limit == limit.limit)


def _limit(order: Order, owners: Sequence[Group], context: Context) -> Order:
    """Return the order that a node group keeps at most the nodes that it has; none of its owners is sized for it."""
    limit = sum(group.kept for group in owners)
    sizes: dict[str, int | None] = {}
    for group in owners:
        record = replace(group.record, limit=limit)
        wanted = context.wanted(group.node_group, record, context.window(group.node_group, group))
        size = wanted if record.size is None else record.size
        sizes[group.name] = group.desired if size is None else min(size, group.kept)
        if group.scheduler_sized and group.kept < group.desired:
            sizes[group.name] = None  # The scheduler would launch more up to its size.
    return replace(order, state=State.LIMITED, limit=limit, sizes=sizes)


def _has_size(group: Group, context: Context) -> bool:
    size = context.wanted(group.node_group, group.record, context.window(group.node_group, group))
    size = group.record.size if size is None else size
    return group.record.size == size == group.desired


def _adoptions(groups: Sequence[Group], context: Context) -> dict[str, Order]:
    if context.unread:
        return {}  # One that is not seen may run: then the cluster is not stopped.
    new: dict[str, list[Group]] = {}
    for group in groups:
        if group.is_new and context.is_configured(group):
            new.setdefault(group.node_group, []).append(group)
    return {name: _adopt(owners, context) for name, owners in sorted(new.items())}


def _adopt(owners: Sequence[Group], context: Context) -> Order:
    """Return what a node group is meant to be that has no record.

    A group that has nodes, or whose tag says what was ordered of it, lost its record: it keeps the nodes that it has
    where a new group would get none. The tag can do no more than that, since others may write it.
    """
    order, reason = first_order(context), f"its item in the state table {context.settings.state_table} was lost"
    for said in (group.tags.get(POWER_TAG, "") for group in owners):
        if said.startswith((State.STOPPED, State.LIMITED)):
            return _limit(replace(order, reason=f"{reason}, and its tag {POWER_TAG} says: {said}"), owners, context)
    if any(map(_is_lost, owners)):
        if order.state is State.RUNNING:
            return order
        return _limit(replace(order, reason=f"{reason}: it keeps the nodes that it has", lost=True), owners, context)
    judgment = context.judge_schedule(owners[0].node_group, owners)
    if order.state is State.RUNNING and judgment is not None and judgment.order is not None:
        return judgment.order
    return order


def _is_lost(group: Group) -> bool:
    """Say whether a group without a record has nodes, or a size for them, that no deployment has just given it."""
    is_deployed = group.scheduler_sized or group.desired == group.reset_to
    if is_deployed and not group.tags.get(POWER_TAG):
        return False
    return bool(group.alive or (group.desired and not group.scheduler_sized))
