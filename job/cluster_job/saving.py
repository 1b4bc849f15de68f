"""When a run saves, where it goes on, and when it ends for a drain: the same on every rank, without torch."""

import math
import sys
import time
from collections.abc import Callable, MutableMapping, Sequence
from dataclasses import replace
from enum import IntEnum
from functools import partial
from typing import Any, Protocol, TypeVar, cast

from cluster_job.checkpoints import Aside, Checkpoint, CheckpointFolder
from cluster_job.digests import Unreadable
from cluster_job.exits import Exit
from cluster_job.fencing import Superseded
from cluster_job.handover import Handover
from cluster_job.hang_watch import say
from cluster_job.intervals import Cadence, History

_T = TypeVar("_T")


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

    def all(self, value: bool) -> bool:
        """Return on every rank whether a value is true on all."""


class Storage(Protocol):
    """What reads and writes the state."""

    def load(
        self, state: MutableMapping[str, Any], checkpoint: Checkpoint, *, trusted: bool = False
    ) -> Unreadable | None:
        """Load a checkpoint into the state; return on every rank why it cannot be read. None: it is loaded."""

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
        refused: Called when none was written because the loss is no finite number.
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
        refused: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._folder = folder
        self._ranks = ranks
        self._storage = storage
        self._drained = drained
        self._handover = handover
        self._saved = saved
        self._refused = refused
        self._clock = clock
        self._latest: Checkpoint | None
        self._latest, self._attempt, self._damaged = self._from_first(self._open)
        self._cadence = Cadence(self._history(), ranks.world_size, clock)
        self._wish = self._agreed = Wish.NONE
        self._restored = self.draining = self._is_refusing = False
        self._written: int | None = None

    @property
    def next_step(self) -> int:
        """The step with which the run goes on."""
        return 0 if self._latest is None else self._latest.step

    def first_step(self) -> int:
        """Return `next_step`; raise where its checkpoint was not loaded: the steps before it would be lost."""
        self._refuse_to_start_over()
        if self._latest is not None and not self._restored:
            raise RuntimeError(
                f"{self._latest.path} holds the first {self._latest.step} steps: call run.restore(state) before "
                "run.steps(), or start under another name"
            )
        return self.next_step

    def restore(self, state: MutableMapping[str, Any], *, step: int | None = None, trusted: bool = False) -> bool:
        """Load the newest whole checkpoint that all ranks can read; return whether there is a checkpoint.

        One that is damaged is set aside, and one that a rank cannot read is left where it is: in both cases all ranks
        take the next older one.

        Args:
            state: What was saved, by name.
            step: The step to go back to, once: when the run has gone back to it before, the newest one is loaded.
            trusted: Whether to unpickle values that an earlier release wrote.

        Raises:
            ValueError: There is no whole checkpoint of this step.
            RuntimeError: No checkpoint can be read. The run does not start again from its beginning by itself.
        """
        found, goes_back = self._ranks.from_first(lambda: self._candidates(step))
        if step is not None and not found:
            steps = ", ".join(str(one) for one in self._ranks.from_first(self._steps)) or "none"
            raise ValueError(f"{self._folder.root} holds no whole checkpoint of step {step}; it holds: {steps}")
        for number, checkpoint in enumerate(found):
            problem = self._storage.load(state, checkpoint, trusted=trusted)
            if problem is None:
                self._go_on_from(checkpoint, goes_back=goes_back)
                return True
            self._from_first(partial(self._give_up, checkpoint, problem, found[number + 1 :]))
        if found:
            raise RuntimeError(
                f"none of the {len(found)} checkpoints in {self._folder.root} can be read: the lines above say why. "
                "Restore one, or start under another name."
            )
        self._refuse_to_start_over()
        return False

    def _refuse_to_start_over(self) -> None:
        if self._latest is None and self._damaged:
            raise RuntimeError(
                f"{self._folder.root} holds only damaged checkpoints ({', '.join(self._damaged)}): restore one, "
                "or delete them to start from step 0"
            )

    def _candidates(self, step: int | None) -> tuple[list[Checkpoint], bool]:
        """Return what to try, the best first, and whether the run goes back to it."""
        newest_first = self._folder.all()[::-1]
        if step is None or self._folder.is_rolled_back(step):
            return newest_first, False
        return [one for one in newest_first if one.step == step], True

    def _steps(self) -> list[int]:
        return sorted({one.step for one in self._folder.all()})

    def _give_up(self, checkpoint: Checkpoint, problem: Unreadable, others: Sequence[Checkpoint]) -> None:
        kept = checkpoint.path
        if problem.damaged:
            kept = self._folder.set_aside(kept, Aside.DAMAGED)
        then = f"the run falls back to step {others[0].step}" if others else "there is no other"
        print(  # noqa: T201 - the job's log
            f"The checkpoint of step {checkpoint.step} is not used, since {problem.reason}; {then}. Its files are "
            f"kept in {kept}",
            file=sys.stderr,
        )

    def _go_on_from(self, checkpoint: Checkpoint, *, goes_back: bool) -> None:
        if goes_back:
            newer = self._from_first(lambda: self._folder.roll_back(checkpoint))
            if self._ranks.rank == 0:
                names = ", ".join(path.name for path in newer) or "no checkpoint"
                print(  # noqa: T201 - the job's log
                    f"The run goes back to step {checkpoint.step} and no longer uses {names} in {self._folder.root}: "
                    "delete what you no longer need",
                    file=sys.stderr,
                )
        self._latest = checkpoint
        self._cadence = Cadence(self._history(), self._ranks.world_size, self._clock)
        self._restored = True

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

    def checkpoint(
        self, state: MutableMapping[str, Any], step: int, *, last: bool, loss: float | None = None
    ) -> None:
        """Save the state; when the processes end with it, return when it is durable.

        With a loss that is no finite number on any rank nothing is written: the checkpoint would be the next to be
        loaded, and would replace one of a time in which the run was well.

        Args:
            state: What to save, by name.
            step: The number of steps that are done.
            last: Whether the run's last step is done.
            loss: The last step's loss on this rank. None: it is not known.
        """
        self._cadence.saved()
        handed_over = self._agreed is Wish.NEWCOMER
        if handed_over:
            self._handover.begun()
        if not self._ranks.all(loss is None or math.isfinite(loss)):
            self._refuse(step, loss)
            if handed_over:
                self._handover.ended(is_whole=True)  # the node that joins goes on from the checkpoint before
            return
        self._is_refusing = False
        if self._ranks.writes:
            ends = last or self.draining
            self._write(state, step, ended=ends or handed_over, wait=ends)
        if handed_over:
            self._handover.ended(is_whole=self._storage.wait())

    def _refuse(self, step: int, loss: float | None) -> None:
        self._cadence.again()
        self._refused()
        if self._ranks.rank == 0 and not self._is_refusing:
            on = f"it is {loss} here" if loss is not None and not math.isfinite(loss) else "on another rank"
            print(  # noqa: T201 - the job's log
                f"The loss of step {step} is no finite number ({on}): no checkpoint is written until it is one, and "
                "the newest whole one is kept",
                file=sys.stderr,
            )
        self._is_refusing = True

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

    def _from_first(self, make: Callable[[], _T]) -> _T:
        """Return on every rank what rank 0 does in the folder; end all where a later start has opened it."""

        def attempt() -> tuple[_T | None, bool]:
            try:
                return make(), False
            except Superseded as error:
                say(str(error))
                return None, True

        made, is_superseded = self._ranks.from_first(attempt)
        if is_superseded:
            raise SystemExit(Exit.USAGE)
        return cast("_T", made)

    def _open(self) -> tuple[Checkpoint | None, str, list[str]]:
        self._folder.open()
        for path in self._folder.set_damaged_aside():
            print(  # noqa: T201 - the job's log
                f"A checkpoint is not used, since its files lack the sizes in its marker. It is kept in {path}",
                file=sys.stderr,
            )
        damaged = [path.name for path in self._folder.damaged()]
        return self._folder.latest(), self._folder.new_attempt(), damaged

    def _history(self) -> History:
        if self._latest is None:
            return History()
        history = self._latest.history
        return history if self._latest.ended else replace(history, failures=history.failures + 1)
