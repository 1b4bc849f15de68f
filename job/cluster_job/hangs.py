"""When a run hangs, and what is written then.

A process that does no step for longer than five median steps, and than a floor, stalls: its stacks are written. It
hangs when, besides, every GPU of its node reads 100 % and nothing goes over the Elastic Fabric Adapters: then it
waits in a collective. That will not end if every rank of the run waits so: where one still evaluates or saves, the
others wait for it. Only then it ends with `HUNG_EXIT_CODE`, on which torchrun starts the processes of all nodes
again, as often as `cluster-run` allows. Readings that are missing never say that it hangs.
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
"""Below torch's own limit of 600 seconds for NCCL, after which it ends the process and says less."""

HUNG_EXIT_CODE = 86
"""The exit status of a process that hung."""

_STEPS = 5
_BUSY_PERCENT = 99.0
_FLAT_BYTES_PER_SECOND = 1024 * 1024
_FEWEST_READINGS, _SHORTEST_SECONDS = 3, 30.0
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
        gpu_percents: The use of each GPU that the job has, in percent. Empty: it could not be read.
        efa_bytes: What its Elastic Fabric Adapters received and sent so far. None: it has none.
    """

    at: float
    gpu_percents: tuple[float, ...]
    efa_bytes: int | None


def longest_step(step_seconds: float, floor: float = FLOOR_SECONDS) -> float:
    """Return after how many seconds without a step a process stalls.

    Args:
        step_seconds: The median time of its steps.
        floor: The least.
    """
    return max(_STEPS * step_seconds, floor)


def judge(
    silent_seconds: float, step_seconds: float, readings: Sequence[Reading], floor: float = FLOOR_SECONDS
) -> Progress:
    """Say how a process gets on.

    Args:
        silent_seconds: How long it has done no step.
        step_seconds: The median time of its steps.
        readings: What was read since it stalls, the oldest first.
        floor: As for `longest_step`.
    """
    if silent_seconds < longest_step(step_seconds, floor):
        return Progress.STEPS
    return Progress.HANGS if _waits_for_ever(readings) else Progress.STALLS


def _waits_for_ever(readings: Sequence[Reading]) -> bool:
    if len(readings) < _FEWEST_READINGS or readings[-1].at - readings[0].at < _SHORTEST_SECONDS:
        return False
    if not all(one.gpu_percents and min(one.gpu_percents) >= _BUSY_PERCENT for one in readings):
        return False
    first, last = readings[0], readings[-1]
    if first.efa_bytes is None or last.efa_bytes is None:
        return False
    moved = last.efa_bytes - first.efa_bytes
    return 0 <= moved < _FLAT_BYTES_PER_SECOND * (last.at - first.at)


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
