"""What AWS says about node groups: each rule a row of a table, with the address of the document that states it."""

from cdk_training_cluster.nodes.rules.cluster_rules import (
    CLUSTER_RULES,
    ClusterRule,
    cluster_problems,
    cluster_warnings,
)
from cdk_training_cluster.nodes.rules.idle_rules import (
    IDLE_RULES,
    TOO_LONG_A_WARNING,
    idle_policies,
    idle_problems,
    idle_warnings,
)
from cdk_training_cluster.nodes.rules.node_group_rules import (
    NODE_GROUP_RULES,
    node_group_problems,
    node_group_warnings,
)
from cdk_training_cluster.nodes.rules.rule import Level, Rule, Situation

__all__ = [
    "CLUSTER_RULES",
    "IDLE_RULES",
    "NODE_GROUP_RULES",
    "TOO_LONG_A_WARNING",
    "ClusterRule",
    "Level",
    "Rule",
    "Situation",
    "cluster_problems",
    "cluster_warnings",
    "idle_policies",
    "idle_problems",
    "idle_warnings",
    "node_group_problems",
    "node_group_warnings",
]
