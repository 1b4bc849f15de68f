"""What a launch takes: places in Capacity Reservations, and what EC2 has left beside them.

https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-reservations-launch.html
https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/cr-groups-launch.html
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from local_aws.capacity import CAPACITY
from local_aws.capacity_rules import exceeded, misfit_of
from local_aws.launch_facts import Launch, ReservationFacts
from local_aws.services import resource_groups
from local_aws.services.reserved_capacity import CapacityReservation, reservations_of


@dataclass(frozen=True)
class Sources:
    """Where a launch's instances may come from.

    Attributes:
        reservations: The reservations to fill, in this order.
        unreserved: Whether the rest comes from what EC2 has left.
    """

    reservations: Sequence[CapacityReservation]
    unreserved: bool


def sources_of(ec2: Any, launch: Launch) -> Sources:
    """Return where a launch's instances may come from; the launch has passed the rules."""
    known, only = reservations_of(ec2), launch.preference == "capacity-reservations-only"
    if launch.target_id:
        return Sources([known[launch.target_id]], unreserved=False)
    arn = launch.target.get("CapacityReservationResourceGroupArn")
    if arn:
        members = [known[member] for member in resource_groups.reservations_in(ec2, arn) if member in known]
        is_block = launch.market == "capacity-block"
        return Sources(
            [one for one in members if one.facts(ec2).is_block == is_block and _takes(ec2, launch, one)],
            unreserved=not only and not is_block,
        )
    if launch.preference == "none" or launch.market not in {None, "on-demand"}:
        return Sources([], unreserved=True)
    return Sources([one for one in known.values() if _is_open_to(ec2, launch, one)], unreserved=not only)


def places(ec2: Any, launch: Launch, count: int) -> tuple[list[CapacityReservation | None], bool]:
    """Take up to `count` places for a launch.

    Returns:
        One entry an instance, with the reservation that it runs in or None, and whether what EC2 has left was
        asked for the rest.
    """
    sources = sources_of(ec2, launch)
    taken: list[CapacityReservation | None] = []
    for reservation in sources.reservations:
        taken += [reservation] * min(reservation.available(ec2), count - len(taken))
    if sources.unreserved:
        rest = count - len(taken)
        zone = str(launch.context.availability_zone)
        taken += [None] * CAPACITY.take(launch.instance_type, zone, rest)
    return taken, sources.unreserved


def guard_start(ec2: Any, instance_ids: list[str]) -> None:
    """Refuse to start instances again whose reservation has no room for them any more."""
    starting = [ec2.get_instance(instance_id) for instance_id in instance_ids]
    for reservation in reservations_of(ec2).values():
        wanted = [
            instance
            for instance in starting
            if getattr(instance, "capacity_reservation_id", None) == reservation.id and instance.state == "stopped"
        ]
        if len(wanted) > (0 if reservation.is_ending else reservation.available(ec2)):
            raise exceeded(f"The Capacity Reservation {reservation.id} has no room for {len(wanted)} more.")


def _takes(ec2: Any, launch: Launch, reservation: CapacityReservation) -> bool:
    facts: ReservationFacts = reservation.facts(ec2)
    return facts.state == "active" and not facts.is_ending and misfit_of(launch, facts) is None


def _is_open_to(ec2: Any, launch: Launch, reservation: CapacityReservation) -> bool:
    """Tell whether a launch that names no reservation runs in this one: it has to match the placement group too."""
    facts = reservation.facts(ec2)
    same_group = facts.placement_group == (launch.placement.get("GroupName") or None)
    return not facts.targeted and not facts.is_block and same_group and _takes(ec2, launch, reservation)
