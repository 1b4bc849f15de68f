"""What NVIDIA's driver says of the GPUs: through its management library, else through nvidia-smi."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from typing import NamedTuple

from .node_facts import read_text
from .programs import ask

MISSING = 3
"""How the process that asks the library ends where the node has none."""

_SECONDS = 30
# Without a process that keeps the driver loaded, it sets every GPU up first.
_LIBRARY_SECONDS = 60
_ASK_LIBRARY = "import importlib, sys; sys.path[:] = sys.argv[2:]; importlib.import_module(sys.argv[1]).main()"
# "GPU has fallen off the bus or has otherwise become inaccessible", after which it may list no other GPU either.
# https://docs.nvidia.com/deploy/nvidia-smi/index.html
_LOST = 15
_FIELDS = (
    "index",
    "name",
    "serial",
    "pci.bus_id",
    "driver_version",
    "ecc.errors.uncorrected.volatile.total",
    "remapped_rows.pending",
    "remapped_rows.failure",
    "mig.mode.current",
)
# What nvidia-smi prints as a field of a GPU that takes no job: NVML_ERROR_RESET_REQUIRED and NVML_ERROR_GPU_IS_LOST.
# "[Unknown Error]" is none of them: fields of sound GPUs have it too.
_ERRORS = ("[GPU requires reset]", "[GPU is lost]")


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
    """

    number: int
    name: str
    serial: str = ""
    pci: str = ""
    uncorrected: int | None = None
    remap_pending: bool | None = None
    remap_failed: bool | None = None
    links: int | None = None
    divided: bool = False
    slow: list[str] | None = None
    sram_over: bool | None = None
    link_errors: dict[str, int] = {}  # noqa: RUF012 - read only


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
    answer = ask([sys.executable, "-IS", "-c", _ASK_LIBRARY, f"{__package__}.nvml", *sys.path], _LIBRARY_SECONDS)
    if answer.status == MISSING:
        return _through_nvidia_smi()
    if not answer.succeeded:
        why = f"it did not in {_LIBRARY_SECONDS} seconds" if answer.is_late else answer.trouble
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


def _through_nvidia_smi() -> Reading:
    """Ask nvidia-smi: https://docs.nvidia.com/deploy/nvidia-smi/index.html."""
    answer = ask(["nvidia-smi", f"--query-gpu={','.join(_FIELDS)}", "--format=csv,noheader,nounits"], _SECONDS)
    if not answer.succeeded and answer.status != _LOST:
        return Reading("", [], [answer.trouble])
    rows = [_smi_row(line) for line in answer.text.splitlines() if line.strip()]
    whole = [row for row in rows if len(row) == len(_FIELDS)]
    # A GPU that is lost has a line of its own: "Unable to determine the device handle for GPU0000:53:00.0: …".
    troubles = [", ".join(row) for row in rows if len(row) != len(_FIELDS)]
    if answer.status == _LOST:
        troubles = troubles or [answer.trouble]
    # Of small instances and older drivers some of these commands know nothing.
    links = dict(_smi_links(ask(["nvidia-smi", "nvlink", "--status"], _SECONDS).text))
    gpus = [
        Gpu(
            number=int(row[0]),
            name=row[1],
            serial=row[2] if row[2].isdigit() and int(row[2]) else "",
            pci=sysfs_address(row[3]),
            uncorrected=int(row[5]) if row[5].isdigit() else None,
            remap_pending=_smi_flag(row[6]),
            remap_failed=_smi_flag(row[7]),
            links=links.get(int(row[0])),
            divided=row[8] == "Enabled",
        )
        for row in whole
    ]
    driver = whole[0][4] if whole else (read_text("/sys/module/nvidia/version") or "").strip()
    return Reading(driver, gpus, troubles)


def _smi_row(line: str) -> list[str]:
    """Return the fields of a GPU; of one that answers with an error only a sentence."""
    fields = [field.strip() for field in line.split(",")]
    error = next((field for field in fields if field in _ERRORS), None)
    return [f"GPU {fields[0]} does not answer: {error.strip('[]')}"] if error else fields


def _smi_flag(text: str) -> bool | None:
    return {"yes": True, "1": True, "no": False, "0": False}.get(text.lower())


def _smi_links(text: str) -> Iterator[tuple[int, int]]:
    for part in re.split(r"^GPU ", text, flags=re.MULTILINE)[1:]:
        # An active link has its speed, as in `Link 0: 26.562 GB/s`; another says `<inactive>`.
        if "Link " in part:
            yield int(part.partition(":")[0]), len(re.findall(r"Link \d+: [\d.]+ GB/s", part))
