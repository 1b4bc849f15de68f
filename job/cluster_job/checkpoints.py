"""Where a run's checkpoints lie, and which of them is whole: without torch.

A checkpoint is a directory `step-<number>-<attempt>` below the run's. It is whole when its file `.complete` names
every other file with its size, and each is there: that file is written last, when all others are durable. Each start
of a job has an attempt of its own, so that a process that a failure left behind writes into no later one's files.

Nothing is renamed and no directory has to be fsynced, so that this holds on a local disk, on FSx for Lustre and on
Mountpoint for Amazon S3, which offers neither and uploads a file at its fsync:
https://github.com/awslabs/mountpoint-s3/blob/main/doc/SEMANTICS.md. `training-cluster checkpoints` knows the marker.
"""

import contextlib
import json
import os
import re
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from secrets import token_hex

from cluster_job.intervals import History

MARKER = ".complete"
LATEST = "latest"
"""A symbolic link to the newest whole checkpoint, where the file system has links."""

KEPT = 2
"""How many whole checkpoints of a run are kept by default."""

_NAME = re.compile(r"step-(\d{9,})-[0-9a-f]{8}")


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """A whole checkpoint.

    Attributes:
        path: Its directory.
        step: The number of steps that are done in it: the run goes on with this one.
        ended: Whether the processes ended with it: by themselves, for a drain or for a node that joins, and by no
            failure.
        history: What the run had gone through.
    """

    path: Path
    step: int
    ended: bool = False
    history: History = field(default_factory=History)


class CheckpointFolder:
    """The checkpoints of one run.

    Args:
        root: The run's directory.
        keep: How many whole checkpoints are kept, at least 1: older ones are deleted when a newer one is whole.
    """

    def __init__(self, root: Path, *, keep: int = KEPT) -> None:
        self.root = root
        self._keep = keep

    @staticmethod
    def new_attempt() -> str:
        """Return a name for this start of the job: one rank makes it, all use it."""
        return token_hex(4)

    @staticmethod
    def next_attempt(attempt: str) -> str:
        """Return the name under which this start writes a step another time: the same on all ranks.

        Args:
            attempt: The name under which it has written before.
        """
        return f"{(int(attempt, 16) + 1) % 16**8:08x}"

    def path(self, step: int, attempt: str) -> Path:
        """Return the directory of a checkpoint.

        Args:
            step: The number of steps that are done.
            attempt: What `new_attempt` returned.
        """
        return self.root / f"step-{step:09d}-{attempt}"

    def all(self) -> list[Checkpoint]:
        """Return the whole checkpoints, the newest last."""
        found = (read_checkpoint(directory) for directory in self._directories())
        return sorted((one for one in found if one is not None), key=lambda one: (one.step, one.history.rank_hours))

    def latest(self) -> Checkpoint | None:
        """Return the newest whole checkpoint. None: there is none."""
        return next(reversed(self.all()), None)

    def commit(self, checkpoint: Checkpoint, written: Iterable[str]) -> None:
        """Mark a checkpoint as whole, let `latest` point to it, and delete what is older and not to keep.

        Older directories that are not whole are deleted too: a job that was killed left them. A newer one may be
        another replica's, which is writing it.

        Args:
            checkpoint: Its files are all written and durable.
            written: The files that all ranks wrote.

        Raises:
            FileNotFoundError: Some of them lie elsewhere: ranks do not share the directory.
        """
        missing = sorted(name for name in set(written) if not (checkpoint.path / name).is_file())
        if missing:
            raise FileNotFoundError(
                f"{checkpoint.path} lacks {', '.join(missing)}, which other ranks wrote: checkpoints must be in a "
                "directory that all nodes share"
            )
        files = {file.name: file.stat().st_size for file in _files(checkpoint.path)}
        details = {
            "step": checkpoint.step,
            "ended": checkpoint.ended,
            "history": asdict(checkpoint.history),
            "written": datetime.now(timezone.utc).isoformat(timespec="seconds"),
            "files": files,
        }
        write_durable(checkpoint.path / MARKER, json.dumps(details, indent=1).encode())
        self._point(checkpoint.path)
        kept = {checkpoint.path, *(one.path for one in self.all()[-self._keep :])}
        for directory in self._directories():
            if directory not in kept and _step(directory) <= checkpoint.step:
                _remove(directory)

    def _directories(self) -> Iterator[Path]:
        if self.root.is_dir():
            yield from (one for one in self.root.iterdir() if _NAME.fullmatch(one.name) and one.is_dir())

    def _point(self, path: Path) -> None:
        link = self.root / f".{LATEST}-{path.name}"
        with contextlib.suppress(OSError):  # no links there: `latest()` reads the markers
            link.symlink_to(path.name, target_is_directory=True)
            link.replace(self.root / LATEST)


def read_checkpoint(directory: Path) -> Checkpoint | None:
    """Return the checkpoint in a directory. None: it is not whole.

    Args:
        directory: The checkpoint's directory.
    """
    try:
        details = json.loads((directory / MARKER).read_bytes())
        if any((directory / name).stat().st_size != size for name, size in details["files"].items()):
            return None
        return Checkpoint(
            path=directory,
            step=int(details["step"]),
            ended=bool(details["ended"]),
            history=History(**details["history"]),
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def write_durable(file: Path, contents: bytes) -> None:
    """Write a file and wait until it is on the disk, and its name in the directory where that can be asked for.

    Args:
        file: The file.
        contents: What it holds.
    """
    with file.open("wb") as stream:
        stream.write(contents)
        stream.flush()
        os.fsync(stream.fileno())
    with contextlib.suppress(OSError):  # Mountpoint for Amazon S3 has no such call, and does not need it
        directory = os.open(file.parent, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)


def _step(directory: Path) -> int:
    return int(directory.name.split("-")[1])


def _files(directory: Path) -> Iterator[Path]:
    return (file for file in directory.iterdir() if file.name != MARKER)


def _remove(directory: Path) -> None:
    with contextlib.suppress(OSError):  # Mountpoint for Amazon S3 deletes with --allow-delete only
        (directory / MARKER).unlink(missing_ok=True)  # first: what is deleted in part is not whole
        shutil.rmtree(directory)
