"""What people and alarms get to see: the summary, the metrics and the messages."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from cluster_common.messages import subject
from cluster_common.metrics import CLUSTER_DIMENSION, NODE_GROUP_DIMENSION, emit_counts
from cluster_common.times import time_text
from cluster_power.commands import Command
from cluster_power.context import Context
from cluster_power.groups import OwnerKind
from cluster_power.launch_failures import ProblemKind
from cluster_power.notices import ListedEnd
from cluster_power.problems import Problem
from cluster_power.settings import Settings
from cluster_power.verdicts import Decision, Verdict
from cluster_power.versions import count_versions
from cluster_power.windows import Window

MISSING_NODES = "MissingNodes"
SURPLUS_NODES = "SurplusNodes"
RUNNING_NODES = "RunningNodes"
HELD_GROUPS = "HeldGroups"
MIXED_GROUPS = "MixedGroups"
SUCCESSFUL_TICKS = "SuccessfulTicks"


def summarize(settings: Settings, command: Command, decisions: Sequence[Decision]) -> dict[str, object]:
    """Return what was found and done, as plain JSON."""
    return {
        "cluster": settings.cluster,
        "action": command.action.value,
        "node_groups": [_summarize_group(decision) for decision in decisions],
    }


def emit_metrics(context: Context, decisions: Sequence[Decision], *, complete: bool) -> None:
    """Write the tick's metrics, once for the cluster and once for each node group.

    What was not seen is not counted: there is no point then, rather than a wrong one.

    Args:
        context: What the decisions rest on.
        decisions: What was decided.
        complete: Whether nothing failed; only such a tick counts as a successful one.
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
            SURPLUS_NODES: counts[SURPLUS_NODES] + left_behind,
            HELD_GROUPS: sum(decision.is_held for decision in configured),
            MIXED_GROUPS: sum(decision.versions_problem is not None for decision in configured),
            SUCCESSFUL_TICKS: int(complete),
        }
        emit_counts(counts, **{CLUSTER_DIMENSION: settings.cluster})
    for name in settings.groups:
        if name not in unread:
            of_group = [decision for decision in configured if decision.node_group == name]
            emit_counts(_counts(of_group), **{CLUSTER_DIMENSION: settings.cluster, NODE_GROUP_DIMENSION: name})


def problem_began(settings: Settings, node_group: str, problem: Problem) -> tuple[str, str]:
    """Return the subject and the text of the message that a problem began."""
    text = f"Cluster {settings.cluster}\n\n{problem.sentence}\n\nYou are told once more, when this is over."
    began = _SUBJECTS.get(problem.kind, _MISSING)[0].format(node_group)
    return subject(f"{settings.cluster}: {began}"), text


def problem_ended(settings: Settings, node_group: str, kind: str, reason: str) -> tuple[str, str]:
    """Return the subject and the text of the message that a problem of a kind is over."""
    _, ended, words = _SUBJECTS.get(kind, _MISSING)
    text = f"Cluster {settings.cluster}\n\n{words}: {reason.removesuffix('.')}."
    return subject(f"{settings.cluster}: {ended.format(node_group)}"), text


def block_closes(settings: Settings, node_group: str, window: Window, left: timedelta) -> tuple[str, str]:
    """Return the subject and the text of the message that a node group's Capacity Block is about to end.

    Args:
        settings: The function's settings.
        node_group: The node group.
        window: What its block allows.
        left: In how much time its nodes go.
    """
    text = (
        f"Cluster {settings.cluster}\n\n{window.sentence}.\n\nThe nodes stay if the Capacity Block is extended "
        "before they go."
    )
    return subject(f"{settings.cluster}: the nodes of {node_group} go in {_minutes(left)}"), text


def reservation_ends(
    settings: Settings, node_group: str, id: str, ends: datetime, left: timedelta
) -> tuple[str, str]:
    """Return the subject and the text of the message that a node group's capacity reservation is about to end.

    Args:
        settings: The function's settings.
        node_group: The node group.
        id: The reservation's id.
        ends: When it ends.
        left: In how much time that is.
    """
    # https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-reservations-release.html
    text = (
        f"Cluster {settings.cluster}\n\n{node_group}: its capacity reservation {id} ends at {time_text(ends)}: nodes "
        "that run go on without it, and from then on no node can start.\n\nIt cannot be brought back once it has "
        "ended: give it a later end before, in the cluster's file if the cluster made it, and else in EC2."
    )
    return subject(f"{settings.cluster}: the capacity reservation of {node_group} ends in {_hours(left)}"), text


def listed_reservations_end(settings: Settings, node_group: str, end: ListedEnd, left: timedelta) -> tuple[str, str]:
    """Return the subject and the text of the message that some of a node group's reservations are about to end.

    Args:
        settings: The function's settings.
        node_group: The node group.
        end: Which reservations, and when they end.
        left: In how much time that is.
    """
    one, ids = len(end.reservations) == 1, ", ".join(end.reservations)
    ends, them = (f"reservation {ids} ends", "it") if one else (f"reservations {ids} end", "them")
    # https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/create-cr-group.html
    text = (
        f"Cluster {settings.cluster}\n\n{node_group}: its capacity {ends} at {time_text(end.ends)}: nodes that run "
        f"in {them} go on, at On-Demand prices, where no other reservation has room for them.\n\nGive {them} a later "
        "end in EC2 before that, put another into the cluster's file and deploy, or stop the node group."
    )
    what = f"a capacity reservation of {node_group} ends" if one else f"capacity reservations of {node_group} end"
    return subject(f"{settings.cluster}: {what} in {_hours(left)}"), text


# How a problem of a kind is told: its begin, its end, and the words before the reason for that.
_MISSING = ("nodes of {} are missing", "no nodes of {} are missing any more", "No nodes are missing any more")
_SUBJECTS: dict[str, tuple[str, str, str]] = {
    ProblemKind.MIXED_VERSIONS: (
        "nodes of {} run different launch template versions",
        "all nodes of {} run one launch template version again",
        "All nodes run one launch template version again",
    ),
    ProblemKind.EMPTIED: (
        "{} has no nodes and is not stopped",
        "{} is no longer empty without being stopped",
        "The node group is no longer empty without being stopped",
    ),
    ProblemKind.BLOCK: (
        "the Capacity Block of {} cannot be used",
        "the Capacity Block of {} is no problem any more",
        "The Capacity Block is no problem any more",
    ),
    ProblemKind.RESERVATION_ENDED: (
        "the capacity reservation of {} has ended",
        "the capacity reservation of {} is no problem any more",
        "The capacity reservation is no problem any more",
    ),
}


def _counts(decisions: Sequence[Decision]) -> dict[str, int]:
    return {
        MISSING_NODES: sum(decision.missing for decision in decisions),
        SURPLUS_NODES: sum(decision.surplus for decision in decisions),
        RUNNING_NODES: sum(_running(decision) for decision in decisions),
    }


def _hours(time: timedelta) -> str:
    hours = round(time.total_seconds() / 3600)
    return "less than an hour" if hours < 1 else "1 hour" if hours == 1 else f"{hours} hours"


def _minutes(time: timedelta) -> str:
    minutes = round(time.total_seconds() / 60)
    return "1 minute" if minutes == 1 else f"{minutes} minutes"


def _running(decision: Decision) -> int:
    return decision.group.in_service if decision.group else 0


def _summarize_group(decision: Decision) -> dict[str, object]:
    group = decision.group
    record = group.record if group else None
    problem = decision.problem or decision.surplus_problem or decision.versions_problem
    versions = count_versions(group) if group else {}
    return {
        "node_group": decision.node_group,
        "auto_scaling_group": group.name if group and group.owner is OwnerKind.AUTO_SCALING_GROUP else None,
        **({"spot_fleet": group.name} if group and group.owner is OwnerKind.SPOT_FLEET else {}),
        **({"capacity_block": decision.window.block} if decision.window else {}),
        "state": record.state.value if record and record.state else None,
        "by": record.by if record else "",
        "why": record.reason if record else "",
        "since": time_text(record.since) if record and record.since else None,
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
