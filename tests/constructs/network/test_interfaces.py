"""The interface layout of every type, by rule; of the hard ones, by hand."""

from collections import Counter
from dataclasses import replace

import pytest

from cdk_training_cluster.instance_types import InstanceTypeInfo, all_instance_types, instance_type_info
from cdk_training_cluster.network.interfaces import InterfaceLayout, NetworkInterface, network_interfaces

_IP = InterfaceLayout.IP_OPTIMISED
_BANDWIDTH = InterfaceLayout.BANDWIDTH_OPTIMISED
_WITH_EFA = [info for info in all_instance_types() if info.supports_efa]


def _layout(info: InstanceTypeInfo | str, layout: InterfaceLayout = _IP) -> list[tuple[int, int, str]]:
    facts = instance_type_info(info) if isinstance(info, str) else info
    interfaces = network_interfaces(facts, layout=layout)
    return [(interface.card, interface.device, interface.interface_type) for interface in interfaces]


def _efa_only(cards: range) -> list[tuple[int, int, str]]:
    return [(card, 0, "efa-only") for card in cards]


@pytest.mark.parametrize("layout", InterfaceLayout)
def test_every_layout_is_one_that_ec2_takes(layout: InterfaceLayout) -> None:
    assert len(_WITH_EFA) > 300
    for info in _WITH_EFA:
        interfaces = network_interfaces(info, layout=layout)
        cards = {card.index: card for card in info.network_cards}
        places = [(interface.card, interface.device) for interface in interfaces]
        assert len(set(places)) == len(places), info.name
        assert places == sorted(places), info.name
        assert [interface for interface in interfaces if interface.card == interface.device == 0], info.name
        for interface in interfaces:
            assert interface.interface_type in cards[interface.card].interface_types, info.name
        for card, count in Counter(interface.card for interface in interfaces).items():
            assert cards[card].has_room_for(count), info.name
        primary = next(interface for interface in interfaces if interface.card == interface.device == 0)
        assert primary.interface_type != "efa-only", info.name


@pytest.mark.parametrize("layout", InterfaceLayout)
def test_every_layout_has_as_many_efas_as_the_type_takes_one_a_card(layout: InterfaceLayout) -> None:
    for info in _WITH_EFA:
        carrying = [
            interface.card
            for interface in network_interfaces(info, layout=layout)
            if "efa" in interface.interface_type
        ]
        expected = len(info.efa_placements[0]) if info.efa_placements else info.maximum_efa_interfaces
        assert len(carrying) == len(set(carrying)) == expected, info.name


def test_ip_optimised_has_one_ip_address_a_node() -> None:
    for info in _WITH_EFA:
        addressed = [interface for interface in network_interfaces(info) if interface.interface_type != "efa-only"]
        assert [(interface.card, interface.device) for interface in addressed] == [(0, 0)], info.name


def test_bandwidth_optimised_only_adds_ena_interfaces_at_device_1_of_further_cards() -> None:
    for info in _WITH_EFA:
        added = set(network_interfaces(info, layout=_BANDWIDTH)) - set(network_interfaces(info))
        assert set(network_interfaces(info)) <= set(network_interfaces(info, layout=_BANDWIDTH)), info.name
        assert all(
            interface.card > 0 and interface.device == 1 and interface.interface_type == "interface"
            for interface in added
        ), info.name


@pytest.mark.parametrize("layout", InterfaceLayout)
def test_without_efa_there_is_only_the_primary_interface(layout: InterfaceLayout) -> None:
    for info in all_instance_types():
        assert network_interfaces(info, efa=False, layout=layout) == (NetworkInterface(0, 0, "interface"),)


def test_the_name_of_a_type_decides_nothing() -> None:
    for info in _WITH_EFA:
        assert _layout(replace(info, name="x1.large"), _BANDWIDTH) == _layout(info, _BANDWIDTH)


def test_efa_on_a_type_without_it_is_refused() -> None:
    with pytest.raises(ValueError, match="has no EFA") as error:
        network_interfaces(instance_type_info("g5.xlarge"), efa=True)

    assert str(error.value) == ("instance type g5.xlarge has no EFA: leave efa out, or choose a type with EFA")


def test_p4d() -> None:
    assert _layout("p4d.24xlarge") == [(0, 0, "interface"), (0, 1, "efa-only"), *_efa_only(range(1, 4))]


def test_p5_has_32_efas_and_one_address() -> None:
    assert _layout("p5.48xlarge") == [(0, 0, "interface"), (0, 1, "efa-only"), *_efa_only(range(1, 32))]


def test_p5_for_ip_bandwidth_has_eight_addresses_one_in_every_four_cards() -> None:
    ena = [(card, 1, "interface") for card in (4, 8, 12, 16, 20, 24, 28)]

    assert _layout("p5.48xlarge", _BANDWIDTH) == sorted([*_layout("p5.48xlarge"), *ena])
    assert _layout("p5e.48xlarge", _BANDWIDTH) == _layout("p5.48xlarge", _BANDWIDTH)


def test_p6_b200_for_ip_bandwidth_has_an_address_on_every_card() -> None:
    expected = [(0, 0, "interface"), (0, 1, "efa-only")]
    for card in range(1, 8):
        expected += [(card, 0, "efa-only"), (card, 1, "interface")]

    assert _layout("p6-b200.48xlarge", _BANDWIDTH) == expected


def test_p6_b300_has_no_efa_on_card_0() -> None:
    ena = [(card, 1, "interface") for card in range(1, 17)]

    assert _layout("p6-b300.48xlarge") == [(0, 0, "interface"), *_efa_only(range(1, 17))]
    assert _layout("p6-b300.48xlarge", _BANDWIDTH) == sorted([*_layout("p6-b300.48xlarge"), *ena])


def test_p6e_gb200_has_an_efa_for_each_gpu_as_aws_recommends() -> None:
    assert _layout("p6e-gb200.36xlarge") == [
        (0, 0, "interface"),
        (1, 0, "efa-only"),
        (5, 0, "efa-only"),
        (9, 0, "efa-only"),
        (13, 0, "efa-only"),
    ]


def test_p6e_gb200_with_awss_other_placement_has_eight() -> None:
    info = instance_type_info("p6e-gb200.36xlarge")

    assert _layout(replace(info, efa_placements=info.efa_placements[1:])) == [
        (0, 0, "interface"),
        *_efa_only(range(1, 16, 2)),
    ]


@pytest.mark.parametrize("layout", InterfaceLayout)
def test_a_card_0_with_room_for_one_interface_takes_a_combined_one(layout: InterfaceLayout) -> None:
    assert _layout("hpc6id.32xlarge", layout) == [(0, 0, "efa"), (1, 0, "efa-only")]


@pytest.mark.parametrize("name", ["i7ie.48xlarge", "i7ie.metal-48xl", "i8ge.48xlarge", "i8ge.metal-48xl"])
def test_two_capable_cards_with_one_efa_between_them(name: str) -> None:
    assert _layout(name) == [(0, 0, "interface"), (0, 1, "efa-only")]
    assert _layout(name, _BANDWIDTH) == [(0, 0, "interface"), (0, 1, "efa-only"), (1, 1, "interface")]


def test_without_a_list_of_awss_every_further_card_with_room_gets_an_address() -> None:
    assert [place for place in _layout("p5en.48xlarge", _BANDWIDTH) if place[2] == "interface"] == [
        (0, 0, "interface"),
        *[(card, 1, "interface") for card in range(1, 16)],
    ]
    assert _layout("trn1.32xlarge", _BANDWIDTH)[-2:] == [(7, 0, "efa-only"), (7, 1, "interface")]


def test_a_type_with_one_card_has_the_same_interfaces_in_both_layouts() -> None:
    assert _layout("g5.48xlarge", _BANDWIDTH) == _layout("g5.48xlarge")
    assert _layout("g5.48xlarge") == [(0, 0, "interface"), (0, 1, "efa-only")]


def test_facts_that_leave_no_room_for_a_primary_interface_are_refused() -> None:
    info = instance_type_info("hpc6id.32xlarge")
    cards = tuple(replace(card, interface_types=("interface", "efa-only")) for card in info.network_cards)

    with pytest.raises(ValueError, match="no primary interface") as error:
        network_interfaces(replace(info, network_cards=cards))

    assert str(error.value) == (
        "instance type hpc6id.32xlarge: network card 0 has room for one interface and takes no 'efa', so its "
        "EFA would leave no primary interface: correct network_cards, or leave card 0 out of efa_placements"
    )
