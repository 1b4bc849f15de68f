"""The accelerators of nodes as Slurm's generic resources.

Source: https://docs.aws.amazon.com/pcs/latest/userguide/gres-custom-settings.html
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cdk_training_cluster.instance_types import InstanceTypeInfo
from cdk_training_cluster.nodes.gpu_sharing import GpuSharing, SharingMethod


@dataclass(frozen=True, kw_only=True)
class NodeGres:
    """What jobs may ask for on a node, and the devices behind it.

    Attributes:
        resources: What the scheduler gives out: counts by name, and by type where it has one (`gpu:1g.10gb`).
        records: The records of `gres.conf`, as `GresCustomSettings` takes them.
        from_pcs: Whether PCS derives both from the instance type, so that neither is said.
    """

    resources: Mapping[str, int]
    records: Sequence[Mapping[str, str]]
    from_pcs: bool = False

    @property
    def text(self) -> str:
        """The resources as `Gres` of a node takes them: `gpu:8,mps:32`."""
        return ",".join(f"{name}:{count}" for name, count in self.resources.items())


def node_gres(info: InstanceTypeInfo, sharing: GpuSharing | None = None) -> NodeGres:
    """Return the generic resources of a node.

    Args:
        info: The facts about its type.
        sharing: How jobs share its GPUs. Default: - they do not.
    """
    if sharing is not None and sharing.method is SharingMethod.MIG:
        return _divided_gpus(info, sharing.partitions_of(info))
    if sharing is not None:
        # Slurm's name for NVIDIA's Multi-Process Service, and the one for GPUs that jobs use in turn.
        # https://slurm.schedmd.com/gres.html
        return _shared_gpus(info, "mps" if sharing.method is SharingMethod.MPS else "shard", sharing.replicas or 1)
    if info.has_nvidia_gpus:
        return NodeGres(resources={"gpu": info.nvidia_gpu_count}, records=[_gpus(info)], from_pcs=True)
    if info.has_neuron_devices:
        count = info.neuron_device_count
        record = {"Name": "neuron", "File": _files("/dev/neuron", count)}
        return NodeGres(resources={"neuron": count}, records=[record])
    return NodeGres(resources={}, records=[], from_pcs=True)


def _shared_gpus(info: InstanceTypeInfo, name: str, shares: int) -> NodeGres:
    """Return the GPUs of a node of which jobs take whole ones or shares."""
    total = info.nvidia_gpu_count * shares
    records = [_gpus(info), {"Name": name, "Count": str(total)}]
    return NodeGres(resources={"gpu": info.nvidia_gpu_count, name: total}, records=records)


def _divided_gpus(info: InstanceTypeInfo, profiles: Mapping[str, int]) -> NodeGres:
    """Return the GPUs of a node in MIG mode, which `slurmd` finds when the node boots.

    Source: https://docs.aws.amazon.com/pcs/latest/userguide/mig-configuration.html
    """
    resources = {f"gpu:{name}": count * info.nvidia_gpu_count for name, count in profiles.items()}
    return NodeGres(resources=resources, records=[{"AutoDetect": "nvml"}])


def _gpus(info: InstanceTypeInfo) -> Mapping[str, str]:
    return {"Name": "gpu", "File": _files("/dev/nvidia", info.nvidia_gpu_count)}


def _files(name: str, count: int) -> str:
    return f"{name}0" if count == 1 else f"{name}[0-{count - 1}]"
