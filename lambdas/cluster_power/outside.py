"""Nodes that run, and are billed, outside the reservation of their group while that has room for them.

That happens when a reservation was replaced or a group was given another one: what runs already does not move.
Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-reservations-modify-instance.html
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from cluster_power.groups import Group
from cluster_power.launch_failures import ProblemKind
from cluster_power.problems import Problem
from cluster_power.reservations import ACTIVE, Absence, Reservation
from cluster_power.situation import Situation


@dataclass(frozen=True, kw_only=True)
class Outside:
    """The nodes that run outside one reservation.

    Attributes:
        reservation: The reservation's id.
        node_groups: The node groups they are of; several can share a reservation.
        nodes: How many there are at least: what others run in the reservation hides as many.
        unused: How many of the reservation's instances nobody uses.
    """

    reservation: str
    node_groups: tuple[str, ...]
    nodes: int
    unused: int


def find_outside(groups: Sequence[Group], situation: Situation) -> dict[str, Outside]:
    """Return the nodes that run outside reservations that have room, by the reservation's id."""
    sharing: dict[str, list[Group]] = {}
    for group in groups:
        name = _reservation_id(group, situation)
        if name is not None and group.in_service and not group.deleting:
            sharing.setdefault(name, []).append(group)
    found = {name: _outside(name, users, situation.reservations.find(name)) for name, users in sharing.items()}
    return {name: outside for name, outside in found.items() if outside is not None}


def note_outside(groups: Sequence[Group], situation: Situation) -> list[Group]:
    """Return the groups with since when their nodes run outside their reservation: what was noted, or now."""
    outside = find_outside(groups, situation)
    return [_noted(group, outside, situation) for group in groups]


def outside_problem(outside: Outside, since: datetime | None, situation: Situation) -> Problem | None:
    """Say that nodes run outside their reservation. None: EC2 may not have counted them yet."""
    if since is None or situation.now - since < situation.settings.launch_grace:
        return None
    one, nodes, unused = outside.nodes == 1, outside.nodes, outside.unused
    groups = "the group" if len(outside.node_groups) == 1 else "the groups"
    return Problem(
        kind=ProblemKind.OUTSIDE_RESERVATION,
        sentence=f"{', '.join(outside.node_groups)}: {'1 node runs' if one else f'{nodes} nodes run'} outside "
        f"{'its' if one else 'their'} reservation {outside.reservation}, which has "
        f"{'1 unused instance' if unused == 1 else f'{unused} unused instances'}: both are billed. When the work is "
        f"saved, stop and start {groups} to move {'it' if one else 'them'} into it.",
    )


def _outside(id: str, users: Sequence[Group], reservation: Reservation | Absence) -> Outside | None:
    if isinstance(reservation, Absence) or reservation.state != ACTIVE or reservation.used is None:
        return None
    nodes = sum(group.in_service for group in users) - reservation.used
    unused = reservation.instances - reservation.used
    if nodes <= 0 or unused <= 0:
        return None
    names = tuple(sorted(group.node_group for group in users))
    return Outside(reservation=id, node_groups=names, nodes=nodes, unused=unused)


def _noted(group: Group, outside: Mapping[str, Outside], situation: Situation) -> Group:
    name, memory = _reservation_id(group, situation), group.memory
    if name is not None and situation.reservations.find(name) is Absence.UNREAD:
        return group
    runs = name is not None and name in outside and group.node_group in outside[name].node_groups
    since = (memory.outside_since or situation.now) if runs else None
    return replace(group, memory=replace(memory, outside_since=since))


def _reservation_id(group: Group, situation: Situation) -> str | None:
    return situation.settings.groups[group.node_group].reservation if situation.is_configured(group) else None
