"""What the ranks of a torch.distributed job agree on."""

import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from cluster_job.hang_watch import group_patience

_LONG_SECONDS = 1.0


class TorchRanks:
    """The ranks of the default process group; one rank where there is none.

    Two groups of their own on the CPU (gloo) carry what is agreed on: one for small answers, one for what
    torch.distributed.checkpoint exchanges, perhaps from a thread at the same time. Both wait as long for a rank that
    says nothing as the longest of the job's own groups at this time.

    Args:
        clock: Returns seconds that never go back.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.distributed = dist.is_available() and dist.is_initialized()
        self.rank = dist.get_rank() if self.distributed else 0
        self.world_size = dist.get_world_size() if self.distributed else 1
        patience = max(group_patience(device) or 0 for device in ("cpu", "cuda"))
        timeout = timedelta(seconds=patience) if patience else None
        self._answers = dist.new_group(backend="gloo", timeout=timeout) if self.distributed else None
        self.group = dist.new_group(backend="gloo", timeout=timeout) if self.distributed else None
        self._pending: tuple[Any, torch.Tensor] | None = None
        self._clock = clock
        self._called = clock()
        self._waits = True  # the first step may be long

    @property
    def writes(self) -> bool:
        """Whether this rank holds a part of what is written: every rank does."""
        return True

    def leaves(self, drained: bool) -> bool:  # noqa: ARG002 - the job cannot go on without one of its ranks
        """Return whether this rank ends for a drain that the ranks have agreed on.

        Args:
            drained: Whether this node is the one.
        """
        return True

    def from_first(self, make: Callable[[], Any]) -> Any:  # noqa: ANN401 - whatever rank 0 makes
        """Return on every rank what `make` returns on rank 0.

        Args:
            make: Called on rank 0 only.
        """
        values = [make() if self.rank == 0 else None]
        if self.distributed:
            dist.broadcast_object_list(values, src=0, group=self._answers)
        return values[0]

    def gather(self, value: Any) -> list[Any]:  # noqa: ANN401 - whatever each rank has
        """Return the values of all ranks, by rank.

        Args:
            value: This rank's value.
        """
        values = [value] * self.world_size
        if self.distributed:
            dist.all_gather_object(values, value, group=self._answers)
        return values

    def least(self, value: int) -> int:
        """Return the lowest value of all ranks.

        Args:
            value: This rank's value.
        """
        answer = torch.tensor([value])
        if self.distributed:
            dist.all_reduce(answer, dist.ReduceOp.MIN, group=self._answers)
        return int(answer.item())

    def all(self, value: bool) -> bool:
        """Return whether a value is true on every rank.

        Args:
            value: This rank's value.
        """
        return bool(self.least(int(value)))

    def agree(self, wish: int) -> int:
        """Return the highest wish of all ranks: of this call where steps are long, and of the one before else.

        The answer comes over the network, on the CPU, while the step that follows runs: no rank waits for the others
        or for its accelerator. After a step of more than a second, in which the node may go, the ranks wait for it.
        Whether they do is a part of the answer before, so that all do the same.

        Args:
            wish: This rank's wish.
        """
        if not self.distributed:
            return wish
        now = self._clock()
        is_long, self._called = now - self._called > _LONG_SECONDS, now
        agreed = self._answer()
        asked = torch.tensor([wish, int(is_long)])
        self._pending = dist.all_reduce(asked, dist.ReduceOp.MAX, group=self._answers, async_op=True), asked
        return max(agreed, self._answer()) if self._waits else agreed

    def _answer(self) -> int:
        if self._pending is None:
            return 0
        (work, answer), self._pending = self._pending, None
        work.wait()
        agreed, is_long = answer.tolist()
        self._waits = bool(is_long)
        return int(agreed)
