"""What people and alarms get to see: the summary, the metrics and the messages."""

from collections.abc import Sequence

from cluster_common.metrics import CLUSTER_DIMENSION, NODE_GROUP_DIMENSION, emit_counts
from cluster_power.decisions import HELD_VERDICTS, Decision
from cluster_power.launch_failures import ProblemKind
from cluster_power.memory import time_text
from cluster_power.orders import Order
from cluster_power.problems import Problem
from cluster_power.settings import Settings

MISSING_NODES = "MissingNodes"
SURPLUS_NODES = "SurplusNodes"
RUNNING_NODES = "RunningNodes"
HELD_GROUPS = "HeldGroups"
SUCCESSFUL_TICKS = "SuccessfulTicks"

# https://docs.aws.amazon.com/sns/latest/api/API_Publish.html: ASCII, no line breaks, less than 100
# characters.
_SUBJECT_LENGTH = 99


def summarize(settings: Settings, order: Order, decisions: Sequence[Decision]) -> dict[str, object]:
    """Return what was found and done, as plain JSON."""
    return {
        "cluster": settings.cluster,
        "action": order.action.value,
        "node_groups": [_summarize_group(decision) for decision in decisions],
    }


def emit_metrics(settings: Settings, decisions: Sequence[Decision], *, complete: bool) -> None:
    """Write the tick's metrics, once for the cluster and once for each node group.

    Args:
        settings: The function's settings.
        decisions: What was decided.
        complete: Whether nothing failed; only such a tick counts as a successful one.
    """
    configured = [decision for decision in decisions if decision.node_group in settings.counts]
    emit_counts(
        {
            MISSING_NODES: sum(decision.missing for decision in configured),
            SURPLUS_NODES: sum(decision.surplus for decision in configured),
            RUNNING_NODES: sum(_running(decision) for decision in configured),
            HELD_GROUPS: sum(decision.verdict in HELD_VERDICTS for decision in configured),
            SUCCESSFUL_TICKS: int(complete),
        },
        **{CLUSTER_DIMENSION: settings.cluster},
    )
    for name in settings.counts:
        of_group = [decision for decision in configured if decision.node_group == name]
        emit_counts(
            {
                MISSING_NODES: sum(decision.missing for decision in of_group),
                SURPLUS_NODES: sum(decision.surplus for decision in of_group),
                RUNNING_NODES: sum(_running(decision) for decision in of_group),
            },
            **{CLUSTER_DIMENSION: settings.cluster, NODE_GROUP_DIMENSION: name},
        )


def problem_began(settings: Settings, node_group: str, problem: Problem) -> tuple[str, str]:
    """Return the subject and the text of the message that a problem began."""
    text = f"Cluster {settings.cluster}\n\n{problem.sentence}\n\nYou are told once more, when this is over."
    words = (
        f"too many nodes of {node_group} run"
        if problem.kind is ProblemKind.SURPLUS
        else f"nodes of {node_group} are missing"
    )
    return _subject(f"{settings.cluster}: {words}"), text


def problem_ended(settings: Settings, node_group: str, kind: str | None, reason: str) -> tuple[str, str]:
    """Return the subject and the text of the message that a problem of a kind is over."""
    subject, words = (
        (f"no longer too many nodes of {node_group} run", "No more nodes run than should")
        if kind == ProblemKind.SURPLUS
        else (f"no nodes of {node_group} are missing any more", "No nodes are missing any more")
    )
    text = f"Cluster {settings.cluster}\n\n{words}: {reason.removesuffix('.')}."
    return _subject(f"{settings.cluster}: {subject}"), text


def _subject(text: str) -> str:
    return text.encode("ascii", "replace").decode("ascii")[:_SUBJECT_LENGTH]


def _running(decision: Decision) -> int:
    return decision.group.in_service if decision.group else 0


def _summarize_group(decision: Decision) -> dict[str, object]:
    group = decision.group
    memory = group.memory if group else None
    problem = decision.problem or decision.surplus_problem
    return {
        "node_group": decision.node_group,
        "auto_scaling_group": group.name if group else None,
        "state": memory.state.value if memory and memory.state else None,
        "by": memory.by if memory else "",
        "why": memory.reason if memory else "",
        "since": time_text(memory.since) if memory and memory.since else None,
        "wanted": decision.wanted,
        "desired": group.desired if group else 0,
        "in_service": group.in_service if group else 0,
        "alive": group.alive if group else 0,
        "missing": decision.missing,
        "surplus": decision.surplus,
        "decision": decision.verdict.value,
        "reason": decision.reason,
        "problem": problem.kind.value if problem else None,
    }
