"""Which Xid errors of NVIDIA's driver a node recovers from, and how."""

from collections.abc import Mapping
from enum import Enum


class FaultAction(Enum):
    """What ends a fault."""

    REPLACE = "replace"
    """Another node: the GPU or its links are broken."""

    REBOOT = "reboot"
    """A reboot, which resets the GPU."""

    OBSERVE = "observe"
    """Nothing yet: the driver has mended it, and repeats are a reason to replace the node."""

    APPLICATION = "application"
    """Another program: the job itself did something wrong."""


# What NVIDIA's catalog tells an operator to do, and for 63 and 79 what EC2 recommends.
# https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html
_CODES: Mapping[FaultAction, tuple[int, ...]] = {
    FaultAction.REPLACE: (54, 64, 74, 79, 142),
    FaultAction.REBOOT: (46, 48, 62, 95, 109, 110, 119, 120, 136, 140, 143, 151, 155, 156, 158, 168, 169),
    FaultAction.OBSERVE: (63, 92, 94, 121, 154),
    FaultAction.APPLICATION: (8, 11, 13, 31, 32, 43, 45, 68, 69, 137),
}

XID_ACTIONS: Mapping[int, FaultAction] = {code: action for action, codes in _CODES.items() for code in codes}
"""What to do about each Xid."""
