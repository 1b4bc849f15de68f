"""EC2 Capacity Reservations: CreateCapacityReservation, and Describe-, Modify- and CancelCapacityReservation.

Capacity Blocks are reservations too, which are bought otherwise.
https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-capacity-reservations.html
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from moto.core.responses import ActionResult
from moto.ec2.models.instance_types import INSTANCE_TYPES

from local_aws.capacity import CAPACITY
from local_aws.refusal import Refusal
from local_aws.services.answers import page, passes
from local_aws.services.placement_groups import groups_of
from local_aws.services.reserved_capacity import (
    CapacityReservation,
    hide,
    now,
    reservation_of,
    reservations_of,
    visible,
)


def create_capacity_reservation(response: Any) -> ActionResult:
    """Answer CreateCapacityReservation for immediate use.

    https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_CreateCapacityReservation.html
    """
    params, ec2 = response._get_params(), response.ec2_backend
    for name in ("StartDate", "CommitmentDuration", "OutpostArn"):
        if params.get(name):
            raise NotImplementedError(f"{name} of a Capacity Reservation")
    known = _made_for(ec2, params)
    if known is not None:
        return ActionResult({"CapacityReservation": known.described(ec2)})
    zone = _zone(ec2, params)
    reservation = CapacityReservation(
        account=ec2.account_id,
        region=ec2.region_name,
        instance_type=_instance_type(params),
        count=int(params["InstanceCount"]),
        availability_zone=zone.name,
        zone_id=zone.zone_id,
        platform=params["InstancePlatform"],
        tenancy=params.get("Tenancy", "default"),
        match_criteria=params.get("InstanceMatchCriteria", "open"),
        placement_group=_placement_group(ec2, params),
        ebs_optimized=bool(params.get("EbsOptimized")),
        end=_end(params, default_type="unlimited"),
    )
    response.error_on_dryrun()
    _take_capacity(reservation, reservation.count)
    reservations_of(ec2)[reservation.id] = reservation
    reservation.request = _request(params)
    tags = response._parse_tag_specification("capacity-reservation").get("capacity-reservation")
    if tags:
        ec2.create_tags([reservation.id], tags)
    hide(reservation)
    return ActionResult({"CapacityReservation": reservation.described(ec2)})


def _request(params: Mapping[str, Any]) -> Mapping[str, Any]:
    return {name: value for name, value in params.items() if name not in {"Action", "DryRun", "Version"}}


def _made_for(ec2: Any, params: Mapping[str, Any]) -> CapacityReservation | None:
    """Return the reservation that a request with this token made.

    https://docs.aws.amazon.com/ec2/latest/devguide/ec2-api-idempotency.html
    """
    token = params.get("ClientToken")
    made = [one for one in reservations_of(ec2).values() if token and one.request.get("ClientToken") == token]
    if made and made[0].request != _request(params):
        raise Refusal(
            "IdempotentParameterMismatch",
            f"The client token {token} was used with other parameters; use another token.",
        )
    return made[0] if made else None


def describe_capacity_reservations(response: Any) -> ActionResult:
    """Answer DescribeCapacityReservations, by ids and filters, page by page.

    https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeCapacityReservations.html
    """
    ec2 = response.ec2_backend
    response.error_on_dryrun()
    wanted = response._get_param("CapacityReservationIds", [])
    found = [reservation_of(ec2, named) for named in wanted] or visible(reservations_of(ec2).values())
    filters = response._filters_from_querystring()
    # Unlike other actions, this one documents no filter for tags.
    for name in filters:
        if name not in _FILTERS:
            raise Refusal("InvalidParameterValue", f"The filter '{name}' is invalid")
    shown = [described for described in (one.described(ec2) for one in found) if passes(described, filters, _FILTERS)]
    size = response._get_int_param("MaxResults")
    some, token = page(shown, response._get_param("NextToken"), size)
    return ActionResult({"CapacityReservations": some, "NextToken": token})


def modify_capacity_reservation(response: Any) -> ActionResult:
    """Answer ModifyCapacityReservation: its size, its end and what may use it.

    AWS does not say what becomes of a size below what is in use: it is refused here, so that nothing relies on it.
    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-reservations-modify.html
    """
    params, ec2 = response._get_params(), response.ec2_backend
    reservation = _changeable(ec2, params["CapacityReservationId"])
    response.error_on_dryrun()
    used = len(reservation.instances(ec2))
    count = int(params.get("InstanceCount", reservation.count))
    if count < used:
        raise Refusal(
            "InvalidParameterValue",
            f"{count} is an invalid value for InstanceCount. {used} instances are running in {reservation.id}.",
        )
    criteria = params.get("InstanceMatchCriteria", reservation.match_criteria)
    if criteria != reservation.match_criteria and used:
        raise Refusal(
            "InvalidParameterValue",
            f"The instance eligibility of {reservation.id} cannot be changed while instances are running in it.",
        )
    end = reservation.end
    if params.get("EndDate") or params.get("EndDateType"):
        end = _end(params, default_type="limited" if params.get("EndDate") else "unlimited")
    if count > reservation.count:
        _take_capacity(reservation, count - reservation.count)
    reservation.count, reservation.match_criteria, reservation.end = count, criteria, end
    return ActionResult({"Return": True})


def cancel_capacity_reservation(response: Any) -> ActionResult:
    """Answer CancelCapacityReservation: instances that run in it go on as On-Demand instances.

    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-reservations-release.html
    """
    ec2 = response.ec2_backend
    reservation = _changeable(ec2, response._get_param("CapacityReservationId"))
    response.error_on_dryrun()
    for instance in reservation.instances(ec2):
        instance.capacity_reservation_id = None
    reservation.cancelled = True
    return ActionResult({"Return": True})


def guard_tags(ec2: Any, resource_ids: list[str], *_more: Any, **_named: Any) -> None:
    """Refuse to tag a reservation that is not there."""
    for resource_id in resource_ids:
        if resource_id.startswith("cr-"):
            reservation_of(ec2, resource_id)


def _changeable(ec2: Any, named: str) -> CapacityReservation:
    """Return a reservation that can be modified and cancelled: one of the account's own making that is active."""
    reservation = reservation_of(ec2, named)
    if reservation.block_id is not None:
        raise Refusal(
            "UnsupportedOperation", f"You can't modify or cancel a Capacity Block, and {reservation.id} is one."
        )
    if reservation.state != "active":
        raise Refusal(
            "IncorrectState", f"The Capacity Reservation {reservation.id} is {reservation.state}; it must be active."
        )
    return reservation


def _take_capacity(reservation: CapacityReservation, count: int) -> None:
    """Take capacity out of what EC2 has left: all of it or nothing."""
    if not CAPACITY.take_all(reservation.instance_type, reservation.availability_zone, count):
        raise Refusal(
            "InsufficientInstanceCapacity",
            f"We currently do not have sufficient {reservation.instance_type} capacity in the Availability Zone you "
            f"requested ({reservation.availability_zone}). Try again later, or request fewer instances.",
        )


def _zone(ec2: Any, params: Mapping[str, Any]) -> Any:
    for name, attribute in (("AvailabilityZone", "name"), ("AvailabilityZoneId", "zone_id")):
        if params.get(name):
            for zone in ec2.describe_availability_zones():
                if getattr(zone, attribute) == params[name]:
                    return zone
            raise Refusal("InvalidParameterValue", f"Invalid availability zone: [{params[name]}]")
    raise Refusal("MissingParameter", "The request must contain the parameter AvailabilityZone or AvailabilityZoneId")


def _instance_type(params: Mapping[str, Any]) -> str:
    instance_type = params.get("InstanceType")
    if instance_type not in INSTANCE_TYPES:
        raise Refusal("InvalidParameterValue", f"Invalid value '{instance_type}' for InstanceType.")
    return str(instance_type)


def _end(params: Mapping[str, Any], *, default_type: str) -> datetime | None:
    kind = params.get("EndDateType", default_type)
    given = params.get("EndDate")
    end = given.replace(tzinfo=UTC) if given else None  # moto reads times as UTC and leaves that out
    if (end is not None) != (kind == "limited"):
        raise Refusal(
            "InvalidParameterCombination",
            "You must provide an EndDate value if EndDateType is limited. Omit EndDate if EndDateType is unlimited.",
        )
    if end is not None and end <= now():
        raise Refusal("InvalidParameterValue", f"The EndDate {end:%Y-%m-%dT%H:%M:%SZ} must be in the future.")
    return end


def _placement_group(ec2: Any, params: Mapping[str, Any]) -> str | None:
    """Return the name of the placement group, which has to be a cluster of this account's and region's.

    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/cr-cpg.html
    """
    arn = params.get("PlacementGroupArn")
    if not arn:
        return None
    group = next((group for group in groups_of(ec2).values() if group.described()["GroupArn"] == arn), None)
    if group is None:
        raise Refusal("InvalidPlacementGroup.Unknown", f"The Placement Group '{arn}' is unknown.")
    if group.strategy != "cluster":
        raise Refusal(
            "InvalidParameterValue",
            f"Capacity Reservations can be created in cluster placement groups only, and {group.name} is of the "
            f"strategy {group.strategy}.",
        )
    if group.strategy not in INSTANCE_TYPES[_instance_type(params)]["PlacementGroupInfo"]["SupportedStrategies"]:
        raise Refusal(
            "InvalidParameterCombination",
            f"Cluster placement groups are not supported by the '{params['InstanceType']}' instance type.",
        )
    return group.name


_FILTERS: Mapping[str, str] = {
    "availability-zone": "AvailabilityZone",
    "end-date-type": "EndDateType",
    "instance-match-criteria": "InstanceMatchCriteria",
    "instance-platform": "InstancePlatform",
    "instance-type": "InstanceType",
    "owner-id": "OwnerId",
    "placement-group-arn": "PlacementGroupArn",
    "state": "State",
    "tenancy": "Tenancy",
}
