"""The second source for a line of the kernel's log: NVIDIA's management library, and the files of the Neuron driver.

A line alone replaces no node: the Neuron driver writes any text there that a job gives it, and other drivers may put
names of files and processes into theirs.
"""

from __future__ import annotations

from typing import NamedTuple

from cluster_contract.faults import FaultKind

from .accelerators import lacks_neuron_devices, uncorrected_neuron_devices
from .gpus import IN_PROGRESS, NOT_STARTED, Gpu, Reading
from .kernel_log import device_address
from .node_facts import Facts


class Evidence(NamedTuple):
    """The answer of the second source; a source that does not answer confirms nothing.

    Attributes:
        present: The devices that answer, such as `0000:9b:00`.
        broken: The devices with a fault.
        missing: Whether the node has fewer devices than its instance type.
    """

    present: frozenset[str] = frozenset()
    broken: frozenset[str] = frozenset()
    missing: bool = False

    def confirms(self, kind: FaultKind, device: str) -> bool:
        """Say whether the device of a line is broken, or gone.

        Args:
            kind: The driver of the line. Of an NVSwitch, any GPU that is broken or gone counts.
            device: The device of the line. Empty: it names none.
        """
        if kind is FaultKind.SXID:
            return self.missing or bool(self.broken)
        return device in self.broken or (self.missing and device not in self.present)


def evidence(facts: Facts, reading: Reading | None) -> Evidence:
    """Return the answer of the second source.

    Args:
        facts: The facts about the node's instance type.
        reading: The reading of NVIDIA's library. None: there is none.
    """
    if facts.neuron_devices:
        return Evidence(broken=uncorrected_neuron_devices(), missing=lacks_neuron_devices(facts))
    # A driver that does not answer at all may do so on each node of the image.
    if reading is None or not reading.driver:
        return Evidence()
    gpus = {device_address(gpu.pci): gpu for gpu in reading.gpus if gpu.pci}
    broken = frozenset(device for device, gpu in gpus.items() if _is_broken(gpu))
    return Evidence(frozenset(gpus), broken, len(reading.gpus) < facts.gpus)


def _is_broken(gpu: Gpu) -> bool:
    unregistered = not gpu.divided and gpu.fabric not in (None, "", NOT_STARTED, IN_PROGRESS)
    return bool(gpu.remap_failed or gpu.remap_pending or gpu.sram_over or gpu.recovery or unregistered)
