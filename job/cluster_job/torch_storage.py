"""Checkpoints with torch.distributed.checkpoint: sharded, written by a process beside the job.

A checkpoint stalls the job for a copy into shared memory only; a process of its own writes it, so that the job's
threads are not slowed down. https://docs.pytorch.org/docs/stable/distributed.checkpoint.html
"""

import contextlib
import multiprocessing
import shutil
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping, MutableMapping
from concurrent import futures
from concurrent.futures import Future
from enum import IntEnum
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import TracebackType
from typing import Any

import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint import _async_process_executor as executor
from torch.distributed.checkpoint.filesystem import FileSystem
from torch.distributed.checkpoint.staging import DefaultStager, StagingOptions
from torch.distributed.checkpoint.state_dict import (
    get_model_state_dict,
    get_optimizer_state_dict,
    set_model_state_dict,
    set_optimizer_state_dict,
)
from torch.distributed.checkpoint.state_dict_saver import AsyncCheckpointerType
from torch.utils._pytree import tree_leaves

from cluster_job.checkpoints import Checkpoint, CheckpointFolder
from cluster_job.rank_values import PREFIX, Place, RankValues, apart, hide, key_of, put_back
from cluster_job.torch_ranks import TorchRanks

_POLL_SECONDS = 0.005
_PROGRESS_SECONDS = 0.1
_ERROR_SECONDS = 5
"""What a rank's process that writes gets to say itself what failed, where another's did."""

_PARTS = (torch.nn.Module, torch.optim.Optimizer)
"""Whose keys torch knows; the others' are values of the script."""

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - where Linux keeps it


class _Progress(IntEnum):
    """How far a rank is with writing; the least of all ranks' counts."""

    FAILED = 0
    AT_WORK = 1
    DURABLE = 2


class _FileSystem(FileSystem):  # type: ignore[misc] # torch is not there when types are checked
    """Files whose `.metadata` is copied where it cannot be renamed: on Mountpoint for Amazon S3."""

    def rename(self, path: Any, new_path: Any) -> None:  # noqa: ANN401 - torch's own
        try:
            super().rename(path, new_path)
        except OSError:
            shutil.copyfile(path, new_path)


class CommittingWriter(dcp.FileSystemWriter):  # type: ignore[misc]
    """Writes a checkpoint, and marks it as whole when the files of all ranks are durable.

    Args:
        folder: The run's checkpoints.
        checkpoint: What is written.
    """

    def __init__(self, folder: CheckpointFolder, checkpoint: Checkpoint) -> None:
        super().__init__(checkpoint.path, sync_files=True)
        self.fs = _FileSystem()
        self._folder = folder
        self._checkpoint = checkpoint

    def finish(self, metadata: Any, results: Any) -> None:  # noqa: ANN401 - torch's own
        """Write what was saved where, then the marker; torch calls it on one rank when all have written.

        Args:
            metadata: What was saved.
            results: What each rank has written.
        """
        super().finish(metadata, results)
        written = (result.storage_data.relative_path for each in results for result in each)
        self._folder.commit(self._checkpoint, written)


class TorchStorage:
    """Reads and writes states of torch.

    Args:
        folder: The run's checkpoints.
        ranks: The ranks that save together.
    """

    def __init__(self, folder: CheckpointFolder, ranks: TorchRanks) -> None:
        self._folder = folder
        self._ranks = ranks
        self._stager: Any = None
        self._shared = self._failed = False
        self._writing: Future[bool] | None = None
        self._writers: set[BaseProcess] = set()

    def load(self, state: MutableMapping[str, Any], checkpoint: Checkpoint) -> None:
        """Load a checkpoint into the state, whatever the number of ranks that wrote it.

        Args:
            state: What was saved, by name.
            checkpoint: Where it lies.
        """
        plain = state_dicts(state)
        differing, values, own = self._rank_values(checkpoint)
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

    def _rank_values(self, checkpoint: Checkpoint) -> tuple[Collection[Place], Mapping[Place, Any], bool]:
        """Return where values differed by rank, what to put back, and whether what differed is in it."""
        reader = dcp.FileSystemReader(checkpoint.path)
        keys = sorted(key for key in reader.read_metadata().state_dict_metadata if key.startswith(PREFIX))
        if not keys:
            return (), {}, True
        own = key_of(self._ranks.rank, self._ranks.world_size)
        found = {key: b"" for key in (keys[0], own) if key in keys}
        dcp.load(found, storage_reader=reader, process_group=self._ranks.group)
        first = RankValues.from_bytes(found[keys[0]])
        values = {path: value for path, value in first.values.items() if path not in first.paths}
        if own in keys:
            values |= RankValues.from_bytes(found[own]).values
        return first.paths, values, own in keys

    def save(
        self, state: MutableMapping[str, Any], checkpoint: Checkpoint, *, wait: bool, done: Callable[[bool], None]
    ) -> None:
        """Write a checkpoint in the background, or before returning.

        A checkpoint that could not be written is said on standard error, and the job goes on: the next one is due
        soon, and all ranks start new processes for it: the old ones cannot reach one that was killed. One to wait for
        raises.

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
            dcp.save(plain, storage_writer=writer, process_group=self._ranks.group)
            done(True)
            return
        starts = self._stager is None
        if starts:
            self._stager = self._make_stager(plain)
            _end_writer_on_errors()
        elif self._shared and not self._ranks.all(_lives() and not self._failed):
            self._end_writer()
            starts = True
        self._failed = False
        kind = AsyncCheckpointerType.PROCESS if self._shared else AsyncCheckpointerType.THREAD
        with _script_hidden() if starts else contextlib.nullcontext():
            others = set(multiprocessing.active_children())
            writing = dcp.async_save(
                plain,
                storage_writer=writer,
                process_group=self._ranks.group,
                async_checkpointer_type=kind,
                async_stager=self._stager,
            )
            while starts and self._shared and not writing.done():
                self._writers = set(multiprocessing.active_children()) - others
                if self._writers:
                    break
                time.sleep(_POLL_SECONDS)

        is_whole: Future[bool] = Future()
        self._writing = is_whole

        def finished(future: "Future[Any]") -> None:
            error = future.exception()
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
        if self._failed and self._shared:
            futures.wait([writing], timeout=_ERROR_SECONDS)
            self._end_writer()
        futures.wait([writing])
        return not self._failed

    def _end_writer(self) -> None:
        """Let torch start another process that writes: it keeps the first one, even one that has ended."""
        executor._CHECKPOINT_PROCESS = None
        for process in self._writers:
            process.kill()
            process.join(timeout=5)  # one that waits for a file system ends later

    def _make_stager(self, plain: MutableMapping[str, Any]) -> DefaultStager:
        """Return what copies the state; the choice between process and thread is the same on all ranks."""
        size = sum(_bytes(leaf) for leaf in tree_leaves(plain))
        fits = SHARED_MEMORY.is_dir() and shutil.disk_usage(SHARED_MEMORY).free > 1.1 * size
        self._shared = self._ranks.distributed and self._ranks.all(fits)
        if self._ranks.distributed and not self._shared:
            print(  # noqa: T201 - the job's log
                f"{SHARED_MEMORY} has no room for {size / 1e9:.1f} GB of state on each rank: a thread writes "
                "checkpoints, which slows the job. Give the container more shared memory.",
                file=sys.stderr,
            )
        cuda = torch.cuda.is_available()
        return DefaultStager(
            StagingOptions(
                use_pinned_memory=cuda,
                use_shared_memory=self._shared,
                use_async_staging=False,
                use_non_blocking_copy=cuda,
            )
        )


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


def _bytes(leaf: object) -> int:
    local = leaf.to_local() if hasattr(leaf, "to_local") else leaf
    return local.numel() * local.element_size() if isinstance(local, torch.Tensor) else 0


def _progress(is_whole: "Future[bool]") -> _Progress:
    if not is_whole.done():
        return _Progress.AT_WORK
    return _Progress.DURABLE if is_whole.result() else _Progress.FAILED


def _lives() -> bool:
    """Return whether the process that writes is there: the kernel may kill it where memory is short."""
    process = executor._CHECKPOINT_PROCESS
    return process is not None and process._save_process.is_alive()


def _end_writer_on_errors() -> None:
    """Let a process that fails end at once, so that its launcher starts it again.

    Python waits at its end for the thread that waits for the process that writes, which in turn waits for those of
    other ranks: for half an hour, if one of them is lost with its node.
    """
    before = sys.excepthook

    def end(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        before(kind, error, traceback)
        for process in multiprocessing.active_children():  # as Python itself does, but later
            process.terminate()

    sys.excepthook = end


@contextlib.contextmanager
def _script_hidden() -> Iterator[None]:
    """Let the process that writes not run the job's script again, until it has started.

    What the new process imports is said when it starts, so that processes which the script itself spawns later find
    the script. Python's spawn imports the main module in the new process, which trains if the script has no
    `if __name__ == "__main__":`. https://docs.python.org/3/library/multiprocessing.html#the-spawn-and-forkserver-start-methods
    """
    main = sys.modules["__main__"]
    file, spec = getattr(main, "__file__", None), main.__spec__
    main.__file__ = main.__spec__ = None
    try:
        yield
    finally:
        main.__file__, main.__spec__ = file, spec
