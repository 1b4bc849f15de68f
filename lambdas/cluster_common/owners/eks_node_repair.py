"""What EKS does about a node that its monitoring agent reports as unhealthy."""

from collections.abc import Mapping
from typing import Any

from cluster_contract.faults import FaultAction, FaultKind, fault_of

_CONDITION = "AcceleratedHardwareReady"

# Only managed node groups reboot.
# https://docs.aws.amazon.com/eks/latest/userguide/node-repair.html
_ACTIONS: Mapping[FaultAction, str] = {
    FaultAction.REPLACE: "Replace",
    FaultAction.REBOOT: "Reboot",
    FaultAction.OBSERVE: "NoAction",
    FaultAction.APPLICATION: "NoAction",
}

# Those whose reasons EKS documents: it may take no others. Left to EKS, the errors of jobs (13, 31) reboot the node.
# https://docs.aws.amazon.com/eks/latest/userguide/node-health-nma.html#nvidia-xid-codes
_REPORTED_XIDS = (13, 31, 48, 63, 64, 74, 79, 94, 95, 119, 120, 121, 140)

# EKS counts no repeats: a GPU that has fallen off the bus or has lost its links is not given a second time.
_REPLACED_AT_ONCE = (74, 79)

# Monitoring that is broken is no broken GPU.
# https://github.com/aws/containers-roadmap/issues/2555
_UNREACHABLE_DCGM = "DCGMError"

# A gang has ended with its node: after five minutes in place of EKS's ten the other nodes wait for it no longer.
_WAIT_MINUTES = 5

_MOST_UNHEALTHY = 4
"""How many nodes of a group may be unhealthy at once and are repaired, one after the other.

EKS's own limit is a share, 20 % in groups of more than five nodes: of 8 it repairs one, and of 450 it replaces 90,
also for a fault of the image or driver that a new node has as well. Single faults seldom meet: four at once are
repaired in a group of any size; five have a common cause, which an operator has to find.

Source: https://docs.aws.amazon.com/eks/latest/userguide/node-repair.html
"""


def node_repair_config(*, enabled: bool, nvidia: bool) -> dict[str, Any]:
    """Return what a node group says of the repair of its nodes.

    Args:
        enabled: Whether EKS repairs them.
        nvidia: Whether they have NVIDIA GPUs.

    Source: https://docs.aws.amazon.com/eks/latest/APIReference/API_NodeRepairConfig.html
    """
    if not enabled:
        return {"enabled": False}
    # As elsewhere, one node of a node group at a time: EKS sets no count of its own.
    config = {"enabled": True, "maxParallelNodesRepairedCount": 1, "maxUnhealthyNodeThresholdCount": _MOST_UNHEALTHY}
    return {**config, "nodeRepairConfigOverrides": _overrides()} if nvidia else config


def _overrides() -> list[dict[str, Any]]:
    actions = {
        f"NvidiaXID{code}Error": _ACTIONS[fault_of(FaultKind.XID, str(code)).action] for code in _REPORTED_XIDS
    }
    actions |= dict.fromkeys([f"NvidiaXID{code}Error" for code in _REPLACED_AT_ONCE], "Replace")
    actions[_UNREACHABLE_DCGM] = "NoAction"
    return [
        {
            "nodeMonitoringCondition": _CONDITION,
            "nodeUnhealthyReason": reason,
            "minRepairWaitTimeMins": _WAIT_MINUTES,
            "repairAction": action,
        }
        for reason, action in actions.items()
    ]
