"""One reading of the node's devices: the checks that a running job does not notice, and how fast counters grow."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

from cluster_contract.faults import FAULTS, FaultKind

from .accelerators import check_gpus, check_neuron_devices
from .checking import Check
from .evidence import Evidence, evidence
from .gpus import Gpu, read_gpus
from .kernel_log import device_address
from .machine import check_efa_devices
from .node_facts import Facts
from .rates import Rates, efa_errors

# What DCGM's health check fails at: https://github.com/NVIDIA/DCGM/blob/master/modules/health/DcgmGpuHardwareLimits.h
_MOST_CRC_ERRORS_A_SECOND = 100
_READINGS_TO_BE_SILENT = 10


class Found(NamedTuple):
    """What one reading found.

    Attributes:
        readable: The checks that could be made.
        wrong: Code, device and text of each check that found something wrong.
        serials: The serials of GPUs by device.
        trouble: What could not be read; empty where everything was.
        evidence: What the drivers say of the devices that lines of the kernel's log name.
    """

    readable: frozenset[str]
    wrong: list[tuple[str, str, str]]
    serials: dict[str, str]
    trouble: str
    evidence: Evidence = Evidence()


class Readings:
    """Reads the devices of a node, again and again."""

    def __init__(self, facts: Facts, *, clock: Callable[[], float] = time.monotonic) -> None:
        """Read nothing yet.

        Args:
            facts: What the node has when all is well.
            clock: The seconds that have passed. Default: - the machine's.
        """
        self.facts: Facts = facts
        self._clock, self._rates = clock, Rates()
        self._fabric_manager_ran = False
        self._silent = 0

    def read(self) -> Found:
        """Read every device once."""
        facts, now = self.facts, self._clock()
        reading = read_gpus() if facts.gpus else None
        gpus = reading.gpus if reading else []
        of_gpus = [*map(self._since_it_ran, check_gpus(facts, reading))] if reading else []
        others = [*check_neuron_devices(facts), *check_efa_devices(facts)]
        wrong = [
            (check.name, _device(check.device), check.found)
            for check in (*of_gpus, *others)
            if not check.passed
            and not check.provisional
            # One without a row is for operators: `cluster-node verify` says it.
            and (FaultKind.CHECK, check.name) in FAULTS
        ]
        # A GPU that does not answer may still have any fault that it had.
        whole = gpus if len(gpus) >= facts.gpus else []
        sure = [*others, *(of_gpus if whole else [])]
        readable = {check.name for check in sure if not check.found.startswith("not checked")}
        if whole:
            readable |= set.intersection(*(_known(gpu) for gpu in whole))
        # A driver that hangs may do so on every node of the image: nothing is repaired for it.
        self._silent = self._silent + 1 if reading and not gpus and not reading.driver else 0
        if self._silent >= _READINGS_TO_BE_SILENT:
            wrong.append(("gpu_silent", "", f"NVIDIA's driver did not answer {self._silent} times"))
        elif reading and not self._silent:
            readable.add("gpu_silent")
        if facts.efa_devices:
            readable.add("efa_errors")
            wrong += [("efa_errors", device, text) for device, text in efa_errors(self._rates, now)]
        for gpu in gpus:
            wrong += [(code, device_address(gpu.pci), text) for code, text in _wrong(gpu, self._rates, now)]
        return Found(
            frozenset(readable),
            wrong,
            {device_address(gpu.pci): gpu.serial for gpu in gpus if gpu.serial},
            "; ".join(reading.troubles) if reading else "",
            evidence(facts, reading),
        )

    def _since_it_ran(self, check: Check) -> Check:
        """Return a check, that of the fabric manager as one that it has stopped where the image has one that fits."""
        if not check.name.startswith("fabric_manager") or check.found.startswith("not checked"):
            return check
        self._fabric_manager_ran |= check.passed
        return check._replace(name="fabric_manager_stopped") if self._fabric_manager_ran else check


def _device(name: str) -> str:
    return device_address(name) if ":" in name else name


def _known(gpu: Gpu) -> set[str]:
    """Return the checks that only the management library can make, where it could."""
    clocks = {"thermal", "power_brake"} if gpu.slow is not None else set()
    return clocks | ({"nvlink_errors"} if gpu.link_errors else set())


def _wrong(gpu: Gpu, rates: Rates, now: float) -> Iterator[tuple[str, str]]:
    for code in gpu.slow or ():
        yield code, "its clock is lowered now"
    minutes, grown = rates.growth(gpu.pci, gpu.link_errors, now)
    if minutes <= 0:
        return
    crc, retries = grown.get("CRC errors", 0) / minutes / 60, grown.get("retries", 0)
    if crc >= _MOST_CRC_ERRORS_A_SECOND:
        yield "nvlink_errors", f"its NVLinks count {crc:.0f} CRC errors a second"
    if retries:
        yield "nvlink_errors", f"its NVLinks counted {retries} replays and recoveries in {minutes:.1f} minutes"
