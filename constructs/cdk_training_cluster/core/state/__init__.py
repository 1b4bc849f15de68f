"""What a cluster's functions keep from one run to the next."""

from cdk_training_cluster.core.state.cluster_state import ClusterState

__all__ = ["ClusterState"]
