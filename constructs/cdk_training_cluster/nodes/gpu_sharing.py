"""How several jobs share the GPUs of a node."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Annotated

from cdk_training_cluster.instance_types import InstanceTypeInfo
from cdk_training_cluster.instance_types.mig import PROFILE, mig_gpu
from cdk_training_cluster.validation.bounds import Whole
from cdk_training_cluster.validation.checks import shown
from cdk_training_cluster.validation.kinds import checked
from cluster_contract.eks import SHARING_LABELS

MPS_REPLICAS = Whole(
    minimum=2, maximum=48, advice=": an MPS server has at most 48 clients; leave gpu_sharing out for 1"
)
"""https://docs.nvidia.com/deploy/mps/when-to-use-mps.html#limitations"""

TIME_SLICING_REPLICAS = Whole(minimum=2, advice=": leave gpu_sharing out for 1")
"""https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/gpu-sharing.html"""


def _profiles(setting: str, value: object) -> Iterator[str]:
    example = "'1g.10gb', or of each how many a GPU is to have, such as {'3g.40gb': 1, '1g.10gb': 4}"
    if isinstance(value, str) and PROFILE.fullmatch(value):
        return
    if not isinstance(value, Mapping) or not value:
        yield f"{setting} must be a MIG profile, such as {example}, got {shown(value)}"
        return
    for name, count in value.items():
        if not isinstance(name, str) or not PROFILE.fullmatch(name):
            yield f"{setting} must have MIG profiles for keys, such as {example}, got {shown(name)}"
        elif type(count) is not int or count < 1:
            yield f"{setting}[{shown(name)}] must be a whole number of at least 1, got {shown(count)}"


class SharingMethod(Enum):
    """How a GPU is shared."""

    MIG = "mig"
    """Partitions of the hardware, each with memory and compute units of its own."""

    MPS = "mps"
    """Processes at the same time, each with an equal limit of memory; a fault of one can end the others."""

    TIME_SLICING = "time_slicing"
    """Processes in turn, which share all of the memory: one that takes too much fails the others."""


@dataclass(frozen=True, kw_only=True)
class GpuSharing:
    """Say how several jobs share a GPU of a node group. Make one with a method of the class.

    It is for small jobs, notebooks and inference. A job that takes whole GPUs needs none: leave `gpu_sharing` out.
    Slurm (as `gres`) and EKS (through NVIDIA's device plugin) share GPUs; the other orchestrators refuse it.

    Attributes:
        method: How a GPU is shared.
        replicas: How many jobs share a GPU. None: MIG, whose partitions say it.
        partitions: For MIG, how many a GPU has of each profile. 0: as many as fit.
    """

    method: SharingMethod
    replicas: int | None = None
    partitions: Mapping[str, int] = field(default_factory=dict)

    @staticmethod
    @checked
    def mig(profiles: Annotated[str | Mapping[str, int], _profiles]) -> "GpuSharing":
        """Partition each GPU of a node (Multi-Instance GPU).

        NCCL does not run across partitions: jobs of one partition only, and no gang of nodes. The nodes report no
        utilization of accelerators, so idle nodes are not found by it.

        Args:
            profiles: A profile such as `1g.10gb`, as many as fit on a GPU; or of each profile how many, such as
                `{"3g.40gb": 1, "1g.10gb": 4}`. Which there are depends on the GPU.

        Raises:
            ValueError: It is not a profile, or a number is not a whole one of at least 1. Whether the GPU has the
                profile is checked with the node group.

        Source: https://docs.nvidia.com/datacenter/tesla/mig-user-guide/supported-mig-profiles.html
        """
        return GpuSharing(
            method=SharingMethod.MIG, partitions={profiles: 0} if isinstance(profiles, str) else dict(profiles)
        )

    @staticmethod
    @checked
    def mps(replicas: Annotated[int, MPS_REPLICAS]) -> "GpuSharing":
        """Let processes run on a GPU at the same time (Multi-Process Service), each with an equal part of its memory.

        Args:
            replicas: How many jobs share a GPU, 2 to 48.

        Raises:
            ValueError: It is not a whole number from 2 to 48.

        Source: https://docs.nvidia.com/deploy/mps/index.html
        """
        return GpuSharing(method=SharingMethod.MPS, replicas=replicas)

    @staticmethod
    @checked
    def time_slicing(replicas: Annotated[int, TIME_SLICING_REPLICAS]) -> "GpuSharing":
        """Let processes take turns on a GPU. Nothing keeps one from taking the memory of another.

        Args:
            replicas: How many jobs share a GPU, at least 2.

        Raises:
            ValueError: It is not a whole number of at least 2.

        Source: https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/gpu-sharing.html
        """
        return GpuSharing(method=SharingMethod.TIME_SLICING, replicas=replicas)

    def partitions_of(self, info: InstanceTypeInfo) -> Mapping[str, int]:
        """Return how many partitions one GPU of a type has of each MIG profile; nothing without MIG.

        Args:
            info: The type, which the rules about sharing have accepted.
        """
        gpu = mig_gpu(info)
        most = {} if gpu is None else gpu.profiles
        return {profile: count or most.get(profile, 0) for profile, count in self.partitions.items()}

    def kubernetes_labels(self, node_group: str) -> Mapping[str, str]:
        """Return the labels by which NVIDIA's device plugin and MIG manager find how a Kubernetes node is shared.

        Both read a configuration with the node group's name.

        Args:
            node_group: The name of the node group.

        Source: https://github.com/NVIDIA/k8s-device-plugin#updating-per-node-configuration-with-a-node-label
        """
        mig, plugin, mps = SHARING_LABELS
        if self.method is SharingMethod.MIG:
            return {mig: node_group}
        return {plugin: node_group, **({mps: "true"} if self.method is SharingMethod.MPS else {})}

    def shares_of(self, info: InstanceTypeInfo) -> int:
        """Return how many jobs that take one share each a node of a type can run at once.

        Args:
            info: The type.
        """
        each = sum(self.partitions_of(info).values()) if self.replicas is None else self.replicas
        return each * info.nvidia_gpu_count
