"""The rules of Auto Scaling by themselves: each refuses something that no other rule refuses."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from local_aws.refusal import Refusal
from local_aws.services import group_rules

ARN = "arn:aws:resource-groups:us-east-1:123456789012:group/pool"
POOL = {"CapacityReservationTarget": {"CapacityReservationResourceGroupArns": [ARN]}}


def _group(
    distribution: dict[str, Any] | None = None,
    reservations: dict[str, Any] | None = None,
    placement_group: str | None = None,
) -> SimpleNamespace:
    return SimpleNamespace(
        mixed_instances_policy=None if distribution is None else {"InstancesDistribution": distribution},
        CapacityReservationSpecification=reservations,
        placement_group=placement_group,
    )


def _segments(types: Sequence[str] = ("on-demand-capacity-reservation", "on-demand"), **more: Any) -> dict[str, Any]:
    return {"DistributionSegments": [{"TargetCapacityTypes": list(types)}], **more}


def _ids(*ids: str, preference: str = "capacity-reservations-only") -> dict[str, Any]:
    target = {"CapacityReservationIds": list(ids)}
    return {"CapacityReservationPreference": preference, "CapacityReservationTarget": target}


ONLY: dict[str, tuple[SimpleNamespace, str]] = {
    "the_spot_strategy_is_known": (
        _group({"SpotAllocationStrategy": "priceCapacityOptimized"}),
        "SpotAllocationStrategy priceCapacityOptimized is not valid. Valid values are: capacity-optimized, "
        "capacity-optimized-prioritized, lowest-price, price-capacity-optimized",
    ),
    "only_one_reservation_is_targeted": (
        _group(reservations=_ids("cr-1", "cr-2")),
        "Only a single Capacity Reservation ID or Capacity Reservation Resource Group ARN is allowed as a Capacity "
        "Reservation target.",
    ),
    "no_target_without_reservations": (
        _group(reservations=_ids("cr-1", preference="none")),
        "You cannot specify a CapacityReservationTarget when the CapacityReservationPreference is none.",
    ),
    "one_segment_in_order": (
        _group(_segments(["on-demand", "capacity-block"]), POOL),
        "on-demand must be the last of the TargetCapacityTypes of a distribution segment.",
    ),
    "segments_go_alone": (
        _group(_segments(OnDemandPercentageAboveBaseCapacity=100), POOL),
        "You cannot specify OnDemandPercentageAboveBaseCapacity with DistributionSegments.",
    ),
    "segments_target_one_group_of_reservations": (
        _group(_segments()),
        "DistributionSegments need a Capacity Reservation Resource Group ARN as the CapacityReservationTarget.",
    ),
    "blocks_in_a_segment_have_no_placement_group": (
        _group(_segments(["capacity-block"]), POOL, "together"),
        "Capacity Blocks do not support placement groups: you cannot specify a placement group when the distribution "
        "segment has capacity-block.",
    ),
}

REFUSED = [
    (
        _group({"DistributionSegments": [{"TargetCapacityTypes": ["on-demand"]}] * 2}, POOL),
        "Only one distribution segment is supported per Auto Scaling group.",
    ),
    (
        _group(_segments([]), POOL),
        "A distribution segment must have at least one of TargetCapacityTypes.",
    ),
    (
        _group({"DistributionSegments": [{}]}, POOL),
        "A distribution segment must have at least one of TargetCapacityTypes.",
    ),
    (
        _group(_segments(["capacity-block", "spot"]), POOL),
        "TargetCapacityTypes spot is not valid. Valid values are: on-demand-capacity-reservation, capacity-block, "
        "interruptible-capacity-reservation, on-demand",
    ),
    (
        _group(_segments(["on-demand", "on-demand"]), POOL),
        "TargetCapacityTypes of a distribution segment must be unique.",
    ),
    (
        _group(_segments(OnDemandAllocationStrategy="lowest-price"), POOL),
        "DistributionSegments support only the OnDemandAllocationStrategy prioritized, and it is lowest-price.",
    ),
    *(
        (_group(_segments() | {name: value}, POOL), f"You cannot specify {name} with DistributionSegments.")
        for name, value in (
            ("OnDemandBaseCapacity", 0),
            ("SpotAllocationStrategy", "lowest-price"),
            ("SpotInstancePools", 2),
            ("SpotMaxPrice", "1.5"),
        )
    ),
    (
        _group(_segments(), {**POOL, "CapacityReservationPreference": "capacity-reservations-first"}),
        "DistributionSegments support only the CapacityReservationPreference default, and it is "
        "capacity-reservations-first.",
    ),
    (
        _group(_segments(), _ids("cr-1", preference="default")),
        "DistributionSegments need a Capacity Reservation Resource Group ARN as the CapacityReservationTarget.",
    ),
]

LEGAL = [
    _group(),
    _group({"SpotAllocationStrategy": "price-capacity-optimized", "SpotMaxPrice": "1.5"}),
    _group({"SpotAllocationStrategy": "price-capacity-optimized", "SpotMaxPrice": ""}),
    _group(reservations=_ids("cr-1"), placement_group="together"),
    _group(reservations={"CapacityReservationPreference": "none"}),
    _group(_segments(), POOL, "together"),
    _group(
        _segments(["capacity-block", "on-demand"], OnDemandAllocationStrategy="prioritized"),
        {**POOL, "CapacityReservationPreference": "default"},
    ),
]


def _check(group: SimpleNamespace) -> None:
    for rule in group_rules.RULES:
        rule(group)


def test_every_rule_has_a_group_that_it_alone_refuses() -> None:
    assert list(ONLY) == [rule.__name__ for rule in group_rules.RULES]


@pytest.mark.parametrize("rule", ONLY)
def test_without_the_rule_the_group_would_not_be_refused(monkeypatch: pytest.MonkeyPatch, rule: str) -> None:
    group, message = ONLY[rule]
    with pytest.raises(Refusal) as refusal:
        _check(group)
    assert (refusal.value.code, refusal.value.message) == ("ValidationError", message)
    monkeypatch.setattr(group_rules, "RULES", tuple(r for r in group_rules.RULES if r.__name__ != rule))
    _check(group)


@pytest.mark.parametrize(("group", "message"), REFUSED)
def test_what_else_is_refused(group: SimpleNamespace, message: str) -> None:
    with pytest.raises(Refusal) as refusal:
        _check(group)
    assert (refusal.value.code, refusal.value.message) == ("ValidationError", message)


@pytest.mark.parametrize("group", LEGAL)
def test_what_is_legal_passes(group: SimpleNamespace) -> None:
    _check(group)
