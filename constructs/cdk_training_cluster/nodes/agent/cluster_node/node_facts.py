"""Which node this is, and what its instance type has when all is well."""

from __future__ import annotations

import glob
import json
import re
import shlex
from collections import Counter
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from cluster_contract.node_files import SLURM

from .programs import ROOT

_SETTINGS = "/opt/cdk-training-cluster/settings"
_DMI = "/sys/devices/virtual/dmi/id"


class Facts(NamedTuple):
    """What a node is expected to be; what its settings do not say is empty or zero.

    Attributes:
        cluster: The cluster's name.
        node_group: The node group's name.
        region: The AWS region.
        namespace: The CloudWatch namespace of nodes.
        instance_type: The instance type.
        gpus: NVIDIA GPUs.
        gpu: Their model, as EC2 spells it.
        neuron_devices: Neuron devices.
        neuron: Their model, as EC2 spells it.
        efa_devices: Elastic Fabric Adapters of the launch template.
        disks: Local NVMe disks.
        mount_point: Where the file system is mounted.
    """

    cluster: str = ""
    node_group: str = ""
    region: str = ""
    namespace: str = ""
    instance_type: str = ""
    gpus: int = 0
    gpu: str = ""
    neuron_devices: int = 0
    neuron: str = ""
    efa_devices: int = 0
    disks: int = 0
    mount_point: str = ""


@lru_cache(maxsize=1)
def settings() -> dict[str, str]:
    """Return the settings that the user data wrote; empty where there are none."""
    return _assignments(_SETTINGS)


def partitions() -> Counter[str]:
    """Return the MIG profiles of the partitions of each GPU, which Slurm's nodes have; empty elsewhere."""
    return Counter(filter(None, _assignments(f"{SLURM}/settings").get("MIG_PROFILES", "").split(",")))


def _assignments(path: str) -> dict[str, str]:
    lines = (read_text(path) or "").splitlines()
    pairs = (line.partition("=") for line in lines if re.match(r"[A-Z_]+=[^(]", line))
    return {name: "".join(shlex.split(value)) for name, _, value in pairs}


def instance_type() -> str:
    """Return the node's type as its firmware has it, which asks no network; empty where it has none.

    Nitro instances have it. Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/identify_ec2_instances.html
    """
    return _dmi("product_name")


def instance_id() -> str:
    """Return the instance's id, likewise."""
    found = _dmi("board_asset_tag")
    return found if re.fullmatch(r"i-[0-9a-f]+", found) else ""


def boot_id() -> str:
    """Return what is another one after each boot."""
    return (read_text("/proc/sys/kernel/random/boot_id") or "").strip()


def expected_facts(type_name: str) -> Facts:
    """Return what a node of a type has when all is well.

    Args:
        type_name: The instance type. One that is not among those of the node group's settings is taken for the first.
    """
    known = settings()
    types: dict[str, Any] = json.loads(known.get("EXPECTED") or "{}")
    expected: dict[str, Any] = types.get(type_name) or next(iter(types.values()), {})
    return Facts(
        cluster=known.get("CLUSTER", ""),
        node_group=known.get("NODE_GROUP", ""),
        region=known.get("REGION", ""),
        namespace=known.get("METRIC_NAMESPACE", ""),
        instance_type=type_name or next(iter(types), ""),
        mount_point=known.get("MOUNT_POINT", ""),
        **{name: value for name, value in expected.items() if name in Facts._fields},
    )


def read_text(path: str) -> str | None:
    """Return the text of a file of the node. None: it cannot be read.

    Args:
        path: Its path.
    """
    try:
        return Path(ROOT + path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None


def paths(pattern: str) -> list[str]:
    """Return the paths of the node that match a pattern, in order.

    Args:
        pattern: Their pattern, from the root.
    """
    return sorted(path[len(ROOT) :] for path in glob.glob(ROOT + pattern))  # noqa: PTH207 - the pattern starts at the root


def _dmi(name: str) -> str:
    return (read_text(f"{_DMI}/{name}") or "").strip()
