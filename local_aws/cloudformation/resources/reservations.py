"""Capacity Reservations, and resource groups of them."""

from collections.abc import Mapping
from typing import Any

from local_aws.cloudformation.resources.action import Action
from local_aws.cloudformation.resources.base import (
    Attributes,
    Call,
    Handler,
    Properties,
    picked,
)
from local_aws.cloudformation.resources.regular import Members, Regular
from local_aws.cloudformation.resources.tags import retag

_SHOWN = (
    "AvailabilityZone",
    "AvailabilityZoneId",
    "AvailableInstanceCount",
    "CapacityReservationArn",
    "InstanceType",
    "OwnerId",
    "ReservationType",
    "State",
    "Tenancy",
    "TotalInstanceCount",
)


class CapacityReservation(Handler):
    """A reservation that updates change in place as far as EC2 can, and that is cancelled when it is deleted.

    https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-ec2-capacityreservation.html
    """

    type = "AWS::EC2::CapacityReservation"
    _changeable = ("EndDate", "EndDateType", "InstanceCount", "InstanceMatchCriteria")
    _fixed = (
        "AvailabilityZone",
        "AvailabilityZoneId",
        "EbsOptimized",
        "EphemeralStorage",
        "InstancePlatform",
        "InstanceType",
        "PlacementGroupArn",
        "Tenancy",
    )
    carries_out = frozenset({*_changeable, *_fixed, "TagSpecifications"})

    def create(self, call: Call, properties: Properties) -> Attributes:
        made = call.client("ec2").create_capacity_reservation(
            **picked(properties, *self._changeable, *self._fixed, "TagSpecifications")
        )["CapacityReservation"]
        call.made(made["CapacityReservationId"])
        return self._attributes(made)

    def update(self, call: Call, properties: Properties, before: Properties) -> Attributes:
        names = self.only_changed(properties, before, *self._changeable, "TagSpecifications")
        ec2 = call.client("ec2")
        if names & {"EndDate", "EndDateType"}:
            names |= {"EndDate", "EndDateType"}
        changes = picked(properties, *(names & set(self._changeable)))
        if changes:
            ec2.modify_capacity_reservation(CapacityReservationId=call.physical_id, **changes)
        retag(call, "ec2", _tagged(properties), _tagged(before))
        answer = ec2.describe_capacity_reservations(CapacityReservationIds=[call.physical_id])
        return self._attributes(answer["CapacityReservations"][0])

    def delete(self, call: Call) -> None:
        ec2 = call.client("ec2")
        answer = ec2.describe_capacity_reservations(CapacityReservationIds=[call.physical_id])
        if answer["CapacityReservations"][0]["State"] not in {"cancelled", "expired"}:
            ec2.cancel_capacity_reservation(CapacityReservationId=call.physical_id)

    @staticmethod
    def _attributes(made: Mapping[str, Any]) -> Attributes:
        attributes: Attributes = {"Id": made["CapacityReservationId"], **picked(made, *_SHOWN)}
        return attributes | {name: made[name].isoformat() for name in ("CreateDate", "StartDate")}


def _tagged(properties: Properties) -> Properties:
    """Return the tags that a reservation's TagSpecifications put on it, as properties with Tags have them."""
    specifications = properties.get("TagSpecifications") or []
    return {"Tags": [tag for specification in specifications for tag in specification.get("Tags") or []]}


HANDLERS: tuple[Handler, ...] = (
    CapacityReservation(),
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
