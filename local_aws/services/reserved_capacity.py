"""Capacity that is reserved: Capacity Reservations and Capacity Blocks, what state they are in and who is in them.

https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-capacity-reservations.html
https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/ec2-capacity-blocks.html
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from secrets import token_hex
from typing import Any

from moto.utilities.utils import get_partition

from local_aws.capacity_rules import unknown_reservation
from local_aws.launch_facts import ReservationFacts

# https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-blocks-how.html
_CLEARED_BEFORE_END = timedelta(minutes=30)
_ULTRASERVERS_CLEARED_BEFORE_END = timedelta(minutes=60)
_ULTRASERVER_TYPES = ("p6e-", "trn2u.")


def now() -> datetime:
    """Return the time by which reservations start and end."""
    return datetime.now(UTC)


@dataclass(kw_only=True)
class CapacityReservation:
    """One Capacity Reservation or Capacity Block of an account and region.

    Attributes:
        block_id: The id of the Capacity Block; None if it is none.
        end: When it ends; None if only when it is cancelled.
        request: The parameters of the request that made it.
        hidden: How many more requests that list or name it do not find it.
    """

    account: str
    region: str
    instance_type: str
    count: int
    availability_zone: str
    zone_id: str | None = None
    platform: str = "Linux/UNIX"
    tenancy: str = "default"
    match_criteria: str = "open"
    placement_group: str | None = None
    ebs_optimized: bool = False
    block_id: str | None = None
    start: datetime = field(default_factory=now)
    end: datetime | None = None
    created: datetime = field(default_factory=now)
    cancelled: bool = False
    id: str = field(default_factory=lambda: f"cr-0{token_hex(8)}")
    request: Mapping[str, Any] = field(default_factory=dict)
    hidden: int = 0

    @property
    def arn(self) -> str:
        """The ARN of the reservation."""
        partition = get_partition(self.region)
        return f"arn:{partition}:ec2:{self.region}:{self.account}:capacity-reservation/{self.id}"

    @property
    def placement_group_arn(self) -> str | None:
        """The ARN of the placement group that it was made in."""
        if self.placement_group is None:
            return None
        partition = get_partition(self.region)
        return f"arn:{partition}:ec2:{self.region}:{self.account}:placement-group/{self.placement_group}"

    @property
    def state(self) -> str:
        """The state by the clock."""
        if self.cancelled:
            return "cancelled"
        if now() < self.start:
            return "scheduled"
        return "expired" if self.end is not None and now() >= self.end else "active"

    @property
    def is_ending(self) -> bool:
        """Whether this is a block whose instances AWS terminates already."""
        if self.block_id is None or self.end is None:
            return False
        ultra = self.instance_type.startswith(_ULTRASERVER_TYPES)
        return now() >= self.end - (_ULTRASERVERS_CLEARED_BEFORE_END if ultra else _CLEARED_BEFORE_END)

    def instances(self, ec2: Any) -> list[Any]:
        """Return the instances that run in it; one that stops gives its place back."""
        return [
            instance
            for instance in ec2.all_instances()
            if getattr(instance, "capacity_reservation_id", None) == self.id
            and instance.state not in {"stopped", "terminated"}
        ]

    def available(self, ec2: Any) -> int:
        """Return how many more instances it takes."""
        return max(self.count - len(self.instances(ec2)), 0) if self.state == "active" else 0

    def facts(self, ec2: Any) -> ReservationFacts:
        """Return what a launch into it is judged by."""
        return ReservationFacts(
            reservation_id=self.id,
            instance_type=self.instance_type,
            availability_zone=self.availability_zone,
            platform=self.platform,
            tenancy=self.tenancy,
            placement_group=self.placement_group,
            is_block=self.block_id is not None,
            targeted=self.match_criteria == "targeted",
            state=self.state,
            is_ending=self.is_ending,
            available=self.available(ec2),
        )

    def described(self, ec2: Any) -> dict[str, Any]:
        """Return the reservation as DescribeCapacityReservations shows it."""
        return {
            "CapacityReservationId": self.id,
            "OwnerId": self.account,
            "CapacityReservationArn": self.arn,
            "AvailabilityZone": self.availability_zone,
            "AvailabilityZoneId": self.zone_id,
            "InstanceType": self.instance_type,
            "InstancePlatform": self.platform,
            "Tenancy": self.tenancy,
            "TotalInstanceCount": self.count,
            "AvailableInstanceCount": self.available(ec2),
            "EbsOptimized": self.ebs_optimized,
            "EphemeralStorage": False,
            "State": self.state,
            "StartDate": self.start,
            "EndDate": self.end,
            "EndDateType": "unlimited" if self.end is None else "limited",
            "InstanceMatchCriteria": self.match_criteria,
            "CreateDate": self.created,
            "Tags": [{"Key": key, "Value": value} for key, value in ec2.tags[self.id].items()],
            "PlacementGroupArn": self.placement_group_arn,
            "ReservationType": "default" if self.block_id is None else "capacity-block",
            "CapacityBlockId": self.block_id,
        }


# By account and region, then by id.
_reservations: dict[tuple[str, str], dict[str, CapacityReservation]] = defaultdict(dict)


def reservations_of(ec2: Any) -> dict[str, CapacityReservation]:
    """Return the Capacity Reservations beside moto's EC2 backend, by id."""
    return _reservations[ec2.account_id, ec2.region_name]


def reservation_of(ec2: Any, reservation_id: str) -> CapacityReservation:
    """Return the reservation of an id.

    Raises:
        Ec2Refusal: There is no such reservation.
    """
    if reservation_id not in reservations_of(ec2):
        raise unknown_reservation(reservation_id)
    for found in visible([reservations_of(ec2)[reservation_id]]):
        return found
    raise unknown_reservation(reservation_id)


def visible(reservations: Iterable[CapacityReservation]) -> list[CapacityReservation]:
    """Return the reservations that one request finds.

    EC2 may not show at once what a request has made.
    https://docs.aws.amazon.com/ec2/latest/devguide/eventual-consistency.html
    """
    found = []
    for one in reservations:
        if one.hidden:
            one.hidden -= 1
        else:
            found.append(one)
    return found


_hidden = {"requests": 0}


def hide_new(request: Mapping[str, Any]) -> Mapping[str, Any]:
    """Let some requests that list or name a reservation not find it, of those that are made from now on."""
    _hidden["requests"] = int(request["requests"])
    return {}


def hide(reservation: CapacityReservation) -> None:
    """Hide a new reservation, where that was asked for."""
    reservation.hidden = _hidden["requests"]


def show_all() -> None:
    """Show all reservations, and new ones at once."""
    _hidden["requests"] = 0
    for reservations in _reservations.values():
        for one in reservations.values():
            one.hidden = 0
