"""What the ranks of a torch.distributed job agree on."""

from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist


class TorchRanks:
    """The ranks of the default process group; one rank where there is none.

    Two groups of their own on the CPU (gloo) carry what is agreed on: one for small answers, one for what
    torch.distributed.checkpoint exchanges, perhaps from a thread at the same time.
    """

    def __init__(self) -> None:
        self.distributed = dist.is_available() and dist.is_initialized()
        self.rank = dist.get_rank() if self.distributed else 0
        self.world_size = dist.get_world_size() if self.distributed else 1
        self._answers = dist.new_group(backend="gloo") if self.distributed else None
        self.group = dist.new_group(backend="gloo") if self.distributed else None
        self._pending: tuple[Any, torch.Tensor] | None = None

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

    def all(self, value: bool) -> bool:
        """Return whether a value is true on every rank.

        Args:
            value: This rank's value.
        """
        answer = torch.tensor([int(value)])
        if self.distributed:
            dist.all_reduce(answer, dist.ReduceOp.MIN, group=self._answers)
        return bool(answer.item())

    def agree(self, wish: int) -> int:
        """Return the highest wish of all ranks in their last call.

        The sum over the network runs during the step that follows, on the CPU: no rank waits for the others or for
        its accelerator, and the answer comes one step later. All ranks read the result of the same reduction.

        Args:
            wish: This rank's wish.
        """
        if not self.distributed:
            return wish
        answer = 0
        if self._pending is not None:
            work, result = self._pending
            work.wait()
            answer = int(result.item())
        asked = torch.tensor([wish])
        self._pending = dist.all_reduce(asked, dist.ReduceOp.MAX, group=self._answers, async_op=True), asked
        return answer
