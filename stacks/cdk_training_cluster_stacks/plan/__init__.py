"""What a cluster will cost before it exists: the model, its costs, the report, and how it is shown."""

from cdk_training_cluster_stacks.plan.assumptions import Assumptions
from cdk_training_cluster_stacks.plan.lines import Line
from cdk_training_cluster_stacks.plan.report import Plan, make_plan
from cdk_training_cluster_stacks.plan.shape import ClusterShape, GroupShape, shape_of

__all__ = [
    "Assumptions",
    "ClusterShape",
    "GroupShape",
    "Line",
    "Plan",
    "make_plan",
    "shape_of",
]
