"""What a cluster will cost before it exists: the model, its costs, the report, and how it is shown."""

from cdk_training_cluster_cli.money.plan.assumptions import Assumptions
from cdk_training_cluster_cli.money.plan.lines import Line
from cdk_training_cluster_cli.money.plan.report import Plan, make_plan
from cdk_training_cluster_cli.money.plan.shape import ClusterShape, GroupShape, shape_of

__all__ = [
    "Assumptions",
    "ClusterShape",
    "GroupShape",
    "Line",
    "Plan",
    "make_plan",
    "shape_of",
]
