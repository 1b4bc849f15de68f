"""What notices that a process does no step, writes its stacks, and ends it when it hangs."""

import contextlib
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cluster_job.environment import Environment, Launcher
from cluster_job.flight_recorder import Collectives, own_folder, read_collectives
from cluster_job.hangs import HUNG_EXIT_CODE, Progress, Reading, judge, longest_step, write_stacks
from cluster_job.motion import Motion, read_motion
from cluster_job.readings import EfaCounters, Gpu, hang_reading, read_efa, read_gpus
from cluster_job.records import Items, decoded, encoded

_HANGS_PREFIX = "hangs#"
_STALE_SECONDS = 60.0


def group_patience(device: str = "cuda") -> float | None:
    """Return for how many seconds torch waits for a collective, the longest of its groups. None: it is not known.

    Args:
        device: The kind of device whose groups are asked: waiting for others takes no accelerator.
    """
    torch = sys.modules.get("torch")
    if torch is None or not torch.distributed.is_available():
        return None
    found = []
    for group in list(torch.distributed.distributed_c10d._world.pg_map):  # torch says it nowhere else
        with contextlib.suppress(RuntimeError, AttributeError):  # a group without such devices
            found.append(group._get_backend(torch.device(device)).options._timeout.total_seconds())
    return max(found, default=None)


@dataclass(frozen=True, kw_only=True)
class HangProbe:
    """Readings of the node, and actions on the process that runs on it.

    Attributes:
        now: The time, in seconds since 1970.
        gpus: The job's GPUs.
        efa: What went over the node's adapters.
        motion: What the process has done.
        collectives: The collectives that it has begun.
        patience: For how long torch waits for a collective.
        stacks: The folder for stacks: a local one, since a file system that does not answer is a reason to stall.
        end: Ends the process.
        instance_id: The instance that the heartbeat is for. None: it is not known.
    """

    now: Callable[[], float] = time.time
    gpus: Callable[[], tuple[Gpu, ...]] = read_gpus
    efa: Callable[[], EfaCounters | None] = read_efa
    motion: Callable[[], Motion] = read_motion
    collectives: Callable[[], Collectives] = read_collectives
    patience: Callable[[], float | None] = group_patience
    stacks: Path = field(default_factory=own_folder)
    end: Callable[[int], Any] = os._exit
    instance_id: Callable[[], str | None] = lambda: None


class HangWatch:
    """Watches one process."""

    def __init__(self, run: str, environment: Environment, node: HangProbe, ranks: Items | None) -> None:
        """Watch a process.

        Args:
            run: The run's name.
            environment: The process's place.
            node: What is read of its node.
            ranks: Where the run's ranks say that they wait. None: they cannot, and no process is ended.
        """
        self._run, self._environment, self._node, self._ranks = run, environment, node, ranks
        self._readings: list[Reading] = []
        self._has_written = False

    def look(self, silent: float, usual: float | None, *, at_work: bool, rank: int, world_size: int) -> None:
        """Look whether the process gets on.

        Args:
            silent: For how many seconds it has done no step.
            usual: The median time of its steps. None: it has done none, and may set up as long as it likes.
            at_work: Whether the script said since its last step that it is: then no rank of the run is ended.
            rank: Its number among all of the run.
            world_size: How many there are.
        """
        if usual is None or silent < longest_step(usual):
            self._readings, self._has_written = [], False
            return
        now = self._node.now()
        self._readings.append(hang_reading(now, self._node.gpus(), self._node.efa()))
        said = f"rank {rank} on {self._environment.node} has done no step for {silent:.0f} s"
        if not self._has_written:
            self._has_written = True
            keep_stacks(self._node, self._run, rank, said)
        if (
            judge(silent, usual, self._readings, self._node.patience()) is Progress.HANGS
            and not at_work
            and self._environment.launcher is Launcher.TORCHRUN
            and self._all_wait(now, rank, world_size)
        ):
            said += ", and on all ranks GPUs only wait while nothing goes over EFA"
            keep_stacks(self._node, self._run, rank, said)
            say(f"rank {rank} ends with status {HUNG_EXIT_CODE}, so that torchrun starts the ranks again")
            self._node.end(HUNG_EXIT_CODE)

    def _all_wait(self, now: float, rank: int, world_size: int) -> bool:
        """Say to the other ranks that this one waits; return whether all do: else they may wait for one at work."""
        if self._ranks is None:
            return False
        self._ranks.put(f"{_HANGS_PREFIX}{rank:05}", encoded({"rank": rank, "world": world_size, "at": now}))
        items = map(decoded, self._ranks.list(_HANGS_PREFIX).values())
        waiting = {one["rank"] for one in items if one["world"] == world_size and one["at"] > now - _STALE_SECONDS}
        return waiting >= set(range(world_size))


def keep_stacks(node: HangProbe, run: str, rank: int, said: str) -> None:
    """Write the stacks of this process into a file, and a line into the job's log.

    Args:
        node: Its node.
        run: The run's name.
        rank: Its number.
        said: What is to be said of it.
    """
    file = node.stacks / run / f"stacks-rank-{rank}-{node.now():.0f}.txt"
    try:
        write_stacks(file, said)
    except OSError as error:  # a full disk does not keep a process that hangs
        say(f"{said}: its stacks could not be written to {file}: {error}")
    else:
        say(f"{said}: its stacks are in {file}")


def say(sentence: str) -> None:
    """Write a sentence to the job's log."""
    sys.stderr.write(f"cluster_job: {sentence}\n")
    sys.stderr.flush()
