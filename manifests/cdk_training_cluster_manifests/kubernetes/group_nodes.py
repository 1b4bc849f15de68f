"""What pods find on the nodes of a group: what they may ask for, and how they get there."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from cdk_training_cluster import GpuSharing, InstanceTypeInfo, NodeGroup
from cdk_training_cluster.network import network_interfaces
from cdk_training_cluster.nodes.gpu_sharing import SharingMethod
from cdk_training_cluster.nodes.layouts import wants_efa
from cdk_training_cluster.orchestrators.eks.node_groups import NODE_GROUP_LABEL, taints

HYPERPOD_LABEL = "sagemaker.amazonaws.com/instance-group-name"
"""The label that HyperPod gives its nodes.

Source: https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-hyperpod-eks.html
"""

GPU, NEURON, EFA, HUGE_PAGES = "nvidia.com/gpu", "aws.amazon.com/neuron", "vpc.amazonaws.com/efa", "hugepages-2Mi"

# A node's own memory is less than its type's: what Karpenter assumes that firmware and kernel take.
# https://karpenter.sh/docs/reference/settings/ (VM_MEMORY_OVERHEAD_PERCENT)
_FIRMWARE_SHARE = 0.075
# What nodeadm reserves for the kubelet: 255 MiB and 11 MiB a pod, 6 % of the first core, 1 % of the second, 0.5 % of
# two more and 0.25 % of all others; and what the kubelet keeps free before it evicts pods.
# https://github.com/awslabs/amazon-eks-ami/blob/main/nodeadm/internal/kubelet/config.go
_RESERVED_MIB, _MIB_A_POD, _EVICTION_MIB = 255, 11, 100
_CORES = ((1, 60), (1, 10), (2, 5))
_FURTHER_CORE = 2.5
# The most pods of a type; EC2's interfaces of p4d.24xlarge have the most addresses.
# https://github.com/awslabs/amazon-eks-ami/blob/main/nodeadm/internal/kubelet/eni-max-pods.txt
_MOST_PODS, _MOST_PODS_OF_SMALL, _SMALL_VCPUS = 737, 110, 30
# The EFA software of the image keeps 5128 pages of 2 MiB for its buffers; a job asks for 5 GiB of them.
# https://docs.aws.amazon.com/eks/latest/userguide/node-efa.html
_PAGES_MIB, JOB_PAGES_MIB = 10_256, 5_120
# What daemon sets on each node ask for at most: plugins, exporters, agents, the network plugin, and those of the
# add-on amazon-cloudwatch-observability, which ask for half a CPU alone.
# https://github.com/aws-observability/helm-charts/blob/main/charts/amazon-cloudwatch-observability/values.yaml
_DAEMONS_MILLICPU, _DAEMONS_MIB = 1_000, 1_024


@dataclass(frozen=True, kw_only=True)
class GroupNodes:
    """A node group as Kubernetes sees its nodes.

    Attributes:
        group: The node group.
        info: The facts about its first type.
        label: The label with the group's name.
        huge_pages: Whether jobs ask for the huge pages that EFA can use. Karpenter knows of none, and would launch no
            node for such a job: https://github.com/kubernetes-sigs/karpenter/issues/751
    """

    group: NodeGroup
    info: InstanceTypeInfo
    label: str = NODE_GROUP_LABEL
    huge_pages: bool = True

    @property
    def name(self) -> str:
        """The group's name."""
        return self.group.name

    @property
    def sharing(self) -> GpuSharing | None:
        """How jobs share its GPUs."""
        return self.group.gpu_sharing

    @property
    def is_partitioned(self) -> bool:
        """Whether its GPUs are partitioned, between whose parts no NCCL runs."""
        return self.sharing is not None and self.sharing.method is SharingMethod.MIG

    @property
    def node_selector(self) -> Mapping[str, str]:
        """What brings a pod to the group's nodes."""
        return {self.label: self.name}

    @cached_property
    def taints(self) -> Mapping[str, str]:
        """The taints of its nodes, by key, all with the effect NoSchedule."""
        return taints(self.group, self.info)

    @property
    def tolerations(self) -> list[dict[str, str]]:
        """What lets a pod stay on its nodes."""
        return [
            {"key": key, "operator": "Equal", "value": value, "effect": "NoSchedule"}
            for key, value in self.taints.items()
        ]

    @cached_property
    def accelerators(self) -> Mapping[str, int]:
        """How many accelerators, or shares of them, a node offers, by the resource's name."""
        if self.info.has_neuron_devices:
            return {NEURON: self.info.neuron_device_count}
        if not self.info.has_nvidia_gpus:
            return {}
        gpus = self.info.nvidia_gpu_count
        if self.is_partitioned and self.sharing is not None:
            # NVIDIA's plugin writes 1g.10gb+me as nvidia.com/mig-1g.10gb.me.
            partitions = self.sharing.partitions_of(self.info).items()
            return {f"nvidia.com/mig-{profile.replace('+', '.')}": count * gpus for profile, count in partitions}
        return {GPU: gpus if self.sharing is None else self.sharing.shares_of(self.info)}

    @cached_property
    def efas(self) -> int:
        """How many Elastic Fabric Adapters a node has."""
        made = network_interfaces(self.info, efa=wants_efa(self.group, self.info), layout=self.group.interface_layout)
        return sum(each.interface_type.startswith("efa") for each in made)

    @cached_property
    def allocatable_millicpu(self) -> int:
        """How much of its CPUs pods may ask for, in thousandths."""
        reserved, left = 0.0, self.info.vcpus
        for cores, millicpu in _CORES:
            taken = min(cores, left)
            reserved, left = reserved + taken * millicpu, left - taken
        return int(self.info.vcpus * 1000 - reserved - left * _FURTHER_CORE)

    @cached_property
    def allocatable_mib(self) -> int:
        """How much of its memory pods may ask for at least, in MiB, beside huge pages."""
        pods = _MOST_PODS_OF_SMALL if self.info.vcpus <= _SMALL_VCPUS else _MOST_PODS
        reserved = _RESERVED_MIB + _MIB_A_POD * pods + _EVICTION_MIB
        pages = _PAGES_MIB if self.efas else 0
        return int(self.info.memory_mib * (1 - _FIRMWARE_SHARE)) - reserved - pages

    @cached_property
    def whole_node(self) -> Mapping[str, str]:
        """What a pod asks for that has a node to itself."""
        return {
            "cpu": f"{self.allocatable_millicpu - _DAEMONS_MILLICPU}m",
            "memory": f"{self.allocatable_mib - _DAEMONS_MIB}Mi",
            **{name: str(count) for name, count in self.accelerators.items()},
            **({} if self.is_partitioned else self._efa_of(1)),
        }

    @cached_property
    def one_share(self) -> Mapping[str, str]:
        """What a pod asks for that takes one accelerator, or the smallest share of one, and its part of the node."""
        parts = max(1, sum(self.accelerators.values()))
        name = next(iter(self.accelerators), None)
        return {
            "cpu": f"{(self.allocatable_millicpu - _DAEMONS_MILLICPU) // parts}m",
            "memory": f"{(self.allocatable_mib - _DAEMONS_MIB) // parts}Mi",
            **({} if name is None else {name: "1"}),
        }

    def of_nodes(self, count: int) -> Mapping[str, str]:
        """Return what so many nodes offer to jobs, by the resource's name.

        Args:
            count: How many nodes.
        """
        return {
            "cpu": f"{(self.allocatable_millicpu - _DAEMONS_MILLICPU) * count}m",
            "memory": f"{(self.allocatable_mib - _DAEMONS_MIB) * count}Mi",
            **{name: str(each * count) for name, each in self.accelerators.items()},
            **self._efa_of(count),
        }

    def _efa_of(self, nodes: int) -> Mapping[str, str]:
        if not self.efas:
            return {}
        pages = {HUGE_PAGES: f"{JOB_PAGES_MIB * nodes}Mi"} if self.huge_pages else {}
        return {EFA: str(self.efas * nodes), **pages}


def affinity_to(groups: Sequence[GroupNodes]) -> Mapping[str, Any]:
    """Return what keeps a daemon set on the nodes of some groups, by the label that the orchestrator gives them.

    Args:
        groups: The groups, at least one.
    """
    expression = {"key": groups[0].label, "operator": "In", "values": [each.name for each in groups]}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
