"""Goes through a data set's files in order, a million of them too, without ever holding them all.

The order is that of the names' bytes, directory by directory, so that every node sees the same, and a walk can go on
after any file. A file belongs to a shard by its inode number, which a directory's listing tells without a request for
each file, and which hard links share.
"""

from __future__ import annotations

import fnmatch
import os
import stat
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from .request import Request

WORKING_DIRECTORY = b".cdk-training-cluster"
"""The directory at the mount point that is this library's own."""

# How many inodes with several names are remembered. Of further ones each name counts.
_MAX_LINKS = 4_096
_DIRECTORY = -1


class Place(NamedTuple):
    """Where a walk stands.

    Attributes:
        cursor: The path of the last file, selected or not, relative to the directory. Empty: it has not begun.
        selected_bytes: The bytes of all selected files up to there, of all shards; only with a limit.
        links: How many inodes with several names it has met.
    """

    cursor: bytes = b""
    selected_bytes: int = 0
    links: int = 0


class File(NamedTuple):
    """A selected file of this shard, or a file or directory that cannot be read.

    Attributes:
        path: Its path.
        size: Its size in bytes.
        error: Why it cannot be read. Empty: it can.
        place: Where the walk stands after it.
    """

    path: bytes
    size: int
    error: str
    place: Place


class Walk:
    """A walk through the selected files of one shard.

    Attributes:
        place: Where it stands.
    """

    def __init__(
        self,
        root: bytes,
        request: Request,
        saved: dict[str, Any] | None = None,
        *,
        has_ended: Callable[[], bool] = lambda: False,
        chunk: int = 65_536,
    ) -> None:
        """Begin, or go on where a walk stood.

        Args:
            root: The data set's directory.
            request: Which files, and which shard of them.
            saved: What `save` returned. Default: - it begins.
            has_ended: Whether to stop, which is asked before each file. Default: - it goes to the end.
            chunk: How many entries of a directory are held at most, twice over; a larger directory is read again for
                the next ones. Default: 65,536
        """
        self._has_ended, self._chunk = has_ended, chunk
        self._root, self._request = root, request
        self._patterns = tuple(_text(os.fsencode(pattern)) for pattern in request.patterns)
        saved = saved or {}
        self._links: list[int] = list(saved.get("links", ()))
        self._known = set(self._links)
        self.place: Place = Place(_bytes(saved.get("cursor", "")), saved.get("selected_bytes", 0), len(self._links))

    def save(self, place: Place) -> dict[str, Any]:
        """Return what a later walk needs to go on at a place that this one has passed."""
        links = self._links[: place.links]
        return {"cursor": _text(place.cursor), "selected_bytes": place.selected_bytes, "links": links}

    def __iter__(self) -> Iterator[File]:
        """Yield what comes next; the place moves on with each file, selected or not."""
        hidden = WORKING_DIRECTORY if self._request.directory == self._request.mount_point else None
        for relative, inode, unlisted in _paths(self._root, self.place.cursor, hidden, self._chunk, self._has_ended):
            # What cannot be listed is reported once, by the first shard.
            is_mine = self._request.shard == 0 if unlisted else self._is_mine(inode)
            size, error = (0, unlisted) if unlisted else self._look_up(relative, is_mine=is_mine)
            total = self.place.selected_bytes
            if self._request.max_bytes is not None and size is not None:
                total += size
                if total > self._request.max_bytes:
                    return
            self.place = Place(relative, total, len(self._links))
            if is_mine and size is not None:
                yield File(self._root + b"/" + relative, size, error, self.place)

    def _look_up(self, relative: bytes, *, is_mine: bool) -> tuple[int | None, str]:
        """Return the size of a selected file, or why it cannot be looked up; no size for what is not selected."""
        # With a limit the sizes of all shards count.
        if not self._matches(relative) or not (is_mine or self._request.max_bytes is not None):
            return None, ""
        try:
            status = os.lstat(self._root + b"/" + relative)
        except FileNotFoundError:
            return None, ""
        except OSError as failure:
            return 0, f"cannot be looked up: {failure.strerror}"
        return (status.st_size if stat.S_ISREG(status.st_mode) and not self._is_known(status) else None), ""

    def _matches(self, relative: bytes) -> bool:
        name = _text(relative)
        return not self._patterns or any(fnmatch.fnmatchcase(name, pattern) for pattern in self._patterns)

    def _is_mine(self, inode: int) -> bool:
        return shard_of(inode, self._request.shards) == self._request.shard

    def _is_known(self, status: os.stat_result) -> bool:
        if status.st_nlink < 2:  # noqa: PLR2004 - one name
            return False
        if status.st_ino in self._known:
            return True
        if len(self._links) < _MAX_LINKS:
            self._links.append(status.st_ino)
            self._known.add(status.st_ino)
        return False


def shard_of(inode: int, shards: int) -> int:
    """Return the shard of a file, from 0; neighbouring inodes go to different ones."""
    # Fibonacci hashing: the golden ratio as a fraction of 2**64 scatters numbers that follow each other.
    return (inode * 0x9E3779B97F4A7C15 >> 32 & 0xFFFFFFFF) % shards


def _paths(
    root: bytes, cursor: bytes, hidden: bytes | None, chunk: int, has_ended: Callable[[], bool]
) -> Iterator[tuple[bytes, int, str]]:
    """Yield the relative path and inode of each file after the cursor, or the error of an unreadable directory."""
    steps = cursor.split(b"/") if cursor else []
    stack = [_entries(root, b"", steps[0] if steps else b"", chunk)]
    while stack and not has_ended():
        entry = next(stack[-1], None)
        if entry is None:
            stack.pop()
            continue
        relative, inode, error = entry
        if relative == hidden or (cursor and relative == cursor):
            continue
        if inode == _DIRECTORY and not error:
            depth = len(stack)
            leads_on = depth < len(steps) and relative == b"/".join(steps[:depth])
            stack.append(_entries(root, relative, steps[depth] if leads_on else b"", chunk))
        else:
            yield entry


def _entries(root: bytes, directory: bytes, start: bytes, chunk: int) -> Iterator[tuple[bytes, int, str]]:
    """Yield the entries of a directory in order, from a name on: relative path, inode (-1: a directory), error."""
    prefix = directory + b"/" if directory else b""
    while True:
        try:
            entries = _smallest(root + b"/" + directory, start, chunk)
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as failure:
            yield directory, _DIRECTORY, f"cannot list the directory: {failure.strerror}"
            return
        for packed in entries:
            name, _, number = packed.partition(b"\0")
            yield prefix + name, int(number), ""
        if len(entries) < chunk:
            return
        start = entries[-1].partition(b"\0")[0] + b"\0"


def _smallest(directory: bytes, start: bytes, count: int) -> list[bytes]:
    """Return the first entries from a name on, in order, each as name, zero byte, inode: half the size of a tuple."""
    kept: list[bytes] = []
    bound = None
    with os.scandir(directory) as entries:
        for entry in entries:
            name: Any = entry.name
            if name < start or (bound is not None and name > bound):
                continue
            if entry.is_dir(follow_symlinks=False):
                kept.append(b"%b\0%d" % (name, _DIRECTORY))
            elif entry.is_file(follow_symlinks=False):
                kept.append(b"%b\0%d" % (name, entry.inode()))
            if len(kept) >= 2 * count:
                kept.sort()
                del kept[count:]
                bound = kept[-1].partition(b"\0")[0]
    kept.sort()
    del kept[count:]
    return kept


def _text(path: bytes) -> str:
    return path.decode("utf-8", "surrogateescape")


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")
