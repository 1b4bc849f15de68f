"""How the nodes of a group are bought."""

from cdk_training_cluster.capacity.choices import UNTIL_CANCELLED, OnIdle, UntilCancelled
from cdk_training_cluster.capacity.kinds import Capacity
from cdk_training_cluster.capacity.limits import MAX_HOURLY_USD

__all__ = ["MAX_HOURLY_USD", "UNTIL_CANCELLED", "Capacity", "OnIdle", "UntilCancelled"]
