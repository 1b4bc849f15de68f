"""Capacities as values: equal, unchangeable, and what each tells of itself."""

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from cdk_training_cluster import UNTIL_CANCELLED, Capacity, OnIdle

_ID, _OTHER = "cr-0a1b2c3d4e5f67890", "cr-0123456789abcdef0"
_END = datetime(2026, 12, 24, 18, tzinfo=UTC)

_EQUAL: list[Callable[[], Capacity]] = [
    Capacity.on_demand,
    lambda: Capacity.reservation(end=_END),
    lambda: Capacity.reservation(end=UNTIL_CANCELLED),
    lambda: Capacity.reservation(end=_END, on_idle=OnIdle.RELEASE),
    lambda: Capacity.from_reservation(_ID),
    lambda: Capacity.from_reservation(_ID, placement_group="pod"),
    lambda: Capacity.capacity_block(_ID),
    lambda: Capacity.capacity_block(_ID, instance_count=4),
    Capacity.spot,
    lambda: Capacity.spot(max_price=1),
    Capacity.spot_fleet,
    lambda: Capacity.spot_fleet(max_price=1),
    lambda: Capacity.prioritized(reservations=[_ID]),
    lambda: Capacity.prioritized(capacity_blocks=[_ID]),
    lambda: Capacity.prioritized(reservations=[_ID], on_demand=False),
]


def test_capacities_are_equal_if_they_buy_the_same() -> None:
    for at, make in enumerate(_EQUAL):
        for other_at, make_other in enumerate(_EQUAL):
            assert (make() == make_other()) is (at == other_at)
    assert len({make() for make in [*_EQUAL, *_EQUAL]}) == len(_EQUAL)


def test_a_capacity_does_not_change_with_the_list_it_was_made_of() -> None:
    ids = [_ID]
    made = Capacity.prioritized(reservations=ids)
    ids.append(_OTHER)
    assert made == Capacity.prioritized(reservations=[_ID])


@pytest.mark.parametrize("make", _EQUAL)
def test_a_capacity_cannot_be_changed(make: Callable[[], Capacity]) -> None:
    with pytest.raises(AttributeError):
        make().instance_count = 1  # type: ignore[misc]  # that is what is wrong


@pytest.mark.parametrize(
    ("made", "call", "classes", "together"),
    [
        (Capacity.on_demand(), "Capacity.on_demand()", ("on-demand",), True),
        (Capacity.reservation(end=_END), "Capacity.reservation()", ("on-demand",), True),
        (Capacity.from_reservation(_ID), "Capacity.from_reservation()", ("on-demand",), False),
        (
            Capacity.from_reservation(_ID, placement_group="pod"),
            "Capacity.from_reservation()",
            ("on-demand",),
            True,
        ),
        (Capacity.capacity_block(_ID), "Capacity.capacity_block()", ("capacity-block",), False),
        (Capacity.spot(), "Capacity.spot()", ("spot",), False),
        (Capacity.spot_fleet(), "Capacity.spot_fleet()", ("spot",), False),
        (Capacity.prioritized(reservations=[_ID]), "Capacity.prioritized()", ("on-demand",), False),
    ],
)
def test_each_call_knows_what_it_buys_and_whether_its_nodes_belong_together(
    made: Capacity, call: str, classes: tuple[str, ...], together: bool
) -> None:
    assert (made.call, made.usage_classes, made.keeps_together) == (call, classes, together)
