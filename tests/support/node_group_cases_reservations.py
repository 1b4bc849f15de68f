"""Cases of the rules about node groups that share a reservation or a Capacity Block, by the rule's id."""

from collections.abc import Mapping, Sequence
from typing import Any

from cdk_training_cluster import Capacity, Placement
from node_group_cases import OTHER, RESERVED, ClusterCase, held_in, together, unknown_number, unknown_text

_ARN = f"arn:aws:ec2:us-east-1:111122223333:capacity-reservation/{RESERVED}"


def _block(one: str = RESERVED, **settings: Any) -> Capacity:
    return Capacity.capacity_block(one, **{"instance_count": 64, **settings})


def _placed(place: str) -> dict[str, Any]:
    return {"capacity": held_in(placement_group=place), "count": 1}


def _together(names: str, most: int, counts: str) -> str:
    return (
        f"node groups {names} must have at most {most} nodes together, as many instances as {RESERVED} has, got "
        f"{counts}: lower a count, or give one a reservation of its own"
    )


def _unknown_count(names: str, reserved: str = RESERVED) -> str:
    return (
        f"node groups {names} share {reserved} and its number of instances is not given: if they are fewer than the "
        "nodes together, the groups take them from each other and none is whole; give instance_count"
    )


def _one_place(names: str, places: str) -> str:
    return (
        f"node groups {names} must name one placement_group for {RESERVED}, got {places}: a reservation is made in "
        "one; name that one, or another reservation"
    )


def _one_type(names: str, types: str) -> str:
    return (
        f"node groups {names} must have one type for {RESERVED}, got {types}: a reservation is of one type; name "
        "another for one of them"
    )


def _types_apart(names: str, types: str) -> str:
    return (
        f"node groups {names} must have a type in common for {RESERVED}, got {types}: a reservation is of one type; "
        "name another for one of them"
    )


def _loses(taker: str, loser: str, *, on_demand: bool = True) -> str:
    then = "buys On-Demand at the full price" if on_demand else "waits"
    return f"what {taker} of it {loser} does not get, and {then}"


def _in_turn_too(names: str, *losses: str, reserved: str = RESERVED) -> Mapping[str, str]:
    return {
        "sharedPrioritized": f"node groups {names} share {reserved}: {'; '.join(losses)}; give each its own, or "
        "reserve enough for all of them"
    }


def _first(one: str = RESERVED, **settings: Any) -> Capacity:
    return Capacity.prioritized(reservations=[one], **settings)


def _block_first(one: str = RESERVED, **settings: Any) -> Capacity:
    return Capacity.prioritized(capacity_blocks=[one], **settings)


def _either(names: str, given: str) -> str:
    return (
        f"node groups {names} must agree on what {RESERVED} is, got {given}: it is either a reservation or a "
        "Capacity Block"
    )


RESERVATION_CASES: Mapping[str, Sequence[ClusterCase]] = {
    "sharedCount": (
        *(
            together(
                groups=[
                    {"capacity": capacity(instance_count=8), "count": 4},
                    {"capacity": capacity(instance_count=None), "count": 4},
                ]
            )
            for capacity in (held_in, _block)
        ),
        *(
            together(
                _together("'a' and 'b'", 8, "4 + 5"),
                groups=[
                    {"capacity": capacity(instance_count=8), "count": 4},
                    {"capacity": capacity(instance_count=None), "count": 5},
                ],
            )
            for capacity in (held_in, _block)
        ),
        together(
            _together("'a' and 'b' and 'd'", 7, "4 + 2 + 2"),
            groups=[
                {"capacity": held_in(instance_count=None), "count": 4},
                {"capacity": held_in(instance_count=7), "count": 2},
                {"count": 100},
                {"capacity": held_in(instance_count=7), "count": 2},
            ],
        ),
        together(groups=[{"capacity": held_in(), "count": 500}, {"capacity": held_in(), "count": 500}]),
        together(
            groups=[
                {"capacity": held_in(instance_count=8), "count": 8},
                {"capacity": held_in(OTHER, instance_count=8), "count": 8},
            ]
        ),
        together(
            groups=[
                {"capacity": held_in(instance_count=8), "count": 8},
                {"capacity": held_in(instance_count=None), "count": unknown_number()},
            ]
        ),
        together(
            groups=[
                {"capacity": held_in(instance_count=unknown_number()), "count": 8},
                {"capacity": held_in(instance_count=8), "count": 8},
            ]
        ),
    ),
    "sharedUnknownCount": (
        *(
            together(
                groups=[{"capacity": capacity(instance_count=None)}] * 2,
                warnings={"sharedUnknownCount": _unknown_count("'a' and 'b'")},
            )
            for capacity in (held_in, _block)
        ),
        # A sentence for each that is shared.
        together(
            groups=[
                {"capacity": held_in(instance_count=None)},
                {"capacity": _block(OTHER, instance_count=None)},
                {"capacity": _block(OTHER, instance_count=None)},
                {"capacity": held_in(instance_count=None), "count": unknown_number()},
                {},
                {"capacity": held_in(instance_count=None), "count": 1},
            ],
            warnings={
                "sharedUnknownCount": " ".join(
                    [_unknown_count("'a' and 'd' and 'f'"), _unknown_count("'b' and 'c'", OTHER)]
                )
            },
        ),
        together(groups=[{"capacity": held_in(instance_count=None)}, {"capacity": held_in(instance_count=16)}]),
        together(
            groups=[
                {"capacity": held_in(instance_count=None)},
                {"capacity": held_in(instance_count=unknown_number())},
            ]
        ),
        together(groups=[{"capacity": held_in(one, instance_count=None)} for one in (RESERVED, OTHER)]),
        together(groups=[{"capacity": held_in(unknown_text(name), instance_count=None)} for name in "AB"]),
        together(
            groups=[
                {"capacity": held_in(instance_count=None)},
                {"capacity": Capacity.prioritized(reservations=[RESERVED])},
            ],
            warnings=_in_turn_too("'a' and 'b'", _loses("'a' uses", "'b'")),
        ),
    ),
    "sharedPlacementGroup": (
        together(groups=[_placed("pod"), _placed("pod")]),
        together(_one_place("'a' and 'b'", "pod and rack"), groups=[_placed("rack"), _placed("pod")]),
        # One that names none, and goes into none, is launched into the reservation's all the same.
        together(groups=[_placed("pod"), {"capacity": held_in(), "count": 1}]),
        together(groups=[_placed("pod"), {**_placed("pod"), "placement": Placement.NONE}]),
        together(
            _one_place("'a' and 'b'", "pod and a new one for 'b'"),
            groups=[_placed("pod"), {"capacity": held_in(), "count": 1, "placement": Placement.CLUSTER}],
        ),
        # Each is outside of the reservation's, which is a warning of its own.
        together(groups=[{"capacity": held_in(), "count": 1, "placement": Placement.CLUSTER}] * 2),
        together(groups=[_placed("pod"), _placed(unknown_text())]),
        together(groups=[_placed("pod"), {"capacity": held_in(OTHER, placement_group="rack")}]),
    ),
    "sharedType": (
        together(groups=[{"capacity": held_in(), "instance_types": ["p5e.48xlarge"]}] * 2),
        *(
            together(
                _one_type("'a' and 'b'", "p5.48xlarge and p5e.48xlarge"),
                groups=[
                    {"capacity": capacity(), "instance_types": ["p5e.48xlarge"]},
                    {"capacity": capacity(), "instance_types": ["p5.48xlarge"]},
                ],
            )
            for capacity in (held_in, _block)
        ),
        together(
            groups=[
                {"capacity": held_in(), "instance_types": ["p5e.48xlarge"]},
                {"capacity": held_in(OTHER), "instance_types": ["p5.48xlarge"]},
            ]
        ),
        *(
            together(
                _types_apart("'a' and 'b'", "p5.48xlarge and p5en.48xlarge"),
                groups=[{"capacity": held()}, {"capacity": first(), "instance_types": ["p5en.48xlarge"]}],
            )
            for held, first in ((held_in, _first), (_block, _block_first))
        ),
        together(
            _types_apart("'a' and 'b'", "p5en.48xlarge or p5e.48xlarge and p5.48xlarge"),
            groups=[
                {"capacity": _first(_ARN), "instance_types": ["p5en.48xlarge", "p5e.48xlarge"]},
                {"capacity": held_in()},
            ],
        ),
        together(
            _types_apart("'a' and 'b'", "p5.48xlarge and p5en.48xlarge"),
            groups=[{"capacity": _first()}, {"capacity": _first(), "instance_types": ["p5en.48xlarge"]}],
        ),
        # Both have g5, of which there are no Capacity Blocks.
        together(
            _types_apart("'a' and 'b'", "p5.48xlarge and p5en.48xlarge"),
            groups=[
                {"capacity": _block_first(), "instance_types": ["g5.48xlarge", "p5.48xlarge"]},
                {"capacity": _block_first(), "instance_types": ["g5.48xlarge", "p5en.48xlarge"]},
            ],
        ),
        # One warning, not one a group.
        together(
            _one_type("'a' and 'b'", "p5.48xlarge and p5e.48xlarge"),
            groups=[
                {"capacity": held_in()},
                {"capacity": held_in(), "instance_types": ["p5e.48xlarge"]},
                {"capacity": _first(), "instance_types": ["p5en.48xlarge"]},
            ],
        ),
        # One of its types is the reservation's.
        together(
            groups=[
                {"capacity": _first(), "instance_types": ["p5en.48xlarge", "p5.48xlarge"]},
                {"capacity": held_in()},
            ]
        ),
        together(groups=[{"capacity": _first(OTHER), "instance_types": ["p5en.48xlarge"]}, {"capacity": held_in()}]),
        together(
            groups=[
                {"capacity": held_in(unknown_text("A")), "instance_types": ["p5e.48xlarge"]},
                {"capacity": held_in(unknown_text("B")), "instance_types": ["p5.48xlarge"]},
            ]
        ),
    ),
    "sharedPrioritized": (
        *(
            together(
                groups=[{"capacity": held(instance_count=8)}, {"capacity": first()}],
                warnings=_in_turn_too("'a' and 'b'", _loses("'a' uses", "'b'")),
            )
            for held, first in ((held_in, _first), (_block, _block_first))
        ),
        # One more than there are, and just as many as there are.
        together(
            groups=[{"capacity": held_in(instance_count=15)}, {"capacity": _first()}],
            warnings=_in_turn_too("'a' and 'b'", _loses("'a' uses", "'b'")),
        ),
        together(groups=[{"capacity": held_in(instance_count=16)}, {"capacity": _first()}]),
        together(groups=[{"capacity": _block(instance_count=16)}, {"capacity": _block_first()}]),
        # Whichever comes first; an ARN is the same reservation.
        together(
            groups=[{"capacity": _first(_ARN, on_demand=False)}, {}, {"capacity": held_in(instance_count=8)}],
            warnings=_in_turn_too("'a' and 'c'", _loses("'c' uses", "'a'", on_demand=False)),
        ),
        together(
            groups=[{"capacity": _first()}, {"capacity": _first(on_demand=False)}],
            warnings=_in_turn_too(
                "'a' and 'b'", _loses("'b' uses", "'a'"), _loses("'a' uses", "'b'", on_demand=False)
            ),
        ),
        together(
            groups=[
                {"capacity": held_in(instance_count=12), "count": 6},
                {"capacity": held_in(instance_count=None), "count": 6},
                {"capacity": _first(), "count": 1},
            ],
            warnings=_in_turn_too("'a' and 'b' and 'c'", _loses("'a' and 'b' use", "'c'")),
        ),
        # A sentence for each that is shared.
        together(
            groups=[
                {"capacity": Capacity.prioritized(reservations=[RESERVED], capacity_blocks=[OTHER], on_demand=False)},
                {"capacity": held_in(instance_count=8)},
                {"capacity": _block(OTHER, instance_count=8)},
            ],
            warnings={
                "sharedPrioritized": " ".join(
                    _in_turn_too(
                        f"'a' and {taker}", _loses(f"{taker} uses", "'a'", on_demand=False), reserved=reserved
                    )["sharedPrioritized"]
                    for taker, reserved in (("'b'", RESERVED), ("'c'", OTHER))
                )
            },
        ),
        together(groups=[{"capacity": held_in(instance_count=8)}, {"capacity": _first(OTHER)}]),
        together(groups=[{"capacity": _first()}, {"capacity": _first(OTHER)}]),
        together(groups=[{"capacity": _first()}, {}]),
        together(groups=[{"capacity": held_in(instance_count=8)}, {"capacity": _first(), "count": unknown_number()}]),
        together(groups=[{"capacity": held_in(instance_count=unknown_number())}, {"capacity": _first()}]),
        together(groups=[{"capacity": _first(unknown_text("A"))}, {"capacity": _first(unknown_text("B"))}]),
        together(
            groups=[{"capacity": _first()}, {"capacity": _first(), "count": unknown_number()}],
            warnings=_in_turn_too("'a' and 'b'", _loses("'b' uses", "'a'"), _loses("'a' uses", "'b'")),
        ),
    ),
    "reservationOrBlock": (
        together(
            _either("'a' and 'b'", "Capacity.from_reservation() and Capacity.capacity_block()"),
            groups=[{"capacity": held_in()}, {"capacity": _block(instance_count=None)}],
        ),
        together(
            _either("'a' and 'c'", "Capacity.capacity_block() and Capacity.from_reservation()"),
            groups=[{"capacity": _block(instance_count=None)}, {}, {"capacity": held_in()}],
        ),
        together(
            _either("'a' and 'b'", "capacity_blocks of Capacity.prioritized() and Capacity.from_reservation()"),
            groups=[{"capacity": Capacity.prioritized(capacity_blocks=[_ARN])}, {"capacity": held_in()}],
        ),
        together(
            _either("'a' and 'b'", "Capacity.capacity_block() and reservations of Capacity.prioritized()"),
            groups=[{"capacity": _block()}, {"capacity": Capacity.prioritized(reservations=[OTHER, RESERVED])}],
        ),
        together(groups=[{"capacity": held_in()}, {"capacity": _first()}]),
        together(groups=[{"capacity": _block()}, {"capacity": _block_first()}]),
        together(groups=[{"capacity": held_in()}, {"capacity": _block(OTHER)}]),
        together(groups=[{"capacity": held_in(unknown_text("A"))}, {"capacity": _block(unknown_text("B"))}]),
    ),
}
