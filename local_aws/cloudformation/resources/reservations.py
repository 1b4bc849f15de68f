"""Capacity Reservations, and resource groups of them."""

from collections.abc import Iterable, Mapping
from typing import Any

from local_aws.cloudformation.failures import HandlerError
from local_aws.cloudformation.resources.base import (
    Attributes,
    Call,
    Handler,
    Properties,
    picked,
    tag_changes,
    tags_of,
)
from local_aws.cloudformation.resources.network import retag

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
        retag(call, _tagged(properties), _tagged(before))
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


class ResourceGroup(Handler):
    """Carries out https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-resourcegroups-group.html."""

    type = "AWS::ResourceGroups::Group"
    carries_out = frozenset({"Configuration", "Description", "Name", "Resources", "Tags"})

    def create(self, call: Call, properties: Properties) -> Attributes:
        answer = call.client("resource-groups").create_group(
            **picked(properties, "Configuration", "Description", "Name"), Tags=tags_of(properties)
        )
        call.made(answer["Group"]["Name"])
        self._regroup(call, properties.get("Resources") or [], [])
        return {"Arn": answer["Group"]["GroupArn"]}

    def update(self, call: Call, properties: Properties, before: Properties) -> Attributes:
        names = self.only_changed(properties, before, "Configuration", "Description", "Resources", "Tags")
        groups, name = call.client("resource-groups"), call.physical_id
        if "Description" in names:
            groups.update_group(GroupName=name, Description=properties.get("Description", ""))
        if "Configuration" in names:
            groups.put_group_configuration(Group=name, Configuration=properties.get("Configuration", []))
        self._regroup(call, properties.get("Resources") or [], before.get("Resources") or [])
        put, removed = tag_changes(properties, before)
        arn = groups.get_group(GroupName=name)["Group"]["GroupArn"]
        if put:
            groups.tag(Arn=arn, Tags=put)
        if removed:
            groups.untag(Arn=arn, Keys=removed)
        return {}

    def delete(self, call: Call) -> None:
        call.client("resource-groups").delete_group(GroupName=call.physical_id)

    @staticmethod
    def _regroup(call: Call, wanted: Iterable[str], before: Iterable[str]) -> None:
        groups = call.client("resource-groups")
        added, gone = [arn for arn in wanted if arn not in before], [arn for arn in before if arn not in wanted]
        if gone:
            groups.ungroup_resources(Group=call.physical_id, ResourceArns=gone)
        if added:
            failed = groups.group_resources(Group=call.physical_id, ResourceArns=added)["Failed"]
            if failed:
                raise HandlerError(failed[0]["ErrorMessage"], "NotFound")


HANDLERS: tuple[Handler, ...] = (CapacityReservation(), ResourceGroup())
