"""When a run saves, where it goes on, and when it ends for a drain: the same on every rank, without torch."""

import time
from collections.abc import Callable, MutableMapping
from dataclasses import replace
from enum import IntEnum
from typing import Any, Protocol

from cluster_job.checkpoints import Checkpoint, CheckpointFolder
from cluster_job.handover import Handover
from cluster_job.intervals import Cadence, History


class Wish(IntEnum):
    """Why a rank wants to save; the highest of all ranks' wishes is done."""

    NONE = 0
    PERIODIC = 1
    NEWCOMER = 2
    DRAIN = 3


class Ranks(Protocol):
    """The ranks that save together."""

    @property
    def rank(self) -> int:
        """This rank's number."""

    @property
    def world_size(self) -> int:
        """How many ranks there are."""

    @property
    def writes(self) -> bool:
        """Whether this rank holds a part of what is written."""

    def leaves(self, drained: bool) -> bool:
        """Return whether this rank ends when the ranks have agreed on a drain; `drained`: this node is drained."""

    def from_first(self, make: Callable[[], Any]) -> Any:  # noqa: ANN401 - whatever rank 0 makes
        """Return on every rank what `make` returns on rank 0."""

    def agree(self, wish: int) -> int:
        """Return the highest wish of an earlier call of all ranks, the same on each; 0: there was none."""


class Storage(Protocol):
    """What reads and writes the state."""

    def load(self, state: MutableMapping[str, Any], checkpoint: Checkpoint) -> None:
        """Load a checkpoint into the state."""

    def save(
        self, state: MutableMapping[str, Any], checkpoint: Checkpoint, *, wait: bool, done: Callable[[bool], None]
    ) -> None:
        """Write a checkpoint and commit it; call `done` with whether it is durable."""

    def wait(self) -> bool:
        """Return when what is being written is durable, or has failed: whether it is durable."""


class Saver:
    """Restores and saves one run.

    Args:
        folder: The run's checkpoints.
        ranks: The ranks that save together.
        storage: What reads and writes the state.
        drained: Returns whether this node is to be left.
        handover: Whether the ranks are to save for a node that joins.
        saved: Called with whether a checkpoint could be written.
        clock: Returns seconds that never go back.
    """

    def __init__(
        self,
        folder: CheckpointFolder,
        *,
        ranks: Ranks,
        storage: Storage,
        drained: Callable[[], bool],
        handover: Handover,
        saved: Callable[[bool], None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._folder = folder
        self._ranks = ranks
        self._storage = storage
        self._drained = drained
        self._handover = handover
        self._saved = saved
        self._clock = clock
        self._latest: Checkpoint | None
        self._latest, self._attempt = ranks.from_first(self._open)
        self._cadence = Cadence(self._history(), ranks.world_size, clock)
        self._wish = self._agreed = Wish.NONE
        self._restored = self.draining = False
        self._written: int | None = None

    @property
    def next_step(self) -> int:
        """The step with which the run goes on."""
        return 0 if self._latest is None else self._latest.step

    def first_step(self) -> int:
        """Return `next_step`; raise where its checkpoint was not loaded: the steps before it would be lost."""
        if self._latest is not None and not self._restored:
            raise RuntimeError(
                f"{self._latest.path} holds the first {self._latest.step} steps: call run.restore(state) before "
                "run.steps(), or start under another name"
            )
        return self.next_step

    def restore(self, state: MutableMapping[str, Any]) -> bool:
        """Load the newest whole checkpoint; return whether there was one.

        Args:
            state: What was saved, by name.
        """
        if self._latest is None:
            return False
        self._storage.load(state, self._latest)
        self._restored = True
        return True

    def should_checkpoint(self, *, last: bool) -> bool:
        """Return whether to save now, the same on every rank.

        Rank 0's clock says when a periodic checkpoint is due; any rank's drain says it at once, and a node that
        joins, which costs the others all steps since the last checkpoint.

        Args:
            last: Whether the run's last step is done.
        """
        self._handover.answers()
        drained = self._drained()
        self._wish = self._wanted(drained)
        self._agreed = Wish(self._ranks.agree(self._wish))
        if self._agreed:
            self._cadence.saved()
        self.draining = self.draining or (self._agreed is Wish.DRAIN and self._ranks.leaves(drained))
        return last or self._agreed > Wish.NONE

    def _wanted(self, drained: bool) -> Wish:
        if drained:
            return Wish.DRAIN
        if self._wish in {Wish.PERIODIC, Wish.NEWCOMER}:  # it is answered now
            return Wish.NONE
        if self._handover.is_asked:
            return Wish.NEWCOMER
        return Wish.PERIODIC if self._ranks.rank == 0 and self._cadence.due() else Wish.NONE

    def checkpoint(self, state: MutableMapping[str, Any], step: int, *, last: bool) -> None:
        """Save the state; when the processes end with it, return when it is durable.

        Args:
            state: What to save, by name.
            step: The number of steps that are done.
            last: Whether the run's last step is done.
        """
        self._cadence.saved()
        handed_over = self._agreed is Wish.NEWCOMER
        if handed_over:
            self._handover.begun()
        if self._ranks.writes:
            ends = last or self.draining
            self._write(state, step, ended=ends or handed_over, wait=ends)
        if handed_over:
            self._handover.ended(is_whole=self._storage.wait())

    def _write(self, state: MutableMapping[str, Any], step: int, *, ended: bool, wait: bool) -> None:
        started = self._clock()
        if step == self._written:
            # What was written before is perhaps the only whole checkpoint, and stays until this one is whole.
            self._attempt = self._folder.next_attempt(self._attempt)
        self._written = step
        checkpoint = Checkpoint(
            path=self._folder.path(step, self._attempt), step=step, ended=ended, history=self._cadence.history()
        )
        stall = 0.0

        def done(is_whole: bool) -> None:
            if is_whole:
                self._cadence.measured(stall=stall, writing=self._clock() - started)
            self._saved(is_whole)

        self._storage.save(state, checkpoint, wait=wait, done=done)
        stall = self._clock() - started

    def finish(self) -> None:
        """Return when what is being written is durable: what writes it ends with the job."""
        self._storage.wait()

    def _open(self) -> tuple[Checkpoint | None, str]:
        return self._folder.latest(), self._folder.new_attempt()

    def _history(self) -> History:
        if self._latest is None:
            return History()
        history = self._latest.history
        return history if self._latest.ended else replace(history, failures=history.failures + 1)
