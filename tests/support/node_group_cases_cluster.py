"""Cases of the rules about node groups together, by the rule's id."""

from collections.abc import Mapping, Sequence
from typing import Any

from cdk_training_cluster import Capacity, Placement
from node_group_cases import OTHER, RESERVED, ClusterCase, together, unknown_number, unknown_text

_ARN = f"arn:aws:ec2:us-east-1:111122223333:capacity-reservation/{RESERVED}"


def _held(one: str = RESERVED, **settings: Any) -> Capacity:
    return Capacity.from_reservation(one, **{"instance_count": 1000, **settings})


def _block(one: str = RESERVED, **settings: Any) -> Capacity:
    return Capacity.capacity_block(one, **{"instance_count": 64, **settings})


def _placed(place: str) -> dict[str, Any]:
    return {"capacity": _held(placement_group=place), "count": 1}


def _together(names: str, most: int, counts: str) -> str:
    return (
        f"node groups {names} must have at most {most} nodes together, as many instances as {RESERVED} has, got "
        f"{counts}"
    )


def _nobody_says(names: str, reserved: str = RESERVED) -> str:
    return (
        f"node groups {names} share {reserved} and nobody says how many instances it has: if they are fewer than the "
        "nodes together, the groups take them from each other and none is whole; give instance_count"
    )


def _one_place(names: str, places: str) -> str:
    return (
        f"node groups {names} must name one placement_group for {RESERVED}, got {places}: a reservation is made in "
        "one"
    )


def _one_type(names: str, types: str) -> str:
    return f"node groups {names} must have one type for {RESERVED}, got {types}: a reservation is of one type"


def _either(names: str, given: str) -> str:
    return (
        f"node groups {names} must agree on what {RESERVED} is, got {given}: it is either a reservation or a "
        "Capacity Block"
    )


CLUSTER_CASES: Mapping[str, Sequence[ClusterCase]] = {
    "sharedCount": (
        *(
            together(
                groups=[{"capacity": capacity(instance_count=8), "count": 4}, {"capacity": capacity(), "count": 4}]
            )
            for capacity in (_held, _block)
        ),
        *(
            together(
                _together("'a' and 'b'", 8, "4 + 5"),
                groups=[{"capacity": capacity(instance_count=8), "count": 4}, {"capacity": capacity(), "count": 5}],
            )
            for capacity in (_held, _block)
        ),
        together(
            _together("'a' and 'b' and 'd'", 7, "4 + 2 + 2"),
            groups=[
                {"capacity": _held(), "count": 4},
                {"capacity": _held(instance_count=8), "count": 2},
                {"count": 100},
                {"capacity": _held(instance_count=7), "count": 2},
            ],
        ),
        together(groups=[{"capacity": _held(), "count": 500}, {"capacity": _held(), "count": 500}]),
        together(
            groups=[
                {"capacity": _held(instance_count=8), "count": 8},
                {"capacity": _held(OTHER, instance_count=8), "count": 8},
            ]
        ),
        together(
            groups=[
                {"capacity": _held(instance_count=8), "count": 8},
                {"capacity": _held(), "count": unknown_number()},
            ]
        ),
        together(
            groups=[
                {"capacity": _held(instance_count=unknown_number()), "count": 8},
                {"capacity": _held(instance_count=8), "count": 8},
            ]
        ),
    ),
    "sharedUnknownCount": (
        *(
            together(
                groups=[{"capacity": capacity(instance_count=None)}] * 2,
                warnings={"sharedUnknownCount": _nobody_says("'a' and 'b'")},
            )
            for capacity in (_held, _block)
        ),
        # A sentence for each that is shared.
        together(
            groups=[
                {"capacity": _held(instance_count=None)},
                {"capacity": _block(OTHER, instance_count=None)},
                {"capacity": _block(OTHER, instance_count=None)},
                {"capacity": _held(instance_count=None), "count": unknown_number()},
                {},
                {"capacity": _held(instance_count=None), "count": 1},
            ],
            warnings={
                "sharedUnknownCount": " ".join(
                    [_nobody_says("'a' and 'd' and 'f'"), _nobody_says("'b' and 'c'", OTHER)]
                )
            },
        ),
        together(groups=[{"capacity": _held(instance_count=None)}, {"capacity": _held(instance_count=16)}]),
        together(
            groups=[{"capacity": _held(instance_count=None)}, {"capacity": _held(instance_count=unknown_number())}]
        ),
        together(groups=[{"capacity": _held(one, instance_count=None)} for one in (RESERVED, OTHER)]),
        together(groups=[{"capacity": _held(unknown_text(name), instance_count=None)} for name in "AB"]),
        together(
            groups=[
                {"capacity": _held(instance_count=None)},
                {"capacity": Capacity.prioritized(reservations=[RESERVED])},
            ]
        ),
    ),
    "sharedPlacementGroup": (
        together(groups=[_placed("pod"), _placed("pod")]),
        together(_one_place("'a' and 'b'", "pod and rack"), groups=[_placed("rack"), _placed("pod")]),
        # One that names none, and goes into none, is launched into the reservation's all the same.
        together(groups=[_placed("pod"), {"capacity": _held(), "count": 1}]),
        together(groups=[_placed("pod"), {**_placed("pod"), "placement": Placement.NONE}]),
        together(
            _one_place("'a' and 'b'", "pod and a new one for 'b'"),
            groups=[_placed("pod"), {"capacity": _held(), "count": 1, "placement": Placement.CLUSTER}],
        ),
        # Each is outside of the reservation's, which is a warning of its own.
        together(groups=[{"capacity": _held(), "count": 1, "placement": Placement.CLUSTER}] * 2),
        together(groups=[_placed("pod"), _placed(unknown_text())]),
        together(groups=[_placed("pod"), {"capacity": _held(OTHER, placement_group="rack")}]),
    ),
    "sharedType": (
        together(groups=[{"capacity": _held(), "instance_types": ["p5e.48xlarge"]}] * 2),
        *(
            together(
                _one_type("'a' and 'b'", "p5.48xlarge and p5e.48xlarge"),
                groups=[
                    {"capacity": capacity(), "instance_types": ["p5e.48xlarge"]},
                    {"capacity": capacity(), "instance_types": ["p5.48xlarge"]},
                ],
            )
            for capacity in (_held, _block)
        ),
        together(
            groups=[
                {"capacity": _held(), "instance_types": ["p5e.48xlarge"]},
                {"capacity": _held(OTHER), "instance_types": ["p5.48xlarge"]},
            ]
        ),
        together(
            groups=[
                {"capacity": _held(unknown_text("A")), "instance_types": ["p5e.48xlarge"]},
                {"capacity": _held(unknown_text("B")), "instance_types": ["p5.48xlarge"]},
            ]
        ),
    ),
    "reservationOrBlock": (
        together(
            _either("'a' and 'b'", "Capacity.from_reservation() and Capacity.capacity_block()"),
            groups=[{"capacity": _held()}, {"capacity": _block()}],
        ),
        together(
            _either("'a' and 'c'", "Capacity.capacity_block() and Capacity.from_reservation()"),
            groups=[{"capacity": _block()}, {}, {"capacity": _held()}],
        ),
        together(
            _either("'a' and 'b'", "capacity_blocks of Capacity.prioritized() and Capacity.from_reservation()"),
            groups=[{"capacity": Capacity.prioritized(capacity_blocks=[_ARN])}, {"capacity": _held()}],
        ),
        together(
            _either("'a' and 'b'", "Capacity.capacity_block() and reservations of Capacity.prioritized()"),
            groups=[{"capacity": _block()}, {"capacity": Capacity.prioritized(reservations=[OTHER, RESERVED])}],
        ),
        together(groups=[{"capacity": _held()}, {"capacity": Capacity.prioritized(reservations=[RESERVED])}]),
        together(groups=[{"capacity": _block()}, {"capacity": Capacity.prioritized(capacity_blocks=[RESERVED])}]),
        together(groups=[{"capacity": _held()}, {"capacity": _block(OTHER)}]),
        together(groups=[{"capacity": _held(unknown_text("A"))}, {"capacity": _block(unknown_text("B"))}]),
    ),
}
