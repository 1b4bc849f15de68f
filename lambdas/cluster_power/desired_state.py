"""What is to be recorded of node groups before anything is sized: what was ordered, and what was adopted."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from cluster_power.callers import Action
from cluster_power.commands import Command
from cluster_power.context import Context
from cluster_power.groups import Group
from cluster_power.records import Order, State

FUNCTION = "cluster_power"
"""Who changed a state that nobody ordered."""


def new_orders(groups: Sequence[Group], context: Context, command: Command) -> dict[str, Order]:
    """Return what is to be recorded before any size is set, by node group.

    An order is recorded first, so that a tick finishes what a crash interrupts, also of node groups whose nodes
    nothing owns at the moment. A tick records only node groups that the function has never seen: they start, or stay
    at zero in a cluster that is stopped.
    """
    match command.action:
        case Action.TICK:
            return _adoptions(groups, context)
        case Action.START:
            state = State.RUNNING
        case Action.STOP:
            state = State.STOPPED
        case _:
            return {}
    order = Order(state=state, by=command.by, reason=command.reason, since=context.now)
    owners: dict[str, list[Group]] = {name: [] for name in command.node_groups}
    for group in groups:
        if group.node_group in owners and not group.deleting and context.is_configured(group):
            owners[group.node_group].append(group)
    # Where it is so already, who ordered it first, and why, stays.
    return {name: order for name, every in owners.items() if not _is_so(name, every, state, context)}


def is_stopped(context: Context) -> bool:
    """Say whether there are node groups whose state is known, and all of them are stopped."""
    known = {context.states[name] for name in context.settings.groups if name in context.states}
    return known == {State.STOPPED}


def with_states(context: Context, orders: Mapping[str, Order]) -> Context:
    """Return the context as it is once orders are recorded."""
    return replace(context, states={**context.states, **{name: order.state for name, order in orders.items()}})


def _is_so(name: str, owners: Sequence[Group], state: State, context: Context) -> bool:
    if context.states.get(name) is not state or name in context.unread:
        return False
    return all(_has_size(group, context) for group in owners)


def _has_size(group: Group, context: Context) -> bool:
    size = context.wanted(group.node_group, group, context.window(group.node_group, group))
    size = group.record.size if size is None else size
    return group.record.size == size == group.desired


def _adoptions(groups: Sequence[Group], context: Context) -> dict[str, Order]:
    if context.unread:
        return {}  # One that is not seen may run: then the cluster is not stopped.
    new = {group.node_group for group in groups if group.is_new and context.is_configured(group)}
    state, why = State.RUNNING, "first start after the deploy"
    if is_stopped(context):
        state, why = State.STOPPED, "the cluster was stopped when this node group came"
    return dict.fromkeys(sorted(new), Order(state=state, by=FUNCTION, reason=why, since=context.now))
