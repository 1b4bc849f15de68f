"""Cases of the rules about how nodes are bought, by the rule's id."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from cdk_training_cluster import UNTIL_CANCELLED, Capacity, OnIdle, Placement, WarmPool, instance_type_info
from node_group_cases import OTHER, OWN_IMAGE, RESERVED, Case, case, unknown_number, unknown_text
from node_group_cases_types import FLEET_WARNING

_SPOT, _FLEET = Capacity.spot(), Capacity.spot_fleet()
_RESERVATION = Capacity.reservation(end=UNTIL_CANCELLED)
_RELEASED = Capacity.reservation(end=UNTIL_CANCELLED, on_idle=OnIdle.RELEASE)
_HELD, _BLOCK = Capacity.from_reservation(RESERVED), Capacity.capacity_block(RESERVED)
_HELD_IN_PLACE = Capacity.from_reservation(RESERVED, placement_group="pod")
_IN_TURN = Capacity.prioritized(reservations=[RESERVED], capacity_blocks=[OTHER], on_demand=False)
_RESERVATIONS_IN_TURN = Capacity.prioritized(reservations=[RESERVED])

_SPOT_TYPES: Mapping[str, Any] = {"instance_types": ["g5.48xlarge", "g6.48xlarge"], "capacity": _SPOT}

_NO_BLOCK_IN_A_GROUP = (
    "placement must be left out, or Placement.NONE, for {call} with a Capacity Block, got Placement.CLUSTER: blocks "
    "do not support placement groups, and EC2 puts their instances close together by itself"
)
_OUTSIDE = {
    "reservationOutsidePlacementGroup": "the nodes go into a placement group that the reservation was not made in: "
    "EC2 may find too little of the reserved capacity close together, or launch a part of the nodes; leave placement "
    "out, or reserve inside a placement group and name it"
}
_SEVERAL = {
    "severalTypesInPlacementGroup": "several instance types in one cluster placement group make it likelier that EC2 "
    "has too little capacity: name one type, or set placement to Placement.NONE"
}
_ON_DEMAND_AFTER_A_BLOCK = {
    "prioritizedBlocks": "EC2 terminates the nodes of a Capacity Block before its end, without the notice and the "
    "orderly end that Capacity.capacity_block() gives, and On-Demand Instances at full price take their place until "
    "the group is stopped: set on_demand to False, or keep the block in a node group of its own"
}
_POOL_OF_WHAT_IS_RELEASED = {
    "releaseWarmPool": "while the group is stopped its reservation is lowered, and its warm pool can start or renew "
    "no node in what is left: leave warm_pool out, or keep the reservation"
}
_NO_CLUSTER = (
    "vt1.24xlarge cannot be launched into a cluster placement group: set placement to Placement.NONE, or choose "
    "another type"
)
_VT1: Mapping[str, Any] = {"instance_types": ["vt1.24xlarge"], "machine_image": OWN_IMAGE}
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


def _no_pool(call: str) -> str:
    return (
        f"warm_pool must be left out with {call}: Auto Scaling keeps no warm pool of Spot Instances, Capacity Blocks "
        "or distribution segments"
    )


_PLACEMENT_CASES: Mapping[str, Sequence[Case]] = {
    "blockPlacement": (
        case(
            _NO_BLOCK_IN_A_GROUP.format(call="Capacity.capacity_block()"),
            capacity=_BLOCK,
            placement=Placement.CLUSTER,
        ),
        case(
            _NO_BLOCK_IN_A_GROUP.format(call="Capacity.prioritized()"),
            capacity=_IN_TURN,
            placement=Placement.CLUSTER,
        ),
        case(capacity=_BLOCK),
        case(capacity=_BLOCK, placement=Placement.NONE),
        case(capacity=_IN_TURN),
        case(capacity=_IN_TURN, placement=Placement.NONE),
        case(capacity=_RESERVATIONS_IN_TURN, placement=Placement.CLUSTER, warnings=_OUTSIDE),
    ),
    "placementStrategy": (
        case(_NO_CLUSTER, **_VT1),
        case(_NO_CLUSTER, **_VT1, capacity=_RESERVATION),
        case(_NO_CLUSTER, **_VT1, capacity=_HELD_IN_PLACE),
        case(_NO_CLUSTER, **_VT1, capacity=_SPOT, placement=Placement.CLUSTER),
        case(**_VT1, placement=Placement.NONE),
        case(**_VT1, capacity=_HELD),
        case(**_VT1, capacity=_SPOT),
        # AWS does not say what p3 can do.
        case(instance_types=["p3.16xlarge"], machine_image=OWN_IMAGE),
    ),
    "reservationOutsidePlacementGroup": (
        case(capacity=_HELD, placement=Placement.CLUSTER, warnings=_OUTSIDE),
        case(capacity=_RESERVATIONS_IN_TURN, placement=Placement.CLUSTER, warnings=_OUTSIDE),
        # The reservation may be in a placement group all the same: it is enough to name the reservation.
        case(capacity=_HELD),
        case(capacity=_HELD, placement=Placement.NONE),
        case(capacity=_HELD_IN_PLACE),
        case(capacity=_HELD_IN_PLACE, placement=Placement.CLUSTER),
        case(capacity=_HELD_IN_PLACE, placement=Placement.NONE),
        case(capacity=_held(placement_group=unknown_text())),
        case(capacity=_RESERVATIONS_IN_TURN),
        case(capacity=_RESERVATION),
        case(capacity=_RESERVATION, placement=Placement.NONE),
    ),
    "severalTypesInPlacementGroup": (
        case(**_SPOT_TYPES, placement=Placement.CLUSTER, warnings=_SEVERAL),
        case(
            **{**_SPOT_TYPES, "capacity": _FLEET},
            placement=Placement.CLUSTER,
            warnings={**_SEVERAL, **FLEET_WARNING},
        ),
        case(
            **{**_SPOT_TYPES, "capacity": _RESERVATIONS_IN_TURN},
            placement=Placement.CLUSTER,
            warnings={**_SEVERAL, **_OUTSIDE},
        ),
        # What is interrupted is terminated, which is allowed in a placement group.
        case(instance_types=["g5.48xlarge"], capacity=_SPOT, placement=Placement.CLUSTER),
        case(**_SPOT_TYPES),
        case(**_SPOT_TYPES, placement=Placement.NONE),
    ),
}

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
        *(case(instance_types=_GB200, capacity=_block(instance_count=size)) for size in (9, 18)),
        *(
            case(
                _ultraserver("p6e-gb200.36xlarge", "9 or 18", size),
                instance_types=_GB200,
                capacity=_block(instance_count=size),
            )
            for size in (8, 10, 17, 19, 64, 65)
        ),
        case(instance_types=_GB200, capacity=_BLOCK, count=18),
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
        case(capacity=_held(availability_zone="us-east-1c")),
        case(capacity=_held(availability_zone="us-east-1c"), zone=unknown_text()),
        case(capacity=_held(availability_zone=unknown_text()), zone="us-east-1b"),
        case(capacity=_HELD, zone="us-east-1b"),
        case(capacity=_IN_TURN, zone="us-east-1b"),
    ),
    "reservedRegion": (
        case(capacity=_in_region("us-east-1"), zone="us-east-1b"),
        case(_wrong_region("reservations", _arn("us-west-2")), capacity=_in_region("us-west-2"), zone="us-east-1b"),
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

_WARM_POOL_CASES: Mapping[str, Sequence[Case]] = {
    "warmPool": (
        *(
            case(
                _no_pool(capacity.call),
                instance_types=["p4d.24xlarge"],
                capacity=capacity,
                warm_pool=WarmPool(size=1),
            )
            for capacity in (
                _SPOT,
                _FLEET,
                _BLOCK,
                _IN_TURN,
                _RESERVATIONS_IN_TURN,
                Capacity.prioritized(reservations=[RESERVED], on_demand=False),
            )
        ),
        *(
            case(capacity=capacity, warm_pool=WarmPool(size=1))
            for capacity in (Capacity.on_demand(), _RESERVATION, _HELD, _HELD_IN_PLACE)
        ),
    ),
    "releaseWarmPool": (
        *(
            case(
                capacity=_RELEASED,
                warm_pool=WarmPool(size=size),
                count=count,
                warnings=_POOL_OF_WHAT_IS_RELEASED,
            )
            for size, count in ((1, 2), (8, 8), (unknown_number(), unknown_number("Count")))
        ),
        case(capacity=_RELEASED),
        case(capacity=_RESERVATION, warm_pool=WarmPool(size=1)),
        case(capacity=_HELD, warm_pool=WarmPool(size=1)),
        case(warm_pool=WarmPool(size=1)),
    ),
    "warmPoolSize": (
        case(warm_pool=WarmPool(size=8)),
        case(
            "size of warm_pool must be at most the group's count, 8, got 9: no more nodes are ever needed",
            warm_pool=WarmPool(size=9),
        ),
        case(warm_pool=WarmPool(size=unknown_number())),
        case(warm_pool=WarmPool(size=9), count=unknown_number()),
    ),
    "warmPoolRoot": (
        *(
            case(
                *errors,
                instance_types=["g9.xlarge"],
                facts=[
                    replace(instance_type_info("g5.xlarge"), name="g9.xlarge", supported_root_device_types=devices)
                ],
                warm_pool=pool,
            )
            for devices, pool, errors in (
                (
                    ("instance-store",),
                    WarmPool(size=1),
                    ["warm_pool must be left out for g9.xlarge: a node without an EBS root volume cannot be stopped"],
                ),
                (("instance-store",), None, []),
                (("ebs", "instance-store"), WarmPool(size=1), []),
            )
        ),
    ),
}

PURCHASE_CASES: Mapping[str, Sequence[Case]] = {
    **_PLACEMENT_CASES,
    **_COUNT_CASES,
    **_MATCH_CASES,
    **_WARM_POOL_CASES,
}
