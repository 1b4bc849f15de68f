"""How a node is set up when it first starts."""

from cdk_training_cluster.nodes.bootstrap.collector import Collector
from cdk_training_cluster.nodes.bootstrap.environment import HARMFUL_ENVIRONMENT, NEEDLESS_ENVIRONMENT
from cdk_training_cluster.nodes.bootstrap.node_bootstrap import (
    MAX_LUSTRE_INTERFACES,
    Mount,
    MountPoint,
    NodeBootstrap,
    lustre_interfaces,
    reaches_lustre,
)

__all__ = [
    "HARMFUL_ENVIRONMENT",
    "MAX_LUSTRE_INTERFACES",
    "NEEDLESS_ENVIRONMENT",
    "Collector",
    "Mount",
    "MountPoint",
    "NodeBootstrap",
    "lustre_interfaces",
    "reaches_lustre",
]
