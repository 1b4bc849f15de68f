"""Who launches nodes and brings them back: an Auto Scaling group, or a Spot Fleet for elastic extras."""

from collections.abc import Sequence
from dataclasses import dataclass

from aws_cdk import CfnAutoScalingScheduledAction, CfnTag, CfnUpdatePolicy
from aws_cdk import aws_autoscaling as autoscaling
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from constructs import Construct

from cdk_training_cluster.capacity import Capacity
from cdk_training_cluster.core.acknowledgements import acknowledge
from cdk_training_cluster.instance_types import InstanceTypeInfo
from cdk_training_cluster.network import ClusterNetwork
from cdk_training_cluster.nodes.node_group import NodeGroup
from cdk_training_cluster.nodes.reserved import Reserved

_Group = autoscaling.CfnAutoScalingGroup


@dataclass(frozen=True, kw_only=True)
class Launch:
    """A launch template and the types that are launched from it."""

    template: ec2.LaunchTemplate
    instance_types: tuple[InstanceTypeInfo, ...]


def make_auto_scaling_group(
    scope: Construct,
    *,
    node_group: NodeGroup,
    launches: Sequence[Launch],
    network: ClusterNetwork,
    placement_group: str | None,
    reserved: Reserved,
) -> autoscaling.CfnAutoScalingGroup:
    """Make the Auto Scaling group of a node group, empty.

    Args:
        scope: The parent construct.
        node_group: What its nodes are; the construct's id says how they are bought.
        launches: The launch templates, best first.
        network: Where the nodes live.
        placement_group: The name of the placement group. None: they go into none.
        reserved: What is reserved for them.
    """
    capacity, distribution = node_group.capacity, node_group.capacity.instances_distribution
    mixed = None if distribution is None else _mixed_instances_policy(node_group, launches, distribution)
    group = _Group(
        scope,
        capacity.owner_id,
        min_size="0",
        max_size=str(node_group.count),
        vpc_zone_identifier=[network.node_subnet.subnet_id],
        launch_template=None if mixed else _specification(launches[0].template),
        mixed_instances_policy=mixed,
        # Left out, what an earlier deployment switched on would stay.
        capacity_rebalance=capacity.capacity_rebalancing,
        capacity_reservation_specification=reserved.group_specification,
        placement_group=placement_group,
        termination_policies=["NewestInstance"] if capacity.ends_newest_first else None,
    )
    # Health replacement is left on: a node whose checks fail has ended its gang's job already, and the job starts
    # again from its checkpoint only when the gang is whole. Where `NodeHealth` acts, it changes that.
    # https://docs.aws.amazon.com/autoscaling/ec2/userguide/health-checks-overview.html
    #
    # Without the policy, any deployment that touches the group would set its sizes anew and wake a stopped
    # cluster.
    # https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/aws-attribute-updatepolicy.html
    group.cfn_options.update_policy = CfnUpdatePolicy(
        auto_scaling_scheduled_action=CfnAutoScalingScheduledAction(ignore_unmodified_group_size_properties=True)
    )
    acknowledge(
        group,
        "AwsSolutions-AS3",
        "A training node joins and leaves with its gang: the power function reports what is missing and why, "
        "once, instead of a message for every launch.",
    )
    if mixed:
        acknowledge(
            group,
            "AwsSolutions-EC26",
            "The rule fails over a group of several launch templates; each of them encrypts its root volume.",
        )
    return group


def make_spot_fleet(
    scope: Construct,
    *,
    capacity: Capacity,
    launches: Sequence[Launch],
    tags: Sequence[CfnTag],
) -> ec2.CfnSpotFleet:
    """Make the Spot Fleet of a node group, with a target of none and the role by which it launches.

    Args:
        scope: The parent construct.
        capacity: How it buys; the construct's id is its.
        launches: The launch templates, best first.
        tags: What the request is found by. They can never change: a new tag would make a new fleet.
    """
    role = iam.Role(
        scope,
        f"{capacity.owner_id}Role",
        assumed_by=iam.ServicePrincipal("spotfleet.amazonaws.com"),
        description="Launches, tags and terminates the instances of a Spot Fleet",
        managed_policies=[
            iam.ManagedPolicy.from_aws_managed_policy_name("service-role/AmazonEC2SpotFleetTaggingRole")
        ],
    )
    acknowledge(
        role,
        "AwsSolutions-IAM4[Policy::arn:<AWS::Partition>:iam::aws:policy/service-role/AmazonEC2SpotFleetTaggingRole]",
        "Spot Fleet's own policy, which AWS extends as the service needs more.",
    )
    return ec2.CfnSpotFleet(
        scope,
        capacity.owner_id,
        spot_fleet_request_config_data=ec2.CfnSpotFleet.SpotFleetRequestConfigDataProperty(
            # Only this type can be changed afterwards, which is how the power function sizes it.
            type="maintain",
            target_capacity=0,
            iam_fleet_role=role.role_arn,
            # Spelled otherwise than Auto Scaling's. https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_SpotFleetRequestConfigData.html
            allocation_strategy="priceCapacityOptimized",
            # In a placement group nothing else is allowed, and a stopped Spot node keeps its volumes for nothing.
            instance_interruption_behavior="terminate",
            # CloudFormation may send the target above along with any later change: nodes must survive that.
            excess_capacity_termination_policy="noTermination",
            # No capacity rebalancing: a fleet's `launch` leaves the endangered node running, and both are billed, and
            # `launch-before-terminate` ends it after a delay that knows nothing of checkpoints. Interruptions come
            # with two minutes' notice either way.
            # https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-fleet-capacity-rebalance.html
            spot_price=capacity.max_price_text,
            launch_template_configs=[_fleet_config(launch) for launch in launches],
            tag_specifications=[
                ec2.CfnSpotFleet.SpotFleetTagSpecificationProperty(
                    resource_type="spot-fleet-request", tags=list(tags)
                )
            ],
        ),
    )


def _fleet_config(launch: Launch) -> ec2.CfnSpotFleet.LaunchTemplateConfigProperty:
    return ec2.CfnSpotFleet.LaunchTemplateConfigProperty(
        launch_template_specification=ec2.CfnSpotFleet.FleetLaunchTemplateSpecificationProperty(
            launch_template_id=launch.template.launch_template_id, version=launch.template.latest_version_number
        ),
        overrides=[
            ec2.CfnSpotFleet.LaunchTemplateOverridesProperty(instance_type=info.name)
            for info in launch.instance_types
        ],
    )


def _mixed_instances_policy(
    node_group: NodeGroup,
    launches: Sequence[Launch],
    distribution: autoscaling.CfnAutoScalingGroup.InstancesDistributionProperty,
) -> autoscaling.CfnAutoScalingGroup.MixedInstancesPolicyProperty:
    by_type = {info.name: launch for launch in launches for info in launch.instance_types}
    base = launches[0]
    return _Group.MixedInstancesPolicyProperty(
        instances_distribution=distribution,
        launch_template=_Group.LaunchTemplateProperty(
            launch_template_specification=_specification(base.template),
            # In the user's order, which is the order of preference.
            overrides=[
                _Group.LaunchTemplateOverridesProperty(
                    instance_type=name,
                    launch_template_specification=(
                        None if by_type[name] is base else _specification(by_type[name].template)
                    ),
                )
                for name in node_group.instance_types
            ],
        ),
    )


def _specification(
    template: ec2.LaunchTemplate,
) -> autoscaling.CfnAutoScalingGroup.LaunchTemplateSpecificationProperty:
    return _Group.LaunchTemplateSpecificationProperty(
        launch_template_id=template.launch_template_id, version=template.latest_version_number
    )
