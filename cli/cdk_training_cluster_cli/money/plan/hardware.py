"""What a cluster has: accelerators and their memory, bandwidth between nodes, and of the file system."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from cdk_training_cluster import InstanceTypeInfo
from cdk_training_cluster.storage.file_system_settings import FileSystemSettings
from cdk_training_cluster_cli.money.plan.shape import GroupShape, gib

_MB_OF_A_GB = 1000


@dataclass(frozen=True, kw_only=True)
class GroupHardware:
    """What the nodes of a group have; of several types, what the first has.

    Attributes:
        group: The node group's name.
        instance_type: The type.
        nodes: How many nodes run.
        accelerators: What one node has, as text.
        accelerator_count: How many accelerators all nodes have.
        memory_gib: The accelerators' memory of all nodes.
        efa_gbps: The EFA bandwidth of a node; 0 without EFA. None: unknown.
    """

    group: str
    instance_type: str
    nodes: int
    accelerators: str
    accelerator_count: int
    memory_gib: Decimal
    efa_gbps: Decimal | None


@dataclass(frozen=True, kw_only=True)
class Hardware:
    """What a cluster has.

    Attributes:
        groups: By node group.
        accelerator_count: How many accelerators there are.
        memory_gib: Their memory together.
        efa_gbps: The EFA bandwidth of all nodes together. None: unknown.
        file_system_gb_per_second: What the file system's throughput is. None: there is none.
        file_system_gb_per_second_per_accelerator: The same for each accelerator. None: there are none.
    """

    groups: tuple[GroupHardware, ...]
    accelerator_count: int
    memory_gib: Decimal
    efa_gbps: Decimal | None
    file_system_gb_per_second: Decimal | None
    file_system_gb_per_second_per_accelerator: Decimal | None


def hardware_of(groups: Sequence[GroupShape], file_system: FileSystemSettings | None) -> Hardware:
    """Return what a cluster has.

    Args:
        groups: The node groups.
        file_system: The file system, or None.
    """
    found = tuple(map(_group, groups))
    devices = sum(each.accelerator_count for each in found)
    speeds = [None if each.efa_gbps is None else each.efa_gbps * each.nodes for each in found]
    known = [speed for speed in speeds if speed is not None]
    speed = None if file_system is None else file_system.total_mbps
    throughput = None if speed is None else speed / _MB_OF_A_GB
    return Hardware(
        groups=found,
        accelerator_count=devices,
        memory_gib=sum((each.memory_gib for each in found), Decimal(0)),
        efa_gbps=sum(known, Decimal(0)) if len(known) == len(speeds) else None,
        file_system_gb_per_second=throughput,
        file_system_gb_per_second_per_accelerator=None if throughput is None or not devices else throughput / devices,
    )


def _group(group: GroupShape) -> GroupHardware:
    info = group.instance_types[0]
    words = [f"{each.count} x {each.name}, {gib(each.memory_mib):.0f} GiB" for each in info.accelerators]
    return GroupHardware(
        group=group.name,
        instance_type=info.name,
        nodes=group.count,
        accelerators="; ".join(words) or "none",
        accelerator_count=group.count * sum(each.count for each in info.accelerators),
        memory_gib=group.count * sum((each.count * gib(each.memory_mib) for each in info.accelerators), Decimal(0)),
        efa_gbps=_efa(info) if group.efa and info.supports_efa else Decimal(0),
    )


def _efa(info: InstanceTypeInfo) -> Decimal | None:
    return None if info.network_gbps is None else Decimal(str(info.network_gbps))
