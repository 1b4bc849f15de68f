"""Where a run's checkpoints lie, and which of them is whole: without torch.

A checkpoint is a directory `step-<number>-<attempt>` below the run's. It is whole when its file `.complete` names
every other file with its size, and each is there: that file is written last, when all others are durable. It holds
the files' digests, which are compared before a checkpoint is loaded. Each start of a job has an attempt of its own,
so that a process that a failure left behind writes into no later one's files.

Of two starts that write into one folder only the one with the later token marks and deletes: see `fencing`.

No write needs a rename or the fsync of a directory, so that this holds on a local disk, on FSx for Lustre and on
Mountpoint for Amazon S3, which offers neither and uploads a file at its fsync:
https://github.com/awslabs/mountpoint-s3/blob/main/doc/SEMANTICS.md. `training-cluster checkpoints` knows the marker.
"""

import contextlib
import json
import math
import os
import re
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime, timezone
from enum import Enum
from pathlib import Path
from secrets import token_hex
from typing import Any

from cluster_job.digests import ALGORITHM, DIGESTS, read_marker
from cluster_job.fencing import Fence, Token
from cluster_job.intervals import History

MARKER = ".complete"
LATEST = "latest"
"""A symbolic link to the newest whole checkpoint, where the file system has links."""

KEPT = 2
"""The number of newest whole checkpoints of a run that are kept by default."""

KEPT_HOURLY = 2
"""The number of hours of which the first whole checkpoint is kept by default: at least one is an hour old."""

KEPT_DAILY = 2
"""The same of days in UTC."""

_MOST_FAILURES = 2**32
_HOUR, _DAY = len("2026-11-28T10"), len("2026-11-28")  # of a time in ISO 8601
_DELETED = ".deleted"
_ROLLED_BACK = ".rolled-back-to-{step}"
_NAME = re.compile(r"step-(\d{9,})-[0-9a-f]{8}")


def _now() -> datetime:
    return datetime.now(timezone.utc)


class Aside(Enum):
    """The reason for which a whole checkpoint is kept and no longer used: its name ends in it."""

    DAMAGED = ".damaged"
    """Its contents are not those that were written."""

    ABANDONED = ".abandoned"
    """The run went back to an earlier step."""


@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """A whole checkpoint.

    Attributes:
        path: Its directory.
        step: The number of steps that are done in it: the run goes on with this one.
        ended: Whether the processes ended with it: by themselves, for a drain or for a node that joins, and by no
            failure.
        history: What the run had gone through.
        written: When it was written, in UTC and ISO 8601. Empty: it is being written.
    """

    path: Path
    step: int
    ended: bool = False
    history: History = field(default_factory=History)
    written: str = field(default="", compare=False)

    @property
    def marker(self) -> Path:
        """The file that says that it is whole."""
        return self.path / MARKER


class CheckpointFolder:
    """The checkpoints of one run.

    Args:
        root: The run's directory.
        keep: The number of newest whole checkpoints that are kept, at least 1: older ones are deleted when a newer
            one is whole.
        keep_hourly: The number of the last hours of which the first checkpoint is kept.
        keep_daily: The same of days.
        token: The token of the start's lease. None: it has none, and is kept from nothing.
        clock: Returns the time in UTC; a function that can be sent to the process that writes.
    """

    def __init__(
        self,
        root: Path,
        *,
        keep: int = KEPT,
        keep_hourly: int = 0,
        keep_daily: int = 0,
        token: Token | None = None,
        clock: Callable[[], datetime] = _now,
    ) -> None:
        self.root = root
        self._keep = keep
        self._keep_hourly = keep_hourly
        self._keep_daily = keep_daily
        self._token = token
        self._fence = Fence(root, token)
        self._clock = clock

    def open(self) -> None:
        """Keep earlier starts from changing checkpoints, and delete what they have not finished.

        Raises:
            Superseded: A later start has opened the folder.
        """
        if self._token is None:
            return
        with contextlib.suppress(OSError):  # such as of a full disk: without a token no checkpoint is marked
            if not self._fence.put_up():  # what this start writes itself stays
                return
            for directory in list(self._directories()):
                if not (directory / MARKER).exists():
                    # First renamed, so that who still writes there cannot mark it.
                    with contextlib.suppress(OSError):
                        directory.rename(directory.with_name(directory.name + _DELETED))
                    _remove(directory)
            for directory in self.root.glob(f"step-*{_DELETED}"):
                _remove(directory)

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

    def set_aside(self, path: Path, reason: Aside) -> Path:
        """Keep a checkpoint and use it no longer: return its new directory.

        Where the file system cannot rename it, a file in it has the same meaning.

        Args:
            path: Its directory.
            reason: The reason.

        Raises:
            Superseded: A later start has opened the folder.
        """
        aside = path.with_name(path.name + reason.value)
        try:
            self._fence.check()
            path.rename(aside)
        except OSError:
            with contextlib.suppress(OSError):  # another replica has set it aside
                write_durable(path / reason.value, b"")
            return path
        return aside

    def set_damaged_aside(self) -> list[Path]:
        """Set those checkpoints aside whose files are not as long as their markers say; return them."""
        return [
            self.set_aside(directory, Aside.DAMAGED)
            for directory in list(self._directories())
            if (found := _read_marker(directory)) is not None and _is_whole(directory, found) is False
        ]

    def damaged(self) -> list[Path]:
        """Return the damaged checkpoints that were set aside."""
        if not self.root.is_dir():
            return []
        suffix = Aside.DAMAGED.value
        return sorted(one for one in self.root.iterdir() if one.name.endswith(suffix) or (one / suffix).exists())

    def is_rolled_back(self, step: int) -> bool:
        """Return whether the run went back to a step before: what is newer was written after that."""
        return (self.root / _ROLLED_BACK.format(step=step)).exists()

    def roll_back(self, to: Checkpoint) -> list[Path]:
        """Set the checkpoints aside that are newer than one, and remember it; return them.

        Args:
            to: The checkpoint with which the run goes on.

        Raises:
            Superseded: A later start has opened the folder.
        """
        self._fence.check()
        newer = [self.set_aside(one.path, Aside.ABANDONED) for one in self.all() if one.step > to.step]
        write_durable(self.root / _ROLLED_BACK.format(step=to.step), b"")
        self._point(to.path)
        return newer

    def commit(
        self, checkpoint: Checkpoint, written: Iterable[str], digests: Mapping[str, str] | None = None
    ) -> None:
        """Mark a checkpoint as whole, let `latest` point to it, and delete what is older and not to keep.

        Older directories that are not whole are deleted too: a job that was killed left them. A newer one may be
        another replica's, which is writing it.

        Args:
            checkpoint: Its files are all written and durable.
            written: The files that all ranks wrote.
            digests: The digests of files, by their names. Default: - none are compared when it is loaded.

        Raises:
            FileNotFoundError: Some of them lie elsewhere: ranks do not share the directory.
            Superseded: A later start has opened the folder.
        """
        self._fence.check()
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
            "written": self._clock().isoformat(timespec="seconds"),
            "files": files,
        }
        if digests:
            details[DIGESTS] = {"algorithm": ALGORITHM, "files": dict(digests)}
        write_durable(checkpoint.path / MARKER, json.dumps(details, indent=1).encode())
        self._fence.check()  # a start that opens the folder after this sees the marker, and needs no older one
        self._point(checkpoint.path)
        # Newer ones stay, and count for none that is kept: this run may have found that it cannot read them.
        kept = {checkpoint.path, *self._kept([one for one in self.all() if one.step <= checkpoint.step])}
        for directory in self._directories():
            if directory not in kept and _step(directory) <= checkpoint.step:
                _remove(directory)

    def _kept(self, whole: Sequence[Checkpoint]) -> Iterator[Path]:
        yield from (one.path for one in whole[-self._keep :])
        for count, length in ((self._keep_hourly, _HOUR), (self._keep_daily, _DAY)):
            first: dict[str, Path] = {}
            for one in sorted(whole, key=lambda one: (one.written, one.step)):
                first.setdefault(one.written[:length], one.path)
            yield from list(first.values())[len(first) - count if count < len(first) else 0 :]

    def _directories(self) -> Iterator[Path]:
        if self.root.is_dir():
            for one in self.root.iterdir():
                if (
                    _NAME.fullmatch(one.name)
                    and one.is_dir()
                    and not any((one / why.value).exists() for why in Aside)
                ):
                    yield one

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
    details = _read_marker(directory)
    if details is None or not _is_whole(directory, details):
        return None
    try:
        history = History(**details["history"])
        history = History(failures=int(history.failures), rank_hours=float(history.rank_hours))
        found = Checkpoint(
            path=directory,
            step=int(details["step"]),
            ended=bool(details["ended"]),
            history=history,
            written=str(details.get("written", "")),
        )
    except (ValueError, KeyError, TypeError, OverflowError):
        return None
    is_sound = 0 <= history.failures < _MOST_FAILURES and 0 <= history.rank_hours < math.inf
    return found if is_sound and found.step == _step(directory) else None


def _read_marker(directory: Path) -> dict[str, Any] | None:
    """Return what a marker holds. None: there is none, or it is not whole itself."""
    try:
        details = read_marker(directory / MARKER)
    except (OSError, ValueError, RecursionError):
        return None
    return details if isinstance(details, dict) and isinstance(details.get("files"), dict) else None


def _is_whole(directory: Path, details: Mapping[str, Any]) -> bool | None:
    """Return whether all files are there and as long as the marker says. None: they cannot be looked at now."""
    files = details["files"]
    try:
        # Who writes a marker writes its names, too: one that leads elsewhere, or to a device, is none of a file.
        found = {file.name: file.stat() for file in _files(directory) if file.name in files}
    except FileNotFoundError:
        return False
    except OSError:
        return None
    sizes = {name: status.st_size for name, status in found.items() if stat.S_ISREG(status.st_mode)}
    return all(sizes.get(name) == size for name, size in files.items())


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
