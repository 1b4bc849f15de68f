from datetime import timedelta
from typing import Any

import pytest
from aws_cdk import Aws, Token

from cdk_training_cluster.guardrails.power import PowerGroup
from cluster_contract.owners import OwnerSettings
from cluster_contract.power import PowerGroupSettings


@pytest.mark.parametrize(
    ("group", "settings"),
    [
        (PowerGroup(count=8), {}),
        (PowerGroup(count=8, capacity_block="cr-1"), {"block": "cr-1"}),
        (
            PowerGroup(count=8, capacity_block="cr-1", block_ends_early_minutes=60),
            {"block": "cr-1", "block_ends_early": timedelta(minutes=60)},
        ),
        (
            PowerGroup(count=8, listed_reservations=["cr-3"], capacity_blocks=("cr-1", "cr-2"), on_demand=True),
            {"blocks": ("cr-1", "cr-2"), "listed": ("cr-3",)},
        ),
        (
            PowerGroup(count=8, capacity_blocks=("cr-1",), block_ends_early_minutes=60),
            {"blocks": ("cr-1",), "on_demand": False, "block_ends_early": timedelta(minutes=60)},
        ),
        (PowerGroup(count=8, spot_fleet_id="sfr-1"), {"owner": OwnerSettings.spot_fleet("sfr-1")}),
        (PowerGroup(count=8, capacity_reservation_id="cr-2"), {"reservation": "cr-2"}),
        (
            PowerGroup(count=8, capacity_reservation_id="cr-2", released=True),
            {"released": "cr-2"},
        ),
        (PowerGroup(count=8, block_ends_early_minutes=60), {}),
        (PowerGroup(count=8, terminates_nodes=True), {}),
        (PowerGroup(count=8, warm_pool=True), {"warm_pool": True}),
    ],
)
def test_a_group_says_what_the_function_has_to_know(group: PowerGroup, settings: dict[str, Any]) -> None:
    assert group.settings == PowerGroupSettings(count=8, **settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"count": 0}, "count must be at least 1, got 0"),
        ({"count": -1}, "count must be at least 1, got -1"),
        ({"count": 1, "block_ends_early_minutes": -1}, "block_ends_early_minutes must be at least 0, got -1"),
        (
            {"count": 1, "capacity_block": "cr-1", "spot_fleet_id": "sfr-1"},
            "at most one of capacity_block, capacity_blocks, spot_fleet_id and capacity_reservation_id is "
            "allowed, got {'capacity_block': 'cr-1', 'spot_fleet_id': 'sfr-1'}",
        ),
        (
            {"count": 1, "capacity_block": "cr-1", "capacity_reservation_id": "cr-2"},
            "at most one of capacity_block, capacity_blocks, spot_fleet_id and capacity_reservation_id is "
            "allowed, got {'capacity_block': 'cr-1', 'capacity_reservation_id': 'cr-2'}",
        ),
        (
            {"count": 1, "released": True},
            "released needs capacity_reservation_id: the reservation that is lowered while the group is stopped",
        ),
        (
            {"count": 1, "spot_fleet_id": "sfr-1", "terminates_nodes": True},
            "terminates_nodes takes one of the owners auto_scaling_group, eks_nodegroup, hyperpod_instance_group, "
            "got spot_fleet: it chooses itself which of its nodes it terminates",
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


def test_the_lead_of_a_block_is_a_number_when_the_template_is_made() -> None:
    unknown = Token.as_number(Aws.ACCOUNT_ID)

    with pytest.raises(ValueError, match=r"^block_ends_early_minutes must be known when the template is made, got "):
        PowerGroup(count=1, capacity_block="cr-1", block_ends_early_minutes=unknown)  # type: ignore[arg-type]
