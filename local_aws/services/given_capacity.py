"""Capacity that was bought or reserved before: Capacity Blocks and Capacity Reservations with ids of the caller's.

No service of AWS's that templates can use sells blocks, and AWS chooses ids itself: these are control requests.
"""

from collections.abc import Mapping
from datetime import datetime
from secrets import token_hex
from typing import Any

from moto.autoscaling.models import autoscaling_backends
from moto.ec2.models import ec2_backends
from moto.ec2.models.instance_types import INSTANCE_TYPES

from local_aws.capacity_rules import is_reservation_id
from local_aws.services import auto_scaling
from local_aws.services.placement_groups import PlacementGroup, groups_of
from local_aws.services.reserved_capacity import CapacityReservation, reservations_of


def put_capacity_block(request: Mapping[str, Any]) -> Mapping[str, Any]:
    """Make a Capacity Block, move one that is there (as an extension does), or take one away.

    Instances of a block that is ending are terminated, as AWS does it before the end; groups that are short try
    again.
    """
    ec2, named = _ec2(request), str(request["capacity_reservation_id"])
    known = reservations_of(ec2)
    if request.get("removed"):
        block = known.pop(named)
        _terminate(ec2, block)
        return {"removed": True}
    start, end = (datetime.fromisoformat(str(request[name])) for name in ("start", "end"))
    if start.tzinfo is None or end.tzinfo is None or start >= end:
        raise ValueError(f"start and end must be times with an offset, start before end, got {start} and {end}")
    if named in known:
        known[named].start, known[named].end = start, end
    else:
        known[named] = _made(ec2, named, request, match_criteria="targeted", start=start, end=end, block=True)
    if known[named].is_ending:
        _terminate(ec2, known[named])
    auto_scaling.reconcile_all()
    return {"state": known[named].state}


def add_capacity_reservation(request: Mapping[str, Any]) -> Mapping[str, Any]:
    """Make a targeted Capacity Reservation and, unless it is there, the cluster placement group that it is in."""
    ec2, named, group = _ec2(request), str(request["capacity_reservation_id"]), request.get("placement_group")
    if named in reservations_of(ec2) and not reservations_of(ec2)[named].cancelled:
        raise ValueError(f"there is a Capacity Reservation {named} already")
    if group and group not in groups_of(ec2):
        groups_of(ec2)[group] = PlacementGroup(group, "cluster", ec2.account_id, ec2.region_name)
    reservations_of(ec2)[named] = _made(ec2, named, request, match_criteria="targeted", placement_group=group)
    return {"added": True}


def _made(
    ec2: Any, named: str, request: Mapping[str, Any], *, block: bool = False, **more: Any
) -> CapacityReservation:
    instance_type, zone_name = str(request["instance_type"]), str(request["availability_zone"])
    zone, count = ec2.get_zone_by_name(zone_name), int(request["instance_count"])
    if not is_reservation_id(named):
        raise ValueError(f"capacity_reservation_id must be cr- and 8 or 17 hexadecimal digits, got {named}")
    if instance_type not in INSTANCE_TYPES:
        raise ValueError(f"there is no instance type {instance_type}")
    if zone is None:
        raise ValueError(f"there is no zone {zone_name} in {ec2.region_name}")
    if count < 1:
        raise ValueError(f"instance_count must be 1 or more, got {count}")
    return CapacityReservation(
        id=named,
        account=ec2.account_id,
        region=ec2.region_name,
        instance_type=instance_type,
        count=count,
        availability_zone=zone_name,
        zone_id=zone.zone_id,
        platform=str(request.get("instance_platform") or "Linux/UNIX"),
        block_id=f"cb-0{token_hex(8)}" if block else None,
        **more,
    )


def _terminate(ec2: Any, block: CapacityReservation) -> None:
    """Terminate a block's instances; the groups that they are in try to replace them, as Auto Scaling does."""
    ids = [instance.id for instance in block.instances(ec2)]
    if ids:
        ec2.terminate_instances(ids)
        autoscaling_backends[ec2.account_id][ec2.region_name].notify_terminate_instances(ids)


def _ec2(request: Mapping[str, Any]) -> Any:
    return ec2_backends[str(request["account"])][str(request["region"])]
