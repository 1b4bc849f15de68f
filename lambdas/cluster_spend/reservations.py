"""Capacity reservations and Capacity Blocks, which are billed whether or not anything runs in them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING

from cluster_common.errors import AWS_ERRORS, error_code
from cluster_contract.spend import SpendFunctionSettings, SpendKind
from cluster_spend.charges import Charge, Item
from cluster_spend.prices import block_price_name, on_demand_price_name

if TYPE_CHECKING:
    from mypy_boto3_ec2.client import EC2Client
    from mypy_boto3_ec2.type_defs import CapacityReservationTypeDef

_NOT_FOUND = "InvalidCapacityReservationId.NotFound"


@dataclass(frozen=True, kw_only=True, slots=True)
class Reservation:
    """One capacity reservation or Capacity Block of this account.

    Attributes:
        id: Its id.
        instance_type: The type of its instances.
        instances: For how many it holds capacity.
        starts: When it began, or begins.
        ends: When it ended, or ends. None: no end is known.
        active: Whether it holds capacity now.
        block: Whether it is a Capacity Block.
    """

    id: str
    instance_type: str
    instances: int
    starts: datetime
    ends: datetime | None = None
    active: bool = True
    block: bool = False

    def charge(self, node_group: str, now: datetime) -> Charge | None:
        """Return what is billed for it. None: nothing, or nothing any longer whose end is known.

        Args:
            node_group: The node group that it is for. Empty: several.
            now: The time.
        """
        over = self.ends is not None and self.ends <= now
        if not self.active and not over:
            return None
        kind, price = SpendKind.RESERVATION, on_demand_price_name(self.instance_type)
        if self.block:
            kind, price = SpendKind.CAPACITY_BLOCK, block_price_name(self.id)
        item = Item(node_group, kind, price)
        return Charge(item=item, units=Decimal(self.instances), start=self.starts, end=self.ends)


def read_reservations(client: "EC2Client", ids: Iterable[str], account: str) -> list[Reservation]:
    """Read the reservations of this account by their ids; those that EC2 knows no more are left out.

    Of a reservation that another account shares, that account pays for what is not used: what runs in it is billed
    to this account as On-Demand Instances are.
    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-reservation-sharing.html

    Args:
        client: The client of EC2.
        ids: The reservations' ids.
        account: The id of the account that the function runs in.
    """
    return [_reservation(raw) for raw in _read(client, sorted(set(ids))) if raw.get("OwnerId", account) == account]


def _read(client: "EC2Client", ids: list[str]) -> "list[CapacityReservationTypeDef]":
    if not ids:
        return []
    try:
        pages = client.get_paginator("describe_capacity_reservations").paginate(CapacityReservationIds=ids)
        return [raw for page in pages for raw in page["CapacityReservations"]]
    except AWS_ERRORS as error:
        if error_code(error) != _NOT_FOUND:
            raise
        # One id that does not exist fails the whole call.
        half = len(ids) // 2
        return [] if not half else [*_read(client, ids[:half]), *_read(client, ids[half:])]


def _reservation(raw: "CapacityReservationTypeDef") -> Reservation:
    return Reservation(
        id=raw["CapacityReservationId"],
        instance_type=raw.get("InstanceType", ""),
        instances=raw.get("TotalInstanceCount", 0),
        starts=raw.get("StartDate") or raw["CreateDate"],
        ends=raw.get("EndDate"),
        active=raw.get("State") == "active",
        block=raw.get("ReservationType") == "capacity-block",
    )


def reservation_charges(
    reservations: Iterable[Reservation], settings: SpendFunctionSettings, now: datetime
) -> Iterator[Charge]:
    """Yield what is billed for reservations, each once; one that several node groups name is none of theirs.

    Args:
        reservations: The reservations.
        settings: The function's settings.
        now: The time.
    """
    for one in reservations:
        users = [name for name, group in settings.groups.items() if one.id in group.reservations]
        charge = one.charge(users[0] if len(users) == 1 else "", now)
        if charge is not None:
            yield charge
