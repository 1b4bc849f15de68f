"""What should happen to each node group: a pure function of what is there, what is wanted and the time."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from cluster_power.groups import Group
from cluster_power.memory import Memory, State
from cluster_power.orders import Order, OrderAction
from cluster_power.problems import Finding, Outlook, Problem, find_problem, find_surplus, surplus_words
from cluster_power.settings import Settings

FUNCTION = "cluster_power"
"""Who changed a state that nobody ordered."""


class Verdict(StrEnum):
    """What is to be done with a node group."""

    SIZE = "size"
    """Set its size, and remember it."""

    KEEP = "keep"
    """Nothing: it is as it should be."""

    PENDING = "pending"
    """Nothing: its nodes are launching, or going away."""

    SHORT = "short"
    """Nothing that the function could do: nodes are missing, and the problem says why."""

    SURPLUS = "surplus"
    """Nothing that the function could do: more nodes live than should, and the problem says why."""

    UNSEEN = "unseen"
    """Nothing: nodes are missing, and Auto Scaling could not be asked why."""

    HELD = "held"
    """Nothing: somebody else sized it, and is not fought."""

    BLOCKED = "blocked"
    """Nothing yet: the size it should have is not allowed now."""

    UNCLEAR = "unclear"
    """Nothing: its tags say what the function never writes."""

    UNCONFIGURED = "unconfigured"
    """Nothing: it carries the cluster's tag, but the cluster's file does not know it."""

    DELETING = "deleting"
    """Nothing: it is going away."""

    ABSENT = "absent"
    """Nothing: the cluster's file knows it, but there is no such group."""


HELD_VERDICTS = frozenset({Verdict.HELD, Verdict.UNCLEAR})
"""The verdicts on groups whose size the function does not own at the moment."""


@dataclass(frozen=True, kw_only=True)
class Decision:
    """What is to be done with one node group, and why.

    Attributes:
        node_group: The node group's name.
        verdict: What is to be done.
        reason: Why, in one sentence.
        group: The Auto Scaling group. None: there is none.
        wanted: The size it should have.
        missing: How many of its nodes should run and do not.
        surplus: How many of its nodes live, and are billed, beyond those that should.
        problem: What keeps nodes from running. None: nothing.
        problem_known: Whether `problem` is a finding; if not, what was reported stays as it is.
        surplus_problem: What keeps nodes from going. None: nothing.
        surplus_known: Whether `surplus_problem` is a finding, likewise.
    """

    node_group: str
    verdict: Verdict
    reason: str
    wanted: int
    group: Group | None = None
    missing: int = 0
    surplus: int = 0
    problem: Problem | None = None
    problem_known: bool = False
    surplus_problem: Problem | None = None
    surplus_known: bool = False


def wanted_size(state: State | None, count: int) -> int:
    """Return the size that a group in a state should have: the file's count, or zero while stopped."""
    return 0 if state is State.STOPPED else count


def new_memories(groups: Sequence[Group], settings: Settings, order: Order, now: datetime) -> dict[str, Memory]:
    """Return what is to be remembered before any size is set, by Auto Scaling group.

    An order is remembered first, so that a tick finishes what a crash interrupts. A tick remembers only
    groups that the function has never seen: they start, or stay at zero in a cluster that is stopped.
    """
    if order.action is OrderAction.TICK:
        return _adoptions(groups, settings, now)
    if order.action is OrderAction.STATUS:
        return {}
    state = State.RUNNING if order.action is OrderAction.START else State.STOPPED
    memories: dict[str, Memory] = {}
    for group in groups:
        if group.deleting or group.node_group not in order.node_groups:
            continue
        size = wanted_size(state, settings.counts[group.node_group])
        memory = group.memory
        if memory.state is state and memory.size == size == group.desired and not memory.unreadable:
            continue  # Already so: who ordered it first, and why, stays.
        memories[group.name] = replace(
            memory, state=state, size=None, by=order.by, reason=order.reason, since=now, unreadable=""
        )
    return memories


def decide(groups: Sequence[Group], settings: Settings, now: datetime) -> list[Decision]:
    """Decide about each of the cluster's groups, and about each group that should be there and is not."""
    twins = _twins(groups)
    decisions = [_decide_group(group, settings, now, twins) for group in groups]
    present = {group.node_group for group in groups}
    stopped = _is_stopped(groups)
    decisions += [
        _absent(name, 0 if stopped else count) for name, count in settings.counts.items() if name not in present
    ]
    return sorted(decisions, key=lambda decision: decision.node_group)


def remember(groups: Sequence[Group], memories: Mapping[str, Memory]) -> list[Group]:
    """Return the groups as they are once the memories are written on them."""
    return [replace(group, memory=memories.get(group.name, group.memory)) for group in groups]


def note_surplus(groups: Sequence[Group], now: datetime) -> list[Group]:
    """Return the groups with since when more of their nodes live than should: what was noted, or now."""
    return [
        replace(
            group,
            memory=replace(
                group.memory,
                surplus_since=(group.memory.surplus_since or now) if group.alive > group.desired else None,
            ),
        )
        for group in groups
    ]


def _adoptions(groups: Sequence[Group], settings: Settings, now: datetime) -> dict[str, Memory]:
    memory = (
        Memory(
            state=State.STOPPED,
            by=FUNCTION,
            reason="the cluster was stopped when this node group came",
            since=now,
        )
        if _is_stopped(groups)
        else Memory(state=State.RUNNING, by=FUNCTION, reason="first start after the deploy", since=now)
    )
    return {
        group.name: memory
        for group in groups
        if group.memory.state is None
        and not group.memory.unreadable
        and not group.deleting
        and group.node_group in settings.counts
    }


def _is_stopped(groups: Sequence[Group]) -> bool:
    """Whether there are groups whose state is known, and all of them are stopped."""
    states = {group.memory.state for group in groups if not group.deleting} - {None}
    return states == {State.STOPPED}


def _twins(groups: Sequence[Group]) -> frozenset[str]:
    names = Counter(group.node_group for group in groups if not group.deleting)
    return frozenset(name for name, number in names.items() if number > 1)


def _decide_group(group: Group, settings: Settings, now: datetime, twins: Collection[str]) -> Decision:
    name, memory = group.node_group, group.memory
    if name not in settings.counts:
        reason = f"{name or group.name} is not in the cluster's file: left alone"
        return _decision(group, Verdict.UNCONFIGURED, reason, wanted=group.desired)
    wanted = wanted_size(memory.state, settings.counts[name])
    if group.deleting:
        return _decision(group, Verdict.DELETING, f"{name} is being deleted", wanted=wanted)
    if memory.unreadable:
        reason = (
            f"{name}: {memory.unreadable}, which this function never writes: left alone until a start or a "
            "stop is ordered"
        )
        return _explain(_decision(group, Verdict.UNCLEAR, reason, wanted=wanted), settings, now)
    if memory.size != wanted:
        return _decide_unsized(group, wanted, twins)
    if group.desired != wanted:
        reason = (
            f"{name} was given {_nodes(wanted)} and somebody made it {group.desired}: left alone until a "
            "start or a stop is ordered or the file's count changes"
        )
        return _explain(_decision(group, Verdict.HELD, reason, wanted=wanted), settings, now)
    return _explain(_decision(group, Verdict.KEEP, _kept(group, wanted), wanted=wanted), settings, now)


def _decide_unsized(group: Group, wanted: int, twins: Collection[str]) -> Decision:
    """Decide about a group that the function has not given the size that it should have."""
    name, memory = group.node_group, group.memory
    if wanted > 0 and name in twins:
        verdict = Verdict.BLOCKED
        reason = f"two Auto Scaling groups are {name}: neither is sized until a deploy has removed one"
    elif wanted > group.maximum:
        verdict = Verdict.BLOCKED
        reason = (
            f"{name} should have {_nodes(wanted)} and its group takes at most {group.maximum}: a deploy is "
            "under way, or somebody lowered the maximum"
        )
    elif wanted < group.minimum:
        verdict = Verdict.BLOCKED
        reason = f"{name} should have {_nodes(wanted)} and somebody set its group's minimum to {group.minimum}"
    else:
        verdict = Verdict.SIZE
        before = "" if memory.size is None else f", {memory.size} before"
        why = f"{memory.state}, by {memory.by}: {memory.reason}" if memory.state else "not seen before"
        reason = f"{name} should have {_nodes(wanted)}{before} ({why})"
    return replace(
        _decision(group, verdict, reason, wanted=wanted),
        missing=max(0, wanted - group.in_service),
        surplus=max(0, group.alive - wanted),
    )


def _explain(decision: Decision, settings: Settings, now: datetime) -> Decision:
    """Add how many nodes are missing and how many are too many, and why."""
    group = decision.group
    if group is None:
        return decision
    ours = decision.verdict is Verdict.KEEP
    missing = find_problem(group, goal=group.desired, sized_by_us=ours, grace=settings.launch_grace, now=now)
    surplus = find_surplus(group, goal=group.desired, grace=settings.launch_grace, now=now)
    verdict, reason = decision.verdict, decision.reason
    if ours:
        verdict, reason = _judge(group, missing, surplus) or (verdict, reason)
    if surplus.problem and verdict is not Verdict.SURPLUS:
        reason = f"{reason.removesuffix('.')}. {surplus.problem.sentence}"
    return replace(
        decision,
        verdict=verdict,
        reason=reason,
        missing=max(0, group.desired - group.in_service),
        surplus=max(0, group.alive - group.desired),
        problem=missing.problem,
        problem_known=missing.known,
        surplus_problem=surplus.problem,
        surplus_known=surplus.known,
    )


def _judge(group: Group, missing: Finding, surplus: Finding) -> tuple[Verdict, str] | None:
    """Return what is to be said of a group that has its size, the gravest first. None: all is well."""
    running = f"{group.node_group}: {group.in_service} of {_nodes(group.desired)}"
    if missing.problem:
        return Verdict.SHORT, missing.problem.sentence
    if surplus.problem:
        return Verdict.SURPLUS, surplus.problem.sentence
    if missing.outlook is Outlook.UNSEEN:
        return Verdict.UNSEEN, f"{running}: Auto Scaling could not be asked why"
    if missing.outlook is Outlook.PENDING:
        return Verdict.PENDING, f"{running}: the others are launching"
    if surplus.outlook is Outlook.PENDING:
        return Verdict.PENDING, surplus_words(group, group.desired)
    return None


def _kept(group: Group, wanted: int) -> str:
    if wanted:
        return f"{group.node_group} has all of its {_nodes(wanted)}"
    return f"{group.node_group} is stopped, by {group.memory.by}: {group.memory.reason}"


def _absent(name: str, wanted: int) -> Decision:
    return Decision(
        node_group=name,
        verdict=Verdict.ABSENT,
        reason=f"{name} is in the cluster's file and has no group: a deploy is under way, or failed",
        wanted=wanted,
        missing=wanted,
    )


def _decision(group: Group, verdict: Verdict, reason: str, *, wanted: int) -> Decision:
    return Decision(
        node_group=group.node_group or group.name, verdict=verdict, reason=reason, wanted=wanted, group=group
    )


def _nodes(number: int) -> str:
    return "1 node" if number == 1 else f"{number} nodes"
