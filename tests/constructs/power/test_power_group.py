import pytest
from aws_cdk import Aws, Token

from cdk_training_cluster.power import PowerGroup


@pytest.mark.parametrize(
    ("group", "settings"),
    [
        (PowerGroup(count=8), 8),
        (
            PowerGroup(count=8, capacity_block="cr-1"),
            {"count": 8, "block": "cr-1"},
        ),
        (
            PowerGroup(count=18, capacity_block="cr-1", block_ends_early_minutes=60),
            {"count": 18, "block": "cr-1", "block_ends_early_minutes": 60},
        ),
        (
            PowerGroup(count=4, listed_reservations=["cr-3"], capacity_blocks=("cr-1", "cr-2")),
            {"count": 4, "blocks": ["cr-1", "cr-2"], "listed": ["cr-3"]},
        ),
        (PowerGroup(count=4, capacity_blocks=("cr-1",)), 4),
        (PowerGroup(count=4, spot_fleet_id="sfr-1"), {"count": 4, "spot_fleet": "sfr-1"}),
        (PowerGroup(count=8, capacity_reservation_id="cr-2"), {"count": 8, "reservation": "cr-2"}),
        (
            PowerGroup(count=8, capacity_reservation_id="cr-2", released=True),
            {"count": 8, "released": "cr-2"},
        ),
        (PowerGroup(count=8, block_ends_early_minutes=60), 8),
        (PowerGroup(count=8, terminates_nodes=True), 8),
        (PowerGroup(count=8, warm_pool=True), {"count": 8, "warm_pool": True}),
    ],
)
def test_a_group_says_what_the_function_has_to_know(group: PowerGroup, settings: object) -> None:
    assert group.settings == settings


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"count": 0}, "count must be 1 or more, got 0"),
        ({"count": -1}, "count must be 1 or more, got -1"),
        ({"count": 1, "block_ends_early_minutes": -1}, "block_ends_early_minutes must be 0 or more, got -1"),
        (
            {"count": 1, "capacity_block": "cr-1", "spot_fleet_id": "sfr-1"},
            "at most one of capacity_block, capacity_blocks, spot_fleet_id and capacity_reservation_id is "
            "allowed, got {'capacity_block': 'cr-1', 'spot_fleet_id': 'sfr-1'}",
        ),
        (
            {"count": 0, "capacity_block": "cr-1", "capacity_reservation_id": "cr-2"},
            "count must be 1 or more, got 0\n"
            "at most one of capacity_block, capacity_blocks, spot_fleet_id and capacity_reservation_id is "
            "allowed, got {'capacity_block': 'cr-1', 'capacity_reservation_id': 'cr-2'}",
        ),
        (
            {"count": 1, "released": True},
            "released needs capacity_reservation_id: the reservation that is lowered while the group is stopped",
        ),
        (
            {"count": 1, "spot_fleet_id": "sfr-1", "terminates_nodes": True},
            "terminates_nodes excludes spot_fleet_id: a Spot Fleet chooses itself which of its nodes go",
        ),
    ],
)
def test_impossible_settings_are_refused_with_every_reason(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 (the whole text is compared)
        PowerGroup(**settings)  # type: ignore[arg-type]  # a test's settings

    assert str(caught.value) == message


def test_what_is_known_at_deployment_only_is_not_checked() -> None:
    unknown = Token.as_number(Aws.ACCOUNT_ID)

    PowerGroup(count=unknown, block_ends_early_minutes=unknown)  # type: ignore[arg-type]  # numbers of CDK are floats
