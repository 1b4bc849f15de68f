"""Types that the local AWS lacks, described for it."""

import json

import pytest
from scripts import generate_catalog

from cdk_training_cluster.instance_types import InstanceTypeInfo, NetworkCard, all_instance_types
from rehearsal.instance_types import description

_KNOWN = {str(described["InstanceType"]): described for described in generate_catalog.from_moto()[1]}
_MENDED = json.loads(generate_catalog.CATALOG.with_name("hand_kept.json").read_text())["additions"]
_LACKING = [info for info in all_instance_types() if info.name not in _KNOWN]


def test_a_description_says_what_describe_instance_types_says() -> None:
    """Of every type that both know: what the catalog takes from one, it takes from the other."""
    both = [info for info in all_instance_types() if info.name in _KNOWN]
    assert len(both) > 150
    for info in both:
        expected = generate_catalog.record(_KNOWN[info.name])
        # What AWS's answer gets wrong, or lacks, is mended by hand in the library.
        mended = _MENDED.get(info.name, {})
        kept = generate_catalog.record(description(info))
        assert {key: kept.get(key) for key in expected if key not in mended} == {
            key: value for key, value in expected.items() if key not in mended
        }


def test_there_are_types_to_describe() -> None:
    assert {info.name.partition(".")[0] for info in _LACKING} == {"dl1", "g4ad", "p3", "p6e-gb200"}


@pytest.mark.parametrize("info", _LACKING, ids=lambda info: info.name)
def test_a_type_that_is_lacking_keeps_its_facts(info: InstanceTypeInfo) -> None:
    kept = generate_catalog.record(description(info))
    assert kept["vcpus"] == info.vcpus
    assert kept["network_gbps"] == info.network_gbps
    assert kept.get("maximum_efa_interfaces", 0) == info.maximum_efa_interfaces
    assert [card for group in kept["network_cards"] for card in group["cards"]] == sorted(
        card.index for card in info.network_cards
    )


def test_what_is_not_known_is_not_forbidden() -> None:
    card = NetworkCard(index=0, maximum_interfaces=None, interface_types=("interface",), baseline_gbps=10)
    newest = InstanceTypeInfo(name="p9.large", vcpus=2, memory_mib=4, architectures=("arm64",), network_cards=(card,))
    described = description(newest)
    assert described["SupportedUsageClasses"] == ["on-demand", "spot"]
    assert "cluster" in described["PlacementGroupInfo"]["SupportedStrategies"]
    assert described["NetworkInfo"]["NetworkCards"][0]["MaximumNetworkInterfaces"] > 32
    assert "EfaInfo" not in described["NetworkInfo"]
