"""`cluster-node wait-for-dataset DIRECTORY…`: wait until data sets are there, and show how far they are."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
import time
from typing import Any

from cluster_contract.texts import printable

from . import progress
from .space import size_text

READY, TIMED_OUT, WRONG_CALL, FAILED = 0, 1, 2, 3

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)([smhd]?)")
_POLL_SECONDS, _LINE_SECONDS, _BAR_SECONDS = 2.0, 30.0, 1.0
# A shard that restores nothing for longer than this is named.
_QUIET_SECONDS = 60
# Five files with their errors fit.
_MAX_REASON = 4_000


def main(arguments: list[str]) -> int:
    """Wait for each directory in turn."""
    parser = argparse.ArgumentParser(
        prog="wait-for-dataset",
        description="Wait until the files of data sets have their contents, and show how far they are.",
        epilog="Exit status: 0 when all files have their contents, 1 after the timeout, 2 for a wrong call, 3 if a "
        "hydration failed.",
    )
    parser.add_argument("directories", metavar="DIRECTORY", nargs="+", type=os.path.abspath)
    parser.add_argument(
        "--timeout", type=_duration, default="2h", metavar="TIME", help="such as 90s, 30m or 2h; 2h if left out"
    )
    given = parser.parse_args(arguments)
    end = time.monotonic() + given.timeout
    for directory in given.directories:
        real = progress.on_file_system(directory)
        if real is None:
            mounted = f"which is mounted at {progress.MOUNT_POINT}" if progress.MOUNT_POINT else "since there is none"
            sys.stderr.write(f"wait-for-dataset: {directory} is not on the cluster's file system, {mounted}\n")
            return WRONG_CALL
        status = _wait_for(real, end)
        if status != READY:
            return status
    return READY


def _wait_for(directory: str, end: float) -> int:
    screen = _Screen(directory)
    while True:
        dataset = progress.find_dataset(directory)
        ready = progress.read_sound(dataset / progress.READY) if dataset else {}
        failed = progress.read_sound(dataset / progress.FAILED) if dataset else {}
        if ready:
            screen.end(f"ready: {_whole(ready.get('files', 0))} files, {size_text(ready.get('bytes', 0))}")
            return READY
        if failed:
            screen.end("")
            reason = printable(failed.get("reason") or "the hydration function gave no reason", _MAX_REASON)
            sys.stderr.write(f"wait-for-dataset: the hydration of {directory} failed: {reason}\n")
            return FAILED
        shards = progress.shards_of(dataset) if dataset else []
        screen.show(shards)
        if time.monotonic() >= end:
            screen.end("")
            sys.stderr.write(
                f"wait-for-dataset: {directory} is not ready: {_late(shards) or 'the timeout is over'}\n"
            )
            return TIMED_OUT
        time.sleep(max(0.0, min(_BAR_SECONDS if screen.is_terminal else _POLL_SECONDS, end - time.monotonic())))


class _Screen:
    """Where progress is shown: a bar that stays in its line on a terminal, lines from time to time elsewhere."""

    def __init__(self, directory: str) -> None:
        self.is_terminal = sys.stderr.isatty()
        self._directory, self._next, self._width = directory, 0.0, 0
        self._first: tuple[float, int] | None = None

    def show(self, shards: list[dict[str, Any]]) -> None:
        """Show how far it is."""
        text = ", ".join(filter(None, (_text(shards), self._time_left(shards), _late(shards))))
        if self.is_terminal:
            columns = shutil.get_terminal_size().columns - 1
            line = f"{self._directory} {_bar(shards)} {text}"[:columns]
            sys.stderr.write("\r" + line.ljust(self._width))
            self._width = len(line)
        elif time.monotonic() >= self._next:
            sys.stderr.write(f"{self._directory}: {text}\n")
            self._next = time.monotonic() + _LINE_SECONDS
        sys.stderr.flush()

    def end(self, text: str) -> None:
        """Show the last line."""
        start = "\n" if self.is_terminal and self._width else ""
        sys.stderr.write(start + (f"{self._directory}: {text}\n" if text else ""))
        sys.stderr.flush()

    def _time_left(self, shards: list[dict[str, Any]]) -> str:
        done, whole = _sum(shards, "restored_bytes"), _sum(shards, "bytes")
        if self._first is None:
            self._first = (time.monotonic(), done)
        since, before = self._first
        seconds = time.monotonic() - since
        if done <= before or seconds <= 0:
            return ""
        rate = (done - before) / seconds
        left = f", {_time((whole - done) / rate)} left" if _is_counted(shards) else ""
        return f"{size_text(rate)}/s{left}"


def _text(shards: list[dict[str, Any]]) -> str:
    if not shards:
        known = [printable(name) for name in progress.known_datasets()]
        return "its hydration has not begun" + (f"; that of {', '.join(known)} has" if known else "")
    files, of_files = _sum(shards, "restored_files"), _sum(shards, "files")
    done, whole = _sum(shards, "restored_bytes"), _sum(shards, "bytes")
    if not _is_counted(shards):
        return f"{_whole(files)} files, {size_text(done)}; still counting, {size_text(whole)} so far"
    percent = 100 * done // whole if whole else 100
    failed = _sum(shards, "failed_files")
    text = f"{percent} % of {size_text(whole)}, {_whole(files)} of {_whole(of_files)} files"
    return text + (f", {_whole(failed)} could not be restored" if failed else "")


def _late(shards: list[dict[str, Any]]) -> str:
    """Say which shard has not moved for long, the longest first."""
    if not shards:
        return ""
    count = shards[0].get("shards", 1)
    missing = sorted(set(range(count)) - {shard.get("shard") for shard in shards})
    if missing:
        return f"shard {missing[0] + 1} of {count} has not begun"
    waiting = [shard for shard in shards if not shard.get("finished")]
    if not waiting:
        return "all shards are restored, and the final check has not ended"
    slowest = min(waiting, key=lambda shard: float(shard.get("moved", 0)))
    moved = float(slowest.get("moved", 0))
    if time.time() - moved < _QUIET_SECONDS:
        return ""
    since = time.strftime("%H:%M:%S UTC", time.gmtime(moved))
    host = printable(str(slowest.get("host")))
    return f"shard {slowest.get('shard', 0) + 1} of {count} on {host} has restored nothing since {since}"


def _bar(shards: list[dict[str, Any]]) -> str:
    width, whole = 20, _sum(shards, "bytes")
    full = width * _sum(shards, "restored_bytes") // whole if whole and _is_counted(shards) else 0
    return f"[{'#' * full}{'.' * (width - full)}]"


def _is_counted(shards: list[dict[str, Any]]) -> bool:
    return len(shards) == (shards[0].get("shards") if shards else None) and all(
        shard.get("counted") for shard in shards
    )


def _sum(shards: list[dict[str, Any]], name: str) -> int:
    return sum(int(shard.get(name, 0)) for shard in shards)


def _duration(text: str) -> float:
    found = _DURATION.fullmatch(text)
    if not found:
        raise argparse.ArgumentTypeError(f"must be a number with s, m, h or d, such as 90s or 2h, got {text!r}")
    return float(found[1]) * _UNITS[found[2] or "s"]


def _whole(number: int) -> str:
    return f"{number:,}"


def _time(seconds: float) -> str:
    minutes = round(seconds / 60)
    return f"{minutes // 60} h {minutes % 60} min" if minutes >= 60 else f"{max(1, minutes)} min"  # noqa: PLR2004
