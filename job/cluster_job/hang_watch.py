"""What notices that a process does no step, writes its stacks, and ends it when it hangs."""

import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cluster_job.environment import Environment, Launcher
from cluster_job.hangs import HUNG_EXIT_CODE, Progress, Reading, judge, longest_step, write_stacks
from cluster_job.readings import EfaCounters, Gpu, hang_reading, read_efa, read_gpus


@dataclass(frozen=True, kw_only=True)
class Node:
    """What is read of the node, and done to the process on it.

    Attributes:
        now: The time, in seconds since 1970.
        gpus: The job's GPUs.
        efa: What went over the node's adapters.
        stacks: The folder for stacks: a local one, since a file system that does not answer is a reason to stall.
        end: Ends the process.
        instance_id: The instance that the heartbeat is for. None: it is not known.
    """

    now: Callable[[], float] = time.time
    gpus: Callable[[], tuple[Gpu, ...]] = read_gpus
    efa: Callable[[], EfaCounters | None] = read_efa
    stacks: Path = field(default_factory=lambda: Path(tempfile.gettempdir()) / "cdk-training-cluster")
    end: Callable[[int], Any] = os._exit
    instance_id: Callable[[], str | None] = lambda: None


class HangWatch:
    """Watches one process."""

    def __init__(self, run: str, environment: Environment, node: Node) -> None:
        self._run, self._environment, self._node = run, environment, node
        self._readings: list[Reading] = []
        self._has_written = False

    def look(self, silent: float, usual: float | None) -> None:
        """Look whether the process gets on.

        Args:
            silent: For how many seconds it has done no step.
            usual: The median time of its steps. None: it has done none, and may set up as long as it likes.
        """
        if usual is None or silent < longest_step(usual):
            self._readings, self._has_written = [], False
            return
        now = self._node.now()
        self._readings.append(hang_reading(now, self._node.gpus(), self._node.efa()))
        hangs = judge(silent, usual, self._readings) is Progress.HANGS
        if self._has_written and not hangs:
            return
        rank = self._environment.rank
        said = f"rank {rank} on {self._environment.node} has done no step for {silent:.0f} s"
        if hangs:
            said += ", its GPUs read 100 %, and nothing goes over EFA"
        file = self._node.stacks / self._run / f"stacks-rank-{rank}-{now:.0f}.txt"
        self._has_written = True
        write_stacks(file, said)
        say(f"{said}: its stacks are in {file}")
        if hangs and self._environment.launcher is Launcher.TORCHRUN:
            say(f"rank {rank} ends with status {HUNG_EXIT_CODE}, so that torchrun starts the ranks again")
            self._node.end(HUNG_EXIT_CODE)


def say(sentence: str) -> None:
    """Write a sentence to the job's log."""
    sys.stderr.write(f"cluster_job: {sentence}\n")
    sys.stderr.flush()
