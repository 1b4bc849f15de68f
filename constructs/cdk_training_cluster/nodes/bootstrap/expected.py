"""What nodes verify themselves against: the facts about their type, in the settings of their user data."""

import json
from collections.abc import Sequence

from cdk_training_cluster.instance_types import InstanceTypeInfo
from cdk_training_cluster.network import NetworkInterface


def efa_devices(interfaces: Sequence[NetworkInterface]) -> int:
    """Return how many of a node's interfaces are Elastic Fabric Adapters.

    Args:
        interfaces: The interfaces.
    """
    return sum(interface.interface_type != "interface" for interface in interfaces)


def is_verified(info: InstanceTypeInfo, efa_devices: int) -> bool:
    """Say whether nodes of a type have something to train with, and so are verified.

    Args:
        info: The facts about the type.
        efa_devices: How many Elastic Fabric Adapters its launch template asks for.
    """
    return info.has_nvidia_gpus or info.has_neuron_devices or efa_devices > 0


def expected_nodes(infos: Sequence[InstanceTypeInfo], efa_devices: int) -> str:
    """Return what `cluster-node verify` expects of each type, as JSON; empty where no type is verified.

    Args:
        infos: The facts about the types that one launch template may become.
        efa_devices: How many Elastic Fabric Adapters the template asks for.
    """
    types = {info.name: _expected(info, efa_devices) for info in infos if is_verified(info, efa_devices)}
    return json.dumps(types, separators=(",", ":")) if types else ""


def _expected(info: InstanceTypeInfo, efa_devices: int) -> dict[str, object]:
    name = info.accelerators[0].name if info.accelerators else ""
    facts = {
        "gpus": info.nvidia_gpu_count,
        "gpu": name if info.has_nvidia_gpus else "",
        "neuron_devices": info.neuron_device_count,
        "neuron": name if info.has_neuron_devices else "",
        "efa_devices": efa_devices,
        "disks": info.instance_store_disks if info.instance_store_nvme else 0,
    }
    return {name: value for name, value in facts.items() if value}
