"""What is reserved for the nodes of a group: made here, or made before and named here."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from aws_cdk import CfnResource, CfnTag, Fn, Names
from aws_cdk import aws_autoscaling as autoscaling
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_resourcegroups as resourcegroups
from constructs import Construct

from cdk_training_cluster.capacity import Capacity
from cdk_training_cluster.core.conditions import HERE
from cdk_training_cluster.nodes.node_group import NodeGroup
from cdk_training_cluster.nodes.reservation_function import ReservationFunction

# https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-resourcegroups-group.html
_LONGEST_GROUP_NAME = 128
_GROUP_NAME_PREFIX = "reservations-"

# CloudFormation changes the type of no resource: each type has an id of its own.
# https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/crpg-ref-requesttypes-update.html
_ID, _PLACED_ID = "CapacityReservation", "PlacedReservation"


@dataclass(frozen=True, kw_only=True)
class Reserved:
    """What is reserved for the nodes of a group, and how their Auto Scaling group names it.

    Attributes:
        reservation: The reservation that was made. None: none was.
        resource_group: The resource group of reservations that was made. None: none was.
        reservation_id: The reservation that the group launches into. None: it launches into none.
    """

    reservation: CfnResource | None = None
    resource_group: resourcegroups.CfnGroup | None = None
    reservation_id: str | None = None

    @property
    def group_specification(
        self,
    ) -> autoscaling.CfnAutoScalingGroup.CapacityReservationSpecificationProperty | None:
        """How the Auto Scaling group uses what is reserved. None: it says nothing."""
        group = autoscaling.CfnAutoScalingGroup
        if self.reservation_id is not None:
            # Any other preference falls back to On-Demand, and is billed twice.
            # https://docs.aws.amazon.com/autoscaling/ec2/userguide/target-capacity-reservations.html
            return group.CapacityReservationSpecificationProperty(
                capacity_reservation_preference="capacity-reservations-only",
                capacity_reservation_target=group.CapacityReservationTargetProperty(
                    capacity_reservation_ids=[self.reservation_id]
                ),
            )
        if self.resource_group is not None:
            # The only preference that distribution segments take.
            # https://docs.aws.amazon.com/autoscaling/ec2/userguide/use-distribution-segments.html
            return group.CapacityReservationSpecificationProperty(
                capacity_reservation_preference="default",
                capacity_reservation_target=group.CapacityReservationTargetProperty(
                    capacity_reservation_resource_group_arns=[self.resource_group.attr_arn]
                ),
            )
        return None


def make_reserved(
    scope: Construct,
    *,
    node_group: NodeGroup,
    availability_zone: str,
    placement_group: ec2.CfnPlacementGroup | None,
    tags: Sequence[CfnTag],
    reservations: Callable[[], ReservationFunction],
) -> Reserved:
    """Make what a node group's capacity says is to be reserved, or name what exists.

    Args:
        scope: The parent construct.
        node_group: What is reserved for.
        availability_zone: Where.
        placement_group: The placement group that a new reservation is made in. None: in none.
        tags: The tags of a new reservation.
        reservations: Returns the function that reserves in placement groups.
    """
    capacity = node_group.capacity
    made = None
    if capacity.makes_reservation:
        settings = {
            "instance_type": node_group.instance_types[0],
            "instance_count": node_group.count,
            "tenancy": "default",
            "availability_zone": availability_zone,
            # An open one would be taken by any instance of the account that happens to fit.
            "instance_match_criteria": "targeted",
            **capacity.reservation_settings,
        }
        made = (
            _make_reservation(scope, settings, tags)
            if placement_group is None
            else _make_in_placement_group(
                scope, {**settings, "on_idle": capacity.on_idle.value}, tags, placement_group, reservations()
            )
        )
    return Reserved(
        reservation=made,
        resource_group=_make_resource_group(scope, capacity) if capacity.is_prioritized else None,
        reservation_id=capacity.reservation_id if made is None else made.ref,
    )


def _make_reservation(
    scope: Construct, settings: Mapping[str, Any], tags: Sequence[CfnTag]
) -> ec2.CfnCapacityReservation:
    specification = ec2.CfnCapacityReservation.TagSpecificationProperty(
        resource_type="capacity-reservation", tags=list(tags)
    )
    return ec2.CfnCapacityReservation(scope, _ID, tag_specifications=[specification], **settings)


def _make_in_placement_group(
    scope: Construct,
    settings: Mapping[str, Any],
    tags: Sequence[CfnTag],
    placement_group: ec2.CfnPlacementGroup,
    function: ReservationFunction,
) -> CfnResource:
    properties = {name.title().replace("_", ""): value for name, value in settings.items()}
    return function.reserve(
        scope,
        _PLACED_ID,
        {**properties, "PlacementGroupArn": _placement_group_arn(placement_group)},
        tags,
    )


def _placement_group_arn(group: ec2.CfnPlacementGroup) -> str:
    # A placement group has no Arn to ask for.
    return Fn.sub(
        "arn:${AWS::Partition}:ec2:${AWS::Region}:${AWS::AccountId}:placement-group/${Name}", {"Name": group.ref}
    )


def _make_resource_group(scope: Construct, capacity: Capacity) -> resourcegroups.CfnGroup:
    group = resourcegroups.CfnGroup
    # CloudFormation makes no name for these. The stack's is in it already, unless it is not known before.
    name = Names.unique_resource_name(scope, max_length=_LONGEST_GROUP_NAME - len(_GROUP_NAME_PREFIX), separator="-")
    return group(
        scope,
        "Reservations",
        name=f"{_GROUP_NAME_PREFIX}{name}",
        # https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/cr-groups-create.html
        configuration=[
            group.ConfigurationItemProperty(type="AWS::EC2::CapacityReservationPool"),
            group.ConfigurationItemProperty(
                type="AWS::ResourceGroups::Generic",
                parameters=[
                    group.ConfigurationParameterProperty(
                        name="allowed-resource-types", values=["AWS::EC2::CapacityReservation"]
                    )
                ],
            ),
        ],
        resources=[_reservation_arn(one) for one in (*capacity.reservations, *capacity.capacity_blocks)],
    )


def _reservation_arn(reservation: str) -> str:
    if reservation.startswith("arn:"):
        return reservation
    return HERE.arn("ec2", f"capacity-reservation/{reservation}")
