"""The catalog: generated facts, a few kept by hand, and what the user adds.

`catalog.json` is written by `scripts/generate_catalog.py` and never by hand. `hand_kept.json` holds what
DescribeInstanceTypes does not tell, each entry with the AWS document that does.
"""

import difflib
import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any

from cdk_training_cluster.instance_types.model import (
    Accelerator,
    AcceleratorKind,
    InstanceTypeInfo,
    NetworkCard,
)
from cdk_training_cluster.validation.checks import shown
from cdk_training_cluster.validation.kinds import checked

_MATCHES_SHOWN = 3
# https://github.com/aws/aws-fpga
_F1 = "f1."


@checked
def instance_type_info(name: str, extra: Sequence[InstanceTypeInfo] = ()) -> InstanceTypeInfo:
    """Return the facts about an instance type.

    Args:
        name: The type, such as `p5.48xlarge`.
        extra: Facts that come before the catalog's, for types that are newer than it. Default: - none

    Raises:
        ValueError: If neither the catalog nor `extra` has the type; the message has the closest names.
    """
    given = {info.name: info for info in extra}
    if name in given:
        return given[name]
    if name in _records():
        return _info(name)
    if name.startswith(_F1):
        raise ValueError(f"unknown instance type {shown(name)}: AWS ended F1 on December 20, 2025; use F2")
    raise ValueError(_unknown(name, [*_records(), *given]))


def instance_type_names() -> tuple[str, ...]:
    """Return the name of every type in the catalog, sorted, without making their facts."""
    return tuple(sorted(_records()))


def all_instance_types() -> tuple[InstanceTypeInfo, ...]:
    """Return the facts about every type in the catalog, sorted by name."""
    return tuple(map(_info, instance_type_names()))


def merge_hand_kept(catalog: Mapping[str, Any], hand_kept: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Put the generated records and the hand-kept ones together.

    Args:
        catalog: What catalog.json holds.
        hand_kept: What hand_kept.json holds: `types`, which the catalog lacks, and `additions` to those it
            has.

    Raises:
        ValueError: If a hand-kept type is in the catalog by now, or an addition is to a type that is in
            neither.
    """
    generated, types, additions = catalog["types"], hand_kept["types"], hand_kept["additions"]
    if doubled := sorted(set(generated) & set(types)):
        raise ValueError(
            f"hand_kept.json: the catalog has {', '.join(doubled)} by now: delete the hand-kept entry, but keep "
            "under additions what DescribeInstanceTypes does not tell"
        )
    if orphans := sorted(set(additions) - set(generated)):
        raise ValueError(
            f"hand_kept.json: additions to {', '.join(orphans)}, which the catalog does not have: delete them"
        )
    merged = {name: {**record, "source": [catalog["source"]]} for name, record in generated.items()}
    for name, addition in additions.items():
        merged[name] = {**merged[name], **addition, "source": [*merged[name]["source"], *addition["source"]]}
    return {**merged, **types}


def _unknown(name: str, names: Sequence[str]) -> str:
    close = difflib.get_close_matches(name.strip().lower(), names, n=_MATCHES_SHOWN)
    if close:
        hint = f"did you mean {' or '.join(filter(None, [', '.join(close[:-1]), close[-1]]))}"
    else:
        hint = "the catalog has the accelerated and the EFA-capable types, and none has a name like it"
    return (
        f"unknown instance type {shown(name)}: {hint}; facts for a type newer than the catalog, or with neither "
        "accelerator nor EFA, are given in instance_type_facts"
    )


@cache
def _records() -> dict[str, dict[str, Any]]:
    # Parsed at the first look-up, not at import: an app that names no type does not pay for it.
    return merge_hand_kept(_read("catalog.json"), _read("hand_kept.json"))


def _read(name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(resources.files(__package__).joinpath(name).read_text(encoding="utf-8"))
    return document


@cache
def _info(name: str) -> InstanceTypeInfo:
    record = _records()[name]
    store = record.get("instance_store", {})
    ena_cards = record.get("ena_cards")
    return InstanceTypeInfo(
        name=name,
        vcpus=record["vcpus"],
        memory_mib=record["memory_mib"],
        architectures=tuple(record["architectures"]),
        network_cards=tuple(
            sorted((card for group in record["network_cards"] for card in _cards(group)), key=lambda card: card.index)
        ),
        accelerators=tuple(_accelerator(accelerator) for accelerator in record.get("accelerators", ())),
        instance_store_gb=store.get("gb", 0),
        instance_store_disks=store.get("disks", 0),
        instance_store_nvme=store.get("nvme", False),
        usage_classes=tuple(record["usage_classes"]),
        placement_strategies=tuple(record["placement_strategies"]),
        maximum_efa_interfaces=record.get("maximum_efa_interfaces", 0),
        efa_placements=tuple(tuple(cards) for cards in record.get("efa_placements", ())),
        ena_cards=None if ena_cards is None else tuple(ena_cards),
        network_gbps=record["network_gbps"],
        hypervisor=record.get("hypervisor"),
        supported_root_device_types=tuple(record["root_device_types"]),
        ultraserver_sizes=tuple(record.get("ultraserver_sizes", ())),
        block_ends_early_minutes=record.get("block_ends_early_minutes", InstanceTypeInfo.block_ends_early_minutes),
        source=", ".join(record["source"]),
    )


def _cards(group: Mapping[str, Any]) -> list[NetworkCard]:
    return [
        NetworkCard(
            index=index,
            maximum_interfaces=group["interfaces"],
            interface_types=tuple(group["interface_types"]),
            baseline_gbps=group["gbps"],
        )
        for index in group["cards"]
    ]


def _accelerator(record: Mapping[str, Any]) -> Accelerator:
    return Accelerator(**{**record, "kind": AcceleratorKind(record["kind"])})
