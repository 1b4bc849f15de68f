"""The rules of a launch by themselves: each refuses something that no other rule refuses."""

import base64
from dataclasses import replace
from typing import Any

import pytest
from moto.ec2.models.instance_types import INSTANCE_TYPES

from local_aws import capacity_rules, launch_rules
from local_aws.launch_facts import Ec2Refusal, LaunchContext
from local_aws.launch_rules import check_launch

CONTEXT = LaunchContext(
    image_architectures={"ami-1": "x86_64", "ami-2": "arm64"},
    image_volumes={"ami-1": ("/dev/xvda", 100)},
    security_group_vpcs={"sg-1": "vpc-1", "sg-2": "vpc-2"},
    placement_groups={"together": "cluster"},
    instance_profiles=frozenset({"node"}),
    subnet_id="subnet-1",
    subnet_vpc="vpc-1",
    free_addresses=1,
)


def _interface(card: int, device: int, kind: str, **more: Any) -> dict[str, Any]:
    return {"NetworkCardIndex": card, "DeviceIndex": device, "InterfaceType": kind, "Groups": ["sg-1"], **more}


PRIMARY = _interface(0, 0, "interface")
P5 = {
    "ImageId": "ami-1",
    "InstanceType": "p5.48xlarge",
    "IamInstanceProfile": {"Name": "node"},
    "Placement": {"GroupName": "together"},
    "NetworkInterfaces": [
        PRIMARY,
        _interface(0, 1, "efa-only"),
        *(_interface(card, 0, "efa-only") for card in range(1, 32)),
    ],
}

# What each rule alone refuses: launch data on top of P5, and EC2's code.
ONLY: dict[str, tuple[dict[str, Any], str]] = {
    "the_type_exists": ({"InstanceType": "p9.48xlarge"}, "InvalidParameterValue"),
    "the_image_exists": ({"ImageId": "ami-9"}, "InvalidAMIID.NotFound"),
    "the_image_fits_the_type": ({"ImageId": "ami-2"}, "InvalidParameterValue"),
    "the_root_volume_holds_the_image": (
        {"BlockDeviceMappings": [{"DeviceName": "/dev/xvda", "Ebs": {"VolumeSize": 99}}]},
        "InvalidBlockDeviceMapping",
    ),
    "user_data_is_small": ({"UserData": "eA==" + "A" * 40000}, "InvalidUserData.Malformed"),
    "groups_and_subnet_are_said_once": ({"SubnetId": "subnet-1"}, "InvalidParameterCombination"),
    "the_primary_interface_is_there": (
        {"NetworkInterfaces": [_interface(1, 0, "efa-only")]},
        "InvalidParameterValue",
    ),
    "the_primary_interface_has_an_address": (
        {"NetworkInterfaces": [_interface(0, 0, "efa-only")]},
        "InvalidParameterCombination",
    ),
    "every_device_index_is_unique": (
        {"NetworkInterfaces": [PRIMARY, _interface(1, 0, "efa-only"), _interface(1, 0, "efa-only")]},
        "InvalidParameterValue",
    ),
    "every_network_card_exists": (
        {"NetworkInterfaces": [PRIMARY, _interface(32, 0, "efa-only")]},
        "InvalidParameterValue",
    ),
    "no_card_has_too_many_interfaces": (
        {"NetworkInterfaces": [PRIMARY, _interface(1, 2, "efa-only")]},
        "InvalidParameterValue",
    ),
    "efa_fits_the_type": (
        {
            "InstanceType": "i7ie.48xlarge",
            "NetworkInterfaces": [PRIMARY, _interface(0, 1, "efa-only"), _interface(1, 0, "efa-only")],
        },
        "AttachmentLimitExceeded",
    ),
    "every_card_takes_its_interface": (
        {"InstanceType": "p6-b300.48xlarge", "NetworkInterfaces": [PRIMARY, _interface(0, 1, "efa-only")]},
        "AttachmentLimitExceeded",
    ),
    "several_interfaces_get_no_public_address": (
        {"NetworkInterfaces": [PRIMARY | {"AssociatePublicIpAddress": False}, _interface(0, 1, "efa-only")]},
        "InvalidParameterCombination",
    ),
    "every_security_group_exists": ({"NetworkInterfaces": [PRIMARY | {"Groups": ["sg-2"]}]}, "InvalidParameter"),
    "the_placement_group_exists_and_fits": (
        {"Placement": {"GroupName": "apart"}},
        "InvalidPlacementGroup.Unknown",
    ),
    "the_instance_profile_exists": ({"IamInstanceProfile": {"Arn": "node"[::-1]}}, "InvalidParameterValue"),
    "the_market_is_sold_for_the_type": (
        {
            "InstanceType": "hpc6id.32xlarge",
            "NetworkInterfaces": [PRIMARY],
            "InstanceMarketOptions": {"MarketType": "spot"},
        },
        "UnsupportedOperation",
    ),
    "the_subnet_has_room": (
        {"NetworkInterfaces": [PRIMARY, _interface(0, 1, "interface")]},
        "InsufficientFreeAddressesInSubnet",
    ),
}

# What else the rules refuse, and EC2's code.
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"ImageId": "the newest"}, "InvalidAMIID.Malformed"),
    ({"UserData": base64.b64encode(b"x" * 16385).decode()}, "InvalidParameterValue"),
    ({"SecurityGroupIds": ["sg-1"]}, "InvalidParameterCombination"),
    ({"NetworkInterfaces": [PRIMARY | {"Groups": ["sg-9"]}]}, "InvalidGroup.NotFound"),
    (
        {"InstanceType": "g5.xlarge", "NetworkInterfaces": [_interface(0, 0, "efa")]},
        "InvalidParameterCombination",
    ),
    (
        {"InstanceType": "hpc6id.32xlarge", "NetworkInterfaces": [PRIMARY, _interface(0, 1, "efa-only")]},
        "AttachmentLimitExceeded",
    ),
    ({"InstanceType": "t3.micro", "NetworkInterfaces": []}, "InvalidParameterCombination"),
]


def _check(data: dict[str, Any], context: LaunchContext = CONTEXT) -> None:
    check_launch(data, INSTANCE_TYPES.get(data["InstanceType"]), context)


def test_p5_with_all_its_cards_launches() -> None:
    _check(P5)


def test_every_rule_has_a_launch_that_it_alone_refuses() -> None:
    assert set(ONLY) == {rule.__name__ for rule in launch_rules.RULES if rule not in capacity_rules.RULES}


@pytest.mark.parametrize("rule", ONLY)
def test_without_the_rule_the_launch_would_not_be_refused_for_it(monkeypatch: pytest.MonkeyPatch, rule: str) -> None:
    changes, code = ONLY[rule]
    with pytest.raises(Ec2Refusal) as refusal:
        _check(P5 | changes)
    assert refusal.value.code == code
    monkeypatch.setattr(launch_rules, "RULES", tuple(r for r in launch_rules.RULES if r.__name__ != rule))
    if rule in {"the_type_exists", "the_image_exists", "every_network_card_exists"}:
        with pytest.raises(KeyError):  # what the later rules look up is not there
            _check(P5 | changes)
    else:
        _check(P5 | changes)


@pytest.mark.parametrize(("changes", "code"), REFUSED)
def test_what_else_is_refused(changes: dict[str, Any], code: str) -> None:
    with pytest.raises(Ec2Refusal) as refusal:
        _check(P5 | changes)
    assert refusal.value.code == code


@pytest.mark.parametrize("free", [1, 0])
def test_efa_only_interfaces_take_no_address(free: int) -> None:
    context = replace(CONTEXT, free_addresses=free)
    if free:
        _check(P5, context)
    else:
        with pytest.raises(Ec2Refusal, match="There are not enough free addresses"):
            _check(P5, context)
