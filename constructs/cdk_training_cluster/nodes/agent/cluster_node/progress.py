"""The files through which nodes, jobs and the next request learn how far a data set is.

They lie on the file system itself, in `.cdk-training-cluster/hydration/` at its mount point. Each data set has a
directory named by its own, in it `ready.json` or `failed.json` once its last run has ended, and a directory for each
run with a file for each shard, `finish.json` for the last look, and nothing else.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import socket
import time
import urllib.parse
from pathlib import Path
from typing import Any

from .walk import WORKING_DIRECTORY

ROOT = os.environ.get("ROOT", "")
"""What is put before every path; empty on a node, a directory of their own in tests."""

READY, FAILED = "ready.json", "failed.json"
_MAX_NAME = 200


def working_directory(mount_point: str) -> Path:
    """Return where the progress of all data sets of a file system lies."""
    return Path(ROOT + mount_point) / os.fsdecode(WORKING_DIRECTORY) / "hydration"


def dataset_directory(mount_point: str, directory: str) -> Path:
    """Return where the progress of one data set lies."""
    name = urllib.parse.quote(directory, safe="")
    if len(name) > _MAX_NAME:
        name = f"{name[:_MAX_NAME]}-{hashlib.sha256(directory.encode('utf-8', 'surrogateescape')).hexdigest()[:16]}"
    return working_directory(mount_point) / name


def find_dataset(path: str) -> Path | None:
    """Return where the progress of the data set lies that a path is in, or None while none is known."""
    above = [path, *map(str, Path(path).parents)]
    for mount_point in above:
        if working_directory(mount_point).is_dir():
            candidates = (dataset_directory(mount_point, directory) for directory in above)
            return next((found for found in candidates if found.is_dir()), None)
    return None


def write(path: Path, content: dict[str, Any]) -> None:
    """Write a file whole or not at all, for readers on other nodes too."""
    path.parent.mkdir(parents=True, exist_ok=True)
    # Two nodes may write the same file, and processes of two nodes may have the same number.
    new = path.with_name(f".{path.name}.{socket.gethostname()}.{os.getpid()}")
    with new.open("w", encoding="ascii") as file:
        json.dump({**content, "host": socket.gethostname(), "updated": time.time()}, file)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)


def read(path: Path) -> dict[str, Any]:
    """Read a file; empty if there is none, or what is there was not written by this program."""
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def remove(path: Path) -> None:
    """Remove a file if it is there."""
    with contextlib.suppress(FileNotFoundError):
        path.unlink()


def shards_of(dataset: Path) -> list[dict[str, Any]]:
    """Return the progress of each shard of the latest run: files of an earlier sharding are left out."""
    found = [read(path) for path in dataset.glob("*/[0-9]*.json")]
    latest = max(found, key=lambda shard: shard.get("updated", 0), default={})
    same = [shard for shard in found if all(shard.get(name) == latest.get(name) for name in ("run", "shards"))]
    return sorted(same, key=lambda shard: int(shard.get("shard", 0)))
