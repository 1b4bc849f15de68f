"""The free space of the file system, of which a restore leaves a reserve to the jobs."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence

RESERVE_PERCENT = 5
"""How much of the file system stays free for what jobs write, such as checkpoints."""


class Space:
    """What a node may have under way at once: its shard's part of the free space without the reserve.

    A file counts with its whole size until it has its contents, since how much of it has come is not known.

    Attributes:
        shards: How many nodes restore at the same time.
        shortage: Why the next file is not requested: its size and the space. Empty: nothing is short.
    """

    def __init__(self, mount_point: bytes, shards: int) -> None:
        """Count nothing yet.

        Args:
            mount_point: Where the file system is mounted.
            shards: How many nodes restore at the same time.
        """
        self.shortage: str = ""
        self.shards: int = shards
        self._mount_point = mount_point
        self._lock, self._under_way = threading.Lock(), 0

    def take(self, sizes: Sequence[int]) -> int:
        """Count the first files, as many as there is space for, as under way, and return how many these are."""
        with self._lock:
            most, count = self._most(), 0
            for size in sizes:
                if self._under_way + size > most:
                    break
                self._under_way, count = self._under_way + size, count + 1
            return count

    def add(self, size: int) -> None:
        """Count a file that is under way already.

        Args:
            size: Its bytes, negative where it is under way no longer.
        """
        with self._lock:
            self._under_way += size

    def is_short_for(self, size: int) -> bool:
        """Say whether a file has no space although nothing is under way, so that waiting does not help.

        Args:
            size: Its bytes.
        """
        with self._lock:
            if self._under_way or size <= self._most():
                return False
            total, free = self._read()
            self.shortage = (
                f"the next file has {size_text(size)}, and {size_text(free)} of {size_text(total)} are available, "
                f"of which {size_text(_reserve(total))} ({RESERVE_PERCENT} %) stay free for jobs"
            )
            return True

    def _most(self) -> int:
        total, available = self._read()
        return max(0, available - _reserve(total)) // self.shards

    def _read(self) -> tuple[int, int]:
        """Return the file system's bytes, and those that users can still write: sums over all of its targets.

        Lustre's client keeps the answer for a second. The reserve is larger than what comes in that time.
        """
        found = os.statvfs(self._mount_point)
        return found.f_blocks * found.f_frsize, found.f_bavail * found.f_frsize


def _reserve(total: int) -> int:
    return total * RESERVE_PERCENT // 100


def size_text(number: float) -> str:
    """Return a number of bytes as people read it."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if number < 1024:  # noqa: PLR2004 - the next unit
            return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1024
    return f"{number:.1f} TiB"
