"""How the nodes of a group are bought."""

from cdk_training_cluster.capacity.capacity import Capacity

__all__ = ["Capacity"]
