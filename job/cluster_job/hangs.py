"""When a run hangs, and what is written then.

A process that does no step for longer than five median steps, and than a floor, stalls: its stacks are written. It
hangs when, besides, every GPU of its node only waits and nothing goes over the Elastic Fabric Adapters, for longer
than the process group waits for a collective: torch should have ended it by then. That does not end by itself if
every rank of the run waits so, and none said that it is at work. Only then the process ends with `HUNG_EXIT_CODE`, on
which torchrun starts the processes of all nodes again, as often as `cluster-run` allows. Readings that are missing
never say that it hangs.
"""

import faulthandler
import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

FLOOR_SECONDS = 300.0
"""Below torch's own limit of 600 seconds for NCCL, so that stacks are there before it ends the process."""

HUNG_EXIT_CODE = 86
"""The exit status of a process that waited, with all others or for a rank that is stuck and did not end."""

STUCK_EXIT_CODE = 87
"""The exit status of a process that the others waited for: its node failed first."""

_STEPS = 5
_FLAT_BYTES_PER_SECOND = 1024 * 1024
_FEWEST_READINGS = 3
_PY_SPY_SECONDS = 60


class Progress(Enum):
    """How a process gets on."""

    STEPS = "steps"
    STALLS = "stalls"
    HANGS = "hangs"


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What was read of a node while it did no step.

    Attributes:
        at: When, in seconds.
        gpus_wait: Whether all GPUs that the job has only wait.
        efa_bytes: What its Elastic Fabric Adapters received and sent so far. None: it has none.
    """

    at: float
    gpus_wait: bool
    efa_bytes: int | None


def longest_step(step_seconds: float, floor: float = FLOOR_SECONDS) -> float:
    """Return after how many seconds without a step a process stalls.

    Args:
        step_seconds: The median time of its steps.
        floor: The least.
    """
    return max(_STEPS * step_seconds, floor)


def judge(
    silent_seconds: float,
    step_seconds: float,
    readings: Sequence[Reading],
    patience: float | None,
    floor: float = FLOOR_SECONDS,
) -> Progress:
    """Say how a process gets on.

    Args:
        silent_seconds: How long it has done no step.
        step_seconds: The median time of its steps.
        readings: What was read since it stalls, the oldest first.
        patience: For how long the process group waits for a collective. None: it is not known.
        floor: As for `longest_step`.
    """
    if silent_seconds < longest_step(step_seconds, floor):
        return Progress.STEPS
    waits = _waiting(readings)
    hangs = patience is not None and len(waits) >= _FEWEST_READINGS and waits[-1].at - waits[0].at >= patience
    return Progress.HANGS if hangs else Progress.STALLS


def _waiting(readings: Sequence[Reading]) -> Sequence[Reading]:
    """Return the last readings, between which the GPUs only waited and nothing moved."""
    found: list[Reading] = []
    for one in reversed(readings):
        if not one.gpus_wait or one.efa_bytes is None or (found and not _is_flat(one, found[-1])):
            break
        found.append(one)
    return found[::-1]


def _is_flat(one: Reading, later: Reading) -> bool:
    if one.efa_bytes is None or later.efa_bytes is None:
        return False
    return 0 <= later.efa_bytes - one.efa_bytes < _FLAT_BYTES_PER_SECOND * (later.at - one.at)


def write_stacks(file: Path, head: str) -> None:
    """Write where every thread of this process is; with py-spy, also what runs below Python.

    Args:
        file: Where.
        head: The first line: who, since when, why.

    Source: https://docs.python.org/3/library/faulthandler.html
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w", encoding="utf-8") as target:
        target.write(f"{head}\n\n")
        target.flush()
        faulthandler.dump_traceback(file=target, all_threads=True)
        program = shutil.which("py-spy")
        if program:
            target.write("\n")
            target.flush()
            command = [program, "dump", "--native", "--pid", str(os.getpid())]
            try:
                subprocess.run(command, stdout=target, stderr=target, check=False, timeout=_PY_SPY_SECONDS)  # noqa: S603
            except (OSError, subprocess.TimeoutExpired) as error:
                target.write(f"py-spy: {error}\n")
