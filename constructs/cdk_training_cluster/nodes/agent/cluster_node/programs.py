"""What other programs of the node answer."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Mapping, Sequence
from typing import NamedTuple

ROOT = os.environ.get("ROOT", "")
"""What is put before every path; empty on a node, a directory of their own in tests."""

_PATHS = "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/snap/bin:/opt/amazon/efa/bin:/opt/aws/neuron/bin"
# Slurm and systemd give a program few search paths, or none.
SEARCH_PATH = ":".join(filter(None, (os.environ.get("PATH"), _PATHS)))
# Pods write to the file system, too: behind a link of theirs, a program would write to the node. No link changes
# later what a process has as its working directory.
_ENTER = """
set -fe
cd "$1"
top=$(readlink /proc/self/cwd) names=$2
shift 2
IFS=/
for name in $names; do
  mkdir -p "./$name"
  cd "./$name"
  case $(readlink /proc/self/cwd) in
    "$top"/*) ;;
    *) echo "$name in $top is a link out of it: remove it" >&2; exit 1 ;;
  esac
done
exec "$@"
"""
# What did not even end when it was killed: of a command that hangs there is never more than one.
_left: dict[tuple[str, ...], subprocess.Popen[str]] = {}


class Answer(NamedTuple):
    """What a program answered.

    Attributes:
        status: Its exit status. None: it is not there, or did not answer in time.
        text: What it printed.
        trouble: Why there is no status, or what it said of an error.
        is_late: Whether it did not answer in time.
    """

    status: int | None
    text: str
    trouble: str
    is_late: bool = False

    @property
    def succeeded(self) -> bool:
        """Whether it ended well."""
        return self.status == 0


def ask(
    command: Sequence[str],
    seconds: float,
    environment: Mapping[str, str] | None = None,
    name: str | None = None,
) -> Answer:
    """Run a program and wait for its answer.

    Args:
        command: The program and its arguments.
        seconds: How long it may take. One that waits for a device may not even end when it is killed: it is left.
        environment: Variables beside those of this process. Default: - none.
        name: The program that errors name. Default: - the first word of the command.
    """
    name, key = name or command[0], tuple(command)
    if key in _left and _left[key].poll() is None:
        return Answer(None, "", f"{name} still hangs", is_late=True)
    try:
        process = subprocess.Popen(  # noqa: S603 - never a shell
            command,
            env={**os.environ, "PATH": SEARCH_PATH, "LC_ALL": "C", **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        )
    except OSError as error:
        return Answer(None, "", f"{name} cannot be run: {error.strerror}")
    try:
        text, said = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        _left[key] = process
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=1)
        return Answer(None, "", f"{name} did not answer in {seconds:.0f} seconds", is_late=True)
    lines = [line for line in said.splitlines() or text.splitlines() if line.strip()]
    trouble = f"{name} ended with exit status {process.returncode}" + (f": {lines[-1].strip()}" if lines else "")
    return Answer(process.returncode, text, "" if process.returncode == 0 else trouble)


def inside(top: str, folder: str, *command: str) -> Sequence[str]:
    """Return a command as it runs in a folder of the file system, which it makes; never behind a link out of it.

    Args:
        top: Where the file system is mounted.
        folder: The folder, relative to that.
        command: The program and its arguments.
    """
    return ("sh", "-c", _ENTER, "sh", top, folder, *command)
