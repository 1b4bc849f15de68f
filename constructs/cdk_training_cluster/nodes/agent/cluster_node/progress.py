"""The files through which nodes, jobs and the next request learn how far a data set is.

They lie on the file system itself, in `.cdk-training-cluster/hydration/` at its mount point, in a directory for each
cluster that mounts it: two clusters may select different files of one directory. Each data set has a directory named
by its own, in it `ready.json` or `failed.json` once its last run has ended, and a directory for each of the last runs
with a file for each shard, `finish.json` for the last look, and nothing else.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import socket
import stat
import time
import urllib.parse
from pathlib import Path
from typing import Any

from .programs import ROOT
from .saved import is_sound
from .walk import WORKING_DIRECTORY

MOUNT_POINT = os.environ.get("CLUSTER_NODE_MOUNT_POINT", "")
"""Where the cluster's file system is mounted; empty on a node that mounts none."""

_CLUSTER = os.environ.get("CLUSTER_NODE_CLUSTER", "")

READY, FAILED = "ready.json", "failed.json"
_MAX_NAME, _MAX_BYTES = 200, 2**26
_KEPT_RUNS = 2


def working_directory(mount_point: str) -> Path:
    """Return where the progress of all data sets of the cluster lies."""
    return Path(ROOT + mount_point) / os.fsdecode(WORKING_DIRECTORY) / "hydration" / _CLUSTER


def dataset_directory(mount_point: str, directory: str) -> Path:
    """Return where the progress of one data set lies."""
    name = urllib.parse.quote(directory, safe="")
    if len(name) > _MAX_NAME:
        name = f"{name[:_MAX_NAME]}-{hashlib.sha256(directory.encode('utf-8', 'surrogateescape')).hexdigest()[:16]}"
    return working_directory(mount_point) / name


def on_file_system(path: str) -> str | None:
    """Return a path as data sets have it, without symbolic links; None if it is not on the cluster's file system."""
    mounted, real = os.path.realpath(ROOT + MOUNT_POINT), os.path.realpath(ROOT + path)
    if not MOUNT_POINT or os.path.commonpath([mounted, real]) != mounted:
        return None
    return MOUNT_POINT + real[len(mounted) :]


def find_dataset(path: str) -> Path | None:
    """Return where the progress of the data set lies that a path is in, or None while none is known.

    Args:
        path: What `on_file_system` returned.
    """
    candidates = (dataset_directory(MOUNT_POINT, each) for each in (path, *map(str, Path(path).parents)))
    return next((found for found in candidates if found.is_dir()), None)


def known_datasets() -> list[str]:
    """Return the directories of the data sets whose hydration has begun."""
    found = working_directory(MOUNT_POINT).glob("*")
    return sorted(urllib.parse.unquote(path.name) for path in found)


def opened(top: Path, folder: Path, *, make: bool) -> Path:
    """Return a path that leads to a directory whatever takes its place: pods may put a link there at any time.

    Args:
        top: Where the file system is mounted.
        folder: The directory, below that.
        make: Whether to make what is missing.

    Raises:
        OSError: It is missing, cannot be made, or a part of its path is a link.
    """
    descriptor = os.open(top, os.O_RDONLY | os.O_DIRECTORY)
    for name in folder.relative_to(top).parts:
        if make:
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, dir_fd=descriptor)
        parent = descriptor
        descriptor = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=parent)
        os.close(parent)
    return Path(f"/proc/self/fd/{descriptor}")


def forget_other_runs(dataset: Path, run: str) -> None:
    """Take the markers of other runs away, and the files of all but the last ones.

    Args:
        dataset: Where the data set's progress lies.
        run: The run that begins, or goes on.
    """
    for name in (READY, FAILED):
        if read_sound(dataset / name).get("run") not in (None, run):
            remove(dataset / name)
    # Their names begin with the time.
    runs = sorted(path for path in dataset.glob("*") if path.is_dir() and path.name != run)
    for path in runs[:-_KEPT_RUNS]:
        # Another node may remove them too.
        shutil.rmtree(path, ignore_errors=True)


def write(path: Path, content: dict[str, Any]) -> None:
    """Write a file whole or not at all, for readers on other nodes too."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # Two nodes may write the same file, and processes of two nodes may have the same number.
    new = path.with_name(f".{path.name}.{socket.gethostname()}.{os.getpid()}")
    # Pods write here, too: a link of theirs could lead to a file of the node.
    remove(new)
    with new.open("x", encoding="ascii") as file:
        json.dump({**content, "host": socket.gethostname(), "updated": time.time()}, file)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)


def read(path: Path) -> dict[str, Any]:
    """Read a file; empty if there is none, or what is there was not written by this program."""
    try:
        # Without a writer, a pipe of a pod would hold the node, and a file of any size fill its memory.
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
            content = json.loads(file.read(_MAX_BYTES) if stat.S_ISREG(os.fstat(file.fileno()).st_mode) else b"")
    except (OSError, ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def read_sound(path: Path) -> dict[str, Any]:
    """Read a file of a data set; empty if there is none, or an entry is not of its kind."""
    content = read(path)
    return content if is_sound(content) else {}


def remove(path: Path) -> None:
    """Remove a file if it is there."""
    with contextlib.suppress(FileNotFoundError):
        path.unlink()


def shards_of(dataset: Path) -> list[dict[str, Any]]:
    """Return the progress of each shard of the latest run: files of an earlier sharding are left out."""
    found = [read_sound(path) for path in dataset.glob("*/[0-9]*.json")]
    latest = max(found, key=lambda shard: shard.get("updated", 0), default={})
    same = [shard for shard in found if all(shard.get(name) == latest.get(name) for name in ("run", "shards"))]
    return sorted(same, key=lambda shard: int(shard.get("shard", 0)))
