"""What alarms and the log get to see: metrics, one record an instance, and the summary."""

from collections import Counter
from collections.abc import Collection, Sequence
from datetime import datetime

from aws_lambda_powertools import Logger
from aws_lambda_powertools.metrics import MetricUnit

from cluster_common.metrics import CLUSTER_DIMENSION, emit, emit_counts
from cluster_common.times import time_text
from cluster_contract.events import EVENT_FIELD, Event
from cluster_contract.idle import IdleFunctionSettings, IdleMetric
from cluster_idle.evidence import BOOT, EvidenceState
from cluster_idle.executor import Outcome
from cluster_idle.messages import dollars, savings
from cluster_idle.verdicts import Decisions, IdleFinding, IdleVerdict

# A summary is for operators; Lambda takes 6 MB of it. The log has every node.
_MAX_NODES = 2000


def emit_metrics(settings: IdleFunctionSettings, decisions: Decisions, outcome: Outcome, *, evaluated: bool) -> None:
    """Write the run's metrics.

    Args:
        settings: The function's settings.
        decisions: What was decided.
        outcome: What was done.
        evaluated: Whether everything could be read that the decisions rest on.
    """
    findings = decisions.findings
    verdicts = Counter(finding.verdict for finding in findings)
    reserved = [finding.instance for finding in findings if _is_reserved(finding, settings)]
    stopped = [finding.instance for finding in findings if finding.instance.id in outcome.stopped]
    emit_counts(
        {
            IdleMetric.IDLE_NODES: sum(finding.is_idle for finding in findings),
            IdleMetric.BUSY_NODES: sum(finding.is_busy for finding in findings),
            IdleMetric.STOPPED_NODES: len(stopped),
            IdleMetric.WARNED_NODES: verdicts[IdleVerdict.WARN],
            IdleMetric.DEFERRED_NODES: verdicts[IdleVerdict.DEFERRED],
            IdleMetric.UNKNOWN_NODES: sum(map(_is_unknown, findings)),
            IdleMetric.STUCK_NODES: sum(_is_stuck(finding, outcome, settings) for finding in findings),
            IdleMetric.LINGERING_NODES: len(find_lingering(findings)),
            IdleMetric.RESERVED_NODES: len(reserved),
            IdleMetric.EVALUATIONS: int(evaluated),
            IdleMetric.BREAKER: int(decisions.breaker is not None),
            IdleMetric.UNCLEAR_TAGS: len(decisions.reminders),
            IdleMetric.FAILED_NOTIFICATIONS: outcome.failed_notifications,
        },
        **{CLUSTER_DIMENSION: settings.cluster},
    )
    emit(
        {
            IdleMetric.DOLLARS_IDLE: round(dollars(settings, [one.instance for one in findings if one.is_idle]), 2),
            IdleMetric.DOLLARS_SAVED: round(savings(settings, stopped), 2),
            IdleMetric.DOLLARS_RESERVED: round(dollars(settings, reserved), 2),
        },
        MetricUnit.NoUnit,
        **{CLUSTER_DIMENSION: settings.cluster},
    )


def emit_blind_metrics(settings: IdleFunctionSettings) -> None:
    """Write that a run saw nothing: of what it did not see there is no point, rather than a wrong one."""
    emit_counts({IdleMetric.EVALUATIONS: 0}, **{CLUSTER_DIMENSION: settings.cluster})


def log_finding(
    logger: Logger,
    finding: IdleFinding,
    outcome: Outcome,
    *,
    settings: IdleFunctionSettings,
    lingering: Collection[str],
) -> None:
    """Write one record of one instance.

    Args:
        logger: Where.
        finding: What is decided about it.
        outcome: What was done.
        settings: The function's settings.
        lingering: What `find_lingering` found.
    """
    instance, evidence = finding.instance, finding.evidence
    changed = outcome.changed.get(instance.id)
    logger.info(
        f"{finding.reason}; {changed}" if changed else finding.reason,
        extra={
            "instance_id": instance.id,
            "instance_type": instance.instance_type,
            "node_group": instance.node_group,
            "owner": instance.owner.id,
            "verdict": finding.verdict.value,
            "idle_since": time_text(evidence.idle_since) if evidence and evidence.idle_since else None,
            "stopped": instance.id in outcome.stopped,
            # The power function logs what it is sent of the nodes of a group.
            **({EVENT_FIELD: Event.ACT} if instance.owner.is_instance and instance.id in outcome.stopped else {}),
            "lingering": instance.id in lingering,
            "signal": evidence.signal.value if evidence and evidence.signal else None,
            "usd_per_hour": round(dollars(settings, [instance]), 2) or None,
        },
    )


def summarize(
    settings: IdleFunctionSettings, action: str, decisions: Decisions, outcome: Outcome
) -> dict[str, object]:
    """Return what was found and done, as plain JSON."""
    findings = decisions.findings
    return {
        "cluster": settings.cluster,
        "action": action,
        "dry_run": settings.policy.dry_run,
        "instances": len(findings),
        "verdicts": {verdict.value: count for verdict, count in _counted(findings)},
        "breaker": decisions.breaker,
        "nodes": [_summarize_node(finding, outcome) for finding in findings[:_MAX_NODES]],
        "nodes_left_out": max(0, len(findings) - _MAX_NODES),
    }


def _counted(findings: Sequence[IdleFinding]) -> list[tuple[IdleVerdict, int]]:
    counts = Counter(finding.verdict for finding in findings)
    return [(verdict, counts[verdict]) for verdict in IdleVerdict if counts[verdict]]


def _summarize_node(finding: IdleFinding, outcome: Outcome) -> dict[str, object]:
    instance, evidence = finding.instance, finding.evidence
    return {
        "instance_id": instance.id,
        "node_group": instance.node_group,
        "instance_type": instance.instance_type,
        "verdict": finding.verdict.value,
        "reason": finding.reason,
        "idle_since": time_text(evidence.idle_since) if evidence and evidence.idle_since else None,
        "stopped": instance.id in outcome.stopped,
    }


def _is_unknown(finding: IdleFinding) -> bool:
    """Whether too little is known of it: also where another service owns it."""
    if finding.verdict is IdleVerdict.MANAGED:
        return finding.evidence is not None and finding.evidence.state is EvidenceState.UNKNOWN
    return finding.verdict is IdleVerdict.UNKNOWN and not finding.for_others


def _is_reserved(finding: IdleFinding, settings: IdleFunctionSettings) -> bool:
    """Whether it is idle where a stop saves nothing: also while others of its group work, since it costs the same."""
    group = settings.groups.get(finding.instance.node_group)
    saves = finding.instance.reserved is None or (group is not None and group.release)
    return finding.verdict is IdleVerdict.RESERVED or (finding.is_idle and finding.for_others and not saves)


def find_lingering(findings: Sequence[IdleFinding]) -> frozenset[str]:
    """Return the ids of nodes that run on without a job's word, idle for a window or for all of their short life.

    They wait for young or unknown nodes or for their turn; only CPUs, network or a session keep them or their group;
    or they are warned of again, since a node of their group was idle later than they: nodes come and go there. So do
    the nodes of a group that are all too young to be judged, and came at different times; nothing is known of them.
    """
    launched: dict[str, set[datetime]] = {}
    for one in findings:
        launched.setdefault(one.unit, set()).add(one.instance.launched)
    settled = {one.unit for one in findings if one.verdict is not IdleVerdict.GRACE}
    anew = {unit for unit, at in launched.items() if unit not in settled and max(at) - min(at) >= BOOT}
    working = {one.unit for one in findings if one.is_busy and one.evidence and not one.evidence.is_weak}
    latest: dict[str, datetime] = {}
    for one in findings:
        if one.verdict is IdleVerdict.WARN and one.evidence and one.evidence.idle_since:
            latest[one.unit] = max(one.evidence.idle_since, latest.get(one.unit, one.evidence.idle_since))

    def lingers(one: IdleFinding) -> bool:
        if one.verdict is IdleVerdict.BUSY:
            return one.unit not in working
        if one.verdict is IdleVerdict.WARN:
            since = one.evidence.idle_since if one.evidence else None
            return since is not None and since < latest[one.unit]
        is_idle = one.is_idle or (one.evidence is not None and one.evidence.idle_so_far)
        return is_idle and one.verdict in (
            IdleVerdict.GRACE,
            IdleVerdict.UNKNOWN,
            IdleVerdict.DEFERRED,
        )

    return frozenset(one.instance.id for one in findings if one.unit in anew or lingers(one))


def _is_stuck(finding: IdleFinding, outcome: Outcome, settings: IdleFunctionSettings) -> bool:
    """Whether it is idle and due and still runs: it cannot be stopped, or AWS or the power function refused to."""
    if finding.verdict is IdleVerdict.STOP and not settings.policy_of(finding.instance.node_group).dry_run:
        return finding.instance.id not in outcome.stopped
    return finding.is_idle and finding.verdict in (IdleVerdict.UNSTOPPABLE, IdleVerdict.MANAGED)
