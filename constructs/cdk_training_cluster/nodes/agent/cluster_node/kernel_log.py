"""The kernel's log: its lines as they come, each once, and the faults of devices that they speak of."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from cluster_contract.faults import FaultKind

PATH = "/dev/kmsg"
_RECORD_BYTES = 8192
# https://www.kernel.org/doc/Documentation/ABI/testing/dev-kmsg
_KERNEL, _LEVEL_BITS, _WHOLE = 0, 3, "-"

# Each pattern matches from the start of a record, and its fixed start is longer than the 15 characters of a process
# name: the kernel begins the record of a program that crashed with its name, and puts its file name into the record.
_ADDRESS = r"(?:[0-9a-fA-F]{4,8}:)?[0-9a-fA-F]{2}:[0-9a-fA-F]{2}(?:\.[0-9a-fA-F])?"
# NVRM: Xid (PCI:0000:9b:00): 119, pid=2024380, …; in MIG mode with the GPU instance: (PCI:0000:41:00 GPU-I:05)
# https://docs.nvidia.com/deploy/xid-errors/working-with-xid-errors.html
_XID = re.compile(rf"NVRM: Xid \((?:PCI:)?({_ADDRESS})(?: GPU-I:\d+)?\): (\d+)(?:, (.*)|)\Z", re.DOTALL)
# nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 12028, Non-fatal, Link 32 egress non-posted PRIV error (First)
# https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide/index.html
_SXID = re.compile(rf"nvidia-nvswitch\d+: SXid \(PCI:({_ADDRESS})\): (\d+)(?:, (.*)|)\Z", re.DOTALL)
# NVRM: GPU 0000:91:00.0: GPU has fallen off the bus.
# NVRM: The NVIDIA GPU 0000:b3:00.0\nNVRM: (PCI ID: …) installed in this system has\nNVRM: fallen off the bus …
_FALLEN = re.compile(
    rf"NVRM: (?:GPU (?:at )?(?:PCI:)?({_ADDRESS}):? (?:GPU )?has |The NVIDIA GPU ({_ADDRESS})\s+(?:NVRM: )?"
    r"\(PCI ID: [0-9a-fA-F:]+\)\s+installed in this system has\s+(?:NVRM: )?|)fallen off the bus\b"
)
_FALLEN_XID = "79"
# NEURON_HW_ERR=SRAM_UNCORRECTABLE_ERROR instance-id=… nd-id=0 nc-id=0 serial-num=19fcda00f5ff6eb9 action=…
# A date may come first.
# https://awsdocs-neuron.readthedocs-hosted.com/en/latest/neuron-runtime/nrt-troubleshoot.html
_NEURON = re.compile(r"(?:\d{4}-[\w:.,+ -]{6,40} )?NEURON_HW_ERR=([A-Z_]+) instance-id=(?:.*?\bnd-id=(\d+)\b)?")


class Sighting(NamedTuple):
    """What one line says of a device.

    Attributes:
        kind: Who reports it.
        code: The error's code.
        device: The device, such as `0000:9b:00`; empty where the line names none.
        text: What the line says beside.
    """

    kind: FaultKind
    code: str
    device: str
    text: str


def sighting(line: str) -> Sighting | None:
    """Return the fault that a line of a driver reports. None: it reports none.

    Args:
        line: The whole record, in which a line end is a character like any other.
    """
    for kind, pattern in ((FaultKind.XID, _XID), (FaultKind.SXID, _SXID)):
        found = pattern.match(line)
        if found:
            return Sighting(kind, found[2], device_address(found[1]), found[3] or "")
    found = _FALLEN.match(line)
    if found:
        address = found[1] or found[2]
        return Sighting(FaultKind.XID, _FALLEN_XID, device_address(address) if address else "", line)
    found = _NEURON.match(line)
    if found:
        return Sighting(FaultKind.NEURON, found[1], f"neuron{found[2]}" if found[2] else "", line)
    return None


def device_address(address: str) -> str:
    """Return a PCI address as Xids have it: `0000:9b:00`, without its function.

    Args:
        address: The address as a driver has it, such as `00000000:9B:00.0`.
    """
    parts = address.lower().partition(".")[0].split(":")
    domain = parts[0] if len(parts) > 2 else "0"  # noqa: PLR2004 # domain, bus and slot
    return ":".join([f"{int(domain, 16):04x}", *parts[-2:]])


class KernelLog:
    """The lines of the kernel since this boot, without those that were read before.

    Source: https://www.kernel.org/doc/Documentation/ABI/testing/dev-kmsg
    """

    def __init__(self, descriptor: int, *, after: int = -1, read: Callable[[int, int], bytes] = os.read) -> None:
        """Begin with the oldest line that the kernel still has.

        Args:
            descriptor: The open device, which does not block.
            after: The number of the last line that was read in this boot. Default: - none was.
            read: How a record is read. Default: - by the operating system.
        """
        self.last: int = after
        self.lost: int = 0
        self._descriptor, self._read = descriptor, read

    def fileno(self) -> int:
        """Return the device, for `poll`."""
        return self._descriptor

    def lines(self) -> Iterator[str]:
        """Yield the kernel's own whole lines that have come since the last time; programs write others."""
        while True:
            try:
                record = self._read(self._descriptor, _RECORD_BYTES)
            except BlockingIOError:
                return
            except BrokenPipeError:
                # The kernel overwrote lines before they were read, and goes on with the oldest that is left.
                self.lost += 1
                continue
            if not record:
                return
            number, is_driver, text = _parse(record)
            if number > self.last:
                self.last = number
                if is_driver:
                    yield text


def open_kernel_log(*, after: int = -1, path: str = PATH) -> KernelLog:
    """Open the kernel's log.

    Args:
        after: The number of the last line that was read in this boot. Default: - none was.
        path: The device. Default: - the kernel's.
    """
    return KernelLog(os.open(path, os.O_RDONLY | os.O_NONBLOCK), after=after)


def _parse(record: bytes) -> tuple[int, bool, str]:
    # 6,339,5140900,-;NVRM: loading …, and lines with a blank before them that name a device. The first number is a
    # facility and a level, as syslog has them; the kernel gives another facility to what a program writes. The flag c
    # is that of a fragment, which a process name can begin too.
    head, _, rest = record.decode("utf-8", "replace").partition(";")
    text = rest.partition("\n")[0]
    prefix, number, _, flags = head.split(",")[:4]
    unescaped = re.sub(r"\\x([0-9a-f]{2})", lambda found: chr(int(found[1], 16)), text)
    return int(number), int(prefix) >> _LEVEL_BITS == _KERNEL and flags == _WHOLE, unescaped
