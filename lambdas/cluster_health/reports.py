"""What alarms and the log get to see of a run."""

from collections.abc import Mapping, Sequence

from cluster_common.metrics import CLUSTER_DIMENSION, emit_counts
from cluster_contract.health_settings import HealthFunctionSettings, HealthMetric
from cluster_health.outcomes import Finding, Outcome

_OVER = frozenset({Outcome.OBSERVED, Outcome.RETURNED, Outcome.REPLACED, Outcome.LEFT})
_REPAIRED = frozenset({Outcome.RETURNED, Outcome.REPLACED})


def emit_repaired(settings: HealthFunctionSettings, done: Sequence[Finding]) -> None:
    """Write how many repairs this run has seen to the end, where it has.

    Args:
        settings: The function's settings.
        done: What this run has done.
    """
    repaired = sum(one.outcome in _REPAIRED for one in done)
    if repaired:
        emit_counts({HealthMetric.REPAIRED_NODES: repaired}, **{CLUSTER_DIMENSION: settings.cluster})


def emit_metrics(settings: HealthFunctionSettings, findings: Sequence[Finding], *, evaluated: bool) -> None:
    """Write the metrics of a tick.

    Args:
        settings: The function's settings.
        findings: What was decided.
        evaluated: Whether everything could be read that the decisions rest on.
    """
    budgets = {one.node_group for one in findings if one.outcome is Outcome.BUDGET}
    emit_counts(
        {
            HealthMetric.FAULTY_NODES: sum(one.outcome not in _OVER for one in findings),
            HealthMetric.WAITING_NODES: sum(one.outcome.waits for one in findings),
            HealthMetric.BUDGET_SPENT: len(budgets),
            HealthMetric.EVALUATIONS: int(evaluated),
        },
        **{CLUSTER_DIMENSION: settings.cluster},
    )


def summarize(
    settings: HealthFunctionSettings, findings: Sequence[Finding], repairs_left: Mapping[str, int]
) -> dict[str, object]:
    """Return what was found, as plain JSON.

    Args:
        settings: The function's settings.
        findings: What was decided.
        repairs_left: How many repairs the window leaves, by node group.
    """
    return {
        "cluster": settings.cluster,
        "act": settings.policy.act,
        "window_hours": settings.policy.window.total_seconds() / 3600,
        "repairs_left": dict(repairs_left),
        "nodes": [
            {
                "node_group": one.node_group,
                "instance_id": one.instance_id,
                "outcome": one.outcome.value,
                "reason": one.reason,
                "undo": one.undo,
            }
            for one in findings
        ],
    }
