"""Node groups: how many nodes of which type there are, where, and how they are wired."""

from collections.abc import Mapping
from typing import Any

from cluster_contract.eks import WARM_NODES
from rehearsal.checks.check import Check, Deployment, Facts
from rehearsal.checks.owners import counts, launches, options, owners
from rehearsal.templates import Resource, of_type


def _said(deployment: Deployment) -> Facts:
    count = counts(deployment)
    return {
        name: {"count_running": count.get(name), **_of_group(deployment, name, owner)}
        for name, owner in owners(deployment).items()
    }


def _of_group(deployment: Deployment, name: str, owner: Resource) -> dict[str, Any]:
    by_type = dict(launches(deployment, owner))
    placed = next(iter(by_type.values())).get("Placement", {}).get("GroupName")
    pools = of_type(deployment.resources, "AWS::AutoScaling::WarmPool")
    sizes = [pool.properties["MaxGroupPreparedCapacity"] for pool in pools if pool.id == owner.id]
    return {
        "placement_group": owner.properties.get("PlacementGroup") or placed,
        "availability_zone": deployment.zone,
        "warm_pool_size": sizes[0] if sizes else _kept_warm(deployment, name),
        # Spot chooses among several types.
        "interfaces_by_type": {one: _interfaces(by_type[one]) for one in _types(deployment, name) if one in by_type},
    }


def _kept_warm(deployment: Deployment, name: str) -> int | None:
    size = options(deployment, name).get(WARM_NODES)
    return None if size is None else int(size)


def _types(deployment: Deployment, name: str) -> list[str]:
    groups = deployment.found["node_groups"]
    return [one for group in groups if group["name"] == name for one in group["interfaces_by_type"]]


def _interfaces(data: Mapping[str, Any]) -> list[int]:
    kinds = [each["InterfaceType"] for each in data["NetworkInterfaces"]]
    return [len(kinds), sum(kind in ("efa", "efa-only") for kind in kinds)]


def _found(deployment: Deployment) -> Facts:
    return {
        group["name"]: {**group, "warm_pool_size": group["warm_pool"] and group["warm_pool"]["size"]}
        for group in deployment.found["node_groups"]
        if not group.get("on_hyperpod")
    }


NODE_GROUPS = Check("node group", _said, _found)
