"""What EC2 refuses of a node group, said before anything is made."""

from collections.abc import Sequence

from aws_cdk import Token

from cdk_training_cluster.instance_types import InstanceTypeInfo, instance_type_info
from cdk_training_cluster.network import network_interfaces
from cdk_training_cluster.nodes.images import public_image
from cdk_training_cluster.nodes.node_group import NodeGroup, Placement


def node_group_problems(group: NodeGroup, facts: Sequence[InstanceTypeInfo] = ()) -> list[str]:
    """Say why a node group cannot be made, a sentence each; none if it can.

    Args:
        group: The settings.
        facts: Facts about types that the catalog does not have.
    """
    infos, found = [], []
    for name in group.instance_types:
        if Token.is_unresolved(name):
            found.append(
                f"instance_types must be known when the template is made, got {name}: interfaces and image follow "
                "from the type; use a context value instead of a parameter"
            )
            continue
        try:
            infos.append(instance_type_info(name, facts))
        except ValueError as error:
            found.append(str(error))
    if not found:
        found += group.capacity.problems(infos)
    for info in infos:
        found += [problem for rule in _RULES for problem in rule(group, info)]
    return [f"node group {group.name!r}: {problem}" for problem in found]


def _placement(group: NodeGroup, info: InstanceTypeInfo) -> list[str]:
    # https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/placement-strategies.html#placement-groups-cluster
    wanted = group.placement.value
    if group.placement is Placement.NONE or info.allows_placement(wanted):
        return []
    return [
        f"{info.name} cannot be launched into a cluster placement group: set placement to Placement.NONE, or "
        "choose another type"
    ]


def _interfaces(group: NodeGroup, info: InstanceTypeInfo) -> list[str]:
    # https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa.html#efa-instance-types
    try:
        network_interfaces(
            info, efa=info.supports_efa if group.efa is None else group.efa, layout=group.interface_layout
        )
    except ValueError as error:
        return [str(error)]
    return []


def _image(group: NodeGroup, info: InstanceTypeInfo) -> list[str]:
    # https://docs.aws.amazon.com/dlami/latest/devguide/overview-base.html
    if group.machine_image is not None or public_image(info) is not None:
        return []
    return [
        f"AWS publishes no Deep Learning image for {info.name}: give your own machine_image for "
        f"{' or '.join(info.architectures)}"
    ]


_RULES = (_placement, _interfaces, _image)
