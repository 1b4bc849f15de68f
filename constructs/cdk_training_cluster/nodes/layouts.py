"""Which launch templates a group needs: one for all the types that can be launched from the same one."""

from collections.abc import Sequence
from dataclasses import dataclass

from cdk_training_cluster.instance_types import InstanceTypeInfo
from cdk_training_cluster.network import NetworkInterface, network_interfaces
from cdk_training_cluster.nodes.images import PublicImage, public_image
from cdk_training_cluster.nodes.node_group import NodeGroup
from cdk_training_cluster.nodes.orchestrator_kind import OrchestratorKind


@dataclass(frozen=True, kw_only=True)
class LaunchLayout:
    """What types of a group have in common that a launch template holds and an override cannot change.

    Attributes:
        interfaces: The network interfaces.
        efa: Whether there are Elastic Fabric Adapters among them.
        image: AWS's image for the types. None: the user's own is taken.
    """

    interfaces: tuple[NetworkInterface, ...]
    efa: bool
    image: PublicImage | None


def wants_efa(group: NodeGroup, info: InstanceTypeInfo) -> bool:
    """Whether nodes of a type in a group get Elastic Fabric Adapters: as the user said, or if the type has any."""
    return info.supports_efa if group.efa is None else group.efa


def launch_layouts(
    group: NodeGroup, infos: Sequence[InstanceTypeInfo], orchestrator: OrchestratorKind = OrchestratorKind.NONE
) -> dict[LaunchLayout, tuple[InstanceTypeInfo, ...]]:
    """Return the layouts that a group needs, each with its types, both in the order of the types.

    Raises:
        ValueError: A type cannot have the interfaces that the group asks for.
    """
    layouts: dict[LaunchLayout, tuple[InstanceTypeInfo, ...]] = {}
    for info in infos:
        efa = wants_efa(group, info)
        layout = LaunchLayout(
            interfaces=network_interfaces(
                info,
                efa=efa,
                layout=group.interface_layout,
                free_interface=orchestrator.traits.needs_free_interface,
            ),
            efa=efa,
            image=public_image(info, orchestrator) if group.machine_image is None else None,
        )
        layouts[layout] = (*layouts.get(layout, ()), info)
    return layouts
