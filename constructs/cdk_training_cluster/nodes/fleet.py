"""What a node group's construct has by the time its owner is made, which is made of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike

from aws_cdk import CfnTag, Stack, Token
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct

from cdk_training_cluster.instance_types import InstanceTypeInfo
from cdk_training_cluster.network import ClusterNetwork, NetworkInterface
from cdk_training_cluster.nodes.bootstrap import Collector, Mount, NodeBootstrap
from cdk_training_cluster.nodes.bootstrap.expected import efa_devices, expected_nodes
from cdk_training_cluster.nodes.layouts import LaunchLayout
from cdk_training_cluster.nodes.node_group import NodeGroup, Placement
from cdk_training_cluster.nodes.utilization import utilization_command
from cluster_contract.prices import on_demand_price
from cluster_contract.tags import CLUSTER_TAG, NODE_GROUP_TAG


@dataclass(frozen=True, kw_only=True)
class NodeSetup:
    """What a service changes in the set-up of its nodes.

    Attributes:
        mounts: Whether a node mounts the file system itself. Default: - it does.
        scripts_before: Files to run as root before the library's own steps and the user's. Default: - none.
        scripts_after: Files to run as root after the library's own steps, before the user's. Default: - none.
        user_data_parts: Parts of multi-part user data that stand before the script. Default: - none.
        launch_hook: The name of the lifecycle hook that waits until a node is set up. Default: - none waits.
        joins_disks: Whether a node joins its local NVMe disks itself. Default: - it does.
    """

    mounts: bool = True
    scripts_before: Sequence[str | PathLike[str]] = ()
    scripts_after: Sequence[str | PathLike[str]] = ()
    user_data_parts: Sequence[ec2.MultipartBody] = ()
    launch_hook: str | None = None
    joins_disks: bool = True


class Fleet(Construct):
    """Hold what the owner of a group's nodes is made of; `NodeFleet` explains and makes it."""

    node_group: NodeGroup
    cluster_name: str
    network: ClusterNetwork
    role: iam.IRole
    instance_profile: iam.IInstanceProfile
    encryption_key: kms.IKey | None
    mount: Mount | None
    instance_types: tuple[InstanceTypeInfo, ...]
    instance_type: InstanceTypeInfo
    network_interfaces: tuple[NetworkInterface, ...]
    placement_group: ec2.CfnPlacementGroup | None
    reports_efa_traffic: bool
    _environment: Mapping[str, str]
    _collector: Collector | None
    _runs_table: str | None
    _job_role_of_users: iam.IRole | None

    @property
    def efa_interfaces(self) -> int:
        """How many Elastic Fabric Adapters each node of the first type has."""
        return efa_devices(self.network_interfaces)

    @property
    def placement_group_name(self) -> str | None:
        """The placement group that the nodes go into, made here or not. None: they go into none."""
        if self.node_group.chosen_placement is Placement.NONE:
            return None
        if self.placement_group is not None:
            return self.placement_group.ref
        return self.node_group.capacity.placement_group

    @property
    def identifying_tags(self) -> list[CfnTag]:
        """The tags by which the functions find what belongs to the group, for what CDK's own tagging does not
        reach."""
        return [
            CfnTag(key=CLUSTER_TAG, value=self.cluster_name),
            CfnTag(key=NODE_GROUP_TAG, value=self.node_group.name),
        ]

    def make_bootstrap(
        self, id: str, layout: LaunchLayout, instance_types: Sequence[InstanceTypeInfo], setup: NodeSetup
    ) -> NodeBootstrap:
        """Make what sets nodes up, for an owner that takes no launch template; those that do are given it.

        Args:
            id: The construct's id.
            layout: The nodes' network interfaces.
            instance_types: The types that the nodes may have.
            setup: What the owner changes in it.
        """
        group = self.node_group
        try:
            return NodeBootstrap(
                self,
                id,
                cluster_name=self.cluster_name,
                node_group=group.name,
                role=self.role,
                job_role=self._job_role_of_users,
                instance_type=instance_types[0],
                expected=expected_nodes(instance_types, efa_devices(layout.interfaces)),
                efa=layout.efa,
                efa_traffic=layout.efa and self.reports_efa_traffic,
                mount=self.mount if setup.mounts else None,
                environment={**self._environment, **group.environment},
                scripts_before=[*setup.scripts_before, *group.scripts_before],
                scripts_after=[*setup.scripts_after, *group.scripts_after],
                launch_hook=setup.launch_hook,
                joins_disks=setup.joins_disks,
                collector=self._collector,
                runs_table=self._runs_table,
                node_hour_usd=self._node_hour_usd(instance_types[0]),
                utilization_command=utilization_command(group, instance_types[0]),
            )
        except ValueError as error:
            lines = str(error).splitlines()
            raise ValueError("\n".join(f"node group {group.name!r}: {line}" for line in lines)) from error

    def _node_hour_usd(self, instance_type: InstanceTypeInfo) -> float | None:
        """Return the On-Demand price of a node. None: it is not known, or nodes of one template have several."""
        region = Stack.of(self).region
        if len(self.instance_types) > 1 or self.node_group.capacity.uses_spot or Token.is_unresolved(region):
            return None
        return on_demand_price(instance_type.name, region)
