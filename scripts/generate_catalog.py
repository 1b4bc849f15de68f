"""Write the instance-type catalog from EC2 DescribeInstanceTypes: moto's copy, or a live account's answer.

    python scripts/generate_catalog.py               # from moto's copy
    python scripts/generate_catalog.py --check       # say whether the file is what it would write
    python scripts/generate_catalog.py --live        # every region that the account has enabled
    python scripts/generate_catalog.py --live --region us-east-1 --region eu-north-1

The file holds every accelerated and every EFA-capable type, one a line, sorted; network cards that are equal
share an entry. The same input gives the same bytes.
"""

import argparse
import gzip
import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import resources
from itertools import groupby
from pathlib import Path
from typing import Any

Description = Mapping[str, Any]
Source = tuple[str, list[Description]]

CATALOG = Path(__file__).parents[1] / "constructs/cdk_training_cluster/instance_types/catalog.json"

_ACCELERATED = ("GpuInfo", "NeuronInfo", "InferenceAcceleratorInfo", "FpgaInfo", "MediaAcceleratorInfo")
# "3200 Gigabit", "16x 200 Gigabit", "Up to 10 Gigabit": the words that ac.html prints too.
_PERFORMANCE = re.compile(r"(?:Up to )?(?:(?P<cards>\d+)x )?(?P<gigabit>[\d.]+) Gigabit")
# What may differ from one region to another; the catalog has what some region has.
_REGIONAL = ("SupportedUsageClasses",)


def from_moto() -> Source:
    """Return moto's copy of DescribeInstanceTypes."""
    packed = resources.files("moto.ec2").joinpath("resources/instance_types.json.gz").read_bytes()
    return "EC2 DescribeInstanceTypes, the copy in moto", list(json.loads(gzip.decompress(packed)).values())


def from_account(regions: Iterable[str]) -> Source:
    """Return a live account's answer, its regions put together.

    Args:
        regions: The regions to ask; none for every region that the account has enabled.
    """
    import boto3  # noqa: PLC0415 - only a live account needs it

    wanted = sorted(regions) or sorted(
        region["RegionName"] for region in boto3.client("ec2").describe_regions()["Regions"] if "RegionName" in region
    )
    answers: dict[str, list[Description]] = {}
    for region in wanted:
        pages = boto3.client("ec2", region_name=region).get_paginator("describe_instance_types").paginate()
        answers[region] = [description for page in pages for description in page["InstanceTypes"]]
    return f"EC2 DescribeInstanceTypes in {', '.join(wanted)}", merged(answers)


def merged(answers: Mapping[str, Iterable[Description]]) -> list[Description]:
    """Put the answers of several regions together, the same way whatever order they came in.

    How a type can be bought is what any region says; all else is from the first region by name, and a region
    that says otherwise is reported.

    Args:
        answers: What each region answered, by region.
    """
    types: dict[str, dict[str, Any]] = {}
    for region in sorted(answers):
        for description in answers[region]:
            name = description["InstanceType"]
            known = types.setdefault(name, dict(description))
            if record(description, regional=False) != record(known, regional=False):
                print(
                    f"{name} is described differently in {region}; the first region's answer stays",
                    file=sys.stderr,
                )
            for key in _REGIONAL:
                known[key] = sorted({*known[key], *description[key]})
    return list(types.values())


def wanted_in_catalog(description: Description) -> bool:
    """Say whether a type belongs in the catalog: it has an accelerator, or takes an EFA.

    Args:
        description: The type, as DescribeInstanceTypes describes it.
    """
    return bool(description["NetworkInfo"].get("EfaSupported")) or any(key in description for key in _ACCELERATED)


def record(description: Description, *, regional: bool = True) -> dict[str, Any]:
    """Return what the catalog keeps of a type.

    Args:
        description: The type, as DescribeInstanceTypes describes it.
        regional: Whether to keep what differs from region to region. Default: True
    """
    network, store = description["NetworkInfo"], description.get("InstanceStorageInfo")
    kept: dict[str, Any] = {
        "vcpus": description["VCpuInfo"]["DefaultVCpus"],
        "memory_mib": description["MemoryInfo"]["SizeInMiB"],
        "architectures": sorted(description["ProcessorInfo"]["SupportedArchitectures"]),
    }
    if "Hypervisor" in description:
        kept["hypervisor"] = description["Hypervisor"]
    if accelerators := _accelerators(description):
        kept["accelerators"] = accelerators
    if store:
        kept["instance_store"] = {
            "gb": store["TotalSizeInGB"],
            "disks": sum(disk["Count"] for disk in store["Disks"]),
            "nvme": store["NvmeSupport"] != "unsupported",
        }
    kept["network_gbps"] = _advertised_gbps(network["NetworkPerformance"])
    kept["network_cards"] = _card_groups(network["NetworkCards"])
    if network.get("EfaSupported"):
        kept["maximum_efa_interfaces"] = network["EfaInfo"]["MaximumEfaInterfaces"]
    if regional:
        kept["usage_classes"] = sorted(description["SupportedUsageClasses"])
    kept["placement_strategies"] = sorted(description["PlacementGroupInfo"]["SupportedStrategies"])
    kept["root_device_types"] = sorted(description["SupportedRootDeviceTypes"])
    return kept


def render(source: str, descriptions: Iterable[Description]) -> str:
    """Return the catalog file's text.

    Args:
        source: Where the descriptions are from.
        descriptions: The types, as DescribeInstanceTypes describes them, in any order.
    """
    lines = [
        f"{json.dumps(description['InstanceType'])}: {json.dumps(record(description), separators=(',', ':'))}"
        for description in sorted(descriptions, key=lambda description: str(description["InstanceType"]))
        if wanted_in_catalog(description)
    ]
    return f'{{\n"source": {json.dumps(source)},\n"types": {{\n' + ",\n".join(lines) + "\n}\n}\n"


def main(arguments: list[str] | None = None) -> int:
    """Write or check the catalog; return the exit status.

    Args:
        arguments: The command line. Default: - this process's
    """
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail if the file is not current")
    parser.add_argument("--live", action="store_true", help="ask a live AWS account instead of moto's copy")
    parser.add_argument("--region", action="append", default=[], help="with --live: a region to ask (repeatable)")
    parser.add_argument("--output", type=Path, default=CATALOG, help="the file to write or check")
    options = parser.parse_args(arguments)
    if options.region and not options.live:
        parser.error("--region goes with --live")
    text = render(*(from_account(options.region) if options.live else from_moto()))
    catalog: Path = options.output
    before = catalog.read_text(encoding="utf-8") if catalog.exists() else ""
    if text == before:
        print(f"{catalog.name} is current: {len(json.loads(text)['types'])} types")
        return 0
    print(_difference(before, text))
    if options.check:
        print(f"{catalog.name} is not current: run python scripts/generate_catalog.py", file=sys.stderr)
        return 1
    catalog.write_text(text, encoding="utf-8")
    return 0


def _difference(before: str, after: str) -> str:
    old, new = (json.loads(text)["types"] if text else {} for text in (before, after))
    changed = [name for name in new if name in old and old[name] != new[name]]
    words = {"added": sorted(set(new) - set(old)), "removed": sorted(set(old) - set(new)), "changed": changed}
    return (
        "\n".join(f"{word}: {', '.join(names)}" for word, names in words.items() if names)
        or "source or order changed"
    )


def _accelerators(description: Description) -> list[dict[str, Any]]:
    # Inferentia is listed twice, as an inference accelerator and as a Neuron device: the second says more.
    inference = (
        [] if "NeuronInfo" in description else _listed(description, "InferenceAcceleratorInfo", "Accelerators")
    )
    return [
        *map(_gpu, _listed(description, "GpuInfo", "Gpus")),
        *map(_neuron, _listed(description, "NeuronInfo", "NeuronDevices")),
        *map(_plain("inference"), inference),
        *map(_plain("fpga"), _listed(description, "FpgaInfo", "Fpgas")),
        *map(_plain("media"), _listed(description, "MediaAcceleratorInfo", "Accelerators")),
    ]


def _listed(description: Description, group: str, devices: str) -> list[Description]:
    return list(description.get(group, {}).get(devices, ()))


def _plain(kind: str) -> Callable[[Description], dict[str, Any]]:
    def kept(device: Description) -> dict[str, Any]:
        return {
            "kind": kind,
            "manufacturer": device.get("Manufacturer", "AWS"),
            "name": device["Name"],
            "count": device["Count"],
            "memory_mib": device["MemoryInfo"]["SizeInMiB"],
        }

    return kept


def _gpu(device: Description) -> dict[str, Any]:
    # A part of a GPU has Count 0 and a LogicalGpuCount, which is what the operating system sees.
    kept = _plain("gpu")(device) | {"count": device.get("LogicalGpuCount", device["Count"])}
    fraction = device.get("GpuPartitionSize", 1)
    return kept if fraction == 1 else kept | {"fraction": fraction}


def _neuron(device: Description) -> dict[str, Any]:
    cores = device["CoreInfo"]
    return _plain("neuron")(device) | {"cores_per_device": cores["Count"], "core_version": cores["Version"]}


def _advertised_gbps(performance: str) -> float | None:
    match = _PERFORMANCE.fullmatch(performance)
    return _number(int(match["cards"] or 1) * float(match["gigabit"])) if match else None


def _card_groups(cards: Iterable[Description]) -> list[dict[str, Any]]:
    kept = [
        (
            card["NetworkCardIndex"],
            {
                "interfaces": card["MaximumNetworkInterfaces"],
                "interface_types": list(card["InterfaceTypes"]),
                "gbps": _number(card["BaselineBandwidthInGbps"]),
            },
        )
        for card in sorted(cards, key=lambda card: int(card["NetworkCardIndex"]))
    ]
    return [
        {"cards": [index for index, _ in group], **same} for same, group in groupby(kept, key=lambda pair: pair[1])
    ]


def _number(value: float) -> float:
    return int(value) if value == int(value) else value


if __name__ == "__main__":
    sys.exit(main())
