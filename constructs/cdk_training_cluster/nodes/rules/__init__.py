"""What AWS says about node groups: each rule a row of a table, with the address of the document that states it."""

from cdk_training_cluster.nodes.rules.cluster_rules import CLUSTER_RULES
from cdk_training_cluster.nodes.rules.context import ClusterContext, NodeGroupContext
from cdk_training_cluster.nodes.rules.idle_rules import IDLE_RULES
from cdk_training_cluster.nodes.rules.judging import (
    NODE_GROUP_RULES,
    by_rule,
    check_node_group,
    cluster_problems,
    node_group_problems,
    node_group_warnings,
    together_problems,
    together_warnings,
)
from cdk_training_cluster.nodes.rules.orchestrator_rules import ORCHESTRATOR_RULES
from cdk_training_cluster.nodes.rules.schedule_rules import SCHEDULE_RULES

__all__ = [
    "CLUSTER_RULES",
    "IDLE_RULES",
    "NODE_GROUP_RULES",
    "ORCHESTRATOR_RULES",
    "SCHEDULE_RULES",
    "ClusterContext",
    "NodeGroupContext",
    "by_rule",
    "check_node_group",
    "cluster_problems",
    "node_group_problems",
    "node_group_warnings",
    "together_problems",
    "together_warnings",
]
