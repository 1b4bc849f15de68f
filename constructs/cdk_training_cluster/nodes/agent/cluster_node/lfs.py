"""Calls Lustre's `lfs` for many files at once, and tells for each file what it said.

What `lfs` does stands in its source, lustre/utils/lfs.c. A request to restore is one request for all its files: one
that cannot be looked up fails it before it is sent, and one that is refused ends it with an error that names the
first. Where that happens, or a call hangs, it is cut in halves until the file is found. `hsm_state` and `hsm_action`
print a line a file, in order, and end at the first that cannot be read. A name may hold a line's end, so that lines
are read by the names that are expected next.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterable, Sequence

from .clock import Deadline, call_seconds

_STATE = re.compile(rb": \((0x[0-9a-f]+)\)[^\n]*\n")
_ACTION = re.compile(rb": ([A-Z]+(?: [a-z]+)?)[^\n]*\n")

# https://github.com/lustre/lustre-release/blob/master/lustre/include/uapi/linux/lustre/lustre_user.h: hsm_states
_DIRTY, _RELEASED, _ARCHIVED, _LOST = 0x2, 0x4, 0x8, 0x40

PRESENT, RELEASED = "present", "released"
"""What a file is, where nothing is wrong with it."""

# The client refuses a request of more than 52 files with E2BIG: 24 bytes and 32 a file must stay below 5,120 / 3.
# LL_IOC_HSM_REQUEST in lustre/llite/dir.c, MDS_MAXREQSIZE in lustre/include/lustre_net.h:
# https://github.com/lustre/lustre-release/blob/master/lustre/llite/dir.c
_MAX_REQUEST_FILES = 50

# In place of an exit status, which is never negative unless a signal ended the call.
_HUNG, _UNUSABLE = -1_000, -1_001
# After as many files of one call that cannot be read for the same reason the others are not tried.
_SAME_ERRORS = 3


class Lfs:
    """The client's command."""

    def __init__(self, deadline: Deadline) -> None:
        """Find it when it is first called.

        Args:
            deadline: When a call is broken off.
        """
        self._deadline = deadline

    def states(self, paths: Iterable[bytes]) -> dict[bytes, str]:
        """Return for each file `PRESENT`, `RELEASED`, or why it cannot be restored; what is gone is left out."""
        return {path: _state(said) for path, said in self._ask("hsm_state", _STATE, paths).items()}

    def actions(self, paths: Iterable[bytes]) -> tuple[list[bytes], bool]:
        """Return the files that Lustre does nothing with, and whether it copies one of the others now."""
        said = self._ask("hsm_action", _ACTION, paths)
        return [path for path in said if said[path] == b"NOOP"], b"RESTORE running" in said.values()

    def restore(self, paths: Sequence[bytes]) -> dict[bytes, str]:
        """Ask Lustre to restore files, which it does later, and return those that it refuses, with its reasons."""
        refused = dict[bytes, str]()
        for first in range(0, len(paths), _MAX_REQUEST_FILES):
            refused.update(self._request(paths[first : first + _MAX_REQUEST_FILES]))
        return refused

    def _request(self, paths: Sequence[bytes]) -> dict[bytes, str]:
        if self._deadline.has_passed:
            return {}
        status, _, error = self._call("hsm_restore", paths)
        if status == 0 or self._deadline.has_passed:
            return {}
        present = [path for path in paths if os.path.lexists(path)]
        if len(present) < len(paths):
            return self._request(present) if present else {}
        if status == _UNUSABLE or len(paths) == 1:
            return dict.fromkeys(paths, error.rpartition(": ")[2])
        half = len(paths) // 2
        return {**self._request(paths[:half]), **self._request(paths[half:])}

    def why_not_lustre(self, directory: bytes) -> str:
        """Return why a directory is not one of a mounted Lustre file system, or an empty text."""
        status, _, error = self._call("path2fid", [directory])
        return "" if status == 0 else error.rpartition(": ")[2]

    def _ask(self, command: str, line: re.Pattern[bytes], paths: Iterable[bytes]) -> dict[bytes, bytes | str]:
        """Return what the command says of each file, as bytes, or why it cannot be read, as a text."""
        waiting, answers, errors = list(paths), dict[bytes, "bytes | str"](), list[str]()
        while waiting and not self._deadline.has_passed:
            status, output, error = self._call(command, waiting)
            at = known = 0
            while known < len(waiting):
                path = waiting[known]
                found = line.match(output, at + len(path)) if output.startswith(path, at) else None
                if found is None:
                    break
                answers[path] = found[1]
                at, known = found.end(), known + 1
            waiting = waiting[known:]
            if status == 0 and not known:
                status, error = _UNUSABLE, f"lfs {command} did not answer with a line for each file"
            if status == _HUNG and len(waiting) > 1:
                half = len(waiting) // 2
                answers.update(self._ask(command, line, waiting[:half]))
                waiting = waiting[half:]
            elif status != 0 and waiting:
                reason = error.rpartition(": ")[2]
                errors.append(reason)
                if os.path.lexists(waiting[0]):
                    answers[waiting[0]] = reason
                if status == _UNUSABLE or errors[-_SAME_ERRORS:] == [reason] * _SAME_ERRORS:
                    answers.update((path, reason) for path in waiting if os.path.lexists(path))
                    break
                waiting = [path for path in waiting[1:] if os.path.lexists(path)]
        return answers

    def _call(self, command: str, paths: Sequence[bytes]) -> tuple[int, bytes, str]:
        """Return exit status, output and error text; a call that hangs is killed and left."""
        seconds = call_seconds(len(paths))
        end = time.monotonic() + seconds
        try:
            process = subprocess.Popen(  # noqa: S603 - the files are arguments, and absolute paths
                ["lfs", command, *paths],  # noqa: S607 - where it lies differs between distributions
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
        except FileNotFoundError:
            return _UNUSABLE, b"", "lfs, the Lustre client, is not installed"
        except OSError as failure:
            return _UNUSABLE, b"", f"lfs cannot be started: {failure.strerror}"
        while True:
            try:
                # In small steps, so that a signal is not waited for.
                output, error = process.communicate(timeout=0.5)
            except subprocess.TimeoutExpired:
                if time.monotonic() < end and not self._deadline.has_passed:
                    continue
                _abandon(process)
                return _HUNG, b"", f"lfs {command} did not answer within {seconds:g} seconds"
            said = error.decode("utf-8", "backslashreplace").strip()
            return process.returncode, output, _ending(command, process.returncode, said)


def _ending(command: str, status: int, said: str) -> str:
    """Return why a call failed, which a program that a signal ended does not say itself."""
    if status < 0:
        return f"lfs {command} was ended by signal {-status} ({signal.strsignal(-status)})"
    return said or f"lfs {command} ended with exit status {status} and said nothing"


def _abandon(process: subprocess.Popen[bytes]) -> None:
    """Kill a process without waiting for it: one that hangs in the kernel does not die."""
    process.kill()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=0.5)
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()


def _state(said: bytes | str) -> str:
    if isinstance(said, str):
        return said
    flags = int(said, 16)
    if not flags & _RELEASED:
        return PRESENT
    # What the coordinator refuses: mdt_hsm_is_action_compat in lustre/mdt/mdt_coordinator.c.
    if flags & _LOST:
        return "its contents are lost from S3 (lost_from_hsm)"
    if flags & _DIRTY or not flags & _ARCHIVED:
        return "its contents are not in S3 (dirty, or not archived)"
    return RELEASED
