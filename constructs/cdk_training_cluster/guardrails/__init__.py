"""What watches a cluster so that nothing of it costs money unnoticed."""

from cdk_training_cluster.functions import Guardrail
from cdk_training_cluster.guardrails.checkpoint_watch import CheckpointWatch
from cdk_training_cluster.guardrails.health import NodeHealth
from cdk_training_cluster.guardrails.hydration import DatasetHydration
from cdk_training_cluster.guardrails.idle.idle_group import IdleGroup
from cdk_training_cluster.guardrails.idle.idle_stop import IdleStop
from cdk_training_cluster.guardrails.money.billing_alarms import BillingAlarms, place_problems
from cdk_training_cluster.guardrails.money.budget import Budget
from cdk_training_cluster.guardrails.money.cost_budget import CostBudget
from cdk_training_cluster.guardrails.money.cost_report import WeeklyCostReport
from cdk_training_cluster.guardrails.money.spend import ClusterSpend
from cdk_training_cluster.guardrails.money.spend_group import SpendGroup
from cdk_training_cluster.guardrails.power import ClusterPower
from cdk_training_cluster.guardrails.power.resume_document import ResumeDocument
from cluster_contract.spend import OnExceed

GUARDRAILS: tuple[type[Guardrail], ...] = (
    ClusterPower,
    IdleStop,
    NodeHealth,
    CheckpointWatch,
    ClusterSpend,
    BillingAlarms,
    WeeklyCostReport,
    DatasetHydration,
)
"""The kinds of guardrails that a cluster may have, in the order in which its overview shows them."""

__all__ = [
    "GUARDRAILS",
    "BillingAlarms",
    "Budget",
    "CheckpointWatch",
    "ClusterSpend",
    "CostBudget",
    "DatasetHydration",
    "IdleGroup",
    "IdleStop",
    "OnExceed",
    "ResumeDocument",
    "SpendGroup",
    "WeeklyCostReport",
    "place_problems",
]
