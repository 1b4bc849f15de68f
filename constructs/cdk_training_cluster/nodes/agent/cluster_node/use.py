"""Whether jobs use the node: its accelerators, or Slurm's steps."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from .programs import ROOT

# A CUDA program holds the device of NVIDIA's unified memory, which those that only read the GPUs' state do not.
_HELD = re.compile(r"/dev/(?:nvidia-uvm|neuron\d+)")
# What holds them without being a job.
_NO_JOBS = frozenset(
    {
        *("nvidia-persiste", "nvidia-cuda-mps", "nv-hostengine", "nv-fabricmanage", "dcgm-exporter"),
        *("neuron-monitor", "neuron-top", "neuron-ls"),
    }
)
# A step; `slurmstepd infinity` holds Slurm's control groups and is none.
_STEP = "slurmstepd: ["
# A user's processes may have a million open files each, and the watchdog waits.
_SECONDS = 5


def jobs_use_node(clock: Callable[[], float] = time.monotonic) -> bool | None:
    """Say whether a job runs here. None: a node without accelerators and without Slurm does not show it.

    Processes that could not be looked at in time count as a job.

    Args:
        clock: The seconds that have passed. Default: - the machine's.
    """
    end = clock() + _SECONDS

    def is_late() -> bool:
        return clock() > end

    accelerators = any(_devices())
    scheduled = False
    for process in _processes():
        if is_late():
            return True
        name = _text(process / "comm").strip()
        if name == "slurmd" and _is_roots(process):
            scheduled = True
        if (accelerators and name not in _NO_JOBS and _may_hold_accelerator(process, is_late)) or _is_step(
            process, name
        ):
            return True
    return False if accelerators or scheduled else None


def _devices() -> Iterator[Path]:
    device = Path(f"{ROOT}/dev")
    yield from device.glob("nvidia[0-9]*")
    yield from device.glob("neuron[0-9]*")


def _processes() -> Iterator[Path]:
    for entry in os.scandir(f"{ROOT}/proc"):
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            yield Path(entry.path)


def _is_step(process: Path, name: str) -> bool:
    # The arguments are in the memory of the process, which that of a user may keep locked for ever.
    return name.startswith("slurmstepd") and _is_roots(process) and _text(process / "cmdline").startswith(_STEP)


def _is_roots(process: Path) -> bool:
    """Say whether root started it: any user may give a process a name, and Slurm's own run as root.

    The first of the ids is the real one, which slurmstepd keeps while it takes on the id of its user.
    https://www.kernel.org/doc/html/latest/filesystems/proc.html
    """
    return re.search(r"^Uid:\t0\t", _text(process / "status"), re.MULTILINE) is not None


def _may_hold_accelerator(process: Path, is_late: Callable[[], bool]) -> bool:
    try:
        return any(_HELD.fullmatch(_target(entry.path)) or is_late() for entry in os.scandir(process / "fd"))
    except OSError:
        # It has ended meanwhile.
        return False


def _target(link: str) -> str:
    try:
        return os.readlink(link)  # noqa: PTH115 - there may be a million
    except OSError:
        # This file was closed meanwhile; the others are open.
        return ""


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
