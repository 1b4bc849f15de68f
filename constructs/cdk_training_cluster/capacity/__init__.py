"""How the nodes of a group are bought."""

from cdk_training_cluster.capacity.capacity import Capacity
from cdk_training_cluster.capacity.choices import UNTIL_CANCELLED, OnIdle, UntilCancelled

__all__ = ["UNTIL_CANCELLED", "Capacity", "OnIdle", "UntilCancelled"]
