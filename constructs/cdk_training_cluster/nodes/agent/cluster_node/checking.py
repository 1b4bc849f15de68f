"""What a check of a node finds, and the data that it is compared with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

from cluster_contract.faults import FAULTS, FaultAction, FaultKind

FLOORS: dict[str, Any] = json.loads(Path(__file__).with_name("floors.json").read_text(encoding="utf-8"))
"""What nodes of each type must reach, and where each figure comes from."""

WAITS_FOR_THE_JOB = "remap_pending"
"""Jobs go on with it and new ones may start, and the reboot that ends it waits until none runs.

https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/error-recovery-and-response-flags.html
"""


class Check(NamedTuple):
    """What one check found.

    Attributes:
        name: Its name; where it is a code of the fault table, that says what ends the fault.
        passed: Whether all is well; what cannot be looked at on this node passes, and `found` says why.
        found: What was found, in a sentence without its full stop.
        floor: What must be found. Empty: there is no floor.
        provisional: Whether its floor was never measured, so that it fails no node.
        device: The device that fails, such as a GPU's PCI address. Empty: the whole node.
    """

    name: str
    passed: bool
    found: str
    floor: str = ""
    provisional: bool = False
    device: str = ""

    @property
    def fails(self) -> bool:
        """Whether the node fails by it."""
        return self.is_fault and self.action is not FaultAction.OBSERVE

    @property
    def is_fault(self) -> bool:
        """Whether it is to be reported: the watchdog reports what waits for the job when there is none."""
        return not self.passed and not self.provisional and self.name != WAITS_FOR_THE_JOB

    @property
    def action(self) -> FaultAction | None:
        """What ends the fault, by the fault table. None: an operator has to look."""
        row = FAULTS.get((FaultKind.CHECK, self.name))
        return None if row is None else row.action

    @property
    def sentence(self) -> str:
        """What an operator reads."""
        if self.passed or self.fails:
            return f"{self.name}: {self.found}" + (f"; at least {self.floor} is expected" if self.floor else "")
        below = f", below the provisional floor of {self.floor}" if self.floor else ""
        return f"{self.name}: {self.found}{below} (the node passes)"


def counted(number: int, noun: str) -> str:
    """Return a count with its noun: `1 GPU`, `8 GPUs`.

    Args:
        number: The count.
        noun: The noun in the singular.
    """
    return f"{number} {noun}{'' if number == 1 else 's'}"


def not_checked(name: str, why: str) -> Check:
    """Return a check that could not be made on this node.

    Args:
        name: Its name.
        why: Why not.
    """
    return Check(name, passed=True, found=f"not checked: {why}")


def verdict(name: str, troubles: list[str], fine: str, *, floor: str = "", device: str = "") -> Check:
    """Return a check that passes without troubles.

    Args:
        name: Its name.
        troubles: What is wrong.
        fine: What was found where nothing is.
        floor: What must be found. Default: - there is no floor.
        device: The device that fails. Default: - the whole node.
    """
    return Check(name, not troubles, "; ".join(troubles) or fine, floor, device=device if troubles else "")
