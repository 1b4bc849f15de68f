"""What AWS says about node groups: each rule a row of a table, with the address of the document that states it."""

from cdk_training_cluster.nodes.rules.cluster_rules import CLUSTER_RULES, together_problems, together_warnings
from cdk_training_cluster.nodes.rules.idle_rules import IDLE_RULES, TOO_LONG_A_WARNING
from cdk_training_cluster.nodes.rules.judging import cluster_problems, idle_warnings, look_up
from cdk_training_cluster.nodes.rules.node_group_rules import (
    NODE_GROUP_RULES,
    check_node_group,
    node_group_problems,
    node_group_warnings,
)
from cdk_training_cluster.nodes.rules.rule import ClusterRule, Level, NodeGroupRule, Situation, Together

__all__ = [
    "CLUSTER_RULES",
    "IDLE_RULES",
    "NODE_GROUP_RULES",
    "TOO_LONG_A_WARNING",
    "ClusterRule",
    "Level",
    "NodeGroupRule",
    "Situation",
    "Together",
    "check_node_group",
    "cluster_problems",
    "idle_warnings",
    "look_up",
    "node_group_problems",
    "node_group_warnings",
    "together_problems",
    "together_warnings",
]
