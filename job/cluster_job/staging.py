"""Copies the state of a checkpoint before it is written; all ranks do it in the same way.

A process of its own writes from shared memory. Where that is too small, a thread writes from the job's own memory.
"""

import shutil
import socket
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch.distributed.checkpoint.staging import AsyncStager, DefaultStager, StagingOptions
from torch.utils._pytree import tree_leaves

from cluster_job.torch_ranks import TorchRanks

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - where Linux keeps it

_HEADROOM = 1.1


class Need(NamedTuple):
    """What one rank copies into shared memory.

    Attributes:
        place: The shared memory: that of a node, or of a container.
        bytes: How much it copies.
        free: How much is free, before any rank copies.
    """

    place: tuple[str, int]
    bytes: int
    free: int


def too_small(needs: Sequence[Need]) -> str | None:
    """Return in which shared memory the ranks that share it find no room, as a part of a sentence. None: in none.

    Args:
        needs: What each rank copies.
    """
    together: dict[tuple[str, int], list[Need]] = defaultdict(list)
    for one in needs:
        together[one.place].append(one)
    for (node, _), ranks in together.items():
        size, free = sum(one.bytes for one in ranks), min(one.free for one in ranks)
        if free <= _HEADROOM * size:
            return (
                f"{SHARED_MEMORY} of {node} has {free / 1e9:.1f} GB free, and copies of the state of "
                f"its {len(ranks)} ranks need {_HEADROOM * size / 1e9:.1f} GB"
            )
    return None


class Stage(AsyncStager):  # type: ignore[misc] # torch is not there when types are checked
    """Copies the state of a rank for each checkpoint.

    Args:
        ranks: The ranks that save together.
    """

    def __init__(self, ranks: TorchRanks) -> None:
        self._ranks = ranks
        self._stager: Any = None
        self._copy: Any = None
        self.shared = False

    @property
    def started(self) -> bool:
        """Whether a checkpoint was copied before."""
        return self._stager is not None

    def copy(self, plain: Any) -> None:  # noqa: ANN401 - nested dictionaries
        """Copy a state, for `stage` to return; where shared memory is too small on any rank, use none on all.

        Args:
            plain: The state.
        """
        if self._stager is None:
            problem = too_small(self._ranks.gather(_need(plain))) if self._ranks.distributed else None
            self._use(shared=self._ranks.distributed and problem is None)
            self._say(problem)
        failure = self._try(plain)
        if self._ranks.all(failure is None):
            return
        (first, *_) = [
            one for one in self._ranks.gather(None if failure is None else str(failure)) if one is not None
        ]
        if not self.shared:
            raise failure or RuntimeError(f"another rank cannot copy its state: {first}")
        self._stager.close()
        self._use(shared=False)
        self._say(f"{SHARED_MEMORY} has no room for a copy of the state ({first.splitlines()[0]})")
        self._copy = self._stager.stage(plain)

    def stage(self, state_dict: Any, **_: Any) -> Any:  # noqa: ANN401, ARG002 - torch's own
        """Return what was copied; torch calls it.

        Args:
            state_dict: The state that was copied.
        """
        copied, self._copy = self._copy, None
        return copied

    @property
    def should_synchronize_after_execute(self) -> bool:
        """Whether torch is to wait for the copy: it is made already."""
        return False

    def synchronize_staging(self) -> None:
        """Wait for nothing."""

    def close(self) -> None:
        """Free the memory."""
        if self._stager is not None:
            self._stager.close()

    def _try(self, plain: Any) -> RuntimeError | None:  # noqa: ANN401
        try:
            self._copy = self._stager.stage(plain)
        except RuntimeError as error:  # torch's, where memory cannot be allocated
            return error
        return None

    def _use(self, *, shared: bool) -> None:
        cuda = torch.cuda.is_available()
        self.shared = shared
        self._stager = DefaultStager(
            StagingOptions(
                use_pinned_memory=cuda,
                use_shared_memory=shared,
                use_async_staging=False,
                use_non_blocking_copy=cuda,
            )
        )

    def _say(self, problem: str | None) -> None:
        if problem is not None and self._ranks.rank == 0:
            print(  # noqa: T201 - the job's log
                f"{problem}: a thread of each rank writes checkpoints, which slows the job. Give the container more "
                "shared memory.",
                file=sys.stderr,
            )


def _need(plain: Any) -> Need:  # noqa: ANN401 - nested dictionaries
    size = sum(_bytes(leaf) for leaf in tree_leaves(plain))
    if not SHARED_MEMORY.is_dir():
        return Need(place=(socket.gethostname(), 0), bytes=size, free=0)
    # Containers of one node have a shared memory of their own each, and perhaps the name of the node.
    place = (socket.gethostname(), SHARED_MEMORY.stat().st_dev)
    return Need(place=place, bytes=size, free=shutil.disk_usage(SHARED_MEMORY).free)


def _bytes(leaf: object) -> int:
    local = leaf.to_local() if hasattr(leaf, "to_local") else leaf
    return local.numel() * local.element_size() if isinstance(local, torch.Tensor) else 0
