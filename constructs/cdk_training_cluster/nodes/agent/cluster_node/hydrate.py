"""`cluster-node hydrate REQUEST`: begin a run, restore one shard, take a last look, or say that it has failed."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

from . import progress
from .clock import Deadline
from .lfs import Lfs
from .programs import ROOT
from .request import BadRequestError, Request, parse
from .restoring import Counting, Counts, Restoring
from .space import Space
from .walk import Walk

OK, BAD_REQUEST, NO_FILE_SYSTEM = 0, 2, 3


class _UnusableError(Exception):
    """The file system cannot be used; the text says why."""


def main(arguments: list[str]) -> int:
    """Do what a request says; its answer is the last line of standard output."""
    parser = argparse.ArgumentParser(
        prog="cluster-node hydrate",
        description="Restore a shard of a data set from S3, for the hydration function. Answers with a line of JSON.",
        epilog="Exit status: 0 with an answer, 2 for a request that cannot be read, 3 without a usable file system.",
    )
    parser.add_argument("request", help="the request: JSON, in base64")
    try:
        request = parse(parser.parse_args(arguments).request)
    except BadRequestError as error:
        sys.stderr.write(f"cluster-node: {error}\n")
        return BAD_REQUEST
    os.umask(0o022)  # Every user's jobs read the progress.
    deadline = Deadline(request.seconds)
    signal.signal(signal.SIGTERM, lambda *_: deadline.end())
    hydration = _Hydration(request, deadline)
    folder = hydration.dataset
    try:
        answer = hydration.act()
    except _UnusableError as error:
        sys.stderr.write(f"cluster-node: {error}\n")
        return NO_FILE_SYSTEM
    except OSError as error:
        # With root squash, root needs a directory that its stand-in may write.
        sys.stderr.write(f"cluster-node: cannot write the progress to {folder}: {error.strerror}\n")
        return NO_FILE_SYSTEM
    sys.stdout.buffer.write(json.dumps(answer, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n")
    return OK


class _Hydration:
    """One request, with the data set's files of progress."""

    def __init__(self, request: Request, deadline: Deadline) -> None:
        self._request, self._deadline = request, deadline
        self._lfs = Lfs(deadline)
        self._root = os.fsencode(ROOT + request.directory)
        self._mount_point = os.fsencode(ROOT + request.mount_point)
        self.dataset = progress.dataset_directory(request.mount_point, request.directory)
        name = "finish" if request.action == "finish" else str(request.shard)
        self._file = self.dataset / request.run / f"{name}.json"

    def act(self) -> dict[str, Any]:
        """Do it and return the answer."""
        failing = self._request.action == "fail"
        # A directory comes with its link, after the run has begun.
        needs_directory = self._request.action in ("restore", "finish")
        why_not = self._lfs.why_not_lustre(self._root if needs_directory else self._mount_point)
        if why_not:
            raise _UnusableError(
                f"{self._request.directory} cannot be restored: {why_not}; check that the file system is mounted "
                f"at {self._request.mount_point} and linked to the bucket"
            )
        # Pods write there, too. Behind a link of theirs, what is written and removed would be the node's own.
        folder, top = self.dataset, Path(os.fsdecode(self._mount_point))
        try:
            self.dataset = progress.opened(top, folder, make=self._request.action != "begin")
            if needs_directory:
                self._file = progress.opened(top, folder / self._request.run, make=True) / self._file.name
        except FileNotFoundError:  # What has not begun has left nothing to forget.
            return self._nothing()
        except NotADirectoryError as error:
            raise _UnusableError(f"{error.filename} in {folder} is a link or a file: remove it") from None
        if failing:
            progress.write(self.dataset / progress.FAILED, {**self._names(), "reason": self._request.reason})
            progress.remove(self.dataset / progress.READY)
            return self._nothing()
        progress.forget_other_runs(self.dataset, self._request.run)
        if self._request.action == "begin":
            return self._nothing()
        try:
            return self._finish() if self._request.action == "finish" else self._restore(self._request)
        finally:
            self._deadline.end()

    def _finish(self) -> dict[str, Any]:
        """Look at all shards together, and restore what has been released or has come since."""
        answer = self._restore(self._request._replace(shard=0, shards=1))
        # A selection without files is a mistake, which the function reports.
        selects = bool(self._request.patterns or self._request.max_bytes is not None)
        all_there = answer["finished"] and not answer["failed_files"] and (answer["files"] > 0 or not selects)
        if all_there:
            names = ("run", "files", "bytes")
            progress.write(self.dataset / progress.READY, {name: answer[name] for name in names})
        # It has counted when it has looked at all.
        return {**answer, **self._names(), "counted": answer["finished"], "finished": all_there}

    def _restore(self, request: Request) -> dict[str, Any]:
        looking_again = self._request.action == "finish"
        saved = progress.read_sound(self._file)
        if saved.get("selection") != request.selection or (looking_again and saved.get("finished")):
            saved = {}
        walk = self._walk(request, saved.get("walk"))
        space, counts = Space(self._mount_point, request.shards), Counts(saved.get("settled"))
        restoring = Restoring(walk, counts, self._lfs, self._deadline, space)
        restoring.attempts = saved.get("attempts", {})
        count: dict[str, Any] = {"is_complete": True} if looking_again else saved.get("count") or {}
        counting = Counting(self._walk(request, count.get("walk")), count, self._deadline)
        finished = saved.get("finished", False)
        moved, was, written = saved.get("moved", time.time()), restoring.counts.save(), 0.0

        # Where the whole file system is one data set, FSx may export each version to the bucket.
        every = 10 if request.directory == request.mount_point else 1

        def write() -> None:
            nonlocal moved, was, written
            now = restoring.now.save()
            if now != was:
                was, moved = now, time.time()
            written = time.monotonic()
            content = {
                **_answer(request, restoring, counting, finished=finished),
                "directory": request.directory,
                "moved": moved,
                "selection": request.selection,
                "settled": restoring.counts.save(),
                "walk": walk.save(restoring.place),
                "count": counting.save(),
                "attempts": restoring.attempts,
            }
            progress.write(self._file, content)

        def report() -> None:
            if time.monotonic() - written >= every:
                write()

        write()
        if not finished:
            with counting:
                restoring.run(report)
            finished = restoring.is_complete and counting.is_complete
            write()
        answer = _answer(request, restoring, counting, finished=finished)
        return {**answer, "shortage": space.shortage} if space.shortage else answer

    def _walk(self, request: Request, saved: dict[str, Any] | None) -> Walk:
        return Walk(self._root, request, saved, has_ended=lambda: self._deadline.has_passed)

    def _nothing(self) -> dict[str, Any]:
        return {**self._names(), "files": 0, "bytes": 0, **Counts().save(), "counted": False, "finished": True}

    def _names(self) -> dict[str, Any]:
        return {"run": self._request.run, "shard": self._request.shard, "shards": self._request.shards}


def _answer(request: Request, restoring: Restoring, counting: Counting, *, finished: bool) -> dict[str, Any]:
    now = restoring.now
    files, size = max(counting.files, now.files + now.failed), max(counting.bytes, now.bytes)
    if finished:
        # Files that went meanwhile were counted and are no longer there.
        files, size = now.files + now.failed, size if now.failed else now.bytes
    return {
        "run": request.run,
        "shard": request.shard,
        "shards": request.shards,
        "files": files,
        "bytes": size,
        **now.save(),
        "copying": restoring.copying,
        "counted": counting.is_complete,
        "finished": finished,
    }
