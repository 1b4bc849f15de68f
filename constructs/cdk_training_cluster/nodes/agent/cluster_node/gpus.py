"""What NVIDIA's driver says of the GPUs: through nvidia-ml-py where the image has it, else through nvidia-smi."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple

from .node_facts import read_text
from .programs import ask

_SECONDS = 30
# "GPU has fallen off the bus or has otherwise become inaccessible", after which it may list no other GPU either.
# https://docs.nvidia.com/deploy/nvidia-smi/index.html
_LOST = 15
_FIELDS = (
    "index",
    "name",
    "uuid",
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
        processes: How many processes compute on it.
        divided: Whether it is in MIG mode.
    """

    number: int
    name: str
    serial: str = ""
    pci: str = ""
    uncorrected: int | None = None
    remap_pending: bool | None = None
    remap_failed: bool | None = None
    links: int | None = None
    processes: int | None = None
    divided: bool = False


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
    try:
        nvml = import_module("pynvml")
    except ImportError:
        return _through_nvidia_smi()
    try:
        return _through_nvml(nvml)
    except nvml.NVMLError as error:
        return Reading("", [], [f"NVIDIA's driver does not answer: {error}"])


def sysfs_address(address: str) -> str:
    """Return a PCI address as sysfs has it.

    Args:
        address: As the driver has it, such as `00000000:53:00.0`.
    """
    domain, _, rest = address.strip().lower().partition(":")
    return f"{domain[-4:]}:{rest}"


def _through_nvml(nvml: ModuleType) -> Reading:
    nvml.nvmlInit()
    try:
        driver = _text(nvml.nvmlSystemGetDriverVersion())
        gpus, troubles = [], []
        for number in range(nvml.nvmlDeviceGetCount()):
            try:
                gpus.append(_nvml_gpu(nvml, number, nvml.nvmlDeviceGetHandleByIndex(number)))
            except nvml.NVMLError as error:
                troubles.append(f"GPU {number} does not answer: {error}")
        return Reading(driver, gpus, troubles)
    finally:
        nvml.nvmlShutdown()


def _nvml_gpu(nvml: ModuleType, number: int, handle: object) -> Gpu:
    """Ask for all of one GPU: https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html."""

    def known(function: str, *arguments: object) -> Any:  # noqa: ANN401 - each function returns something else
        # What a model lacks is unknown; any other error is the GPU's.
        unknown = (nvml.NVML_ERROR_NOT_SUPPORTED, nvml.NVML_ERROR_FUNCTION_NOT_FOUND, nvml.NVML_ERROR_NO_PERMISSION)
        try:
            return getattr(nvml, function)(handle, *arguments)
        except nvml.NVMLError as error:
            if error.value in unknown:
                return None
            raise

    rows = known("nvmlDeviceGetRemappedRows")
    processes = known("nvmlDeviceGetComputeRunningProcesses")
    mig = known("nvmlDeviceGetMigMode")
    return Gpu(
        number=number,
        name=_text(nvml.nvmlDeviceGetName(handle)),
        serial=_text(known("nvmlDeviceGetSerial") or ""),
        pci=sysfs_address(_text(nvml.nvmlDeviceGetPciInfo(handle).busId)),
        uncorrected=known(
            "nvmlDeviceGetTotalEccErrors", nvml.NVML_MEMORY_ERROR_TYPE_UNCORRECTED, nvml.NVML_VOLATILE_ECC
        ),
        remap_pending=None if rows is None else bool(rows[2]),
        remap_failed=None if rows is None else bool(rows[3]),
        links=_active_links(nvml, handle),
        processes=None if processes is None else len(processes),
        divided=mig is not None and mig[0] == nvml.NVML_DEVICE_MIG_ENABLE,
    )


def _active_links(nvml: ModuleType, handle: object) -> int | None:
    states = []
    for link in range(nvml.NVML_NVLINK_MAX_LINKS):
        try:
            states.append(nvml.nvmlDeviceGetNvLinkState(handle, link))
        except nvml.NVMLError as error:
            # A GPU has fewer links than the library knows, or none.
            if error.value in (nvml.NVML_ERROR_NOT_SUPPORTED, nvml.NVML_ERROR_INVALID_ARGUMENT):
                break
            raise
    return sum(state == nvml.NVML_FEATURE_ENABLED for state in states) if states else None


def _text(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


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
    busy = ask(["nvidia-smi", "--query-compute-apps=gpu_uuid", "--format=csv,noheader"], _SECONDS)
    gpus = [
        Gpu(
            number=int(row[0]),
            name=row[1],
            serial=row[3] if row[3].isdigit() and int(row[3]) else "",
            pci=sysfs_address(row[4]),
            uncorrected=int(row[6]) if row[6].isdigit() else None,
            remap_pending=_smi_flag(row[7]),
            remap_failed=_smi_flag(row[8]),
            links=links.get(int(row[0])),
            processes=busy.text.count(row[2]) if busy.succeeded else None,
            divided=row[9] == "Enabled",
        )
        for row in whole
    ]
    driver = whole[0][5] if whole else (read_text("/sys/module/nvidia/version") or "").strip()
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
