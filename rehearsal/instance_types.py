"""An instance type in the words of DescribeInstanceTypes, for types that the local AWS does not know.

EC2's own facts are what the local AWS checks launches against. For a type that it lacks they are made from the
library's, so for such a type the check is not an independent one: it holds the launch template against the facts
that the launch template was made from.
"""

from typing import Any

from cdk_training_cluster.instance_types import Accelerator, AcceleratorKind, InstanceTypeInfo, NetworkCard

# Where AWS does not publish how many interfaces fit on a card, nothing is refused for their number.
_MANY_INTERFACES = 60


def description(info: InstanceTypeInfo) -> dict[str, Any]:
    """Describe a type as DescribeInstanceTypes would.

    Args:
        info: What the library knows of it.

    Source: https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_InstanceTypeInfo.html
    """
    cards = [_card(card) for card in sorted(info.network_cards, key=lambda card: card.index)]
    described: dict[str, Any] = {
        "InstanceType": info.name,
        "BareMetal": info.hypervisor is None,
        "CurrentGeneration": True,
        "VCpuInfo": {"DefaultVCpus": info.vcpus},
        "MemoryInfo": {"SizeInMiB": info.memory_mib},
        "ProcessorInfo": {"SupportedArchitectures": list(info.architectures)},
        # Unknown is not forbidden: what the library would let through, EC2 has to judge.
        "SupportedUsageClasses": list(info.usage_classes or ("on-demand", "spot")),
        "PlacementGroupInfo": {
            "SupportedStrategies": list(info.placement_strategies or ("cluster", "partition", "spread"))
        },
        "SupportedRootDeviceTypes": list(info.supported_root_device_types),
        "SupportedVirtualizationTypes": ["hvm"],
        "EbsInfo": {"EncryptionSupport": "supported", "NvmeSupport": "required"},
        "NetworkInfo": {
            "EfaSupported": info.supports_efa,
            "MaximumNetworkCards": len(cards),
            "MaximumNetworkInterfaces": sum(card["MaximumNetworkInterfaces"] for card in cards),
            "DefaultNetworkCardIndex": 0,
            "Ipv4AddressesPerInterface": 50,
            "NetworkPerformance": f"{info.network_gbps:g} Gigabit" if info.network_gbps else "Unknown",
            "NetworkCards": cards,
        },
    }
    if info.supports_efa:
        described["NetworkInfo"]["EfaInfo"] = {"MaximumEfaInterfaces": info.maximum_efa_interfaces}
    if info.hypervisor is not None:
        described["Hypervisor"] = info.hypervisor
    if info.instance_store_gb:
        described["InstanceStorageInfo"] = {
            "TotalSizeInGB": info.instance_store_gb,
            "Disks": [{"Count": info.instance_store_disks}],
            "NvmeSupport": "required" if info.instance_store_nvme else "unsupported",
        }
    for accelerator in info.accelerators:
        _add(described, accelerator)
    return described


def _card(card: NetworkCard) -> dict[str, Any]:
    return {
        "NetworkCardIndex": card.index,
        "MaximumNetworkInterfaces": card.maximum_interfaces or _MANY_INTERFACES,
        "InterfaceTypes": list(card.interface_types),
        "BaselineBandwidthInGbps": card.baseline_gbps,
    }


_PLACES = {
    AcceleratorKind.GPU: ("GpuInfo", "Gpus"),
    AcceleratorKind.NEURON: ("NeuronInfo", "NeuronDevices"),
    AcceleratorKind.INFERENCE: ("InferenceAcceleratorInfo", "Accelerators"),
    AcceleratorKind.FPGA: ("FpgaInfo", "Fpgas"),
    AcceleratorKind.MEDIA: ("MediaAcceleratorInfo", "Accelerators"),
}


def _add(described: dict[str, Any], accelerator: Accelerator) -> None:
    section, devices = _PLACES[accelerator.kind]
    device: dict[str, Any] = {
        "Name": accelerator.name,
        "Manufacturer": accelerator.manufacturer,
        "Count": accelerator.count,
        "MemoryInfo": {"SizeInMiB": accelerator.memory_mib},
    }
    if accelerator.kind is AcceleratorKind.GPU:
        device |= {"LogicalGpuCount": accelerator.count, "GpuPartitionSize": accelerator.fraction}
    if accelerator.kind is AcceleratorKind.NEURON:
        device["CoreInfo"] = {"Count": accelerator.cores_per_device, "Version": accelerator.core_version}
    described.setdefault(section, {devices: []})[devices].append(device)
