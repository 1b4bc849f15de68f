"""What operators and alarms see: the summary and the metrics."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from aws_lambda_powertools.metrics import MetricUnit

from cluster_common.metrics import CLUSTER_DIMENSION, NODE_GROUP_DIMENSION, emit, emit_counts
from cluster_common.reservations import ACTIVE, NO_RESERVATIONS, Reservation, Reservations
from cluster_common.times import time_text
from cluster_contract.power import PowerFunctionSettings, PowerMetric
from cluster_power.commands import Command
from cluster_power.context import Context
from cluster_power.schedules import Judgment
from cluster_power.verdicts import Decision, Verdict
from cluster_power.versions import count_versions


def summarize(
    settings: PowerFunctionSettings,
    command: Command,
    decisions: Sequence[Decision],
    reservations: Reservations = NO_RESERVATIONS,
    failures: Sequence[str] = (),
    *,
    schedules: Mapping[str, Judgment] = MappingProxyType({}),
) -> dict[str, object]:
    """Return what was found and done, as plain JSON, what schedules make of it, and what could not be read."""
    return {
        **({"failures": list(failures)} if failures else {}),
        "cluster": settings.cluster,
        "action": command.action.value,
        "node_groups": [
            _summarize_group(one)
            | _summarize_reservations(settings, one, reservations)
            | _summarize_schedule(settings, one.node_group, schedules)
            for one in decisions
        ],
    }


def _summarize_schedule(
    settings: PowerFunctionSettings, node_group: str, schedules: Mapping[str, Judgment]
) -> dict[str, object]:
    schedule, judgment = settings.schedule(node_group), schedules.get(node_group)
    if schedule is None:
        return {}
    return {
        "schedule": {
            "words": str(schedule),
            "now": judgment.now if judgment else "unknown: it could not be read",
            "next_edge": time_text(judgment.edge) if judgment and judgment.edge else None,
            "then": judgment.then if judgment else "",
        }
    }


def emit_metrics(context: Context, decisions: Sequence[Decision], *, complete: bool) -> None:
    """Write a scheduled run's metrics, once for the cluster and once for each node group.

    What was not seen is not counted: there is no point then, rather than a wrong one.

    Args:
        context: What the decisions rest on.
        decisions: What was decided.
        complete: Whether nothing failed; only such a run counts as a successful one.
    """
    settings, unread = context.settings, context.unread
    configured = [
        decision
        for decision in decisions
        if decision.node_group in settings.groups and decision.verdict is not Verdict.UNCONFIGURED
    ]
    if not unread:
        left_behind = sum(one.surplus for one in decisions if one.verdict is Verdict.UNCONFIGURED)
        counts = _counts(configured)
        counts |= {
            PowerMetric.SURPLUS_NODES: counts[PowerMetric.SURPLUS_NODES] + left_behind,
            PowerMetric.HELD_GROUPS: sum(decision.is_held for decision in configured),
            PowerMetric.MIXED_GROUPS: sum(decision.versions_problem is not None for decision in configured),
            PowerMetric.SUCCESSFUL_TICKS: int(complete),
        }
        emit_counts(counts, **{CLUSTER_DIMENSION: settings.cluster})
    for name in settings.groups:
        if name not in unread:
            of_group = [decision for decision in configured if decision.node_group == name]
            dimensions = {CLUSTER_DIMENSION: settings.cluster, NODE_GROUP_DIMENSION: name}
            emit_counts(_counts(of_group), **dimensions)
            hours = _hours_to_end(context, name)
            if hours is not None:
                emit({PowerMetric.HOURS_TO_END: hours}, MetricUnit.NoUnit, **dimensions)


def emit_running_nodes(settings: PowerFunctionSettings, decisions: Sequence[Decision]) -> None:
    """Write the only metric of a run that could not read what should be there.

    Args:
        settings: The function's settings.
        decisions: What was found of each group that could be read.
    """
    for name in dict.fromkeys(one.node_group for one in decisions):
        running = sum(_running(one) for one in decisions if one.node_group == name)
        dimensions = {CLUSTER_DIMENSION: settings.cluster, NODE_GROUP_DIMENSION: name}
        emit_counts({PowerMetric.RUNNING_NODES: running}, **dimensions)


def _counts(decisions: Sequence[Decision]) -> dict[str, int]:
    return {
        PowerMetric.MISSING_NODES: sum(decision.missing for decision in decisions),
        PowerMetric.SURPLUS_NODES: sum(decision.surplus for decision in decisions),
        PowerMetric.RUNNING_NODES: sum(_running(decision) for decision in decisions),
        PowerMetric.WANTED_NODES: sum(decision.wanted for decision in decisions),
    }


def _hours_to_end(context: Context, name: str) -> float | None:
    """Return in how many hours the first of a group's active reservations ends. None: none does, or none is known."""
    found = map(context.reservations.find, context.settings.reservations.get(name, ()))
    ends = [one.ends for one in found if isinstance(one, Reservation) and one.state == ACTIVE and one.ends]
    return round((min(ends) - context.now).total_seconds() / 3600, 2) if ends else None


def _running(decision: Decision) -> int:
    return decision.group.in_service if decision.group else 0


def _summarize_reservations(
    settings: PowerFunctionSettings, decision: Decision, reservations: Reservations
) -> dict[str, object]:
    found = [reservations.find(one) for one in settings.reservations.get(decision.node_group, ())]
    known = [one for one in found if isinstance(one, Reservation)]
    return {"reservations": [_summarize_reservation(one) for one in known]} if known else {}


def _summarize_reservation(one: Reservation) -> dict[str, object]:
    return {
        "id": one.id,
        "state": one.state,
        "instances": one.instances,
        "used": one.used,
        "starts": time_text(one.starts) if one.starts else None,
        "ends": time_text(one.ends) if one.ends else None,
    }


def _summarize_group(decision: Decision) -> dict[str, object]:
    group = decision.group
    record = group.record if group else None
    problem = decision.problem or decision.surplus_problem or decision.versions_problem
    versions = count_versions(group) if group else {}
    return {
        "node_group": decision.node_group,
        "auto_scaling_group": None,
        **({group.owner.key: group.name} if group else {}),
        **({"owner": f"{group.owner.noun} {group.name}"} if group else {}),
        **({"owner_arn": group.arn} if group and group.arn else {}),
        **({"scheduler_sized": True} if group and group.scheduler_sized else {}),
        **({"capacity_block": decision.window.block} if decision.window else {}),
        "state": record.state.value if record and record.state else None,
        "by": record.by if record else "",
        "why": record.reason if record else "",
        "since": time_text(record.since) if record and record.since else None,
        "ordered_at": time_text(record.ordered_at) if record and record.ordered_at else None,
        "wanted": decision.wanted,
        "desired": group.desired if group else 0,
        "in_service": group.in_service if group else 0,
        "alive": group.alive if group else 0,
        "missing": decision.missing,
        "surplus": decision.surplus,
        "decision": decision.verdict.value,
        "reason": decision.reason,
        "problem": problem.kind.value if problem else None,
        **({"launch_template_versions": versions} if versions else {}),
        **({} if decision.terminated is None else {"terminated": list(decision.terminated)}),
        **({} if decision.taken_back is None else {"taken_back": decision.taken_back}),
    }
