"""Where the nodes live: one Availability Zone, its subnets, the EFA security group and the interface layouts."""

from cdk_training_cluster.network.cluster_network import DEFAULT_CIDR, ClusterNetwork, node_range_of
from cdk_training_cluster.network.interfaces import InterfaceLayout, NetworkInterface, network_interfaces
from cdk_training_cluster.network.security_group import EfaSecurityGroup

__all__ = [
    "DEFAULT_CIDR",
    "ClusterNetwork",
    "EfaSecurityGroup",
    "InterfaceLayout",
    "NetworkInterface",
    "network_interfaces",
    "node_range_of",
]
