"""What a rehearsal compares once a cluster is deployed, feature by feature: its templates, and the account."""

from collections.abc import Iterator

from rehearsal.checks.check import Check, Deployment
from rehearsal.checks.cost_budgets import COST_BUDGETS
from rehearsal.checks.guardrails import GUARDRAIL_FUNCTIONS
from rehearsal.checks.hydration import HYDRATION
from rehearsal.checks.hyperpod import INSTANCE_GROUPS
from rehearsal.checks.node_groups import NODE_GROUPS
from rehearsal.checks.purchases import PURCHASES, RESERVATIONS
from rehearsal.checks.slurm import SLURM_QUEUES
from rehearsal.checks.stacks import STACKS
from rehearsal.checks.storage import DATASETS, FILE_SYSTEM

CHECKS: tuple[Check, ...] = (
    *(STACKS, NODE_GROUPS, PURCHASES, RESERVATIONS, FILE_SYSTEM, DATASETS, HYDRATION),
    *(GUARDRAIL_FUNCTIONS, COST_BUDGETS, SLURM_QUEUES, INSTANCE_GROUPS),
)


def differences(deployment: Deployment) -> Iterator[str]:
    """Say where a deployed cluster differs from its templates, a sentence each.

    Args:
        deployment: The deployed cluster.
    """
    for check in CHECKS:
        yield from check.differences(deployment)


__all__ = ["CHECKS", "Check", "Deployment", "differences"]
