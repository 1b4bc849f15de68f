"""What the cluster file says of its node groups, held against those that there are."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from cdk_training_cluster.instance_types import InstanceTypeInfo, instance_type_info
from cdk_training_cluster.network import InterfaceLayout, network_interfaces
from cdk_training_cluster_stacks.cluster_file import ClusterFile, NodeGroupSettings
from cdk_training_cluster_stacks.cluster_file.capacity import (
    CapacityBlockSettings,
    ExistingReservationSettings,
    OnDemandSettings,
    PrioritizedSettings,
    ReservationSettings,
    SpotFleetSettings,
    SpotSettings,
)
from cdk_training_cluster_stacks.cluster_file.fields import UNTIL_CANCELLED
from rehearsal.given_capacity import given_capacity
from rehearsal.node_groups import ON_DEMAND

_MARKETS = {CapacityBlockSettings: "capacity-block", SpotSettings: "spot", SpotFleetSettings: "spot"}


def node_group_differences(cluster: ClusterFile, found: Sequence[Mapping[str, Any]]) -> list[str]:
    """Say where the node groups that there are differ from the file, a sentence each.

    Args:
        cluster: The file.
        found: The node groups as they were read back.
    """
    wanted = {group.name: group for group in cluster.node_groups}
    there = {group["name"]: group for group in found}
    differences = [f"node group {name} is not in the file" for name in there if name not in wanted]
    for name, group in wanted.items():
        if name not in there:
            differences.append(f"node group {name} is absent")
            continue
        differences += [
            f"node group {name}: {difference}" for difference in _differences(cluster, group, there[name])
        ]
    return differences


def _differences(cluster: ClusterFile, wanted: NodeGroupSettings, group: Mapping[str, Any]) -> Iterator[str]:
    facts = [entry.to_info() for entry in cluster.instance_type_facts]
    infos = {name: instance_type_info(name, facts) for name in wanted.instance_types}
    yield from _unequal(group, _expected(cluster, wanted, group))
    yield from _types(wanted, infos, group)
    yield from _placement(wanted, group)
    yield from _reservation(wanted, group)
    pool = group["warm_pool"]
    if (pool and pool["size"]) != (wanted.warm_pool and wanted.warm_pool.size):
        yield f"warm_pool is {pool!r}, the file says {wanted.warm_pool and wanted.warm_pool.size!r}"


def _unequal(found: Mapping[str, Any], expected: Mapping[str, Any]) -> Iterator[str]:
    for key, value in expected.items():
        if found[key] != value:
            yield f"{key} is {found[key]!r}, the file says {value!r}"


def _expected(cluster: ClusterFile, wanted: NodeGroupSettings, group: Mapping[str, Any]) -> dict[str, Any]:
    settings = wanted.capacity.settings
    expected = {
        "count_running": wanted.count,
        "bought_from": _bought_from(cluster, wanted, group),
        "availability_zone": cluster.availability_zone,
    }
    if not isinstance(settings, PrioritizedSettings):  # its nodes are of several markets
        expected["market"] = _MARKETS.get(type(settings), ON_DEMAND)
    owned_by_a_fleet = isinstance(settings, SpotFleetSettings)
    if (group["spot_fleet"] is not None) != owned_by_a_fleet:
        expected["spot_fleet"] = "one" if owned_by_a_fleet else None
    return expected


def _bought_from(cluster: ClusterFile, wanted: NodeGroupSettings, group: Mapping[str, Any]) -> dict[str, int]:
    """Return how many nodes there are of each reservation, block or market."""
    settings = wanted.capacity.settings
    match settings:
        case PrioritizedSettings():
            return _in_turn(cluster, wanted, settings)
        case ReservationSettings():
            source = str((group["reservation"] or {}).get("id"))
        case ExistingReservationSettings() | CapacityBlockSettings():
            source = settings.id
        case _:
            source = _MARKETS.get(type(settings), ON_DEMAND)
    return {source: wanted.count}


def _in_turn(cluster: ClusterFile, wanted: NodeGroupSettings, settings: PrioritizedSettings) -> dict[str, int]:
    sizes = {given.id: given.instance_count for given in given_capacity(cluster)}
    left, taken = wanted.count, {}
    for named in (*(settings.reservations or ()), *(settings.capacity_blocks or ())):
        source = named.rpartition("/")[2]
        taken[source] = min(left, sizes[source])
        left -= taken[source]
    if settings.on_demand:
        taken[ON_DEMAND] = left
    return {source: count for source, count in sorted(taken.items()) if count}


def _types(
    wanted: NodeGroupSettings, infos: Mapping[str, InstanceTypeInfo], group: Mapping[str, Any]
) -> Iterator[str]:
    one = len(infos) == 1
    if one and group["instance_type"] != wanted.instance_types[0]:
        yield f"instance_type is {group['instance_type']!r}, the file says {wanted.instance_types[0]!r}"
    for name, found in group["interfaces_by_type"].items():
        if name not in infos:
            if not one:
                yield f"instance_type is {name!r}, the file says {', '.join(infos)}"
            continue
        for what, number, right in zip(("network", "EFA"), found, _interfaces(wanted, infos[name]), strict=True):
            if number != right:
                yield f"{name} has {number} {what} interfaces, the file says {right}"


def _interfaces(wanted: NodeGroupSettings, info: InstanceTypeInfo) -> tuple[int, int]:
    efa = info.supports_efa if wanted.efa is None else wanted.efa
    layout = InterfaceLayout[wanted.interface_layout.upper()]
    return len(network_interfaces(info, efa=efa, layout=layout)), len(info.efa_cards) if efa else 0


def _placement(wanted: NodeGroupSettings, group: Mapping[str, Any]) -> Iterator[str]:
    settings, found = wanted.capacity.settings, group["placement_group"]
    named = settings.placement_group if isinstance(settings, ExistingReservationSettings) else None
    suits = "cluster" if named or isinstance(settings, OnDemandSettings | ReservationSettings) else "none"
    placement = wanted.placement or suits
    if placement == "none":
        named = None
    if (found is not None) != (placement == "cluster") or (named is not None and found != named):
        yield f"placement_group is {found!r}, the file says {named or f'placement: {placement}'}"


def _reservation(wanted: NodeGroupSettings, group: Mapping[str, Any]) -> Iterator[str]:
    settings, found = wanted.capacity.settings, group["reservation"]
    if not isinstance(settings, ReservationSettings):
        if found is not None:
            yield f"reservation {found['id']} is not in the file"
        return
    if found is None:
        yield "its reservation is absent"
        return
    ends = (
        None if settings.end == UNTIL_CANCELLED else datetime.fromisoformat(settings.end).astimezone(UTC).isoformat()
    )
    expected = {
        "instances": wanted.count,
        "match_criteria": "targeted",
        "platform": settings.instance_platform,
        # Elsewhere, EC2 would find too little of it close together.
        "placement_group": group["placement_group"],
        "ends": ends,
    }
    for difference in _unequal(found, expected):
        yield f"reservation: {difference}"
