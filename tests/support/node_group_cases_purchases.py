"""Cases of the rules about what is reserved and bought, by the rule's id."""

from collections.abc import Mapping, Sequence
from typing import Any

from cdk_training_cluster import UNTIL_CANCELLED, Capacity, OnIdle
from node_group_cases import IMEX_WARNING, OTHER, OWN_IMAGE, RESERVED, Case, case, unknown_number, unknown_text
from node_group_cases_types import FLEET_WARNING

_SPOT, _FLEET = Capacity.spot(), Capacity.spot_fleet()

_RESERVATION = Capacity.reservation(end=UNTIL_CANCELLED)

_RELEASED = Capacity.reservation(end=UNTIL_CANCELLED, on_idle=OnIdle.RELEASE)

_HELD, _BLOCK = Capacity.from_reservation(RESERVED), Capacity.capacity_block(RESERVED)

_IN_TURN = Capacity.prioritized(reservations=[RESERVED], capacity_blocks=[OTHER], on_demand=False)

_RESERVATIONS_IN_TURN = Capacity.prioritized(reservations=[RESERVED])

_ON_DEMAND_AFTER_A_BLOCK = {
    "prioritizedBlocks": "EC2 terminates the nodes of a Capacity Block before its end, without the notice and the "
    "orderly end that Capacity.capacity_block() gives, and On-Demand Instances at full price take their place until "
    "the group is stopped: set on_demand to False, or keep the block in a node group of its own"
}

_GB200 = ["p6e-gb200.36xlarge"]


def _block(**settings: Any) -> Capacity:
    return Capacity.capacity_block(RESERVED, **settings)


def _held(**settings: Any) -> Capacity:
    return Capacity.from_reservation(RESERVED, **settings)


def _ultraserver(name: str, sizes: str, given: int) -> str:
    return (
        f"instance_count must be {sizes} for a Capacity Block of {name}, which is sold as a whole UltraServer, got "
        f"{given}"
    )


def _too_many_for_a_block(most: int, name: str, count: int) -> str:
    return (
        f"count must be at most {most}, as many as a Capacity Block of {name} can have, got {count}: make a node "
        "group for each block"
    )


def _too_many_for_what_is_reserved(most: int, count: int) -> str:
    return (
        f"count must be at most {most}, as many instances as {RESERVED} has, got {count}: lower count, or correct "
        "instance_count"
    )


def _wrong_zone(call: str) -> str:
    return (
        f"availability_zone of {call} must be the cluster's, us-east-1b, got us-east-1c: what is reserved in a zone "
        "cannot be used in another; make the cluster there, or reserve here"
    )


def _arn(region: str) -> str:
    return f"arn:aws:ec2:{region}:111122223333:capacity-reservation/{RESERVED}"


def _in_region(region: str) -> Capacity:
    return Capacity.prioritized(reservations=[_arn(region)])


def _wrong_region(setting: str, arn: str) -> str:
    return (
        f"{setting} of Capacity.prioritized() must be in the cluster's region, us-east-1, got {arn}: what is "
        "reserved in a region cannot be used in another; leave it out, or make the cluster there"
    )


def _wrong_platform(platform: str) -> str:
    return (
        f"instance_platform must be 'Linux/UNIX' for AWS's Deep Learning images, got {platform!r}: an instance is "
        "launched into a reservation of its own platform only; give a machine_image of that platform, or leave "
        "instance_platform out"
    )


_COUNT_CASES: Mapping[str, Sequence[Case]] = {
    "blockSize": (
        case(capacity=_BLOCK, count=64),
        case(_too_many_for_a_block(64, "p5.48xlarge", 65), capacity=_BLOCK, count=65),
        case(capacity=_block(instance_count=64), count=64),
        # Any number up to 64 can be bought.
        case(capacity=_block(instance_count=13), count=13),
        case(
            "instance_count must be at most 64, as many as a Capacity Block can have, got 65",
            capacity=_block(instance_count=65),
        ),
        *(
            case(instance_types=_GB200, capacity=_block(instance_count=size), warnings=IMEX_WARNING)
            for size in (9, 18)
        ),
        *(
            case(
                _ultraserver("p6e-gb200.36xlarge", "9 or 18", size),
                instance_types=_GB200,
                capacity=_block(instance_count=size),
            )
            for size in (8, 10, 17, 19, 64, 65)
        ),
        case(instance_types=_GB200, capacity=_BLOCK, count=18, warnings=IMEX_WARNING),
        case(_too_many_for_a_block(18, "p6e-gb200.36xlarge", 19), instance_types=_GB200, capacity=_BLOCK, count=19),
        case(instance_types=["trn2u.48xlarge"], capacity=_block(instance_count=4), count=4),
        case(
            _ultraserver("trn2u.48xlarge", "4", 8),
            instance_types=["trn2u.48xlarge"],
            capacity=_block(instance_count=8),
            count=8,
        ),
        case(
            _too_many_for_a_block(4, "trn2u.48xlarge", 5),
            instance_types=["trn2u.48xlarge"],
            capacity=_BLOCK,
            count=5,
        ),
        case(capacity=_BLOCK, count=unknown_number()),
        case(capacity=_block(instance_count=unknown_number())),
        case(
            _too_many_for_a_block(64, "p5.48xlarge", 65), capacity=_block(instance_count=unknown_number()), count=65
        ),
        case(capacity=_HELD, count=65),
        case(capacity=_IN_TURN, count=65),
    ),
    "reservedCount": (
        *(case(capacity=capacity(instance_count=8), count=count) for capacity in (_held, _block) for count in (1, 8)),
        *(
            case(_too_many_for_what_is_reserved(8, 9), capacity=capacity(instance_count=8), count=9)
            for capacity in (_held, _block)
        ),
        case(capacity=_held(instance_count=1), count=unknown_number()),
        case(capacity=_held(instance_count=unknown_number()), count=65),
        case(capacity=_HELD, count=1000),
    ),
    "reservationSize": (
        case(capacity=_RESERVATION, count=1000),
        case(
            "count must be at most 1000 for Capacity.reservation(), got 1001: make a second node group",
            capacity=_RESERVATION,
            count=1001,
        ),
        case(capacity=_RESERVATION, count=unknown_number()),
        case(count=1001),
        case(capacity=_HELD, count=1001),
    ),
    "release": (
        case(
            "on_idle must be OnIdle.KEEP for a node group of 1 node: a reservation cannot be lowered below 1 "
            "instance; leave on_idle out",
            capacity=_RELEASED,
            count=1,
        ),
        case(capacity=_RELEASED, count=2),
        case(capacity=_RELEASED, count=unknown_number()),
        case(capacity=_RESERVATION, count=1),
    ),
}

_MATCH_CASES: Mapping[str, Sequence[Case]] = {
    "zone": (
        *(case(capacity=capacity(availability_zone="us-east-1b"), zone="us-east-1b") for capacity in (_held, _block)),
        case(
            _wrong_zone("Capacity.from_reservation()"),
            capacity=_held(availability_zone="us-east-1c"),
            zone="us-east-1b",
        ),
        case(
            _wrong_zone("Capacity.capacity_block()"),
            capacity=_block(availability_zone="us-east-1c"),
            zone="us-east-1b",
        ),
        case(
            _wrong_zone("Capacity.from_reservation()").replace("us-east-1c", "us-east-1a"),
            capacity=_held(availability_zone="us-east-1a"),
            zone="us-east-1b",
        ),
        case(capacity=_held(availability_zone="us-east-1c")),
        case(capacity=_held(availability_zone="us-east-1c"), zone=unknown_text()),
        case(capacity=_held(availability_zone=unknown_text()), zone="us-east-1b"),
        case(capacity=_HELD, zone="us-east-1b"),
        case(capacity=_IN_TURN, zone="us-east-1b"),
    ),
    "reservedRegion": (
        case(capacity=_in_region("us-east-1"), zone="us-east-1b"),
        *(
            case(_wrong_region("reservations", _arn(region)), capacity=_in_region(region), zone="us-east-1b")
            for region in ("us-west-2", "ap-south-1")
        ),
        case(
            _wrong_region("capacity_blocks", _arn("us-east-2")),
            capacity=Capacity.prioritized(capacity_blocks=[OTHER, _arn("us-east-2")], on_demand=False),
            zone="us-east-1b",
        ),
        # Local Zones are in the region that their names begin with.
        case(capacity=_in_region("us-west-2"), zone="us-west-2-lax-1a"),
        case(capacity=_RESERVATIONS_IN_TURN, zone="us-east-1b"),
        case(capacity=_in_region("us-west-2")),
        case(capacity=_in_region("us-west-2"), zone=unknown_text()),
        case(capacity=_in_region(unknown_text()), zone="us-east-1b"),
        # What CDK puts in the place of a zone that it has not looked up yet.
        case(capacity=_in_region("us-west-2"), zone="dummy1a"),
    ),
    "platform": (
        case(
            _wrong_platform("Red Hat Enterprise Linux"),
            capacity=Capacity.reservation(end=UNTIL_CANCELLED, instance_platform="Red Hat Enterprise Linux"),
        ),
        case(_wrong_platform("Ubuntu Pro"), capacity=_held(instance_platform="Ubuntu Pro")),
        case(
            _wrong_platform("Ubuntu Pro"),
            instance_types=["trn1.32xlarge"],
            capacity=_held(instance_platform="Ubuntu Pro"),
        ),
        case(capacity=_held(instance_platform="Ubuntu Pro"), machine_image=OWN_IMAGE),
        case(
            capacity=Capacity.reservation(end=UNTIL_CANCELLED, instance_platform="SUSE Linux"),
            machine_image=OWN_IMAGE,
        ),
        case(capacity=_held(instance_platform="Linux/UNIX")),
        case(capacity=_held(instance_platform=unknown_text())),
        case(capacity=_HELD),
        case(capacity=_RESERVATION),
    ),
    "prioritizedBlocks": (
        *(
            case(
                capacity=Capacity.prioritized(reservations=reservations, capacity_blocks=[OTHER]),
                warnings=_ON_DEMAND_AFTER_A_BLOCK,
            )
            for reservations in ([], [RESERVED])
        ),
        case(capacity=_IN_TURN),
        case(
            capacity=Capacity.prioritized(capacity_blocks=[unknown_text()]),
            warnings=_ON_DEMAND_AFTER_A_BLOCK,
        ),
        case(capacity=Capacity.prioritized(capacity_blocks=[OTHER], on_demand=False)),
        case(capacity=_BLOCK),
        case(capacity=_RESERVATIONS_IN_TURN),
    ),
    "spotFleet": (
        case(instance_types=["g5.48xlarge"], capacity=_FLEET, warnings=FLEET_WARNING),
        case(instance_types=["g5.48xlarge"], capacity=_SPOT),
    ),
}

PURCHASE_CASES: Mapping[str, Sequence[Case]] = {
    **_COUNT_CASES,
    **_MATCH_CASES,
}
