"""How a node is set up when it first starts."""

from cdk_training_cluster.nodes.bootstrap.environment import HARMFUL_ENVIRONMENT, NEEDLESS_ENVIRONMENT
from cdk_training_cluster.nodes.bootstrap.node_bootstrap import Mount, MountPoint, NodeBootstrap, reaches_lustre

__all__ = ["HARMFUL_ENVIRONMENT", "NEEDLESS_ENVIRONMENT", "Mount", "MountPoint", "NodeBootstrap", "reaches_lustre"]
