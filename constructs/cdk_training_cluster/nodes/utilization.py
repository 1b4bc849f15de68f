"""How the use of accelerators is read that are neither NVIDIA GPUs nor Neuron devices."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from cdk_training_cluster.instance_types import InstanceTypeInfo

if TYPE_CHECKING:
    from cdk_training_cluster.nodes.node_group import NodeGroup

COMMANDS: Final[Mapping[str, str]] = {
    # https://docs.habana.ai/en/latest/Management_and_Monitoring/Embedded_System_Tools_Guide/System_Management_Interface_Tool.html
    "Habana": "hl-smi --query-aip=utilization.aip --format=csv,noheader,nounits",
}
"""The commands that print a percentage on a line of its own for each accelerator, by the accelerators' maker."""


def utilization_command(group: "NodeGroup", info: InstanceTypeInfo) -> str | None:
    """Return the command that says how busy a node's accelerators are. None: none is needed, or none is known.

    Args:
        group: The node group.
        info: The facts about a type of it.
    """
    if info.has_nvidia_gpus or info.has_neuron_devices or not info.is_accelerated:
        return None
    return group.utilization_command or COMMANDS.get(info.accelerators[0].manufacturer)


def accelerator_count(info: InstanceTypeInfo) -> int:
    """Return how many accelerators a node of a type has.

    Args:
        info: The facts about the type.
    """
    return sum(accelerator.count for accelerator in info.accelerators)
