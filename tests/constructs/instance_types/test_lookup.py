"""Looking a type up: close matches for what is unknown, and facts that the user brings."""

import re
from dataclasses import replace
from typing import Any

import pytest

from cdk_training_cluster.instance_types import (
    Accelerator,
    AcceleratorKind,
    InstanceTypeInfo,
    NetworkCard,
    instance_type_info,
)

_NEW_TYPE = InstanceTypeInfo(
    name="p9.48xlarge",
    vcpus=256,
    memory_mib=4 * 1024 * 1024,
    architectures=("x86_64",),
    network_cards=(
        NetworkCard(index=0, maximum_interfaces=2, interface_types=("interface",), baseline_gbps=100),
        NetworkCard(
            index=1, maximum_interfaces=2, interface_types=("interface", "efa", "efa-only"), baseline_gbps=800
        ),
    ),
    maximum_efa_interfaces=1,
)


def test_a_misspelt_type_is_answered_with_the_closest_names() -> None:
    with pytest.raises(ValueError, match="unknown instance type") as error:
        instance_type_info("p5.48xlage")

    assert str(error.value) == (
        "unknown instance type 'p5.48xlage': did you mean p5.48xlarge, p5e.48xlarge or p5.4xlarge; facts for "
        "a type newer than the catalog, or with neither accelerator nor EFA, are given in "
        "instance_type_facts"
    )


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("p6-b200", "did you mean p6-b200.48xlarge;"),
        ("P5.48XLARGE", "did you mean p5.48xlarge, "),
        (" p5.48xlarge", "did you mean p5.48xlarge, "),
        ("trn3.48xlarge", "did you mean trn2.48xlarge, trn2u.48xlarge "),
        ("zzz", "the catalog has the accelerated and the EFA-capable types, and none has a name like it;"),
        ("", "the catalog has the accelerated and the EFA-capable types, and none has a name like it;"),
    ],
)
def test_the_hint_fits_the_name(name: str, hint: str) -> None:
    with pytest.raises(ValueError, match=re.escape(f"unknown instance type {name!r}: {hint}")):
        instance_type_info(name)


def test_facts_for_a_newer_type_can_be_passed_in() -> None:
    info = instance_type_info("p9.48xlarge", [_NEW_TYPE])

    assert info is _NEW_TYPE
    assert info.source == "given by the user"
    assert info.efa_cards == (1,)


def test_facts_that_are_passed_in_come_before_the_catalogs() -> None:
    corrected = replace(instance_type_info("p6e-gb200.36xlarge"), efa_placements=((1, 3, 5, 7, 9, 11, 13, 15),))

    assert instance_type_info("p6e-gb200.36xlarge", [corrected]).efa_cards == (1, 3, 5, 7, 9, 11, 13, 15)
    assert instance_type_info("p6e-gb200.36xlarge").efa_cards == (1, 5, 9, 13)


def test_names_that_are_passed_in_are_among_the_matches() -> None:
    with pytest.raises(ValueError, match=r"did you mean p9\.48xlarge, "):
        instance_type_info("p9.48xlarg", [_NEW_TYPE])


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        (
            {"network_cards": ()},
            "p9.48xlarge: network_cards must have a card 0 that takes the primary 'interface', got []",
        ),
        (
            {"network_cards": _NEW_TYPE.network_cards[:1] * 2},
            "p9.48xlarge: network_cards must have an index of its own each, got [0, 0]",
        ),
        (
            {"maximum_efa_interfaces": 2},
            "p9.48xlarge: maximum_efa_interfaces must be 0 to 1, as many as network_cards take 'efa-only', got 2",
        ),
        (
            {"maximum_efa_interfaces": -1},
            "p9.48xlarge: maximum_efa_interfaces must be 0 to 1, as many as network_cards take 'efa-only', got -1",
        ),
        (
            {"efa_placements": ((0,),)},
            "p9.48xlarge: efa_placements must name at most 1 cards that take 'efa-only', got [0]",
        ),
        ({"ena_cards": (0,)}, "p9.48xlarge: ena_cards must name cards beyond 0 that take 'interface', got 0"),
        ({"ena_cards": (7,)}, "p9.48xlarge: ena_cards must name cards beyond 0 that take 'interface', got 7"),
        ({"ultraserver_sizes": (4, 0)}, "p9.48xlarge: ultraserver_sizes must be at least 1 each, got [4, 0]"),
        ({"block_ends_early_minutes": 0}, "p9.48xlarge: block_ends_early_minutes must be at least 1, got 0"),
    ],
)
def test_facts_that_contradict_each_other_are_refused(facts: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        replace(_NEW_TYPE, **facts)


def test_a_card_that_nothing_fits_on_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^NetworkCard 3: maximum_interfaces must be at least 1, got 0$"):
        NetworkCard(index=3, maximum_interfaces=0, interface_types=("interface",), baseline_gbps=1)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"count": 0}, "Accelerator X1: count and memory_mib must be positive, got 0 and 1"),
        ({"memory_mib": 0}, "Accelerator X1: count and memory_mib must be positive, got 1 and 0"),
        ({"fraction": 0.0}, "Accelerator X1: fraction must be above 0 and at most 1, got 0.0"),
        ({"fraction": 2.0}, "Accelerator X1: fraction must be above 0 and at most 1, got 2.0"),
    ],
)
def test_an_accelerator_without_devices_or_memory_is_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        Accelerator(
            **{
                "kind": AcceleratorKind.GPU,
                "manufacturer": "N",
                "name": "X1",
                "count": 1,
                "memory_mib": 1,
                **values,
            }
        )
