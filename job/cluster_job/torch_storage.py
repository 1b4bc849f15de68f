"""Checkpoints with torch.distributed.checkpoint: sharded, written by a process beside the job.

A checkpoint stalls the job for a copy into shared memory only; a process of its own writes it, so that the job's
threads are not slowed down. https://docs.pytorch.org/docs/stable/distributed.checkpoint.html
"""

import contextlib
import multiprocessing
import sys
import time
from collections.abc import Callable, Collection, Mapping, MutableMapping
from concurrent import futures
from concurrent.futures import Future
from enum import IntEnum
from multiprocessing.process import BaseProcess
from pickle import UnpicklingError
from typing import Any, TypeVar, cast

import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint import _async_process_executor as executor
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.state_dict import (
    get_model_state_dict,
    get_optimizer_state_dict,
    set_model_state_dict,
    set_optimizer_state_dict,
)
from torch.distributed.checkpoint.state_dict_saver import AsyncCheckpointerType

from cluster_job.checkpoints import Checkpoint, CheckpointFolder
from cluster_job.digests import Unreadable, has_digests, unreadable
from cluster_job.exits import Exit
from cluster_job.fencing import Superseded
from cluster_job.hang_watch import say
from cluster_job.holding import end_process
from cluster_job.rank_values import PREFIX, Place, RankValues, UntrustedError, apart, hide, key_of, put_back
from cluster_job.staging import Stage
from cluster_job.torch_files import CommittingWriter
from cluster_job.torch_ranks import TorchRanks
from cluster_job.writer_process import end_writer_on_errors, lives, script_hidden

_POLL_SECONDS = 0.005
_PROGRESS_SECONDS = 0.1
_ERROR_SECONDS = 5
"""What a rank's process that writes gets to say itself what failed, where another's did."""

_PARTS = (torch.nn.Module, torch.optim.Optimizer)
"""Whose keys torch knows; the others' are values of the script."""


_T = TypeVar("_T")

_TORCHS_READER = "PytorchStreamReader"
"""What torch's message begins with where an archive is not one."""


class _DamagedError(Exception):
    """A file of a checkpoint does not hold what torch writes."""


class _Progress(IntEnum):
    """How far a rank is with writing; the least of all ranks' counts."""

    FAILED = 0
    AT_WORK = 1
    DURABLE = 2


class TorchStorage:
    """Reads and writes states of torch.

    Args:
        folder: The run's checkpoints.
        ranks: The ranks that save together.
    """

    def __init__(self, folder: CheckpointFolder, ranks: TorchRanks) -> None:
        self._folder = folder
        self._ranks = ranks
        self._stage = Stage(ranks)
        self._failed = False
        self._writing: Future[bool] | None = None
        self._writers: set[BaseProcess] = set()

    def load(
        self, state: MutableMapping[str, Any], checkpoint: Checkpoint, *, trusted: bool = False
    ) -> Unreadable | None:
        """Load a checkpoint into the state, whatever the number of ranks that wrote it.

        The ranks compare its files with their digests first. A state that does not fit is an error of the script: no
        older checkpoint would be right.

        Args:
            state: What was saved, by name.
            checkpoint: Where it lies.
            trusted: Whether to unpickle values that an earlier release wrote.

        Returns:
            The reason for which any rank cannot read it, the same on all. None: it is loaded.
        """
        marker = checkpoint.marker
        own = unreadable(marker, rank=self._ranks.rank, world_size=self._ranks.world_size)
        problems = [one for one in self._ranks.gather(own) if one is not None]
        if problems:
            worst: Unreadable = max(problems, key=lambda one: one.damaged)
            return worst
        is_compared = self._ranks.all(has_digests(marker))
        if not is_compared and self._ranks.rank == 0:
            print(  # noqa: T201 - the job's log
                f"{marker} holds no digests: the contents of the checkpoint are not compared with what was written.",
                file=sys.stderr,
            )
        try:
            self._load(state, checkpoint, trusted=trusted)
        except CheckpointException as error:
            problem = _unreadable(error, is_compared=is_compared)
            if problem is None:
                raise
            return problem
        return None

    def _load(self, state: MutableMapping[str, Any], checkpoint: Checkpoint, *, trusted: bool) -> None:
        plain = state_dicts(state)
        differing, values, own = self._rank_values(checkpoint, trusted=trusted)
        shown = hide(plain, {*differing, *values})
        planner = dcp.DefaultLoadPlanner()
        dcp.load(shown, checkpoint_id=str(checkpoint.path), process_group=self._ranks.group, planner=planner)
        put_back(plain, shown, values)
        unread = set.intersection(*self._ranks.gather(_unread(planner, state)))
        if unread and self._ranks.rank == 0:
            print(  # noqa: T201 - the job's log
                f"{checkpoint.path} holds {', '.join(sorted(unread))}, which the state given to run.restore lacks: "
                "set a tensor of its shape under each such key before run.restore, since torch reads into it.",
                file=sys.stderr,
            )
        if differing and not own and self._ranks.rank == 0:
            names = ", ".join(sorted({str(path[0]) for path in differing}))
            print(  # noqa: T201 - the job's log
                f"{checkpoint.path} was written by another number of ranks: what differs by rank in {names} stays as "
                "the script has set it. Derive it from the rank and the step.",
                file=sys.stderr,
            )
        for name, value in state.items():
            if isinstance(value, torch.nn.Module):
                set_model_state_dict(value, plain[name])
            elif isinstance(value, torch.optim.Optimizer):
                set_optimizer_state_dict(_owner(value, state), value, plain[name])
            elif hasattr(value, "load_state_dict"):
                value.load_state_dict(plain[name])
            else:
                state[name] = plain[name]

    def _rank_values(
        self, checkpoint: Checkpoint, *, trusted: bool
    ) -> tuple[Collection[Place], Mapping[Place, Any], bool]:
        """Return where values differed by rank, what to put back, and whether what differed is in it."""
        reader = dcp.FileSystemReader(checkpoint.path)
        metadata = self._on_each(lambda: _metadata(reader))
        keys = sorted(key for key in metadata.state_dict_metadata if key.startswith(PREFIX))
        if not keys:
            return (), {}, True
        own = key_of(self._ranks.rank, self._ranks.world_size)
        wanted = {key: metadata.state_dict_metadata[key] for key in (keys[0], own) if key in keys}
        is_pickle = not hasattr(wanted[keys[0]], "size")
        if is_pickle and not trusted:
            raise UntrustedError(
                f"{checkpoint.path} holds values that an earlier release wrote as a pickle, which can run code of "
                "its writer: if you trust everyone who may write there, call run.restore(state, trusted=True)"
            )
        found = {key: b"" if is_pickle else torch.empty(one.size, dtype=torch.uint8) for key, one in wanted.items()}
        dcp.load(found, storage_reader=reader, process_group=self._ranks.group)
        decode = RankValues.from_pickle if is_pickle else RankValues.from_tensor

        def read() -> tuple[Collection[Place], Mapping[Place, Any]]:
            first = decode(found[keys[0]])
            values = {path: value for path, value in first.values.items() if path not in first.paths}
            if own in keys:
                values |= decode(found[own]).values
            return first.paths, values

        return (*self._on_each(read), own in keys)

    def _on_each(self, act: Callable[[], _T]) -> _T:
        """Return what each rank does by itself; fail on all ranks where it fails on one."""
        value, failure = None, None
        try:
            value = act()
        except Exception as error:
            failure = error
        failures = {rank: (one, None) for rank, one in enumerate(self._ranks.gather(failure)) if one is not None}
        if failures:
            raise CheckpointException("restore", failures)
        return cast("_T", value)

    def save(
        self, state: MutableMapping[str, Any], checkpoint: Checkpoint, *, wait: bool, done: Callable[[bool], None]
    ) -> None:
        """Write a checkpoint in the background, or before returning.

        A checkpoint that could not be written is said on standard error, and the job goes on: the next one is due
        soon, and all ranks start new processes for it: the old ones cannot reach one that was killed. One to wait for
        raises. Where another start of the run has opened the folder, the process ends.

        Args:
            state: What to save, by name.
            checkpoint: Where it goes.
            wait: Whether to return only when it is durable.
            done: Called with whether it is durable.
        """
        self.wait()  # the memory that is written from is used again
        plain = apart(
            state_dicts(state), [name for name, value in state.items() if not isinstance(value, _PARTS)], self._ranks
        )
        writer = CommittingWriter(self._folder, checkpoint)
        if wait:
            try:
                dcp.save(plain, storage_writer=writer, process_group=self._ranks.group)
            except CheckpointException as error:
                if self._says_superseded(error):
                    raise SystemExit(Exit.USAGE) from error
                raise
            done(True)
            return
        started, was_shared = self._stage.started, self._stage.shared
        self._stage.copy(plain)
        shared = self._stage.shared
        if was_shared and not shared:
            self._end_writer()
        starts = not started
        if starts:
            end_writer_on_errors()
        elif shared and not self._ranks.all(lives() and not self._failed):
            self._end_writer()
            starts = True
        self._failed = False
        kind = AsyncCheckpointerType.PROCESS if shared else AsyncCheckpointerType.THREAD
        with script_hidden() if starts else contextlib.nullcontext():
            others = set(multiprocessing.active_children())
            writing = dcp.async_save(
                plain,
                storage_writer=writer,
                process_group=self._ranks.group,
                async_checkpointer_type=kind,
                async_stager=self._stage,
            )
            while starts and shared and not writing.done():
                self._writers = set(multiprocessing.active_children()) - others
                if self._writers:
                    break
                time.sleep(_POLL_SECONDS)

        is_whole: Future[bool] = Future()
        self._writing = is_whole

        def finished(future: "Future[Any]") -> None:
            error = future.exception()
            if self._says_superseded(error):
                end_process(Exit.USAGE)
            try:
                done(error is None)
                if error is not None:
                    print(  # noqa: T201 - the job's log
                        f"The checkpoint {checkpoint.path} could not be written, and the job goes on: {error}",
                        file=sys.stderr,
                    )
            finally:
                is_whole.set_result(error is None)

        writing.add_done_callback(finished)

    def wait(self) -> bool:
        """Return when what is being written is durable, or has failed on any rank: whether it is durable.

        All ranks call it. Where a process that writes is killed while it starts, those of the other ranks would wait
        for it for half an hour: they are ended.
        """
        writing, self._writing = self._writing, None
        if writing is None:
            return True
        while (least := self._ranks.least(_progress(writing))) == _Progress.AT_WORK:
            futures.wait([writing], timeout=_PROGRESS_SECONDS)
        self._failed = least == _Progress.FAILED
        if self._failed and self._stage.shared:
            futures.wait([writing], timeout=_ERROR_SECONDS)
            self._end_writer()
        futures.wait([writing])
        return not self._failed

    def _says_superseded(self, error: BaseException | None) -> bool:
        """Return on every rank whether a later start has opened the folder, and say it on rank 0."""
        failures = error.failures.values() if isinstance(error, CheckpointException) else ()
        found = next((one for one, _ in failures if isinstance(one, Superseded)), None)
        if found is not None and self._ranks.rank == 0:
            say(str(found))
        return found is not None

    def _end_writer(self) -> None:
        """Let torch start another process that writes: it keeps the first one, even one that has ended."""
        executor._CHECKPOINT_PROCESS = None
        for process in self._writers:
            process.kill()
            process.join(timeout=5)  # one that waits for a file system ends later


def state_dicts(state: MutableMapping[str, Any]) -> dict[str, Any]:
    """Return what a checkpoint holds: names that do not depend on DDP, FSDP or torch.compile around a model.

    Args:
        state: Modules, optimizers, other objects with `state_dict()`, and plain values.
    """
    plain: dict[str, Any] = {}
    for name, value in state.items():
        if isinstance(value, torch.nn.Module):
            plain[name] = get_model_state_dict(value)
        elif isinstance(value, torch.optim.Optimizer):
            plain[name] = get_optimizer_state_dict(_owner(value, state), value)
        else:
            plain[name] = value.state_dict() if hasattr(value, "state_dict") else value
    return plain


def _owner(optimizer: torch.optim.Optimizer, state: MutableMapping[str, Any]) -> torch.nn.Module:
    wanted = {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}
    for value in state.values():
        if isinstance(value, torch.nn.Module) and wanted <= {id(parameter) for parameter in value.parameters()}:
            return value
    raise ValueError("state holds an optimizer without its model: give both to checkpoint() and restore()")


def _unread(planner: dcp.DefaultLoadPlanner, state: Mapping[str, Any]) -> set[str]:
    """Return which keys of a checkpoint were not read; a model's follow from what it is, and are no loss."""
    unread = set()
    for key in planner.metadata.state_dict_metadata.keys() - planner.state_dict.keys():
        name = planner.metadata.planner_data[key][0]
        if not key.startswith(PREFIX) and not isinstance(state.get(name), _PARTS):
            unread.add(key if name in state else name)
    return unread


def _metadata(reader: dcp.FileSystemReader) -> Any:  # noqa: ANN401 - torch's own
    try:
        return reader.read_metadata()
    except OSError:
        raise
    except Exception as error:  # whatever a pickle of other bytes raises
        raise _DamagedError(f".metadata cannot be read ({error})") from error


def _unreadable(error: CheckpointException, *, is_compared: bool) -> Unreadable | None:
    """Return why a checkpoint cannot be read. None: it can, and what the script gives does not fit.

    Args:
        error: What failed on which ranks.
        is_compared: Whether its files hold what was written: then no content is damage.
    """
    for rank, (failure, _) in error.failures.items():
        if isinstance(failure, OSError):
            return Unreadable(reason=f"rank {rank} cannot read it ({failure})", damaged=False)
        is_content = isinstance(failure, _DamagedError | UnpicklingError | EOFError) or _TORCHS_READER in str(failure)
        if is_content and not is_compared:
            return Unreadable(reason=f"rank {rank} cannot read it ({failure})".splitlines()[0], damaged=True)
    return None


def _progress(is_whole: "Future[bool]") -> _Progress:
    if not is_whole.done():
        return _Progress.AT_WORK
    return _Progress.DURABLE if is_whole.result() else _Progress.FAILED
