"""How the nodes of a group are bought."""

from cdk_training_cluster.capacity.choices import UNTIL_CANCELLED, OnIdle, UntilCancelled
from cdk_training_cluster.capacity.kinds import Capacity

__all__ = ["UNTIL_CANCELLED", "Capacity", "OnIdle", "UntilCancelled"]
