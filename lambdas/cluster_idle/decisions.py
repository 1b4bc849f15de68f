"""What should happen to each instance: a pure function of what was read, the policy and the time."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from cluster_common.times import time_text
from cluster_contract.texts import printable
from cluster_idle.context import IdleContext
from cluster_idle.evidence import EvidenceState
from cluster_idle.instances import Instance, Owner
from cluster_idle.reminders import find_reminders
from cluster_idle.stoppable import Obstacles
from cluster_idle.units import make_unit
from cluster_idle.verdicts import Decisions, IdleFinding, IdleVerdict, Unit

# Some of its words are those of tags, which have 256 characters each.
_LONGEST_REASON = 1000

# What keeps the nodes of a group running when one of them is so, the strongest first.
_BLOCKING = (IdleVerdict.BUSY, IdleVerdict.UNKNOWN, IdleVerdict.GRACE, IdleVerdict.KEEP)

_BLOCKING_REASONS: Mapping[IdleVerdict, str] = {
    IdleVerdict.BUSY: "work",
    IdleVerdict.UNKNOWN: "have no complete data",
    IdleVerdict.GRACE: "were launched a moment ago",
    IdleVerdict.KEEP: "are kept",
}

# What makes the warning of a whole group void: what cannot be seen may come back as idle as it was.
_VOIDING = frozenset(_BLOCKING) - {IdleVerdict.UNKNOWN}

# Verdicts with which a warning stays as it is.
_WARNED = frozenset(
    {IdleVerdict.WARN, IdleVerdict.STOP, IdleVerdict.DEFERRED, IdleVerdict.UNKNOWN, IdleVerdict.UNSTOPPABLE}
)


def decide(instances: Sequence[Instance], context: IdleContext) -> Decisions:
    """Decide about every instance of the cluster."""
    members: dict[str, list[Instance]] = {}
    for instance in sorted(instances, key=lambda one: one.id):
        members.setdefault(context.unit(instance), []).append(instance)
    findings: list[IdleFinding] = []
    units: list[Unit] = []
    for name, together in members.items():
        found, unit = _decide_unit(name, together, context)
        findings += found
        units += [unit] if unit else []
    breaker = _breaker(findings, context)
    held = context.held or breaker
    ready = [unit for unit in units if not unit.waits]
    due = sorted((unit for unit in ready if unit.is_due(context.now)), key=_longest_idle)
    stop = [] if held else _within_limit(due, context.settings.max_stops)
    deferred = {unit.name for unit in (ready if held else due)} - {unit.name for unit in stop}
    why = held or f"one run stops at most {context.settings.max_stops}, the longest idle first"
    findings = [_defer(one, why, context) if one.unit in deferred else one for one in findings]
    standing = _standing(findings, context) | {unit.name for unit in units if unit.warned}
    return Decisions(
        findings=tuple(sorted(findings, key=lambda finding: finding.instance.id)),
        warn=() if held else tuple(unit for unit in ready if not unit.warned),
        stop=tuple(stop),
        renew=tuple(unit for unit in units if unit.renew),
        void=tuple(_find_void(findings, standing, context)),
        clear=tuple(_find_void_notes(instances, standing, context)),
        breaker=breaker,
        reminders=tuple(find_reminders(instances, context)),
    )


def _decide_unit(
    name: str, together: Sequence[Instance], context: IdleContext
) -> tuple[list[IdleFinding], Unit | None]:
    """Decide about nodes that are stopped together; without the limits of a whole run."""
    alone = {instance.id: _alone(instance, context) for instance in together}
    obstacles = Obstacles(together, context)
    newcomers = _newcomers(name, together, alone, obstacles)
    alone |= {one: None for one in newcomers if _is_idle_so_far(one, context)}
    block = _block(name, together, alone, context)
    findings: list[IdleFinding] = []
    idle: list[Instance] = []
    for instance in together:
        own = alone[instance.id] or block
        obstacle = None if own else obstacles.find(instance)
        if own is None and obstacle is None:
            idle.append(instance)
            continue
        verdict, reason = own or obstacle or (IdleVerdict.UNKNOWN, "")
        found = _finding(instance, verdict, reason, name, context)
        findings.append(replace(found, for_others=alone[instance.id] is None and block is not None))
    # Nodes that came in place of others leave the warning as it is, but nothing is stopped before they are judged.
    staying = [one for one in together if alone[one.id] is not None and not _is_bystander(one, context)]
    waits = bool(staying) and newcomers.issuperset(one.id for one in staying)
    if waits:
        idle = [one for one in together if alone[one.id] is None and obstacles.find(one) is None]
    if not idle:
        return findings, None
    unit = make_unit(name, idle, together, context, waits=waits)
    if waits:
        return findings, unit
    verdict = IdleVerdict.STOP if unit.is_due(context.now) else IdleVerdict.WARN
    reason = _idle_reason(unit, context)
    return [*findings, *(_finding(instance, verdict, reason, name, context) for instance in idle)], unit


def _alone(instance: Instance, context: IdleContext) -> tuple[IdleVerdict, str] | None:
    """Say why an instance stays whatever the others do. None: it is idle."""
    if instance.owner.is_foreign:
        return IdleVerdict.MANAGED, f"belongs to {instance.owner.description}, which alone may stop it"
    kept = _kept(instance, context)
    return (IdleVerdict.KEEP, kept) if kept else _young(instance, context) or _not_idle(instance, context)


def _kept(instance: Instance, context: IdleContext) -> str | None:
    """Say what keeps it running: its policy, its own tags, or those of what owns it."""
    if context.policy(instance).off:
        return "is never stopped: its policy is off"
    if not context.is_looked_at(instance):
        return "is never stopped: it has no GPU or NeuronCore whose use is reported"
    kept = instance.keep_tags.kept(context.now) or context.restores
    if kept or instance.owner.is_instance:
        return kept
    of_owner = context.keep_tags(instance.owner).kept(context.now)
    return f"belongs to {instance.owner.description}, which {of_owner}" if of_owner else None


def _young(instance: Instance, context: IdleContext) -> tuple[IdleVerdict, str] | None:
    """Say that it has not been up for long: then nothing is to be known of it yet."""
    policy, evidence = context.policy(instance), context.evidence.get(instance.id)
    age = context.now - instance.launched
    if evidence is not None and evidence.state is EvidenceState.BUSY:
        return None
    if not instance.running or age < policy.grace:
        return IdleVerdict.GRACE, f"was launched at {time_text(instance.launched)}, a moment ago"
    if evidence is not None and evidence.state is EvidenceState.UNKNOWN and age < policy.grace + policy.window:
        return IdleVerdict.GRACE, f"has not been up for long enough to be judged: {evidence.reason}"
    return None


def _not_idle(instance: Instance, context: IdleContext) -> tuple[IdleVerdict, str] | None:
    evidence = context.evidence.get(instance.id)
    if evidence is None:
        return IdleVerdict.UNKNOWN, "is not known to be idle: its metrics were not read"
    if evidence.state is EvidenceState.UNKNOWN:
        return IdleVerdict.UNKNOWN, f"may work: {evidence.reason}"
    return (IdleVerdict.BUSY, f"works: {evidence.reason}") if evidence.state is EvidenceState.BUSY else None


def _newcomers(
    name: str,
    together: Sequence[Instance],
    alone: Mapping[str, tuple[IdleVerdict, str] | None],
    obstacles: Obstacles,
) -> frozenset[str]:
    """Return the nodes that came lately into a group of which more can be stopped: in place of others."""
    young = {one.id for one in together if (own := alone[one.id]) and own[0] is IdleVerdict.GRACE}
    proven = sum(alone[one.id] is None and obstacles.find(one) is None for one in together)
    return frozenset(young) if name != together[0].id and len(young) < proven else frozenset()


def _is_idle_so_far(instance_id: str, context: IdleContext) -> bool:
    evidence = context.evidence.get(instance_id)
    return evidence is not None and evidence.idle_so_far


def _block(
    name: str,
    together: Sequence[Instance],
    alone: Mapping[str, tuple[IdleVerdict, str] | None],
    context: IdleContext,
) -> tuple[IdleVerdict, str] | None:
    """Say why the idle ones of some nodes stay for the sake of the others."""
    keeping: dict[IdleVerdict, list[str]] = {}
    for instance in together:
        own = alone[instance.id]
        if own is not None and not _is_bystander(instance, context):
            verdict = _of_others(instance, context) if own[0] is IdleVerdict.MANAGED else own[0]
            keeping.setdefault(verdict, []).append(instance.id)
    for verdict in _BLOCKING:
        ids = keeping.get(verdict)
        if ids:
            count = f"{len(ids)} of the {len(together)} nodes of {name} {_BLOCKING_REASONS[verdict]}"
            return verdict, f"is idle, but {count}, such as {ids[0]}: they are stopped together"
    return None


def _is_bystander(instance: Instance, context: IdleContext) -> bool:
    """Say whether it says nothing of the others: it has no accelerator, and no tag keeps it."""
    return not context.is_looked_at(instance) and not instance.keep_tags.kept(context.now)


def _of_others(instance: Instance, context: IdleContext) -> IdleVerdict:
    """Return what another service's node means for those that it works with."""
    if instance.keep_tags.kept(context.now):
        return IdleVerdict.KEEP
    evidence = context.evidence.get(instance.id)
    if evidence is None:
        return IdleVerdict.UNKNOWN
    states = {EvidenceState.BUSY: IdleVerdict.BUSY, EvidenceState.UNKNOWN: IdleVerdict.UNKNOWN}
    return states.get(evidence.state, IdleVerdict.MANAGED)


def _idle_reason(unit: Unit, context: IdleContext) -> str:
    what = f"is idle: its utilization has been {unit.idle_description}"
    if unit.is_due(context.now):
        how = "without dry_run it would be stopped now" if unit.dry_run else "it is stopped"
        return f"{what}, and nothing has kept it since the warning: {how}"
    due = "" if unit.warned else "its warning is due now; "
    if unit.dry_run:
        return f"{what}; {due}without dry_run it would be stopped at {time_text(unit.stop_at)}"
    return f"{what}; {due}it will be stopped at {time_text(unit.stop_at)} unless it works before then"


def _within_limit(due: Iterable[Unit], most: int) -> list[Unit]:
    """Return what one run stops: whole units, at least one, and no more nodes than the limit.

    What a dry run has reported stays due, and does not count.
    """
    stop: list[Unit] = []
    count, full = 0, False
    for unit in due:
        nodes = 0 if unit.dry_run and unit.reported else len(unit.instances)
        full = full or bool(nodes and count and count + nodes > most)
        if not (nodes and full):
            stop.append(unit)
            count += nodes
    return stop


def _longest_idle(unit: Unit) -> tuple[bool, datetime, datetime, str]:
    """Return what comes first: the longest idle; what could not be stopped within the last day comes last."""
    return unit.refused, unit.idle_since, unit.stop_at, unit.name


def _breaker(findings: Sequence[IdleFinding], context: IdleContext) -> str | None:
    """Say why nothing may be done: too many nodes have no complete data all at once, which no node does by itself."""
    seen = [one for one in findings if one.evidence is not None and one.verdict is not IdleVerdict.GRACE]
    dark = [
        one
        for one in seen
        if one.evidence is not None and one.evidence.state is EvidenceState.UNKNOWN and one.evidence.was_known
    ]
    share = context.settings.max_unknown_share
    if not seen or len(dark) <= share * len(seen):
        return None
    return (
        f"{len(dark)} of {len(seen)} nodes had complete data 15 minutes ago and have none now, more than {share:.0%}"
        ": the function warns of no node and stops none"
    )


def _defer(finding: IdleFinding, why: str, context: IdleContext) -> IdleFinding:
    if finding.verdict not in (IdleVerdict.STOP, IdleVerdict.WARN) or finding.evidence is None:
        return finding
    reason = f"is idle: {finding.evidence.reason}; it waits for a later run: {why}"
    return _finding(finding.instance, IdleVerdict.DEFERRED, reason, finding.unit, context)


def _standing(findings: Sequence[IdleFinding], context: IdleContext) -> set[str]:
    """Return the names of what a warning still stands for: of no node that works again, is kept, or is gone."""
    # What cannot be seen lets a warning stand, but not beside a node that works, is young, or is kept.
    voided = {
        one.unit
        for one in findings
        if one.verdict in _VOIDING and not one.for_others and not _is_bystander(one.instance, context)
    }
    return {one.unit for one in findings if one.verdict in _WARNED} - voided


def _find_void(findings: Sequence[IdleFinding], standing: Collection[str], context: IdleContext) -> Iterator[str]:
    """Yield the names of warnings that stand no longer.

    DescribeInstances may leave out a node for a moment. So the warning of nodes that this run did not see stays until
    no metric of the time when they were last seen idle is read, and it can count no more. One of nodes that are
    stopped with others since, or by themselves, is void at once.

    Source: https://docs.aws.amazon.com/ec2/latest/devguide/eventual-consistency.html
    """
    seen = {name for one in findings for name in (one.unit, one.instance.id, one.instance.node_group)}
    settings, now = context.settings, context.now
    read_from = now - max(settings.policy_of(name).span for name in ("", *settings.groups))
    for name, sent in sorted(context.warnings.items()):
        may_count = sent.idle_until is not None and read_from <= sent.idle_until <= now
        if name not in standing and (name in seen or not may_count):
            yield name


def _find_void_notes(
    instances: Sequence[Instance], standing: Collection[str], context: IdleContext
) -> Iterator[Owner]:
    """Yield what carries the note of a warning that stands no longer."""
    noted = {one.itself for one in instances if one.has_note}
    noted |= {owner for owner, state in context.owners.items() if state.has_note}
    yield from sorted(noted - {context.target(one) for one in instances if context.unit(one) in standing})


def _finding(instance: Instance, verdict: IdleVerdict, reason: str, unit: str, context: IdleContext) -> IdleFinding:
    of_group = f" of {instance.node_group}" if instance.node_group else ""
    return IdleFinding(
        instance=instance,
        verdict=verdict,
        reason=printable(f"{instance.id}{of_group} {reason}", _LONGEST_REASON),
        evidence=context.evidence.get(instance.id),
        unit=unit,
    )
