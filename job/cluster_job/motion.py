"""Whether a process moves: where its main thread is, and what it and the processes that it started consume."""

import contextlib
import os
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

_TICKS = os.sysconf("SC_CLK_TCK")
_LIBRARIES = (str(Path(os.__file__).parent), "<")
_SHOWN = 60
_WAITING = ("torch.distributed", "torch.autograd", "torch.cuda", "torch.nn.parallel")
"""Where a main thread waits for others; elsewhere in torch, such as in `torch.save`, it works."""

_IN_KERNEL = ("D", "I")
"""States of an uninterruptible sleep; the second is that of Lustre's waits.
https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html"""

CPU_SHARE = 0.05
"""A process moves that uses more of one CPU than this."""

IO_BYTES_PER_SECOND = 200_000
"""A process moves that reads and writes more than this, as one does that waits for a large file."""


@dataclass(frozen=True, kw_only=True)
class Motion:
    """What a process did until a moment.

    Attributes:
        at: The moment, in seconds.
        stack: Where the main thread is, with all of its callers.
        where: The same for people: the innermost line of the script, and of the library that it has called.
        in_torch: Whether the innermost function is one of torch's in which processes wait for others.
        cpu_seconds: What the process and those that it started have used, without this thread.
        io_bytes: What they have read and written.
        in_kernel: Whether one of them is in an uninterruptible sleep, as while a file system does not answer.
    """

    at: float
    stack: tuple[tuple[str, int], ...]
    where: str
    in_torch: bool
    cpu_seconds: float
    io_bytes: int
    in_kernel: bool = False

    def moved_since(self, before: "Motion") -> bool:
        """Return whether the process has done something since an earlier moment.

        A main thread that waits in torch may use a whole CPU, as CUDA's and NCCL's functions do: of such a process
        the CPU does not count.

        Args:
            before: What it had done then.
        """
        if self.stack != before.stack:
            return True
        seconds = self.at - before.at
        computes = not self.in_torch and self.cpu_seconds - before.cpu_seconds > CPU_SHARE * seconds
        return computes or self.io_bytes - before.io_bytes > IO_BYTES_PER_SECOND * seconds


def read_motion() -> Motion:
    """Return what this process has done so far."""
    frames = list(_frames(sys._current_frames().get(threading.main_thread().ident or 0)))
    consumed = [_consumed(process) for process in _family(os.getpid())]
    innermost = frames[0].f_globals.get("__name__", "") if frames else ""
    return Motion(
        at=time.monotonic(),
        stack=tuple((frame.f_code.co_filename, frame.f_lineno) for frame in frames),
        where=_where(frames),
        in_torch=innermost.startswith(_WAITING),
        cpu_seconds=sum(cpu for cpu, *_ in consumed) - time.thread_time(),
        io_bytes=sum(io for _, io, _ in consumed),
        in_kernel=any(state in _IN_KERNEL for *_, state in consumed),
    )


def children(pid: int) -> list[int]:
    """Return the processes that a process has started.

    Args:
        pid: The process.
    """
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):  # the thread has ended
            found += [int(child) for child in task.read_text().split()]
    return found


def _family(pid: int) -> Iterator[int]:
    yield pid
    for child in children(pid):
        yield from _family(child)


def _consumed(pid: int) -> tuple[float, int, str]:
    """Return the CPU seconds of a process, the bytes that it has read and written, and its main thread's state."""
    cpu, io, state = 0.0, 0, ""
    with contextlib.suppress(OSError, ValueError, IndexError):  # it has ended, or is another user's
        # The name may hold blanks. https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        state, cpu = fields[0], (int(fields[11]) + int(fields[12])) / _TICKS
    with contextlib.suppress(OSError, ValueError):
        lines = dict(line.split(": ") for line in Path(f"/proc/{pid}/io").read_text().splitlines())
        io = sum(int(lines.get(name, 0)) for name in ("rchar", "wchar", "read_bytes", "write_bytes"))
    return cpu, io, state


def _frames(frame: FrameType | None) -> Iterator[FrameType]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _where(frames: list[FrameType]) -> str:
    if not frames:
        return "nowhere in Python"
    own = next((frame for frame in frames if not _is_library(frame)), frames[0])
    inner = "" if own is frames[0] else f", which has called {_line(frames[0])}"
    return f"{_line(own)}{inner}"


def _is_library(frame: FrameType) -> bool:
    file = frame.f_code.co_filename
    return file.startswith(_LIBRARIES) or "/site-packages/" in file


def _line(frame: FrameType) -> str:
    file = frame.f_code.co_filename
    short = file.rpartition("/site-packages/")[2] if "/site-packages/" in file else Path(file).name
    return f"{short[-_SHOWN:]}:{frame.f_lineno} in {frame.f_code.co_name[:_SHOWN]}"
