"""The Capacity Blocks and Capacity Reservations that are there before a template of the local AWS's tests."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from capacity_templates import TYPE, ZONE
from local_aws import LocalAws

# Capacity Blocks of four instances, by when they are.
BLOCK = "cr-0b10c00000000000a"
LATER = "cr-0b10c00000000000b"
OVER = "cr-0b10c00000000000c"
ENDING = "cr-0b10c00000000000d"
BLOCK_ELSEWHERE = "cr-0b10c00000000000e"

# Capacity Reservations of two instances, by what is special about them.
GIVEN = "cr-00dc0000000000001"
ELSEWHERE = "cr-00dc0000000000002"
OTHER_TYPE = "cr-00dc0000000000003"
RED_HAT = "cr-00dc0000000000004"
IN_A_GROUP = "cr-00dc0000000000005"
NOWHERE = "cr-00dc000000000000f"

PLACEMENT_GROUP = "somebodys-placement-group"
OTHER_ZONE = "us-east-1a"

_HOUR = timedelta(hours=1)
_BLOCKS: dict[str, tuple[timedelta, timedelta, str]] = {
    BLOCK: (-_HOUR, 9 * _HOUR, ZONE),
    LATER: (_HOUR, 9 * _HOUR, ZONE),
    OVER: (-9 * _HOUR, -_HOUR, ZONE),
    ENDING: (-9 * _HOUR, _HOUR / 3, ZONE),
    BLOCK_ELSEWHERE: (-_HOUR, 9 * _HOUR, OTHER_ZONE),
}
_RESERVATIONS: dict[str, dict[str, Any]] = {
    GIVEN: {},
    ELSEWHERE: {"availability_zone": OTHER_ZONE},
    OTHER_TYPE: {"instance_type": "p5.48xlarge"},
    RED_HAT: {"instance_platform": "Red Hat Enterprise Linux"},
    IN_A_GROUP: {"placement_group": PLACEMENT_GROUP},
}


@contextmanager
def given_capacity(aws: LocalAws) -> Iterator[None]:
    """Put all of it into a local AWS, and take it away again."""
    now, ec2 = datetime.now(UTC), aws.client("ec2")
    for named, (start, end, zone) in _BLOCKS.items():
        aws.put_capacity_block(
            named, start=now + start, end=now + end, instance_type=TYPE, instance_count=4, availability_zone=zone
        )
    for named, special in _RESERVATIONS.items():
        settings: dict[str, Any] = {"instance_type": TYPE, "instance_count": 2, "availability_zone": ZONE} | special
        aws.add_capacity_reservation(named, **settings)
    yield
    for named in _BLOCKS:
        aws.remove_capacity_block(named)
    for named in _RESERVATIONS:
        ec2.cancel_capacity_reservation(CapacityReservationId=named)
    ec2.delete_placement_group(GroupName=PLACEMENT_GROUP)
