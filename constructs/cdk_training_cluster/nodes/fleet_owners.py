"""Which service launches the nodes of each group: what its launch templates say, and the resource that it is."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from aws_cdk import CfnResource
from aws_cdk import aws_autoscaling as autoscaling
from aws_cdk import aws_iam as iam

from cdk_training_cluster.core.encryption import KeyUser
from cdk_training_cluster.nodes import launch_dialect
from cdk_training_cluster.nodes.bootstrap.expected import is_verified
from cdk_training_cluster.nodes.fleet import Fleet, NodeSetup
from cdk_training_cluster.nodes.launch_dialect import LaunchTemplateDialect
from cdk_training_cluster.nodes.node_group import NodeGroup
from cdk_training_cluster.nodes.owners import Launch, make_auto_scaling_group, make_spot_fleet
from cdk_training_cluster.nodes.reserved import Reserved
from cluster_contract.owners import OwnerKind, OwnerSettings

LAUNCH_HOOK = "ready"
"""The name of the lifecycle hook that waits until a node is set up and verified."""

# Twice what the slowest set-up known takes, file system and scripts included; then the node is taken as it is.
_LAUNCH_HOOK_SECONDS = 1800


@dataclass(frozen=True, kw_only=True)
class MadeOwner:
    """The owner of a group's nodes, which launches and replaces them.

    Attributes:
        resource: The resource. What must be there before nodes start is made a dependency of it.
        settings: What the functions have to know of it. Default: - an Auto Scaling group, which is found by its tags.
        size_permissions: What whoever gives it a size must be allowed beside the action that does.
            Default: - nothing.
    """

    resource: CfnResource
    settings: OwnerSettings | None = None
    size_permissions: tuple[iam.PolicyStatement, ...] = ()


class FleetOwners(ABC):
    """Say how the nodes of each group are launched, and make what launches them.

    Attributes:
        serves_job_role: Whether nodes give their users credentials of the jobs' role, and those of their own to root
            alone.
    """

    serves_job_role: bool = False

    @abstractmethod
    def dialect(self, node_group: NodeGroup) -> LaunchTemplateDialect | None:
        """Return what the group's launch templates say. None: its nodes are launched from none.

        Args:
            node_group: The group.
        """

    @abstractmethod
    def make_owner(self, fleet: Fleet, launches: Sequence[Launch], reserved: Reserved) -> MadeOwner:
        """Make the owner of a group's nodes, with no nodes: a deployment must not wait for capacity.

        Args:
            fleet: The group's construct, and the scope of what is made.
            launches: The launch templates, best first.
            reserved: What is reserved for the nodes.
        """

    def node_setup(self, fleet: Fleet) -> NodeSetup:  # noqa: ARG002 - for those that need it
        """Return what differs in the set-up of a group's nodes.

        Args:
            fleet: The group's construct.
        """
        return NodeSetup()

    def key_users(self, node_group: NodeGroup) -> Sequence[KeyUser]:
        """Return what uses the key of encrypted root volumes to launch nodes.

        Args:
            node_group: The group.
        """
        return node_group.capacity.key_users

    def security_groups(self, fleet: Fleet) -> Sequence[str]:  # noqa: ARG002 - for those that need it
        """Return the ids of the security groups that nodes get beside the network's own.

        Args:
            fleet: The group's construct.
        """
        return ()

    def price_name(self, instance_type: str) -> str:
        """Return what the price of an instance is listed as.

        Args:
            instance_type: The type.
        """
        return instance_type


class AutoScaling(FleetOwners):
    """Launch nodes with Auto Scaling groups, and with Spot Fleets where `Capacity.spot_fleet()` asks for them."""

    serves_job_role: bool = True

    def dialect(self, node_group: NodeGroup) -> LaunchTemplateDialect:
        """Return what the group's launch templates say."""
        is_fleet = node_group.capacity.owned_by_spot_fleet
        return launch_dialect.SPOT_FLEET if is_fleet else launch_dialect.AUTO_SCALING

    def node_setup(self, fleet: Fleet) -> NodeSetup:
        """Return that nodes of a group with a hook say when they are set up and verified."""
        return NodeSetup(launch_hook=LAUNCH_HOOK if _has_launch_hook(fleet) else None)

    def make_owner(self, fleet: Fleet, launches: Sequence[Launch], reserved: Reserved) -> MadeOwner:
        """Make the group's Auto Scaling group or Spot Fleet."""
        node_group = fleet.node_group
        if node_group.capacity.owned_by_spot_fleet:
            spot_fleet = make_spot_fleet(
                fleet, capacity=node_group.capacity, launches=launches, tags=fleet.identifying_tags
            )
            settings = OwnerSettings(kind=OwnerKind.SPOT_FLEET, id=spot_fleet.ref)
            return MadeOwner(resource=spot_fleet, settings=settings)
        group = make_auto_scaling_group(
            fleet,
            node_group=node_group,
            launches=launches,
            network=fleet.network,
            placement_group=fleet.placement_group_name,
            reserved=reserved,
        )
        hook = _make_launch_hook(fleet, group) if _has_launch_hook(fleet) else None
        if hook is not None and node_group.warm_pool is not None:
            _make_warm_pool(fleet, group, size=node_group.warm_pool.size).node.add_dependency(hook)
        return MadeOwner(resource=group)


def _has_launch_hook(fleet: Fleet) -> bool:
    group = fleet.node_group
    verified = any(is_verified(info, fleet.efa_interfaces) for info in fleet.instance_types)
    return not group.capacity.owned_by_spot_fleet and (group.warm_pool is not None or verified)


def _make_launch_hook(fleet: Fleet, group: autoscaling.CfnAutoScalingGroup) -> autoscaling.CfnLifecycleHook:
    # Without it, a node that fails its verification would be in service before it knows, and one of a warm pool would
    # be stopped in the middle of its set-up.
    # https://docs.aws.amazon.com/autoscaling/ec2/userguide/warm-pool-instance-lifecycle.html and
    # https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_PutLifecycleHook.html
    return autoscaling.CfnLifecycleHook(
        fleet,
        "LaunchHook",
        auto_scaling_group_name=group.ref,
        lifecycle_hook_name=LAUNCH_HOOK,
        lifecycle_transition="autoscaling:EC2_INSTANCE_LAUNCHING",
        # A node whose set-up failed stays to be inspected; another in its place would fail in the same way. One that
        # failed its verification answers by itself.
        default_result="CONTINUE",
        heartbeat_timeout=_LAUNCH_HOOK_SECONDS,
    )


def _make_warm_pool(fleet: Fleet, group: autoscaling.CfnAutoScalingGroup, *, size: int) -> autoscaling.CfnWarmPool:
    return autoscaling.CfnWarmPool(
        fleet,
        "WarmPool",
        auto_scaling_group_name=group.ref,
        # Left out, the pool would be as large as the group, and launched at once.
        max_group_prepared_capacity=size,
        min_size=0,
        pool_state="Stopped",
        instance_reuse_policy=autoscaling.CfnWarmPool.InstanceReusePolicyProperty(reuse_on_scale_in=True),
    )
