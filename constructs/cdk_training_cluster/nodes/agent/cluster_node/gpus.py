"""What NVIDIA's driver says of the GPUs, through its management library, which nvidia-smi reads too."""

from __future__ import annotations

import json
import os
import sys
from typing import NamedTuple

from .programs import ask

# Without a process that keeps the driver loaded, it sets every GPU up first.
_SECONDS = 60
_ASK_LIBRARY = "import importlib, sys; sys.path[:] = sys.argv[2:]; importlib.import_module(sys.argv[1]).main()"

NOT_STARTED, IN_PROGRESS = "not started", "in progress"


class Gpu(NamedTuple):
    """One GPU; what its driver does not say is None.

    Attributes:
        number: Its number.
        name: Its model as the driver spells it.
        serial: Its serial number; empty where it has none.
        pci: Its PCI address as in sysfs: `0000:53:00.0`.
        uncorrected: Uncorrected ECC errors since the driver was loaded.
        remap_pending: Whether rows of its memory wait for a reset to be remapped.
        remap_failed: Whether rows of its memory could not be remapped.
        links: How many of its NVLinks are active.
        divided: Whether it is in MIG mode.
        slow: Codes of the fault table for why its clock is lowered now.
        sram_over: Whether its SRAM has had more uncorrectable errors than NVIDIA's threshold.
        link_errors: Errors that its NVLinks have counted, by their kind; empty where it counts none.
        recovery: What it asks for to recover from a fault; empty: nothing, or what `remap_pending` is for.
        fabric: Why it is not registered with the fabric of NVSwitch; empty where it is, None also where it has none.
    """

    number: int
    name: str
    serial: str = ""
    pci: str = ""
    uncorrected: int | None = None
    remap_pending: bool | None = None
    remap_failed: bool | None = None
    links: int | None = None
    divided: bool | None = None
    slow: list[str] | None = None
    sram_over: bool | None = None
    link_errors: dict[str, int] = {}  # noqa: RUF012 - read only
    recovery: str | None = None
    fabric: str | None = None


class Reading(NamedTuple):
    """What the driver said.

    Attributes:
        driver: The driver's version; empty where it is not known.
        gpus: The GPUs that answer.
        troubles: A sentence for each GPU that does not, or for all of them.
    """

    driver: str
    gpus: list[Gpu]
    troubles: list[str]


def read_gpus() -> Reading:
    """Ask the driver for every GPU."""
    command = [sys.executable, "-IS", "-c", _ASK_LIBRARY, f"{__package__}.nvml", *sys.path]
    answer = ask(command, _SECONDS)
    if answer.is_late:
        # The CPUs may have been busy. `ask` starts no second process where the first one hangs in the driver.
        answer = ask(command, _SECONDS)
    if not answer.succeeded:
        load = f"the load average is {os.getloadavg()[0]:.0f} on {os.cpu_count()} CPUs"
        why = f"it did not in {_SECONDS} seconds; {load}" if answer.is_late else answer.trouble
        return Reading("", [], [f"NVIDIA's driver does not answer: {why}"])
    found = json.loads(answer.text)
    return Reading(found["driver"], [Gpu(**gpu) for gpu in found["gpus"]], found["troubles"])


def sysfs_address(address: str) -> str:
    """Return a PCI address as sysfs has it.

    Args:
        address: As the driver has it, such as `00000000:53:00.0`.
    """
    domain, _, rest = address.strip().lower().partition(":")
    return f"{domain[-4:]}:{rest}"
