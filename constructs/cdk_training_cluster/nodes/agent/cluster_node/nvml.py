"""What NVIDIA's management library says of the GPUs: https://docs.nvidia.com/deploy/nvml-api/index.html.

It is asked in a process of its own, since of a broken GPU it may never answer.
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from types import ModuleType
from typing import Any

from .gpus import IN_PROGRESS, NOT_STARTED, Gpu, Reading, sysfs_address

# https://docs.nvidia.com/deploy/nvml-api/group__nvmlClocksEventReasons.html
_REASONS = {
    "thermal": ("nvmlClocksEventReasonSwThermalSlowdown", "nvmlClocksEventReasonHwThermalSlowdown"),
    "power_brake": ("nvmlClocksEventReasonHwPowerBrakeSlowdown",),
}
# https://docs.nvidia.com/deploy/nvml-api/group__nvmlFieldValueEnums.html
_LINK_ERRORS = {
    "CRC errors": ("NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL", "NVML_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL"),
    "retries": ("NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL", "NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL"),
}

# https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/error-recovery-and-response-flags.html
_RECOVERIES = {
    "NVML_GPU_RECOVERY_ACTION_NONE": "",
    "NVML_GPU_RECOVERY_ACTION_GPU_RESET": "a reset",
    "NVML_GPU_RECOVERY_ACTION_NODE_REBOOT": "a reboot",
    "NVML_GPU_RECOVERY_ACTION_DRAIN_P2P": "the end of traffic between GPUs",
    "NVML_GPU_RECOVERY_ACTION_DRAIN_AND_RESET": "a reset",
    "NVML_GPU_RECOVERY_ACTION_BUS_RESET": "a reset of its bus",
    "NVML_GPU_RECOVERY_ACTION_SYSTEM_REBOOT": "a reboot",
}


def main() -> None:
    """Print a reading as JSON."""
    nvml = import_module("pynvml")
    try:
        reading = _read(nvml)
    except nvml.NVMLError as error:
        reading = Reading("", [], [f"NVIDIA's driver does not answer: {error}"])
    sys.stdout.write(json.dumps({**reading._asdict(), "gpus": [gpu._asdict() for gpu in reading.gpus]}))


def _read(nvml: ModuleType) -> Reading:
    nvml.nvmlInit()
    try:
        driver = _text(nvml.nvmlSystemGetDriverVersion())
        gpus, troubles = [], []
        for number in range(nvml.nvmlDeviceGetCount()):
            try:
                gpus.append(_gpu(nvml, number, nvml.nvmlDeviceGetHandleByIndex(number)))
            except nvml.NVMLError as error:
                troubles.append(f"GPU {number} does not answer: {error}")
        return Reading(driver, gpus, troubles)
    finally:
        nvml.nvmlShutdown()


def _gpu(nvml: ModuleType, number: int, handle: object) -> Gpu:
    """Ask for all of one GPU: https://docs.nvidia.com/deploy/nvml-api/group__nvmlDeviceQueries.html."""

    def known(function: str, *arguments: object) -> Any:  # noqa: ANN401 - each function returns something else
        try:
            return getattr(nvml, function)(handle, *arguments)
        except nvml.NVMLError as error:
            _raise_if_lost(nvml, error)
            return None

    rows = known("nvmlDeviceGetRemappedRows")
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
        divided=_is_divided(nvml, handle),
        slow=_why_slow(nvml, handle),
        sram_over=_sram_over(nvml, handle),
        link_errors=_link_errors(nvml, handle),
        recovery=_recovery(nvml, handle, remaps=bool(rows and rows[2])),
        fabric=_fabric(nvml, handle),
    )


def _raise_if_lost(nvml: ModuleType, error: Exception) -> None:
    """Raise the errors of a GPU that takes no job; with any other, only what was asked for is unknown.

    Models and drivers lack some of it, and fields of sound GPUs have `NVML_ERROR_UNKNOWN` too.
    """
    if getattr(error, "value", None) in (nvml.NVML_ERROR_GPU_IS_LOST, nvml.NVML_ERROR_RESET_REQUIRED):
        raise error


def _is_divided(nvml: ModuleType, handle: object) -> bool | None:
    try:
        return bool(nvml.nvmlDeviceGetMigMode(handle)[0] == nvml.NVML_DEVICE_MIG_ENABLE)
    except nvml.NVMLError as error:
        _raise_if_lost(nvml, error)
        # A model or a driver without MIG mode divides no GPU; of any other error the mode is unknown.
        has_none = error.value in (nvml.NVML_ERROR_NOT_SUPPORTED, nvml.NVML_ERROR_FUNCTION_NOT_FOUND)
        return False if has_none else None


def _active_links(nvml: ModuleType, handle: object) -> int | None:
    states = []
    for link in range(nvml.NVML_NVLINK_MAX_LINKS):
        try:
            states.append(nvml.nvmlDeviceGetNvLinkState(handle, link))
        except nvml.NVMLError as error:
            # A GPU has fewer links than the library knows, or none.
            if error.value in (nvml.NVML_ERROR_NOT_SUPPORTED, nvml.NVML_ERROR_INVALID_ARGUMENT):
                break
            _raise_if_lost(nvml, error)
            return None
    return sum(state == nvml.NVML_FEATURE_ENABLED for state in states) if states else None


def _why_slow(nvml: ModuleType, handle: object) -> list[str] | None:
    try:
        reasons = nvml.nvmlDeviceGetCurrentClocksEventReasons(handle)
    except nvml.NVMLError as error:
        _raise_if_lost(nvml, error)
        return None
    return [code for code, names in _REASONS.items() if any(reasons & getattr(nvml, name) for name in names)]


def _sram_over(nvml: ModuleType, handle: object) -> bool | None:
    try:
        status = nvml.c_nvmlEccSramErrorStatus_v1_t()
        nvml.nvmlDeviceGetSramEccErrorStatus(handle, nvml.byref(status))
    except nvml.NVMLError as error:
        # GPUs before Hopper and older drivers have none.
        _raise_if_lost(nvml, error)
        return None
    return bool(status.bThresholdExceeded)


def _recovery(nvml: ModuleType, handle: object, *, remaps: bool) -> str | None:
    try:
        [value] = nvml.nvmlDeviceGetFieldValues(handle, [nvml.NVML_FI_DEV_GET_GPU_RECOVERY_ACTION])
    except nvml.NVMLError as error:
        _raise_if_lost(nvml, error)
        return None
    if value.nvmlReturn != nvml.NVML_SUCCESS:
        return None
    # Of rows that wait to be remapped it is said too, with which jobs go on:
    # https://docs.nvidia.com/deploy/nvidia-smi/index.html
    if remaps and value.value.uiVal == nvml.NVML_GPU_RECOVERY_ACTION_DRAIN_AND_RESET:
        return ""
    known = {getattr(nvml, name): asks for name, asks in _RECOVERIES.items()}
    return known.get(value.value.uiVal)


def _fabric(nvml: ModuleType, handle: object) -> str | None:
    try:
        info = nvml.c_nvmlGpuFabricInfo_v2_t()
        nvml.nvmlDeviceGetGpuFabricInfoV(handle, nvml.byref(info))
    except nvml.NVMLError as error:
        # Drivers before version 535 have none.
        _raise_if_lost(nvml, error)
        return None
    # The status says something once the registration has ended.
    if info.state == nvml.NVML_GPU_FABRIC_STATE_COMPLETED:
        return "" if info.status == nvml.NVML_SUCCESS else f"error {info.status}"
    waits = {nvml.NVML_GPU_FABRIC_STATE_NOT_STARTED: NOT_STARTED, nvml.NVML_GPU_FABRIC_STATE_IN_PROGRESS: IN_PROGRESS}
    return waits.get(info.state)


def _link_errors(nvml: ModuleType, handle: object) -> dict[str, int]:
    fields = {getattr(nvml, name): what for what, names in _LINK_ERRORS.items() for name in names}
    try:
        values = nvml.nvmlDeviceGetFieldValues(handle, list(fields))
    except nvml.NVMLError:
        return {}
    counted: dict[str, int] = {}
    for what, value in zip(fields.values(), values):
        if value.nvmlReturn == nvml.NVML_SUCCESS:
            counted[what] = counted.get(what, 0) + value.value.ullVal
    return counted


def _text(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)
