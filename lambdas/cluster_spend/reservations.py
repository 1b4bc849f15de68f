"""Capacity reservations and Capacity Blocks, which are billed whether or not anything runs in them."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING

from cluster_common.errors import AWS_ERRORS, error_code
from cluster_contract.prices import on_demand_price_name
from cluster_contract.spend import SpendFunctionSettings, SpendKind
from cluster_spend.charges import Charge, Item
from cluster_spend.prices import Figure, block_price_name

if TYPE_CHECKING:
    from mypy_boto3_ec2.client import EC2Client
    from mypy_boto3_ec2.type_defs import CapacityReservationTypeDef

# While one is `cancelling`, "charges continue for the commitment wind-down period".
# https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_CapacityReservation.html
_BILLED = frozenset({"active", "cancelling", "expired"})

_NOT_FOUND = "InvalidCapacityReservationId.NotFound"


@dataclass(frozen=True, kw_only=True, slots=True)
class Reservation:
    """One capacity reservation or Capacity Block.

    Attributes:
        id: Its id.
        instance_type: The type of its instances.
        instances: For how many instances this account is billed.
        starts: When it began, or begins.
        ends: When it ended, or ends. None: no end is known.
        billed: Whether it is billed from its start to its end. A cancelled one is not: EC2 does not return when it
            was cancelled.
        block: Whether it is a Capacity Block.
        shared_by: The account that owns it. Empty: this one. Of another's reservation this account is billed for what
            is not used, and for each instance in it beside that; for a block that account has paid.
    """

    id: str
    instance_type: str
    instances: int
    starts: datetime
    ends: datetime | None = None
    billed: bool = True
    block: bool = False
    shared_by: str = ""

    def is_billed_at(self, moment: datetime) -> bool:
        """Say whether it is billed from a time on."""
        return self.billed and (self.ends is None or self.ends > moment)

    def charges(self, node_group: str, held: int | None, now: datetime) -> Iterator[Charge]:
        """Yield what is billed for it: until now what was held in the last run, from now on what is held now.

        Args:
            node_group: The node group that it is for. Empty: several.
            held: How many instances the last run saw it hold. None: no run has seen it before.
            now: The time. EC2 does not return when its size was changed, or when it was cancelled.
        """
        kind, price = SpendKind.RESERVATION, on_demand_price_name(self.instance_type)
        if self.block:
            kind, price = SpendKind.CAPACITY_BLOCK, block_price_name(self.id)
        item = Item(node_group, kind, price)
        instances = self.instances if self.billed else 0
        before = Decimal(instances if held is None else held)
        last = min(now, self.ends) if self.billed and self.ends is not None else now
        if before:
            yield Charge(item=item, units=before, start=self.starts, end=last)
        if self.is_billed_at(now):
            yield Charge(item=item, units=Decimal(instances), start=now, end=self.ends)


def read_reservations(client: "EC2Client", ids: Iterable[str], account: str) -> list[Reservation]:
    """Read reservations by their ids; those that EC2 knows no more, and of which this account is not billed, are left
    out.

    What is not used of a shared reservation is billed to its owner or to the account that the owner has assigned it
    to; what runs in another account's is billed as On-Demand Instances are. For a Capacity Block its owner has paid.
    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/assign-billing.html and
    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-blocks-pricing-billing.html

    Args:
        client: The client of EC2.
        ids: The reservations' ids.
        account: The id of the account that the function runs in.
    """
    found = [_reservation(raw, account) for raw in _read(client, sorted(set(ids)))]
    return [one for one in found if one is not None]


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


def _reservation(raw: "CapacityReservationTypeDef", account: str) -> Reservation | None:
    owner, block = raw.get("OwnerId", account), raw.get("ReservationType") == "capacity-block"
    own = owner == account
    if not block and (raw.get("UnusedReservationBillingOwnerId") or owner) != account:
        return None
    return Reservation(
        id=raw["CapacityReservationId"],
        instance_type=raw.get("InstanceType", ""),
        instances=raw.get("TotalInstanceCount", 0) if own else raw.get("AvailableInstanceCount", 0),
        starts=raw.get("StartDate") or raw["CreateDate"],
        ends=raw.get("EndDate"),
        billed=raw.get("State") in _BILLED and (own or not block),
        block=block,
        shared_by="" if own else owner,
    )


def paid_blocks(reservations: Iterable[Reservation]) -> dict[str, Figure]:
    """Return the prices of Capacity Blocks that other accounts have paid for, by the names of the prices."""
    return {
        block_price_name(one.id): Figure(usd=Decimal(), source=f"paid for by account {one.shared_by}")
        for one in reservations
        if one.block and one.shared_by
    }


def reservation_charges(
    reservations: Iterable[Reservation], settings: SpendFunctionSettings, held: Mapping[str, int], now: datetime
) -> dict[str, list[Charge]]:
    """Return what is billed for reservations, by id; one that several node groups name is none of theirs.

    Args:
        reservations: The reservations.
        settings: The function's settings.
        held: How many instances the last run saw each hold, by id.
        now: The time.
    """
    found = {}
    for one in reservations:
        users = [name for name, group in settings.groups.items() if one.id in group.reservations]
        charges = list(one.charges(users[0] if len(users) == 1 else "", held.get(one.id), now))
        if charges:
            found[one.id] = charges
    return found
