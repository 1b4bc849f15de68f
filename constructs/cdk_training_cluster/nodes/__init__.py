"""The nodes: their settings, their launch template and Auto Scaling group, and how they are set up."""

from cdk_training_cluster.nodes.bootstrap import Mount, MountPoint, NodeBootstrap
from cdk_training_cluster.nodes.gpu_sharing import GpuSharing, SharingMethod
from cdk_training_cluster.nodes.idle_policy import IdlePolicy, default_idle_policy
from cdk_training_cluster.nodes.idle_signal import IdleSignal
from cdk_training_cluster.nodes.node_fleet import NodeFleet
from cdk_training_cluster.nodes.node_group import NodeGroup, Placement
from cdk_training_cluster.nodes.node_metrics import node_metric, utilization_metric
from cdk_training_cluster.nodes.schedule import Schedule
from cdk_training_cluster.nodes.warm_pool import WarmPool
from cluster_contract.idle import IdleScope
from cluster_contract.schedule import ScheduleEnd

__all__ = [
    "GpuSharing",
    "IdlePolicy",
    "IdleScope",
    "IdleSignal",
    "Mount",
    "MountPoint",
    "NodeBootstrap",
    "NodeFleet",
    "NodeGroup",
    "Placement",
    "Schedule",
    "ScheduleEnd",
    "SharingMethod",
    "WarmPool",
    "default_idle_policy",
    "node_metric",
    "utilization_metric",
]
