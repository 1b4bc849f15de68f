"""The power function, which owns the sizes of a cluster's node groups."""

from cdk_training_cluster.guardrails.power.cluster_power import ClusterPower
from cdk_training_cluster.guardrails.power.power_group import PowerGroup

__all__ = ["ClusterPower", "PowerGroup"]
