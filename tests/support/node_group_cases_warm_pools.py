"""Cases of the rules about warm pools, by the rule's id."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from cdk_training_cluster import UNTIL_CANCELLED, Capacity, OnIdle, WarmPool, instance_type_info
from node_group_cases import OTHER, RESERVED, Case, case, unknown_number

_SPOT, _FLEET = Capacity.spot(), Capacity.spot_fleet()

_RESERVATION = Capacity.reservation(end=UNTIL_CANCELLED)

_RELEASED = Capacity.reservation(end=UNTIL_CANCELLED, on_idle=OnIdle.RELEASE)

_HELD, _BLOCK = Capacity.from_reservation(RESERVED), Capacity.capacity_block(RESERVED)

_HELD_IN_PLACE = Capacity.from_reservation(RESERVED, placement_group="pod")

_IN_TURN = Capacity.prioritized(reservations=[RESERVED], capacity_blocks=[OTHER], on_demand=False)

_RESERVATIONS_IN_TURN = Capacity.prioritized(reservations=[RESERVED])

_POOL_OF_WHAT_IS_RELEASED = {
    "releaseWarmPool": "while the group is stopped its reservation is lowered, and its warm pool can start or renew "
    "no node in what is left: leave warm_pool out, or keep the reservation"
}


def _no_pool(call: str) -> str:
    return (
        f"warm_pool must be left out with {call}: Auto Scaling keeps no warm pool of Spot Instances, Capacity Blocks "
        "or distribution segments"
    )


WARM_POOL_CASES: Mapping[str, Sequence[Case]] = {
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
