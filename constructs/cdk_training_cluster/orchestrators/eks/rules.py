"""What EKS refuses of its settings beside the node groups, and the sentence for each."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from cdk_training_cluster.nodes.layouts import launch_layouts
from cdk_training_cluster.nodes.rules import ClusterContext
from cdk_training_cluster.orchestrators.eks.images import ami_type
from cdk_training_cluster.orchestrators.eks.settings import EksSettings
from cdk_training_cluster.validation.checks import is_unknown
from cdk_training_cluster.validation.rule import Found, Rules, Setting

_GUIDE = "https://docs.aws.amazon.com/eks/latest/userguide"

MAX_NODES = 450
"""The most nodes of a managed node group: https://docs.aws.amazon.com/eks/latest/userguide/service-quotas.html"""

REFUSED_ZONES = frozenset({"use1-az3", "usw1-az2", "cac1-az3"})
"""The ids of the zones in which EKS places no control plane, nor takes subnets; their names differ by account.

Source: https://docs.aws.amazon.com/eks/latest/userguide/network-reqs.html#cluster-subnets
"""

# The one version that is still supported and has none.
_WITHOUT_DRA = "1.32"

# us-east-1-dfw-2a is a zone of a Local Zone group, us-east-1-wl1-bos-wlz-1 one of Wavelength.
_REGIONAL_ZONE = re.compile(r"[a-z]{2,}(-[a-z]+)+-\d+[a-z]")


@dataclass(frozen=True, kw_only=True)
class EksContext:
    """The settings of an EKS cluster, and the node groups beside them.

    Attributes:
        settings: The settings.
        together: The node groups, with what holds for them.
    """

    settings: EksSettings
    together: ClusterContext


EKS_RULES: Rules[EksContext] = Rules()
"""The rules, each with the address of AWS's document."""


def _at(number: int, setting: str) -> Setting:
    return ("node_groups", number, setting)


@EKS_RULES.rule("eksZones", f"{_GUIDE}/network-reqs.html")
def _zones(eks: EksContext) -> Iterator[Found]:
    zone = next((nodes.availability_zone for nodes in eks.together.nodes), None)
    second = eks.settings.control_plane_zone
    if zone is None or is_unknown(zone):
        return
    if not _REGIONAL_ZONE.fullmatch(zone):
        yield (
            ("availability_zone",),
            f"availability_zone must be an Availability Zone of the region, got {zone!r}: EKS's control plane has no "
            "subnets in Local and Wavelength Zones; name another zone, or orchestrator none",
        )
    elif second is not None and not is_unknown(second) and (second == zone or second[:-1] != zone[:-1]):
        yield (
            ("eks", "control_plane_zone"),
            f"control_plane_zone must be another zone of {zone[:-1]} than the nodes' {zone}, got {second!r}: EKS's "
            "control plane needs subnets in two zones",
        )


@EKS_RULES.rule("eksZoneId", f"{_GUIDE}/network-reqs.html")
def _zone_id(eks: EksContext) -> Iterator[Found]:
    if eks.together.zone_id in REFUSED_ZONES:
        yield (
            ("availability_zone",),
            f"availability_zone must be another zone than {eks.together.zone_id}, the zone of the checkpoints' "
            "directory bucket: the nodes' subnet is one of the control plane's subnets, and EKS takes none of these "
            f"in {', '.join(sorted(REFUSED_ZONES))}; name another zone, and its id",
        )


@EKS_RULES.rule("eksOneTemplate", f"{_GUIDE}/launch-templates.html")
def _one_template(eks: EksContext) -> Iterator[Found]:
    for number, nodes in enumerate(eks.together.nodes):
        if nodes.unknown:
            continue
        architectures = {info.architectures[-1] for info in nodes.infos}
        try:
            layouts = launch_layouts(nodes.group, nodes.infos)
        except ValueError:
            continue  # a rule of the group itself says so
        if len({layout.interfaces for layout in layouts}) > 1 or len(architectures) > 1:
            yield (
                _at(number, "instance_types"),
                f"node group {nodes.group.name!r}: instance_types must have the same network interfaces and "
                f"processor architecture on EKS, got {', '.join(info.name for info in nodes.infos)}: a managed node "
                "group takes one launch template and one image; make a node group of each",
            )


@EKS_RULES.rule("eksUltraServer", f"{_GUIDE}/ml-eks-nvidia-ultraserver.html")
def _ultra_server(eks: EksContext) -> Iterator[Found]:
    version = eks.settings.kubernetes_version
    linked = sorted(
        name for name, info in eks.together.infos.items() if info.has_nvidia_gpus and info.ultraserver_sizes
    )
    if linked and not is_unknown(version) and version == _WITHOUT_DRA:
        yield (
            ("eks", "kubernetes_version"),
            f"kubernetes_version must be 1.33 or newer for {' and '.join(linked)}, got {version!r}: NVLink between "
            "nodes needs dynamic resource allocation; write a newer one",
        )


@EKS_RULES.rule("eksImage", f"{_GUIDE}/ml-eks-optimized-ami.html")
def _image(eks: EksContext) -> Iterator[Found]:
    for number, nodes in enumerate(eks.together.nodes):
        without = [info.name for info in nodes.infos if ami_type(info) is None]
        if without and nodes.group.machine_image is None:
            yield (
                _at(number, "machine_image"),
                f"node group {nodes.group.name!r}: machine_image is required for {', '.join(without)}: no "
                "image of EKS has its driver; give one that has nodeadm and the driver",
            )


@EKS_RULES.rule("eksSpotPrice", f"{_GUIDE}/managed-node-groups.html")
def _spot_price(eks: EksContext) -> Iterator[Found]:
    for number, nodes in enumerate(eks.together.nodes):
        if nodes.group.capacity.uses_spot and nodes.group.capacity.max_price is not None:
            yield (
                _at(number, "capacity"),
                f"node group {nodes.group.name!r}: max_price must be left out on EKS, got "
                f"{nodes.group.capacity.max_price}: a managed node group takes none, and pays the On-Demand price at "
                "most",
            )


@EKS_RULES.rule("eksCount", f"{_GUIDE}/service-quotas.html")
def _count(eks: EksContext) -> Iterator[Found]:
    for number, nodes in enumerate(eks.together.nodes):
        if not is_unknown(nodes.group.count) and nodes.group.count > MAX_NODES:
            yield (
                _at(number, "count"),
                f"node group {nodes.group.name!r}: count must be at most {MAX_NODES} on EKS, got "
                f"{nodes.group.count}: split it into several node groups",
            )


@EKS_RULES.rule("eksWarmPool", f"{_GUIDE}/warm-pools-managed-node-groups.html")
def _warm_pool(eks: EksContext) -> Iterator[Found]:
    for number, nodes in enumerate(eks.together.nodes):
        if nodes.group.warm_pool is not None and nodes.group.machine_image is not None:
            yield (
                _at(number, "warm_pool"),
                f"node group {nodes.group.name!r}: warm_pool must be left out beside machine_image on EKS, got both: "
                "EKS keeps only its own images warm; leave one of them out",
            )
