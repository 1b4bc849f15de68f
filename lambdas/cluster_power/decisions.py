"""What should happen to each node group: a pure function of what is there, what is wanted and the time."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from cluster_common.owners.kinds import OWNER_KINDS
from cluster_common.power_records import GroupState, Record, State
from cluster_common.times import time_text
from cluster_contract.power import PowerGroupSettings
from cluster_contract.state import Sender
from cluster_contract.tags import IDLE_NOTE_TAG
from cluster_power.context import Context
from cluster_power.desired_state import first_order
from cluster_power.groups import Group
from cluster_power.launch_failures import ProblemKind
from cluster_power.problems import (
    Finding,
    Outlook,
    describe_surplus,
    emptied,
    find_problem,
    find_surplus,
    left_behind,
    raised,
)
from cluster_power.reserved import decide_listed, decide_reservation
from cluster_power.shortages import decide_desired, decide_resume
from cluster_power.verdicts import Decision, Verdict
from cluster_power.versions import find_mixture
from cluster_power.windows import Phase, Window, too_small

# What is missing then follows from the size that the group is about to get.
_UNEXPLAINED = frozenset({Verdict.SIZE, Verdict.BLOCKED, Verdict.PENDING})

_PHASE_VERDICTS = {
    Phase.BEFORE: Verdict.WAITING,
    Phase.CLOSING: Verdict.CLOSING,
    Phase.OVER: Verdict.OVER,
}


def decide(groups: Sequence[Group], context: Context) -> list[Decision]:
    """Decide about each of the cluster's groups, and about each group that should be there and is not."""
    configured = [group for group in groups if context.is_configured(group)]
    twins = _twins(configured)
    decisions = [_decide_group(group, context, twins) for group in configured]
    decisions += [_unconfigured(group, context) for group in groups if not context.is_configured(group)]
    present = {group.node_group for group in configured}
    decisions += [
        _unread(name, own) if name in context.unread else _absent(name, own, context)
        for name, own in context.settings.groups.items()
        if name not in present
    ]
    return sorted(decisions, key=lambda decision: decision.node_group)


def unrecorded(group: Group) -> Decision:
    """Return what can be said of a group while the state table cannot be read."""
    kept = f"{group.node_group} keeps its desired capacity of {group.desired}"
    reason = f"{kept}: the state table could not be read, and the next run reads it again"
    return _decision(group, Verdict.UNSEEN, reason, wanted=group.desired)


def _twins(groups: Sequence[Group]) -> frozenset[str]:
    names = Counter(group.node_group for group in groups if not group.deleting)
    return frozenset(name for name, number in names.items() if number > 1)


def _decide_group(group: Group, context: Context, twins: Collection[str]) -> Decision:
    """Decide about a group that the cluster's file knows: the first case that fits."""
    name, record = group.node_group, group.record
    window = _window(group, context)
    size = context.wanted(name, record, window)
    wanted = group.goal if size is None else size
    if group.deleting:
        return _decision(group, Verdict.DELETING, f"{name} is being deleted", wanted=wanted)
    match record:
        case Record(state=None) if context.unread:
            reason = f"{name} is new, and starts once {', '.join(sorted(context.unread))} can be read"
            outcome = Verdict.BLOCKED, reason
        case _ if window is not None and size is None:
            outcome = Verdict.UNUSABLE if window.is_elsewhere else Verdict.UNSEEN, window.sentence
        case Record(size=given) if given != wanted:
            outcome = _give_size(group, wanted, twins, window)
        case _ if group.shows_old_size:
            when, shows = "less than a minute ago", f"its {group.owner.noun} may show an older desired capacity"
            outcome = Verdict.PENDING, f"{name} was sized {when}, and {shows}"
        case _ if _awaits_settings(group, wanted):
            why = "a deployment changes its count: the next run looks again"
            outcome = Verdict.BLOCKED, f"{name} was given {_nodes(wanted)} and {why}"
        case _:
            outcome = _keep_size(group, wanted, window)
    if outcome[0] is Verdict.SIZE and (group.desired != wanted or group.is_loose) and group.owner.while_updated:
        outcome = Verdict.SIZE, f"{outcome[1]}. {group.owner.while_updated}"
    decision = _decision(group, *outcome, wanted=wanted, window=window)
    if decision.verdict not in _UNEXPLAINED:
        decision = _explain(decision, context)
    own = context.settings.groups[name]
    reserve = decide_listed if own.listed else decide_reservation
    return decide_resume(reserve(decision, own, context))


def _awaits_settings(group: Group, wanted: int) -> bool:
    """Say whether a deployment has changed the count of a group, and not yet the function's settings."""
    to = group.reset_to
    return to is not None and (wanted > group.maximum or to > group.maximum == wanted)


def _window(group: Group, context: Context) -> Window | None:
    """Return what a group's Capacity Block allows; a stopped group needs none, unless nodes run all the same."""
    window = context.window(group.node_group, group)
    if group.record.state is not State.STOPPED or window is None:
        return window
    return window if group.desired and window.phase in (Phase.CLOSING, Phase.OVER) else None


def _give_size(group: Group, wanted: int, twins: Collection[str], window: Window | None) -> tuple[Verdict, str]:
    """Return what is to be done with a group that the function has not given the size that it should have."""
    name, record = group.node_group, group.record
    should = f"{name} should have {_nodes(wanted)}"
    match group:
        case _ if wanted > 0 and name in twins:
            return Verdict.BLOCKED, (
                f"{name} has more than one {group.owner.noun}, and the power function sizes none of them: wait for "
                "the deployment that replaces one, or delete the one that is not in the cluster's stack"
            )
        case Group(maximum=largest) if wanted > largest:
            why = "a deployment is under way, or the maximum was lowered"
            return Verdict.BLOCKED, f"{should} and the maximum size of its group is {largest}: {why}"
        case Group(minimum=smallest) if wanted < smallest:
            return Verdict.BLOCKED, f"{should} and the minimum size of its group is {smallest}: set that to 0"
        case Group(busy=True):
            return Verdict.BLOCKED, _busy(group, wanted)
        case Group(is_unrecorded=True) if group.desired > wanted > 0:
            lost = f"{should}, and {group.desired} that the power function has no record of"
            return Verdict.HELD, f"{lost}: left alone {held_until(window)}"
    before = "" if record.size is None else f", {record.size} before"
    why = f"{record.state}, by {record.by}: {record.reason}" if record.state else "not seen before"
    if window is not None and window.phase is not Phase.OPEN:
        why = window.cause
    return Verdict.SIZE, f"{should}{before} ({why})"


def _keep_size(group: Group, wanted: int, window: Window | None) -> tuple[Verdict, str]:
    """Return what is to be done with a group that the function has given the size that it should have."""
    name, given = group.node_group, f"{group.node_group} was given {_nodes(wanted)}"
    keeps = group.should_keep_excess(wanted)
    match group:
        case Group(busy=True) if group.desired != wanted:
            return Verdict.BLOCKED, _busy(group, wanted)
        case Group(desired=desired, reset_to=to) if desired == to and (to != wanted or group.is_loose):
            kept = f", and {_nodes(group.alive)} kept running" if group.owner.reset_by_deployments else ""
            return (
                Verdict.SIZE,
                f"{given} and a deployment set its {group.owner.size} to {to}: it gets its size again{kept}",
            )
        case Group(goal=goal) if goal != wanted and window is not None and window.phase is Phase.OVER:
            return Verdict.SIZE, f"{name} should have 0 nodes, since {window.cause}, and {_resized(group)}"
        case Group(goal=goal) if goal != wanted:
            return Verdict.HELD, f"{given} and {_resized(group)}: left alone {held_until(window)}"
        case Group(busy=False) if group.desired == wanted and keeps is not group.keeps_excess:
            why = (
                f"{name} has its {_nodes(wanted)}: from now on none of them is terminated when its target is lowered"
                if keeps
                else f"{name} should have {_nodes(wanted)} and {_nodes(group.alive)} run: the surplus is terminated"
            )
            return Verdict.SIZE, why
    return Verdict.KEEP, _kept(group, wanted, window)


def held_until(window: Window | None) -> str:
    """Say how long a desired capacity that was set outside the function stays."""
    block = ", or its Capacity Block starts or ends" if window else ""
    return f"until a start or stop command, or until its count in the cluster's file changes{block}"


def _resized(group: Group) -> str:
    terminated = group.record.terminated
    if terminated is None or not group.is_smaller_by_order:
        return f"its desired capacity was changed to {group.desired} outside the power function"
    return f"its size is {group.goal} since nodes were terminated (at {terminated.text})"


def _explain(decision: Decision, context: Context) -> Decision:
    """Add how many nodes are missing and how many are too many, and why."""
    group, window = decision.group, decision.window
    if group is None:
        return decision
    kept = decision.verdict is Verdict.KEEP
    elsewhere = window is not None and window.is_elsewhere
    ours = kept or (decision.verdict is Verdict.HELD and group.is_smaller_by_order)
    ours = ours or (elsewhere and (group.is_smaller_by_order or group.goal == group.record.size))
    grace, now = context.settings.launch_grace, context.now
    region = context.settings.region
    own = context.settings.groups[decision.node_group] if context.is_configured(group) else None
    reserved = own is not None and bool(own.block or own.reservation_id)
    missing = find_problem(
        group, goal=group.goal, sized_by_us=ours, grace=grace, now=now, region=region, reserved=reserved
    )
    surplus = find_surplus(group, goal=group.goal, grace=grace, now=now, region=region)
    decision = replace(
        decision,
        missing=group.count_missing(group.goal),
        surplus=max(0, group.alive - group.goal),
        problem=missing.problem,
        problem_known=missing.known,
        surplus_problem=surplus.problem,
    )
    if window is not None:
        decision = _explain_window(decision, window, context)
    if decision.is_held and not group.desired:
        decision = replace(decision, problem=emptied(decision.reason), problem_known=True)
    by_schedule = group.record.state is State.STOPPED and group.record.by == Sender.SCHEDULE
    if decision.is_held and group.desired and by_schedule:
        decision = replace(decision, problem=raised(decision.reason), problem_known=True)
    if ours:
        decision = decide_desired(decision, missing, context)
    if kept:
        verdict, reason = next(_judge(group, decision, missing, surplus), (decision.verdict, decision.reason))
        decision = replace(decision, verdict=verdict, reason=reason)
    if surplus.problem and decision.verdict is not Verdict.SURPLUS:
        decision = replace(decision, reason=f"{decision.reason.removesuffix('.')}. {surplus.problem.sentence}")
    mixture = find_mixture(group)
    if mixture is not None:
        decision = replace(decision, reason=f"{decision.reason.removesuffix('.')}. {mixture.sentence}")
    return replace(decision, versions_problem=mixture, versions_known=True)


def _explain_window(decision: Decision, window: Window, context: Context) -> Decision:
    """Add what a Capacity Block keeps from running."""
    group, count = decision.group, context.settings.groups[decision.node_group].count
    if group is None:
        return decision
    if window.is_elsewhere:
        launch = decision.problem
        if launch is None or launch.kind is ProblemKind.SUSPENDED:  # It stays suspended while nodes are elsewhere.
            return replace(decision, problem=window.problem, problem_known=True)
        return replace(decision, reason=f"{decision.reason}. {launch.sentence}")
    if window.phase not in (Phase.OPEN, Phase.CLOSING):
        # What is said of the block explains all that does not run.
        missing = decision.missing if window.phase is Phase.UNSEEN else 0
        is_known = window.problem is not None or window.phase is not Phase.UNSEEN
        return replace(decision, missing=missing, problem=window.problem, problem_known=is_known)
    if decision.problem is None and window.problem is not None:
        decision = replace(decision, problem=window.problem)
    if decision.verdict is Verdict.KEEP and decision.wanted < count:
        decision = replace(decision, missing=decision.missing + count - decision.wanted)
        if decision.problem_known and decision.problem is None:
            decision = replace(decision, problem=too_small(group, window, count))
    return decision


def _judge(group: Group, decision: Decision, missing: Finding, surplus: Finding) -> Iterator[tuple[Verdict, str]]:
    """Yield what is to be said of a group that has its size, the gravest first."""
    window = decision.window
    running = f"{group.node_group}: {group.in_service} of {_nodes(group.goal)}"
    if window is not None and window.problem:
        yield Verdict.UNUSABLE, window.problem.sentence
    if decision.problem:
        yield Verdict.SHORT, decision.problem.sentence
    if surplus.problem:
        yield Verdict.SURPLUS, surplus.problem.sentence
    if missing.outlook is Outlook.UNSEEN:
        yield Verdict.UNSEEN, f"{running}: {group.owner.service} returned no activities that say why"
    if missing.outlook is Outlook.PENDING:
        yield Verdict.PENDING, f"{running}: the others are launching"
    if surplus.outlook is Outlook.PENDING:
        yield Verdict.PENDING, describe_surplus(group, group.goal)
    if window is not None and window.phase in _PHASE_VERDICTS:
        yield _PHASE_VERDICTS[window.phase], window.sentence


def _kept(group: Group, wanted: int, window: Window | None) -> str:
    name, record = group.node_group, group.record
    if record.limit == wanted:
        return (
            f"{name} is limited to its {_nodes(wanted)} by {record.by}: {record.reason}; a start command ends the "
            "limit"
        )
    if wanted and group.scheduler_sized:
        return (
            f"{name} may have up to {_nodes(wanted)}, which {group.owner.service} launches and terminates as jobs "
            f"need them: {_nodes(group.in_service)} {'runs' if group.in_service == 1 else 'run'}"
        )
    if wanted:
        until = f" until {time_text(window.down_at)}: {window.cause}" if window and window.down_at else ""
        standby = f", {group.standby} of them in Standby" if group.standby else ""
        note = group.tags.get(IDLE_NOTE_TAG)
        warned = f". The idle function has warned of them, and a start does not keep them: {note}" if note else ""
        return f"{name} has all of its {_nodes(wanted)}{standby}{until}{warned}"
    return f"{name} is stopped, by {record.by}: {record.reason}"


def _busy(group: Group, wanted: int) -> str:
    return (
        f"{group.node_group} should have {_nodes(wanted)} and the {group.owner.noun} {group.name} is being modified: "
        "the next run tries again"
    )


def _absent(name: str, own: PowerGroupSettings, context: Context) -> Decision:
    record = GroupState(order=context.orders.get(name) or first_order(context)).record(name)
    wanted = context.wanted(name, record, context.window(name)) or 0
    absent = OWNER_KINDS[own.owner_kind].absence(own.owner.id if own.owner else "")
    return Decision(
        node_group=name,
        verdict=Verdict.ABSENT,
        reason=f"{name} is in the cluster's file and has no {absent}",
        wanted=wanted,
        missing=0 if own.owner and own.owner.scheduler_sized else wanted,
    )


def _unconfigured(group: Group, context: Context) -> Decision:
    name = group.node_group
    why = f"{name or group.name} is not in the cluster's file"
    reason = f"{why}: left alone"
    if name in context.settings.groups:
        why = f"{name} has other nodes in the cluster's file"
        reason = f"{why}: the {group.owner.noun} {group.name} is left alone"
    decision = _decision(group, Verdict.UNCONFIGURED, reason, wanted=group.desired)
    if group.deleting:
        return decision
    if not group.alive:
        return replace(decision, reason=f"{why}, and none of its nodes runs")
    problem = left_behind(group, why=why, region=context.settings.region)
    return replace(decision, reason=problem.sentence, surplus=group.alive, surplus_problem=problem)


def _unread(name: str, own: PowerGroupSettings) -> Decision:
    what = f"its {OWNER_KINDS[own.owner_kind].noun} or its record"
    reason = f"{name} keeps its size: {what} could not be read, and the next run reads it again"
    return Decision(node_group=name, verdict=Verdict.UNSEEN, reason=reason, wanted=own.count)


def _decision(group: Group, verdict: Verdict, reason: str, *, wanted: int, window: Window | None = None) -> Decision:
    unsized = verdict in _UNEXPLAINED
    return Decision(
        node_group=group.node_group or group.name,
        verdict=verdict,
        reason=reason,
        wanted=wanted,
        group=group,
        missing=group.count_missing(wanted) if unsized else 0,
        surplus=max(0, group.alive - wanted) if unsized else 0,
        window=window,
    )


def _nodes(number: int) -> str:
    return "1 node" if number == 1 else f"{number} nodes"
