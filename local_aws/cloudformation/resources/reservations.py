"""Capacity Reservations, and resource groups of them."""

from local_aws.cloudformation.resources.action import Action
from local_aws.cloudformation.resources.base import (
    Attributes,
    Call,
    Handler,
    Properties,
)
from local_aws.cloudformation.resources.regular import Members, Regular
from local_aws.cloudformation.resources.tags import retag

_CHANGEABLE = "EndDate EndDateType InstanceCount InstanceMatchCriteria"
_FIXED = (
    "AvailabilityZone AvailabilityZoneId EbsOptimized EphemeralStorage InstancePlatform InstanceType "
    "PlacementGroupArn TagSpecifications Tenancy"
)


class _CapacityReservation(Regular):
    """A reservation that says its tags as a launch template does, and that is cancelled unless it is over.

    https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-ec2-capacityreservation.html
    """

    def update(self, call: Call, properties: Properties, before: Properties) -> Attributes:
        retag(call, "ec2", _tagged(properties), _tagged(before))
        return super().update(call, {**properties, "TagSpecifications": None}, {**before, "TagSpecifications": None})

    def delete(self, call: Call) -> None:
        answer = call.client("ec2").describe_capacity_reservations(CapacityReservationIds=[call.physical_id])
        if answer["CapacityReservations"][0]["State"] not in {"cancelled", "expired"}:
            super().delete(call)


def _tagged(properties: Properties) -> Properties:
    """Return the tags that a reservation's TagSpecifications put on it, as properties with Tags have them."""
    specifications = properties.get("TagSpecifications") or []
    return {"Tags": [tag for specification in specifications for tag in specification.get("Tags") or []]}


HANDLERS: tuple[Handler, ...] = (
    _CapacityReservation(
        type="AWS::EC2::CapacityReservation",
        service="ec2",
        create_with=Action("create_capacity_reservation", f"{_CHANGEABLE} {_FIXED}"),
        updates=(Action("modify_capacity_reservation", _CHANGEABLE, id="CapacityReservationId", whole=True),),
        delete_with=Action("cancel_capacity_reservation", id="CapacityReservationId"),
        made="CapacityReservation",
        id="CapacityReservationId",
        attributes={"Id": "{id}"},
        can_tag=False,
    ),
    Regular(
        type="AWS::ResourceGroups::Group",
        service="resource-groups",
        create_with=Action("create_group", "Configuration Description Name"),
        updates=(
            Action("update_group", "Description", id="GroupName", absent={"Description": ""}),
            Action("put_group_configuration", "Configuration", id="Group", absent={"Configuration": []}),
        ),
        delete_with=Action("delete_group", id="GroupName"),
        made="Group",
        id="Name",
        attributes={"Arn": "GroupArn"},
        tag_by="Arn",
        members=(
            Members(
                property="Resources",
                put=Action("group_resources", "Item:ResourceArns", id="Group"),
                remove=Action("ungroup_resources", "Item:ResourceArns", id="Group"),
            ),
        ),
    ),
)
