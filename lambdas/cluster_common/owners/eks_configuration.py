"""What an EKS node group is sent with a larger size, as far as it is not so already."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from cluster_common.owners.eks_node_repair import node_repair_config
from cluster_contract.eks import REPAIR, REPAIRS_NOT, REPAIRS_NVIDIA, SHARING_LABELS, WARM_NODES


def changed_configuration(options: Iterable[str], described: Mapping[str, Any]) -> dict[str, Any]:
    """Return what UpdateNodegroupConfig has to change.

    Args:
        options: What the node group is to be like, as `cluster_contract.eks` writes it.
        described: The node group as DescribeNodegroup answers.

    Source: https://docs.aws.amazon.com/eks/latest/APIReference/API_UpdateNodegroupConfig.html
    """
    wanted = dict(option.split("=", 1) for option in options)
    if not wanted:
        return {}
    configs = {
        "nodeRepairConfig": node_repair_config(
            enabled=wanted[REPAIR] != REPAIRS_NOT, nvidia=wanted[REPAIR] == REPAIRS_NVIDIA
        ),
        "warmPoolConfig": _warm_pool(wanted.get(WARM_NODES)),
    }
    changes = {name: config for name, config in configs.items() if not _is_so(described.get(name) or {}, config)}
    labels = _labels({name: wanted[name] for name in SHARING_LABELS if name in wanted}, described.get("labels") or {})
    return {**changes, "labels": labels} if labels else changes


def _is_so(described: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Say whether a group is as wanted; what is off needs nothing more to be so."""
    if not wanted["enabled"]:
        return not described.get("enabled", False)
    return all(_comparable(described.get(name)) == _comparable(value) for name, value in wanted.items())


def _comparable(value: object) -> object:
    """Return a value in a form without the order of its items, which EKS may change."""
    if isinstance(value, list):
        return sorted(json.dumps(each, sort_keys=True) for each in value)
    return value


def _warm_pool(nodes: str | None) -> dict[str, Any]:
    if nodes is None:
        return {"enabled": False}
    return {
        "enabled": True,
        "minSize": 0,
        "maxGroupPreparedCapacity": int(nodes),
        "poolState": "STOPPED",
        "reuseOnScaleIn": True,
    }


def _labels(wanted: Mapping[str, str], described: Mapping[str, str]) -> dict[str, Any]:
    added = {name: value for name, value in wanted.items() if described.get(name) != value}
    gone = [name for name in SHARING_LABELS if name in described and name not in wanted]
    return {**({"addOrUpdateLabels": added} if added else {}), **({"removeLabels": gone} if gone else {})}
