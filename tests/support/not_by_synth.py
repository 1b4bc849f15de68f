"""The wrong templates that a synth cannot know to be wrong: why, and what keeps each from being billed."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from capacity_templates import ZONE
from cluster_power.reservations import Reservation
from cluster_power.windows import Phase
from given_capacity import ENDING, GIVEN, LATER, NOWHERE, OTHER_TYPE, OVER

NOW = datetime(2026, 11, 1, 12, tzinfo=UTC)

_HOUR = timedelta(hours=1)
_EMPTY_GROUP = {"MinSize": "0", "DesiredCapacity": None}
_RESERVED = "CapacityReservationSpecification"
_TARGET = f"{_RESERVED}.CapacityReservationTarget"
_SEGMENTS = "MixedInstancesPolicy.InstancesDistribution.DistributionSegments"


@dataclass(frozen=True)
class NeverStarted:
    """The power function reads it from EC2 and starts no node.

    Attributes:
        why: Why a synth cannot know.
        reservation: What the power function reads.
        phase: What it makes of that.
    """

    why: str
    reservation: Reservation
    phase: Phase


@dataclass(frozen=True)
class Harmless:
    """What the library makes keeps it from being billed.

    Attributes:
        why: Why a synth cannot know, and what keeps it harmless.
        node_group: The node group of it in the cluster that the test makes.
        properties: What its group or fleet has, by path; a `Made` where it must refer to what the template makes.
    """

    why: str
    node_group: str
    properties: Mapping[str, Any]


@dataclass(frozen=True)
class Made:
    """A resource of this type in the same template."""

    type: str


@dataclass(frozen=True)
class RolledBack:
    """EC2 refuses the group itself at the deployment, before there is a node, and CloudFormation rolls back.

    Attributes:
        why: Why a synth cannot know.
    """

    why: str


NotBySynth = NeverStarted | Harmless | RolledBack


def _block(id: str, state: str, *, starts: timedelta, ends: timedelta) -> Reservation:
    return Reservation(id=id, state=state, instances=4, zone=ZONE, starts=NOW + starts, ends=NOW + ends)


def _launches_only_into(reservation: str) -> dict[str, Any]:
    return {
        **_EMPTY_GROUP,
        f"{_RESERVED}.CapacityReservationPreference": "capacity-reservations-only",
        f"{_TARGET}.CapacityReservationIds": [reservation],
    }


_NO_CLOCK = "a synth reads no clock, and a block's times are no part of the template"
_EMPTY = (
    "a synth asks EC2 for nothing; the group is made empty and launches into this reservation only: the deployment "
    "does not wait, nothing else is billed, and the power function says why no node starts"
)
_BEFORE = "the group refers to what EC2 refuses to make: CloudFormation rolls back before there is a group"
_LAID_OUT = RolledBack(
    "what cards a type has is in the catalog, from which the library lays interfaces out, and not in the template; a "
    "user's type may be newer than the catalog"
)
_SOMEBODYS = RolledBack("a synth asks AWS for nothing, so it cannot tell whether there is what a literal name says")
_FLEETS_SUBNET = RolledBack(
    "the library names a fleet's subnet in the interfaces; EC2 refuses one beside them at once"
)
_IMAGE = RolledBack("an image, or the parameter that names one, is known to AWS only")

NOT_BY_SYNTH: dict[str, NotBySynth] = {
    # Reservations
    "a reservation of another type": Harmless(_EMPTY, "other-type", _launches_only_into(OTHER_TYPE)),
    "a reservation that is not there": Harmless(_EMPTY, "nowhere", _launches_only_into(NOWHERE)),
    "a reservation that has ended before it is made": Harmless(
        f"a synth reads no clock; {_BEFORE}",
        "ended",
        {f"{_TARGET}.CapacityReservationIds.0": Made("AWS::EC2::CapacityReservation")},
    ),
    "a resource group of a reservation that is not there": Harmless(
        f"a synth asks EC2 for nothing; {_BEFORE}",
        "missing",
        {f"{_TARGET}.CapacityReservationResourceGroupArns.0": Made("AWS::ResourceGroups::Group")},
    ),
    # Capacity Blocks
    "a block before its start": NeverStarted(
        _NO_CLOCK, _block(LATER, "scheduled", starts=_HOUR, ends=9 * _HOUR), Phase.BEFORE
    ),
    "a block after its end": NeverStarted(
        _NO_CLOCK, _block(OVER, "expired", starts=-9 * _HOUR, ends=-_HOUR), Phase.UNUSABLE
    ),
    "a block that AWS is clearing": NeverStarted(
        _NO_CLOCK, _block(ENDING, "active", starts=-9 * _HOUR, ends=_HOUR / 3), Phase.OVER
    ),
    "the market type of blocks with a reservation": NeverStarted(
        "a block's id looks like any other reservation's",
        Reservation(id=GIVEN, state="active", instances=2, zone=ZONE, starts=NOW - _HOUR, plain=True),
        Phase.UNUSABLE,
    ),
    "segments of a block that has not begun": Harmless(
        f"{_NO_CLOCK}; the group is made empty and launches into this block only",
        "unbegun",
        {**_EMPTY_GROUP, f"{_SEGMENTS}.0.TargetCapacityTypes": ["capacity-block"]},
    ),
    # Spot
    "a fleet without its role": Harmless(
        "the library makes the role, and one of somebody's own is not visible; EC2 refuses the request as a whole",
        "fleet",
        {"SpotFleetRequestConfigData.IamFleetRole": Made("AWS::IAM::Role")},
    ),
    # Launches
    "EFA on a type without it": _LAID_OUT,
    "EFA on a card that has none": _LAID_OUT,
    "more EFA than the type has": _LAID_OUT,
    "a card that is not there": _LAID_OUT,
    "more interfaces than a card has": _LAID_OUT,
    "a device that a card has not": _LAID_OUT,
    "a security group that is not there": _SOMEBODYS,
    "a placement group that is not there": _SOMEBODYS,
    "an instance profile that is not there": _SOMEBODYS,
    "a subnet that is not there": _SOMEBODYS,
    "a fleet with a subnet beside interfaces": _FLEETS_SUBNET,
    "an image that is not there": _IMAGE,
    "no image id": _IMAGE,
    "a parameter with no image": _IMAGE,
    "an image of another architecture": _IMAGE,
}
