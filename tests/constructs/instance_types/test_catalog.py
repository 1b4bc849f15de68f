"""The catalog: what it has, that the committed file is current, and FACTS typed by hand."""

import json
import subprocess
import sys
from importlib import resources
from typing import Any

import pytest
from scripts import generate_catalog

from cdk_training_cluster.instance_types import AcceleratorKind, all_instance_types, instance_type_info
from cdk_training_cluster.instance_types.catalog import merge_hand_kept

_PACKAGE = resources.files("cdk_training_cluster.instance_types")
_HAND_KEPT: dict[str, Any] = json.loads(_PACKAGE.joinpath("hand_kept.json").read_text(encoding="utf-8"))
_CATALOG: dict[str, Any] = json.loads(_PACKAGE.joinpath("catalog.json").read_text(encoding="utf-8"))


def test_the_committed_catalog_is_what_the_generator_writes() -> None:
    assert _PACKAGE.joinpath("catalog.json").read_text(encoding="utf-8") == generate_catalog.render(
        *generate_catalog.from_moto()
    )


def test_the_catalog_has_every_accelerated_and_every_efa_type_and_no_other() -> None:
    source, descriptions = generate_catalog.from_moto()
    expected = {
        description["InstanceType"]
        for description in descriptions
        if description["NetworkInfo"].get("EfaSupported")
        or {"GpuInfo", "NeuronInfo", "InferenceAcceleratorInfo", "FpgaInfo", "MediaAcceleratorInfo"}
        & set(description)
    }

    assert "DescribeInstanceTypes" in source
    assert set(_CATALOG["types"]) == expected
    assert len([name for name in expected if instance_type_info(name).supports_efa]) == 303
    assert [info.name for info in all_instance_types()] == sorted({*expected, *_HAND_KEPT["types"]})


@pytest.mark.parametrize(
    ("name", "efa_interfaces", "gbps"),
    [
        ("p4d.24xlarge", 4, 400),
        ("p4de.24xlarge", 4, 400),
        ("p5.48xlarge", 32, 3200),
        ("p5e.48xlarge", 32, 3200),
        ("p5en.48xlarge", 16, 3200),
        ("p6-b200.48xlarge", 8, 3200),
        ("p6-b300.48xlarge", 16, 6400),
        ("trn1.32xlarge", 8, 800),
        ("trn1n.32xlarge", 16, 1600),
        ("trn2.48xlarge", 16, 3200),
        ("g5.48xlarge", 1, 100),
        ("g6e.48xlarge", 4, 400),
        ("g7e.48xlarge", 4, 1600),
        ("g4dn.xlarge", 0, 25),
    ],
)
def test_efa_counts_and_bandwidth(name: str, efa_interfaces: int, gbps: float) -> None:
    info = instance_type_info(name)

    assert (info.maximum_efa_interfaces, info.network_gbps) == (efa_interfaces, gbps)
    assert info.supports_efa is bool(efa_interfaces)


def test_a_types_bandwidth_is_what_aws_advertises_and_not_the_sum_of_its_cards() -> None:
    # p6-b200: "each network card supports up to 400 Gbps EFA bandwidth and 200 Gbps ENA bandwidth", and the
    # cards of DescribeInstanceTypes tell the second figure.
    p6 = instance_type_info("p6-b200.48xlarge")

    assert [card.baseline_gbps for card in p6.network_cards] == [200] * 8
    assert p6.network_gbps == 3200


def test_a_gpu_type_in_full() -> None:
    info = instance_type_info("p4de.24xlarge")
    (gpu,) = info.accelerators

    assert (gpu.kind, gpu.manufacturer, gpu.name, gpu.count, gpu.memory_mib) == (
        AcceleratorKind.GPU,
        "NVIDIA",
        "A100",
        8,
        80 * 1024,
    )
    assert (info.vcpus, info.memory_mib, info.architectures) == (96, 1152 * 1024, ("x86_64",))
    assert (info.instance_store_gb, info.instance_store_disks, info.instance_store_nvme) == (8000, 8, True)
    assert info.usage_classes == ("capacity-block", "on-demand", "spot")
    assert info.placement_strategies == ("cluster", "partition", "spread")
    assert info.supported_root_device_types == ("ebs",)
    assert [card.maximum_interfaces for card in info.network_cards] == [15] * 4
    assert (info.hypervisor, info.has_nvidia_gpus, info.is_accelerated) == ("nitro", True, True)
    assert "DescribeInstanceTypes" in info.source


def test_trainium_and_inferentia_are_neuron_devices_once() -> None:
    for name, version, devices, cores in [
        ("inf1.24xlarge", 1, 16, 4),
        ("inf2.48xlarge", 2, 12, 2),
        ("trn1.32xlarge", 2, 16, 2),
        ("trn2.48xlarge", 3, 16, 8),
        ("trn2u.48xlarge", 3, 16, 8),
    ]:
        info = instance_type_info(name)
        (device,) = info.accelerators
        assert device.kind is AcceleratorKind.NEURON
        assert (device.core_version, device.count, device.cores_per_device) == (version, devices, cores)
        assert info.has_neuron_devices
        assert not info.has_nvidia_gpus


@pytest.mark.parametrize(
    ("name", "kind", "manufacturer"),
    [
        ("dl2q.24xlarge", AcceleratorKind.INFERENCE, "Qualcomm"),
        ("f2.48xlarge", AcceleratorKind.FPGA, "Xilinx"),
        ("vt1.24xlarge", AcceleratorKind.MEDIA, "Xilinx"),
        ("g4ad.16xlarge", AcceleratorKind.GPU, "AMD"),
        ("dl1.24xlarge", AcceleratorKind.GPU, "Habana"),
    ],
)
def test_other_accelerators_are_neither_nvidia_nor_neuron(
    name: str, kind: AcceleratorKind, manufacturer: str
) -> None:
    info = instance_type_info(name)

    assert [(accelerator.kind, accelerator.manufacturer) for accelerator in info.accelerators] == [
        (kind, manufacturer)
    ]
    assert info.is_accelerated
    assert not info.has_nvidia_gpus
    assert not info.has_neuron_devices


def test_a_part_of_a_gpu_is_one_device_with_its_fraction() -> None:
    (gpu,) = instance_type_info("g6f.large").accelerators

    assert (gpu.name, gpu.count, gpu.fraction) == ("L4", 1, 0.125)


def test_an_efa_type_without_accelerators_is_in_the_catalog() -> None:
    info = instance_type_info("hpc7g.16xlarge")

    assert (info.architectures, info.is_accelerated, info.supports_efa) == (("arm64",), False, True)


def test_a_placement_group_is_ruled_out_only_where_aws_rules_it_out() -> None:
    assert instance_type_info("p5.48xlarge").allows_placement("cluster")
    assert not instance_type_info("vt1.24xlarge").allows_placement("cluster")
    assert instance_type_info("p3.16xlarge").placement_strategies == ()
    assert instance_type_info("p3.16xlarge").allows_placement("cluster")


def test_no_hand_kept_type_is_in_the_source_by_now() -> None:
    _, descriptions = generate_catalog.from_moto()

    assert set(_HAND_KEPT["types"]) == {
        "dl1.24xlarge",
        *(f"g4ad.{size}" for size in ("xlarge", "2xlarge", "4xlarge", "8xlarge", "16xlarge")),
        *(f"p3.{size}" for size in ("2xlarge", "8xlarge", "16xlarge")),
        "p6e-gb200.36xlarge",
    }
    assert not set(_HAND_KEPT["types"]) & {description["InstanceType"] for description in descriptions}


@pytest.mark.parametrize("name", [*_HAND_KEPT["types"], *_HAND_KEPT["additions"]])
def test_every_hand_kept_entry_cites_the_aws_documents_it_is_from(name: str) -> None:
    sources = {**_HAND_KEPT["types"], **_HAND_KEPT["additions"]}[name]["source"]

    assert sources
    assert all(
        source.startswith(("https://docs.aws.amazon.com/", "https://awsdocs-neuron.readthedocs-hosted.com/"))
        for source in sources
    )
    assert sources[-1] in instance_type_info(name).source


def test_documented_facts_of_the_hand_kept_types() -> None:
    gb200 = instance_type_info("p6e-gb200.36xlarge")
    assert (gb200.architectures, gb200.accelerators[0].count, len(gb200.network_cards)) == (("arm64",), 4, 17)
    assert [card.interface_types for card in gb200.network_cards if card.index == 0] == [("interface",)]
    assert {card.interface_types for card in gb200.network_cards if card.index % 2} == {("efa-only",)}
    assert gb200.efa_placements == ((1, 5, 9, 13), (1, 3, 5, 7, 9, 11, 13, 15))
    assert gb200.usage_classes == ("capacity-block",)
    assert [
        instance_type_info(f"p3.{size}").accelerators[0].count for size in ("2xlarge", "8xlarge", "16xlarge")
    ] == [
        1,
        4,
        8,
    ]
    assert instance_type_info("dl1.24xlarge").maximum_efa_interfaces == 4
    assert instance_type_info("g4ad.8xlarge").instance_store_gb == 1200


def test_p6e_gb200_has_what_the_rules_ask_for() -> None:
    info = instance_type_info("p6e-gb200.36xlarge")
    (gpu,) = info.accelerators
    assert (gpu.kind, gpu.manufacturer, gpu.name, gpu.memory_mib) == (
        AcceleratorKind.GPU,
        "NVIDIA",
        "B200",
        185 * 1024,
    )
    assert (info.vcpus, info.memory_mib, info.network_gbps, info.hypervisor) == (144, 960 * 1024, 3200, "nitro")
    assert (info.instance_store_gb, info.instance_store_disks, info.instance_store_nvme) == (22500, 3, True)
    assert info.supported_root_device_types == ("ebs",)
    assert {card.interface_types for card in info.network_cards if card.index and card.index % 2 == 0} == {
        ("interface", "efa", "efa-only")
    }
    assert [card.baseline_gbps for card in info.network_cards[:3]] == [100, 400, 200]


def test_what_is_sold_as_an_ultraserver_says_its_sizes_and_loses_its_block_an_hour_before_the_end() -> None:
    ultraservers = {
        info.name: info.ultraserver_sizes for info in all_instance_types() if info.block_ends_early_minutes == 60
    }
    assert ultraservers == {"p6e-gb200.36xlarge": (9, 18), "trn2u.48xlarge": (4,)}


def test_what_is_sold_by_the_instance_loses_its_block_half_an_hour_before_the_end() -> None:
    # The instance types of ec2-capacity-blocks.html.
    sold_by_the_instance = {
        *("p6-b300.48xlarge", "p6-b200.48xlarge", "p5.4xlarge", "p5.48xlarge", "p5e.48xlarge", "p5en.48xlarge"),
        *("p4d.24xlarge", "p4de.24xlarge", "trn1.32xlarge", "trn2.3xlarge", "trn2.48xlarge"),
    }
    in_blocks = {info.name: info for info in all_instance_types() if "capacity-block" in info.usage_classes}
    assert {name for name, info in in_blocks.items() if not info.ultraserver_sizes} == sold_by_the_instance
    assert {in_blocks[name].block_ends_early_minutes for name in sold_by_the_instance} == {30}


def test_spot_is_told_where_ac_html_says_so() -> None:
    without = {info.name for info in all_instance_types() if info.is_accelerated and "spot" not in info.usage_classes}
    assert without == {"p6e-gb200.36xlarge", "trn2u.48xlarge"}


def test_the_cards_that_aws_lists_for_ip_bandwidth() -> None:
    assert instance_type_info("p5.48xlarge").ena_cards == (4, 8, 12, 16, 20, 24, 28)
    assert instance_type_info("p5e.48xlarge").ena_cards == (4, 8, 12, 16, 20, 24, 28)
    assert instance_type_info("p6-b200.48xlarge").ena_cards == (1, 2, 3, 4, 5, 6, 7)
    assert instance_type_info("p6-b300.48xlarge").ena_cards == tuple(range(1, 17))
    assert instance_type_info("p5en.48xlarge").ena_cards is None


def test_a_hand_kept_type_that_the_catalog_has_by_now_is_refused() -> None:
    doubled: dict[str, Any] = {"types": {"p5.48xlarge": {}}, "additions": {}}

    with pytest.raises(
        ValueError,
        match=r"^hand_kept\.json: the catalog has p5\.48xlarge by now: delete the hand-kept entry, but keep under "
        r"additions what DescribeInstanceTypes does not tell$",
    ):
        merge_hand_kept(_CATALOG, doubled)


def test_an_addition_to_a_type_that_is_gone_is_refused() -> None:
    orphan: dict[str, Any] = {"types": {}, "additions": {"p9.48xlarge": {"source": []}}}

    with pytest.raises(
        ValueError, match=r"^hand_kept\.json: additions to p9\.48xlarge, which the catalog does not have"
    ):
        merge_hand_kept(_CATALOG, orphan)


def test_the_catalog_is_read_at_the_first_look_up_and_not_at_import() -> None:
    program = (
        "from cdk_training_cluster.instance_types import catalog, instance_type_info\n"
        "assert catalog._records.cache_info().currsize == 0\n"
        "instance_type_info('p5.48xlarge'); instance_type_info('g5.xlarge')\n"
        "assert catalog._records.cache_info().misses == 1\n"
        "assert catalog._info.cache_info().currsize == 2\n"
    )

    subprocess.run([sys.executable, "-c", program], check=True)
