"""One reading of the node's devices: the checks that a running job does not notice, and how fast counters grow."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import NamedTuple

from cluster_contract.faults import FAULTS, FaultKind

from .accelerators import check_gpus, check_neuron_devices
from .checking import Check
from .gpus import Gpu, read_gpus
from .kernel_log import device_address
from .machine import check_efa_devices
from .node_facts import Facts
from .rates import Rates, efa_errors

_NVML_SECONDS = 60
# The commands of nvidia-smi take some seconds of a core.
_NVIDIA_SMI_SECONDS = 900
# What DCGM's health check fails at: https://github.com/NVIDIA/DCGM/blob/master/modules/health/DcgmGpuHardwareLimits.h
_MOST_CRC_ERRORS_A_SECOND = 100
_CRC_ERRORS = ("NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL", "NVML_FI_DEV_NVLINK_CRC_DATA_ERROR_COUNT_TOTAL")
_RETRIES = ("NVML_FI_DEV_NVLINK_REPLAY_ERROR_COUNT_TOTAL", "NVML_FI_DEV_NVLINK_RECOVERY_ERROR_COUNT_TOTAL")
# https://docs.nvidia.com/deploy/nvml-api/group__nvmlClocksEventReasons.html
_REASONS = {
    "thermal": ("nvmlClocksEventReasonSwThermalSlowdown", "nvmlClocksEventReasonHwThermalSlowdown"),
    "power_brake": ("nvmlClocksEventReasonHwPowerBrakeSlowdown",),
}


class Found(NamedTuple):
    """What one reading found.

    Attributes:
        readable: The checks that could be made.
        wrong: Code, device and text of each check that found something wrong.
        serials: The serials of GPUs by device.
        trouble: What could not be read; empty where everything was.
    """

    readable: frozenset[str]
    wrong: list[tuple[str, str, str]]
    serials: dict[str, str]
    trouble: str


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
        self._has_nvml = find_spec("pynvml") is not None

    @property
    def seconds(self) -> float:
        """How long to wait for the next reading."""
        return _NVML_SECONDS if self._has_nvml or not self.facts.gpus else _NVIDIA_SMI_SECONDS

    def read(self) -> Found:
        """Read every device once."""
        facts, now = self.facts, self._clock()
        reading = read_gpus() if facts.gpus else None
        gpus = reading.gpus if reading else []
        checks: list[Check] = []
        if reading:
            checks += check_gpus(facts, reading)
        checks += [*check_neuron_devices(facts), *check_efa_devices(facts)]
        wrong = [
            (check.name, _device(check.device), check.found)
            for check in checks
            if not check.passed
            and not check.provisional
            # One without a row is for operators: `cluster-node verify` says it.
            and (FaultKind.CHECK, check.name) in FAULTS
        ]
        readable = {check.name for check in checks if not check.found.startswith("not checked")}
        if facts.efa_devices:
            readable.add("efa_errors")
            wrong += [("efa_errors", device, text) for device, text in efa_errors(self._rates, now)]
        if gpus and self._has_nvml:
            readable |= {*_REASONS, "nvlink_errors", "sram_threshold"}
            wrong += _through_nvml(import_module("pynvml"), gpus, self._rates, now)
        return Found(
            frozenset(readable),
            wrong,
            {device_address(gpu.pci): gpu.serial for gpu in gpus if gpu.serial},
            "; ".join(reading.troubles) if reading else "",
        )


def _device(name: str) -> str:
    return device_address(name) if ":" in name else name


def _through_nvml(nvml: ModuleType, gpus: list[Gpu], rates: Rates, now: float) -> Iterator[tuple[str, str, str]]:
    """Yield what nvidia-smi does not say in a form that could be relied on."""
    nvml.nvmlInit()
    try:
        for gpu in gpus:
            handle, device = nvml.nvmlDeviceGetHandleByIndex(gpu.number), device_address(gpu.pci)
            for code, text in (*_slow_clocks(nvml, handle), *_bad_memory(nvml, handle)):
                yield code, device, text
            for text in _link_errors(rates.growth(device, _link_counters(nvml, handle), now)):
                yield "nvlink_errors", device, text
    except nvml.NVMLError as error:
        raise OSError(f"NVIDIA's driver does not answer: {error}") from error
    finally:
        nvml.nvmlShutdown()


def _slow_clocks(nvml: ModuleType, handle: object) -> Iterator[tuple[str, str]]:
    try:
        reasons = nvml.nvmlDeviceGetCurrentClocksEventReasons(handle)
    except nvml.NVMLError:
        return
    for code, names in _REASONS.items():
        if any(reasons & getattr(nvml, name) for name in names):
            yield code, "its clock is lowered now"


def _bad_memory(nvml: ModuleType, handle: object) -> Iterator[tuple[str, str]]:
    try:
        status = nvml.c_nvmlEccSramErrorStatus_v1_t()
        nvml.nvmlDeviceGetSramEccErrorStatus(handle, nvml.byref(status))
    except (AttributeError, nvml.NVMLError):
        # GPUs before Hopper and older libraries have none.
        return
    if status.bThresholdExceeded:
        yield "sram_threshold", "its SRAM has had more uncorrectable errors than the threshold"


def _link_counters(nvml: ModuleType, handle: object) -> dict[str, int]:
    names = (*_CRC_ERRORS, *_RETRIES)
    try:
        values = nvml.nvmlDeviceGetFieldValues(handle, [getattr(nvml, name) for name in names])
    except nvml.NVMLError:
        return {}
    return {name: value.value.ullVal for name, value in zip(names, values) if value.nvmlReturn == nvml.NVML_SUCCESS}


def _link_errors(growth: tuple[float, dict[str, int]]) -> Iterator[str]:
    minutes, grown = growth
    if minutes <= 0:
        return
    crc = sum(grown.get(name, 0) for name in _CRC_ERRORS) / minutes / 60
    retries = sum(grown.get(name, 0) for name in _RETRIES)
    if crc >= _MOST_CRC_ERRORS_A_SECOND:
        yield f"its NVLinks count {crc:.0f} CRC errors a second"
    if retries:
        yield f"its NVLinks counted {retries} replays and recoveries in {minutes:.1f} minutes"
