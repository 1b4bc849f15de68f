"""Which CPUs and network cards are near each GPU, from sysfs, for jobs that bind their processes.

https://www.kernel.org/doc/Documentation/ABI/testing/sysfs-bus-pci
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

from .checking import Check, not_checked, verdict
from .gpus import Gpu
from .node_facts import paths, read_text
from .programs import ROOT


def read_affinity(gpus: list[Gpu]) -> dict[str, Any]:
    """Return GPUs and network cards, each with its NUMA node and CPUs, and the cards that are nearest to each GPU.

    Args:
        gpus: The GPUs.
    """
    nics = []
    for path in paths("/sys/class/infiniband/*"):
        device = os.path.realpath(f"{ROOT}{path}/device")
        nics.append({"name": PurePath(path).name, "path": device, **_place(device)})
    found = []
    for gpu in gpus:
        device = os.path.realpath(f"{ROOT}/sys/bus/pci/devices/{gpu.pci}")
        place = _place(device)
        found.append(
            {"index": gpu.number, "pci": gpu.pci, **place, "nics": _nearest(device, place["numa_node"], nics)}
        )
    return {"gpus": found, "nics": [{name: nic[name] for name in ("name", "numa_node", "cpus")} for nic in nics]}


def check_affinity(affinity: dict[str, Any]) -> Iterator[Check]:
    """Yield whether the kernel says to which NUMA node each device belongs; nothing for a node without devices.

    Args:
        affinity: What `read_affinity` returned.
    """
    devices = [
        *((f"GPU {gpu['index']}", gpu) for gpu in affinity["gpus"]),
        *((nic["name"], nic) for nic in affinity["nics"]),
    ]
    nodes = paths("/sys/devices/system/node/node[0-9]*")
    if not devices:
        return
    if len(nodes) < 2:  # noqa: PLR2004 - with one, every device is near every CPU
        yield not_checked("affinity", "the instance has one NUMA node")
        return
    troubles = [f"{name} has no NUMA node" for name, device in devices if device["numa_node"] < 0]
    used = sorted({gpu["numa_node"] for gpu in affinity["gpus"]})
    # No instance fails by it: jobs run, only slower.
    check = verdict("affinity", troubles[:3], f"the GPUs are on NUMA nodes {', '.join(map(str, used)) or 'unknown'}")
    yield check._replace(provisional=True)


def _place(device: str) -> dict[str, Any]:
    node = (read_text(f"{device[len(ROOT) :]}/numa_node") or "").strip()
    cpus = (read_text(f"{device[len(ROOT) :]}/local_cpulist") or "").strip()
    return {"numa_node": int(node) if node.lstrip("-").isdigit() else -1, "cpus": cpus}


def _nearest(device: str, numa_node: int, nics: list[dict[str, Any]]) -> list[str]:
    """Return the cards that share most of a device's way to the CPU; those of its NUMA node where none does."""
    shared = {nic["name"]: len(os.path.commonpath([device, nic["path"]]).split("/")) for nic in nics}
    root_complex = len(f"{ROOT}/sys/devices/pci0000:00".split("/"))
    most = max(shared.values(), default=0)
    if most > root_complex:
        return [name for name, length in shared.items() if length == most]
    return [nic["name"] for nic in nics if nic["numa_node"] == numa_node >= 0]
