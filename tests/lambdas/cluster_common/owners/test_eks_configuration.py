"""What an EKS node group is sent with its size."""

from typing import Any

import pytest

from cluster_common.owners.eks_configuration import changed_configuration
from cluster_common.owners.eks_node_repair import node_repair_config
from cluster_contract.eks import eks_options

_REPAIR = node_repair_config(enabled=True, nvidia=True)
_WARM = {
    **{"enabled": True, "minSize": 0, "maxGroupPreparedCapacity": 2},
    **{"poolState": "STOPPED", "reuseOnScaleIn": True},
}
_SHARED = {"nvidia.com/mig.config": "workers"}
_OTHER = {"nvidia.com/device-plugin.config": "workers", "nvidia.com/gpu.present": "true"}


def _options(**changes: Any) -> tuple[str, ...]:
    return eks_options(**{"repairs": True, "nvidia": True, "warm_nodes": None, "labels": {}, **changes})


_CASES: dict[str, tuple[tuple[str, ...], dict[str, Any], dict[str, Any]]] = {
    "new": (_options(), {}, {"nodeRepairConfig": _REPAIR}),
    "as it is": (_options(), {"nodeRepairConfig": {**_REPAIR, "more": 1}, "labels": {"team": "a"}}, {}),
    "in another order": (
        _options(),
        {"nodeRepairConfig": {**_REPAIR, "nodeRepairConfigOverrides": _REPAIR["nodeRepairConfigOverrides"][::-1]}},
        {},
    ),
    "nothing is known": ((), {"nodeRepairConfig": {"enabled": True}}, {}),
    "no repair": (_options(repairs=False), {}, {}),
    "repair ends": (
        _options(repairs=False),
        {"nodeRepairConfig": _REPAIR},
        {"nodeRepairConfig": {"enabled": False}},
    ),
    "a warm pool": (_options(repairs=False, warm_nodes=2), {}, {"warmPoolConfig": _WARM}),
    "a larger warm pool": (
        _options(repairs=False, warm_nodes=2),
        {"warmPoolConfig": {**_WARM, "maxGroupPreparedCapacity": 1}},
        {"warmPoolConfig": _WARM},
    ),
    "no warm pool any more": (
        _options(repairs=False),
        {"warmPoolConfig": _WARM},
        {"warmPoolConfig": {"enabled": False}},
    ),
    "sharing": (
        _options(repairs=False, labels=_SHARED),
        {"labels": _OTHER},
        {"labels": {"addOrUpdateLabels": _SHARED, "removeLabels": ["nvidia.com/device-plugin.config"]}},
    ),
    "sharing as it is": (_options(repairs=False, labels=_SHARED), {"labels": {**_SHARED, "team": "a"}}, {}),
}


@pytest.mark.parametrize(("options", "described", "expected"), _CASES.values(), ids=_CASES)
def test_what_differs_is_sent(options: tuple[str, ...], described: dict[str, Any], expected: dict[str, Any]) -> None:
    assert changed_configuration(options, described) == expected


def test_a_broken_gpu_is_replaced_and_a_broken_job_is_left_alone() -> None:
    assert (_REPAIR["maxParallelNodesRepairedCount"], _REPAIR["maxUnhealthyNodeThresholdCount"]) == (1, 4)
    actions = {each["nodeUnhealthyReason"]: each["repairAction"] for each in _REPAIR["nodeRepairConfigOverrides"]}
    assert actions == {
        **dict.fromkeys(("NvidiaXID64Error", "NvidiaXID74Error", "NvidiaXID79Error"), "Replace"),
        **dict.fromkeys((f"NvidiaXID{code}Error" for code in (48, 95, 119, 120, 140)), "Reboot"),
        **dict.fromkeys((f"NvidiaXID{code}Error" for code in (13, 31, 63, 94, 121)), "NoAction"),
        "DCGMError": "NoAction",
    }
    assert all(len(each) == 4 for each in _REPAIR["nodeRepairConfigOverrides"])


def test_nodes_without_nvidia_gpus_are_repaired_as_eks_does() -> None:
    assert "nodeRepairConfigOverrides" not in node_repair_config(enabled=True, nvidia=False)
