"""What a cluster has cost: AWS's bill of it, what its nodes did, and what follows."""

from cdk_training_cluster_cli.money.costs.report import CostReport, make_report
from cdk_training_cluster_cli.money.costs.usage import GroupUse, Usage
from cluster_contract.bill import Bill, Charge

__all__ = ["Bill", "Charge", "CostReport", "GroupUse", "Usage", "make_report"]
