"""Restores the files of a walk: many to a call of `lfs`, several calls at once, and counts what has its contents."""

from __future__ import annotations

import concurrent.futures
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from .clock import (
    FIRST_PATIENCE_SECONDS,
    FIRST_POLL_SECONDS,
    LAST_PATIENCE_SECONDS,
    LAST_POLL_SECONDS,
    Deadline,
)
from .lfs import PRESENT, RELEASED, Lfs
from .space import Space
from .walk import File, Place, Walk

CALLS_AT_ONCE = 8
"""How many calls of `lfs` run at once; see benchmarks/README.md."""

# How many restores all nodes together keep under way. Lustre's metadata server keeps a list of them that each request
# searches (hsm_find_compatible in lustre/mdt/mdt_hsm_cdt_client.c): "use batch sizes from 1,000 to 5,000 requests",
# https://learn.microsoft.com/en-us/azure/azure-managed-lustre/restore-data
_UNDER_WAY = 4_096
_LEAST_FILES = 32
# The kernel takes 2 MiB of arguments and environment together; how much of it others use is not known.
_MAX_ARGUMENT_BYTES = 128 * 1024

_ATTEMPTS = 3
_MAX_FAILURES = 5
_MAX_PATH, _MAX_ERROR = 300, 200


class Counts:
    """How many files have their contents, and how many could not be restored."""

    def __init__(self, saved: dict[str, Any] | None = None) -> None:
        """Begin at zero.

        Args:
            saved: What `save` returned. Default: - zero.
        """
        saved = saved or {}
        self.files: int = saved.get("restored_files", 0)
        self.bytes: int = saved.get("restored_bytes", 0)
        self.failed: int = saved.get("failed_files", 0)
        self.failures: list[dict[str, str]] = list(saved.get("failures", ()))

    def save(self) -> dict[str, Any]:
        """Return it for a file."""
        return {
            "restored_files": self.files,
            "restored_bytes": self.bytes,
            "failed_files": self.failed,
            "failures": self.failures,
        }

    def restored(self, file: File) -> None:
        """Count a file that has its contents."""
        self.files += 1
        self.bytes += file.size

    def could_not(self, path: bytes, error: str) -> None:
        """Count a file that cannot be restored."""
        self.failed += 1
        if len(self.failures) < _MAX_FAILURES:
            text = path.decode("utf-8", "backslashreplace")
            self.failures.append({"path": _cut(text, _MAX_PATH), "error": _cut(error, _MAX_ERROR)})

    def add(self, other: Counts) -> None:
        """Add another's counts."""
        self.files, self.bytes, self.failed = (
            self.files + other.files,
            self.bytes + other.bytes,
            self.failed + other.failed,
        )
        self.failures = (self.failures + other.failures)[:_MAX_FAILURES]


class Restoring:
    """The restore of what a walk finds.

    Attributes:
        counts: What is counted up to `place`.
        place: The walk's place up to which nothing is left to try.
        is_complete: Whether the walk has come to its end.
        attempts: How often each file that is left has failed, by its path: what the next request is given.
    """

    def __init__(self, walk: Walk, counts: Counts, lfs: Lfs, deadline: Deadline, space: Space) -> None:
        """Prepare it.

        Args:
            walk: The files.
            counts: What is counted before the walk's place.
            lfs: The client's command.
            deadline: When to stop.
            space: Where the contents go, on this node and others; a shortage ends the restore.
        """
        self.counts: Counts = counts
        self.place: Place = walk.place
        self.is_complete: bool = False
        self.attempts: dict[str, int] = {}
        self._walk, self._lfs, self._deadline, self._space = walk, lfs, deadline, space
        self._batch_files = max(_LEAST_FILES, _UNDER_WAY // space.shards // CALLS_AT_ONCE)
        self._batches: deque[tuple[concurrent.futures.Future[bool], _Batch]] = deque()

    @property
    def now(self) -> Counts:
        """What is counted with that which is under way."""
        total = Counts(self.counts.save())
        for _, batch in self._batches:
            total.add(batch.counts)
        return total

    @property
    def copying(self) -> bool:
        """Whether Lustre said, when it was last asked, that it copies a file: a large one counts when it is whole."""
        return any(batch.copying for _, batch in self._batches)

    def run(self, report: Callable[[], None]) -> None:
        """Restore until the end of the walk or of the time.

        Args:
            report: Called at least once a second.
        """
        with concurrent.futures.ThreadPoolExecutor(CALLS_AT_ONCE) as workers:
            for files in self._in_batches():
                batch = _Batch(files, self._lfs, self._deadline, self.attempts, self._space)
                self._batches.append((workers.submit(batch.run), batch))
                while len(self._batches) > CALLS_AT_ONCE + 1 and not self._deadline.has_passed:
                    self._settle(report)
                if self._deadline.has_passed:
                    break
            else:
                while self._batches and not self._deadline.has_passed:
                    self._settle(report)
            for future, _ in self._batches:
                future.cancel()
        # In order, so that the place is one before which all is settled.
        while self._batches and self._take():
            pass
        if not self._batches:
            self.place = self._walk.place
        self.is_complete = not self._batches and not self._deadline.has_passed
        self.attempts = {_name(path): count for _, batch in self._batches for path, count in batch.attempts.items()}

    def _settle(self, report: Callable[[], None]) -> None:
        concurrent.futures.wait([self._batches[0][0]], timeout=1)
        if self._batches[0][0].done():
            self._take()
        report()

    def _take(self) -> bool:
        future, batch = self._batches[0]
        if future.cancelled() or not future.result():
            return False
        self.counts.add(batch.counts)
        self.place = batch.place
        self._batches.popleft()
        return True

    def _in_batches(self) -> Iterator[list[File]]:
        files, size = list[File](), 0
        for file in self._walk:
            files.append(file)
            size += len(file.path)
            if len(files) >= self._batch_files or size >= _MAX_ARGUMENT_BYTES:
                yield files
                files, size = [], 0
        if files:
            yield files


class _Batch:
    """Some files that are restored together."""

    def __init__(
        self, files: list[File], lfs: Lfs, deadline: Deadline, attempts: dict[str, int], space: Space
    ) -> None:
        self.counts, self.place, self.copying = Counts(), files[-1].place, False
        # Each file is tried once more by each request, so that one that has been mended comes.
        known = ((file.path, attempts.get(_name(file.path), 0)) for file in files) if attempts else ()
        self.attempts = {path: min(count, _ATTEMPTS - 1) for path, count in known if count}
        self._lfs, self._deadline, self._space = lfs, deadline, space
        self._waiting: dict[bytes, File] = {}
        self._under_way: set[bytes] = set()
        for file in files:
            if file.error:
                self.counts.could_not(file.path, file.error)
            elif file.size == 0:
                self.counts.restored(file)  # It has no contents to lack.
            else:
                self._waiting[file.path] = file

    def run(self) -> bool:
        """Restore them; return whether none is left to try, False if the time is over first."""
        pause, patience, moved = FIRST_POLL_SECONDS, FIRST_PATIENCE_SECONDS, time.monotonic()
        while self._waiting:
            before = len(self._waiting)
            states = self._lfs.states(self._waiting)
            if self._deadline.has_passed:
                return False
            self._sort_out(states)
            if len(self._waiting) < before:
                moved, patience = time.monotonic(), FIRST_PATIENCE_SECONDS
            elif time.monotonic() - moved > patience:
                self._ask_about_those_that_do_not_come()
                moved, patience = time.monotonic(), min(2 * patience, LAST_PATIENCE_SECONDS)
            if paths := [path for path in self._waiting if path not in self._under_way]:
                self._ask_for(paths)
            if self._waiting:
                self._deadline.sleep(pause)
                pause = min(2 * pause, LAST_POLL_SECONDS)
            if self._deadline.has_passed:
                return False
        return True

    def _sort_out(self, states: dict[bytes, str]) -> None:
        for path, file in list(self._waiting.items()):
            state = states.get(path)
            if state == RELEASED:
                continue
            if state == PRESENT:
                self.counts.restored(file)
            elif state is not None:
                self._try_again(path, state)
                continue
            # A file that was deleted meanwhile is no failure: there is nothing to restore.
            self._end(path)
            del self._waiting[path]

    def _ask_for(self, paths: list[bytes]) -> None:
        fitting = self._space.take([self._waiting[path].size for path in paths])
        self._under_way.update(paths[:fitting])
        for path, error in self._lfs.restore(paths[:fitting]).items():
            self._try_again(path, error)
        if fitting < len(paths):
            self._wait_for_space(paths[fitting:])

    def _wait_for_space(self, paths: list[bytes]) -> None:
        """End the restore where nothing is under way whose end shows how much space there is for the others."""
        resting = set(self._lfs.actions(paths)[0])
        # What an earlier request has begun has had its space, and part of it may have come.
        for path in paths:
            if path not in resting:
                self._under_way.add(path)
                self._space.add(self._waiting[path].size)
        # The first may have come between the two questions.
        is_left = bool(resting) and self._lfs.states(paths[:1]).get(paths[0]) == RELEASED
        if is_left and not self._deadline.has_passed and self._space.is_short_for(self._waiting[paths[0]].size):
            self._deadline.end()

    def _end(self, path: bytes) -> None:
        if path in self._under_way:
            self._under_way.discard(path)
            self._space.add(-self._waiting[path].size)

    def _ask_about_those_that_do_not_come(self) -> None:
        resting, copying = self._lfs.actions([path for path in self._waiting if path in self._under_way])
        if self._deadline.has_passed:
            return  # The question was broken off.
        self.copying = copying
        # It may have come between the two questions.
        states = self._lfs.states(resting) if resting else {}
        for path, state in states.items():
            if state == RELEASED and not self._deadline.has_passed:
                self._try_again(
                    path,
                    "Lustre ended the restore without the contents: check the object in S3, and that FSx may read it",
                )

    def _try_again(self, path: bytes, error: str) -> None:
        self._end(path)
        self.attempts[path] = self.attempts.get(path, 0) + 1
        if self.attempts[path] >= _ATTEMPTS and not self._deadline.has_passed:
            del self._waiting[path]
            self.counts.could_not(path, error)


class Counting:
    """Counts the selected files of a shard beside their restore, so that it can be said how much is left.

    Attributes:
        files: How many are counted.
        bytes: Their bytes.
        is_complete: Whether these are all.
    """

    def __init__(self, walk: Walk, saved: dict[str, Any], deadline: Deadline) -> None:
        """Begin, or go on.

        Args:
            walk: The files.
            saved: What `save` returned, empty at first.
            deadline: When to stop.
        """
        self.files: int = saved.get("files", 0)
        self.bytes: int = saved.get("bytes", 0)
        self.is_complete: bool = saved.get("is_complete", False)
        self._walk, self._deadline, self._place = walk, deadline, walk.place
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Counting:
        """Count in the background."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Wait for the end, which the deadline brings."""
        self._thread.join()

    def save(self) -> dict[str, Any]:
        """Return it for a file."""
        with self._lock:
            walk = self._walk.save(self._place)
            return {"files": self.files, "bytes": self.bytes, "is_complete": self.is_complete, "walk": walk}

    def _run(self) -> None:
        if self.is_complete:
            return
        for file in self._walk:
            with self._lock:
                self.files, self.bytes, self._place = self.files + 1, self.bytes + file.size, file.place
            if self._deadline.has_passed:
                return
        with self._lock:
            self._place, self.is_complete = self._walk.place, not self._deadline.has_passed


def _name(path: bytes) -> str:
    return path.decode("utf-8", "surrogateescape")


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else f"{text[: length - 1]}…"
