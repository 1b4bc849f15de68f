"""Capacity reservations, of which a Capacity Block is a kind, as EC2 describes them."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum, auto
from typing import TYPE_CHECKING

from cluster_common.errors import AWS_ERRORS, error_code

if TYPE_CHECKING:
    from mypy_boto3_ec2.client import EC2Client
    from mypy_boto3_ec2.type_defs import CapacityReservationTypeDef

ACTIVE = "active"

PENDING = "pending"
"""The state of a reservation that can neither be changed nor cancelled yet."""

COMING = frozenset({"scheduled", "payment-pending", PENDING, "assessing", "delayed"})
"""The states of a reservation that is not there yet.

https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_CapacityReservation.html
"""

ENDED = frozenset({"expired", "cancelled", "cancelling", "failed", "payment-failed", "unsupported"})
"""The states of a reservation that never comes, or never comes back."""


UNREAD_TEXT = "could not be read (DescribeCapacityReservations)"
"""What messages say of a reservation that could not be read."""


class Absence(Enum):
    """Why nothing is known of a reservation."""

    UNREAD = auto()
    """It could not be read."""

    NOT_FOUND = auto()
    """There is none of that id in this account and region."""


@dataclass(frozen=True, kw_only=True)
class Reservation:
    """One capacity reservation.

    Attributes:
        id: Its id.
        state: Its state, in EC2's words.
        instances: For how many instances it holds capacity.
        used: How many of them run. None: EC2 does not say.
        zone: The Availability Zone it is in. Empty: EC2 does not say.
        starts: When it begins. None: EC2 does not say.
        ends: When it ends. None: never, or EC2 does not say.
        placement_group: The ARN of the placement group it is in. Empty: it is in none.
        plain: Whether EC2 says that it is an On-Demand Capacity Reservation and no Capacity Block.
        tags: Its tags.
    """

    id: str
    state: str
    instances: int
    used: int | None = 0
    zone: str = ""
    starts: datetime | None = None
    ends: datetime | None = None
    placement_group: str = ""
    plain: bool = False
    tags: Mapping[str, str] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, kw_only=True)
class Reservations:
    """What is known of the reservations that the settings name.

    Attributes:
        found: Those that EC2 described, by id.
        unread: The ids of those that EC2 could not be asked for.
    """

    found: Mapping[str, Reservation] = field(default_factory=dict)
    unread: Collection[str] = ()

    def find(self, id: str) -> Reservation | Absence:
        """Return a reservation, or why nothing is known of it."""
        if id in self.unread:
            return Absence.UNREAD
        return self.found.get(id, Absence.NOT_FOUND)


NO_RESERVATIONS = Reservations()
"""What is known where the settings name none."""


def read_reservations(client: "EC2Client", ids: Iterable[str]) -> Reservations:
    """Read reservations by their ids, in one call where all of them exist."""
    return Reservations(found={one.id: one for one in _read(client, sorted(set(ids)))})


def find_reservations(client: "EC2Client", tags: Mapping[str, str]) -> list[Reservation]:
    """Find the reservations with some tags that are active or pending.

    DescribeCapacityReservations documents no filter for tags.
    https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeCapacityReservations.html
    """
    pages = client.get_paginator("describe_capacity_reservations").paginate(
        Filters=[{"Name": "state", "Values": [ACTIVE, PENDING]}]
    )
    found = [_reservation(raw) for page in pages for raw in page["CapacityReservations"]]
    return [one for one in found if tags.items() <= one.tags.items()]


def set_instances(client: "EC2Client", reservation_id: str, instances: int) -> None:
    """Set for how many instances a reservation holds capacity; its end stays as it is.

    Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-reservations-modify.html
    """
    client.modify_capacity_reservation(CapacityReservationId=reservation_id, InstanceCount=instances)


def _read(client: "EC2Client", ids: list[str]) -> list[Reservation]:
    pages = client.get_paginator("describe_capacity_reservations").paginate(CapacityReservationIds=ids)
    try:
        return [_reservation(raw) for page in pages for raw in page["CapacityReservations"]]
    except AWS_ERRORS as error:
        # One id that does not exist fails the whole call.
        if not error_code(error).startswith("InvalidCapacityReservationId"):
            raise
        return [] if len(ids) == 1 else [found for one in ids for found in _read(client, [one])]


def _reservation(raw: "CapacityReservationTypeDef") -> Reservation:
    instances, available = raw.get("TotalInstanceCount", 0), raw.get("AvailableInstanceCount")
    return Reservation(
        id=raw["CapacityReservationId"],
        state=raw["State"],
        instances=instances,
        used=None if available is None else instances - available,
        zone=raw.get("AvailabilityZone", ""),
        starts=_moment(raw.get("StartDate")),
        ends=_moment(raw.get("EndDate")),
        placement_group=raw.get("PlacementGroupArn", ""),
        plain=raw.get("ReservationType") == "default",
        tags={tag["Key"]: tag["Value"] for tag in raw.get("Tags", [])},
    )


def _moment(moment: datetime | None) -> datetime | None:
    """Return a time to the second, as everything else here is."""
    return moment.replace(microsecond=0) if moment else None
