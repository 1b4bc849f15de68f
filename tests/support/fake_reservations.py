"""Capacity reservations and Capacity Blocks in memory: they begin, end, and are raised and lowered."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from fake_auto_scaling import FakeGroup
from fake_service import ACCOUNT, REGION, FakeService, refusal

RESERVATION_FULL = (
    "Could not launch On-Demand Instances. ReservationCapacityExceeded - The requested reservation does not have "
    "sufficient compatible and available capacity for this request. Launching EC2 instance failed."
)


@dataclass
class FakeReservation:
    """One capacity reservation.

    Attributes:
        bought: How many instances it holds while it is active.
        starts: When a block begins. None: it is an On-Demand Capacity Reservation.
        ends: When it ends. None: never.
        ends_early: How long before a block's end EC2 terminates what runs in it.
        group: The group that launches into it.
        others: How many instances of others run in it.
        capacity: How many instances EC2 has in all; it is not raised beyond.
        stays: How many of the group's nodes run on in it since a deploy named another one. None: the group launches
            into this one.
        last: The one that a deploy replaced by this one. None: there is none.
        counted: Whether EC2 says how many of its instances are available.
        instance_type: The type of its instances.
        owner: The account that owns it.
        payer: The account that is billed for what is not used. None: its owner, which EC2 then does not name.
    """

    id: str
    bought: int
    tags: dict[str, str] = field(default_factory=dict)
    state: str = "active"
    zone: str = "us-east-1b"
    starts: datetime | None = None
    ends: datetime | None = None
    ends_early: timedelta = timedelta(minutes=30)
    group: FakeGroup | None = None
    others: int = 0
    capacity: int = 1000
    is_block: bool = False
    stays: int | None = None
    last: "FakeReservation | None" = None
    counted: bool = True
    instance_type: str = "p5.48xlarge"
    owner: str = ACCOUNT
    payer: str | None = None

    @property
    def arn(self) -> str:
        """The ARN."""
        return f"arn:aws:ec2:{REGION}:{ACCOUNT}:capacity-reservation/{self.id}"

    @property
    def instances(self) -> int:
        """How many instances EC2 says it has; a block has none before it begins."""
        return 0 if self.state in ("scheduled", "payment-pending") else self.bought

    @property
    def used(self) -> int:
        """How many instances run in it."""
        inside = max(0, self.group.in_service - self._elsewhere) if self.group else 0
        return min(self.instances, (inside if self.stays is None else self.stays) + self.others)

    @property
    def _elsewhere(self) -> int:
        return self.last.stays or 0 if self.last else 0

    def settle(self, now: datetime) -> None:
        """Do what EC2 does in a minute: begin, end, terminate, and let in no more than it holds."""
        if self.state == "scheduled" and self.starts and now >= self.starts:
            self.state = "active"
        if self.state == "active" and self.ends and now >= self.ends:
            self.state = "expired"
        if self.group is None:
            return
        going = self.is_block and self.ends is not None and now >= self.ends - self.ends_early
        open_now = self.state == "active" and not going
        if self.stays is not None:
            self.stays = min(self.stays, self.group.in_service)
            if not open_now:
                self.group.in_service -= self.stays
                self.stays = 0
            return
        if self.is_block and not open_now:
            self.group.in_service, self.group.launching = min(self.group.in_service, self._elsewhere), 0
        inside = self.bought - self.others - len(self.group.terminating)
        self.group.capacity = self._elsewhere + (inside if open_now else 0)
        self.group.failure = RESERVATION_FULL

    def describe(self) -> dict[str, Any]:
        """Return it as DescribeCapacityReservations does."""
        raw: dict[str, Any] = {
            "CapacityReservationId": self.id,
            "CapacityReservationArn": self.arn,
            "OwnerId": self.owner,
            "InstanceType": self.instance_type,
            "CreateDate": datetime(2026, 10, 1, tzinfo=UTC),
            "State": self.state,
            "AvailabilityZone": self.zone,
            "TotalInstanceCount": self.instances,
            "AvailableInstanceCount": self.instances - self.used,
            "EndDateType": "limited" if self.ends else "unlimited",
            "ReservationType": "capacity-block" if self.is_block else "default",
            "Tags": [{"Key": key, "Value": value} for key, value in sorted(self.tags.items())],
        }
        if self.payer is not None:
            raw["UnusedReservationBillingOwnerId"] = self.payer
        if not self.counted:
            del raw["AvailableInstanceCount"]
        return raw | {key: value for key, value in (("StartDate", self.starts), ("EndDate", self.ends)) if value}


class FakeReservations(FakeService):
    """The part of EC2's client that deals with capacity reservations."""

    def __init__(self, service: str = "ec2") -> None:
        super().__init__(service)
        self.reservations: dict[str, FakeReservation] = {}

    def add_reservation(self, id: str, bought: int, **settings: Any) -> FakeReservation:
        """Make a reservation."""
        self.reservations[id] = FakeReservation(id=id, bought=bought, **settings)
        return self.reservations[id]

    def describe_reservations(self, **parameters: Any) -> Iterator[dict[str, Any]]:
        """Answer DescribeCapacityReservations, page by page."""
        ids = parameters["CapacityReservationIds"]
        self.record("DescribeCapacityReservations", parameters, names=ids)
        for unknown in [one for one in ids if one not in self.reservations]:
            raise refusal(
                "DescribeCapacityReservations", "InvalidCapacityReservationId.NotFound", f"{unknown} does not exist"
            )
        for one in ids:
            yield {"CapacityReservations": [self.reservations[one].describe()]}

    def modify_capacity_reservation(self, **parameters: Any) -> dict[str, Any]:
        """Answer ModifyCapacityReservation."""
        reservation = self.reservations[parameters["CapacityReservationId"]]
        operation, count = "ModifyCapacityReservation", parameters["InstanceCount"]
        self.record(operation, parameters, names=[reservation.id], arn=reservation.arn, tags=reservation.tags)
        if reservation.state != "active":
            raise refusal(operation, "IncorrectState", f"The reservation is {reservation.state}")
        if count < max(1, reservation.used):
            raise refusal(operation, "InvalidParameterValue", f"{count} instances are too few")
        if count > max(reservation.capacity, reservation.bought):
            raise refusal(operation, "InsufficientInstanceCapacity", "Insufficient capacity.")
        reservation.bought = count
        return {"Return": True}
