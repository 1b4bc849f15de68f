"""The rules of capacity by themselves: each refuses something that no other rule refuses, and lets the rest be."""

from dataclasses import replace
from typing import Any

import pytest
from moto.ec2.models.instance_types import INSTANCE_TYPES

from local_aws import capacity_rules, launch_rules
from local_aws.launch_facts import Ec2Refusal, LaunchContext, ReservationFacts

GROUP_ARN = "arn:aws:resource-groups:us-east-1:123456789012:group/pool"
TYPE, ZONE = "p5.48xlarge", "us-east-1b"


def _reserved(reservation_id: str, **special: Any) -> ReservationFacts:
    settings = {"instance_type": TYPE, "availability_zone": ZONE, **special}
    return ReservationFacts(reservation_id=reservation_id, **settings)


RESERVATIONS = (
    _reserved("cr-00000001"),
    _reserved("cr-00000002", placement_group="together"),
    _reserved("cr-0000000b", is_block=True),
    _reserved("cr-1a7e0000", is_block=True, state="scheduled"),
    _reserved("cr-e2d00000", is_block=True, is_ending=True),
    _reserved("cr-07e70000", is_block=True, is_ending=True, state="expired"),
    _reserved("cr-ca2ce11e", state="cancelled"),
    _reserved("cr-f0110000", available=0),
)
CONTEXT = LaunchContext(
    image_architectures={"ami-1": "x86_64", "ami-2": "x86_64"},
    image_platforms={"ami-1": "Linux/UNIX", "ami-2": "Windows"},
    security_group_vpcs={},
    placement_groups={"together": "cluster", "apart": "cluster"},
    availability_zone=ZONE,
    reservations={reservation.reservation_id: reservation for reservation in RESERVATIONS},
    reservation_groups=frozenset({GROUP_ARN}),
)
LAUNCH = {"ImageId": "ami-1", "InstanceType": TYPE}
BLOCKS = {"InstanceMarketOptions": {"MarketType": "capacity-block"}}
SPOT = {"MarketType": "spot", "SpotOptions": {"InstanceInterruptionBehavior": "hibernate"}}


def _into(reservation_id: str, **more: Any) -> dict[str, Any]:
    target = {"CapacityReservationId": reservation_id}
    return {"CapacityReservationSpecification": {"CapacityReservationTarget": target}, **more}


def _placed(name: str, **more: Any) -> dict[str, Any]:
    return {"Placement": {"GroupName": name, **more}}


def _specified(**specification: Any) -> dict[str, Any]:
    return {"CapacityReservationSpecification": specification}


# What each rule alone refuses: launch data, and EC2's code.
ONLY: dict[str, tuple[dict[str, Any], str]] = {
    "spot_in_a_placement_group_terminates": (
        {"InstanceMarketOptions": SPOT, **_placed("together")},
        "InvalidParameterCombination",
    ),
    "a_target_is_one_thing": (
        _specified(
            CapacityReservationPreference="open",
            CapacityReservationTarget={"CapacityReservationId": "cr-00000001"},
        ),
        "InvalidParameterCombination",
    ),
    "the_reservation_exists": (_into("cr-00000009"), "InvalidCapacityReservationId.NotFound"),
    "the_block_market_has_a_target": (BLOCKS, "InvalidParameterCombination"),
    "a_reservation_is_used_on_its_market": (_into("cr-0000000b"), "InvalidParameterValue"),
    "a_block_is_in_no_placement_group": (
        _into("cr-0000000b", **BLOCKS, **_placed("together")),
        "InvalidParameterCombination",
    ),
    "the_block_has_begun": (
        _into("cr-1a7e0000", **BLOCKS),
        "InvalidCapacityReservationState.PendingActivation",
    ),
    "the_reservation_has_not_ended": (_into("cr-e2d00000", **BLOCKS), "ReservationCapacityExceeded"),
    "the_reservation_fits": (_into("cr-00000002", **_placed("apart")), "ReservationCapacityExceeded"),
    "the_reservation_has_room": (_into("cr-f0110000"), "ReservationCapacityExceeded"),
}

REFUSED = [
    (_into("cr-workers"), "InvalidCapacityReservationId.Malformed"),
    (
        _specified(CapacityReservationTarget={"CapacityReservationResourceGroupArn": f"{GROUP_ARN}s"}),
        "InvalidParameterValue",
    ),
    (
        _specified(
            CapacityReservationTarget={
                "CapacityReservationId": "cr-00000001",
                "CapacityReservationResourceGroupArn": GROUP_ARN,
            }
        ),
        "InvalidParameterCombination",
    ),
    (_into("cr-00000001", **BLOCKS), "InvalidParameterValue"),
    (_into("cr-00000001", InstanceMarketOptions={"MarketType": "spot"}), "InvalidParameterValue"),
    (_into("cr-07e70000", **BLOCKS), "ReservationCapacityExceeded"),
    (_into("cr-ca2ce11e"), "ReservationCapacityExceeded"),
]

LEGAL = [
    LAUNCH,
    _specified(CapacityReservationPreference="none"),
    _specified(CapacityReservationPreference="open"),
    _specified(
        CapacityReservationPreference="capacity-reservations-only",
        CapacityReservationTarget={"CapacityReservationId": "cr-00000001"},
    ),
    _specified(CapacityReservationTarget={"CapacityReservationResourceGroupArn": GROUP_ARN}),
    _specified(CapacityReservationTarget={"CapacityReservationResourceGroupArn": GROUP_ARN}) | BLOCKS,
    _into("cr-00000001"),
    _into("cr-00000001", InstanceMarketOptions={"MarketType": "on-demand"}),
    _into("cr-00000001", **_placed("together")),
    _into("cr-00000002"),
    _into("cr-00000002", **_placed("together")),
    _into("cr-0000000b", **BLOCKS),
    {"InstanceMarketOptions": SPOT},
    {"InstanceMarketOptions": {"MarketType": "spot"}, **_placed("together")},
]

# What each attribute alone does not match in, on top of a reservation that fits.
MISFITS: dict[str, tuple[dict[str, Any], str]] = {
    "same_type": (_into("cr-00000001", InstanceType="p5en.48xlarge"), "another instance type."),
    "same_zone": (_into("cr-00000003"), "another Availability Zone."),
    "same_platform": (_into("cr-00000001", ImageId="ami-2"), "another platform."),
    "same_tenancy": (_into("cr-00000001", Placement={"Tenancy": "dedicated"}), "another tenancy."),
    "same_placement_group": (_into("cr-00000002", **_placed("apart")), "another placement group."),
}
ELSEWHERE = _reserved("cr-00000003", availability_zone="us-east-1a")
WIDER = replace(CONTEXT, reservations={**CONTEXT.reservations, "cr-00000003": ELSEWHERE})


def _check(data: dict[str, Any], context: LaunchContext = WIDER) -> None:
    data = LAUNCH | data
    launch_rules.check_launch(data, INSTANCE_TYPES[data["InstanceType"]], context)


def test_every_rule_has_a_launch_that_it_alone_refuses() -> None:
    assert list(ONLY) == [rule.__name__ for rule in capacity_rules.RULES]
    assert list(MISFITS) == [fits.__name__ for fits, _ in capacity_rules.FITS]
    assert set(capacity_rules.RULES) < set(launch_rules.RULES)


@pytest.mark.parametrize("rule", ONLY)
def test_without_the_rule_the_launch_would_not_be_refused(monkeypatch: pytest.MonkeyPatch, rule: str) -> None:
    data, code = ONLY[rule]
    with pytest.raises(Ec2Refusal) as refusal:
        _check(data)
    assert refusal.value.code == code
    monkeypatch.setattr(launch_rules, "RULES", tuple(r for r in launch_rules.RULES if r.__name__ != rule))
    _check(data)


@pytest.mark.parametrize("fits", MISFITS)
def test_without_the_attribute_the_reservation_would_fit(monkeypatch: pytest.MonkeyPatch, fits: str) -> None:
    data, words = MISFITS[fits]
    with pytest.raises(Ec2Refusal, match=words) as refusal:
        _check(data)
    assert refusal.value.code == "ReservationCapacityExceeded"
    monkeypatch.setattr(capacity_rules, "FITS", tuple(f for f in capacity_rules.FITS if f[0].__name__ != fits))
    _check(data)


@pytest.mark.parametrize(("data", "code"), REFUSED)
def test_what_else_is_refused(data: dict[str, Any], code: str) -> None:
    with pytest.raises(Ec2Refusal) as refusal:
        _check(data)
    assert refusal.value.code == code


@pytest.mark.parametrize("data", LEGAL)
def test_what_is_legal_launches(data: dict[str, Any]) -> None:
    _check(data)


@pytest.mark.parametrize("reservation_id", ["cr-1a7e0000", "cr-e2d00000", "cr-07e70000"])
def test_a_launch_that_is_only_tried_out_may_name_a_block_at_any_time(reservation_id: str) -> None:
    _check(_into(reservation_id, **BLOCKS), replace(CONTEXT, is_trial=True))
