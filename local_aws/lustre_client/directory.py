"""The directory that stands for a file system: `files/` is what nodes mount, `objects/` what S3 holds."""

import json
import os
from pathlib import Path
from typing import Any

LFS = Path(__file__).parent / "lfs"
"""The stand-in for `lfs`; its folder goes on PATH."""


class LustreDirectory:
    """A file system as the stand-in for `lfs` knows it.

    Attributes:
        home: The directory of all of it.
        files: What nodes mount.
        objects: The contents of linked objects.
    """

    def __init__(self, home: Path) -> None:
        """Make the parts that do not exist.

        Args:
            home: The directory.
        """
        self.home, self.files, self.objects = home, home / "files", home / "objects"
        self.files.mkdir(parents=True, exist_ok=True)
        self.objects.mkdir(exist_ok=True)

    def add(self, path: str | bytes, contents: bytes = b"contents") -> Path:
        """Import an object as a released file, or again after it changed, and return the file."""
        relative = Path(os.fsdecode(path))
        for part, write in ((self.objects, Path.write_bytes), (self.files, _truncate)):
            (part / relative).parent.mkdir(parents=True, exist_ok=True)
            write(part / relative, contents)
        return self.files / relative

    def faults(self, *faults: dict[str, Any]) -> None:
        """Let calls fail from now on, as the stand-in's `faults.json` says."""
        for counter in self.home.glob("faults.*"):
            counter.unlink()
        (self.home / "faults.json").write_text(json.dumps(faults), encoding="utf-8")

    def statvfs(self, _: object = None) -> os.statvfs_result:
        """Return what `os.statvfs` says of the mounted one: 1 PiB, or the bytes that `size` beside `files/` says."""
        size = self.home / "size"
        total = int(size.read_text(encoding="ascii")) if size.exists() else 2**50
        used = sum(path.stat().st_size for path in (self.files / "data").rglob("*") if _has_contents(path))
        free = max(0, total - used)
        return os.statvfs_result((1, 1, total, free, free, 0, 0, 0, 0, 255))

    def released(self) -> list[Path]:
        """Return the files whose contents are missing."""
        return [path for path in sorted(self.files.rglob("*")) if _is_file(path) and _is_released(path)]


def _truncate(path: Path, contents: bytes) -> None:
    with path.open("wb") as file:
        file.truncate(len(contents))


def _is_file(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def _has_contents(path: Path) -> bool:
    return _is_file(path) and not _is_released(path)


def _is_released(path: Path) -> bool:
    status = path.lstat()
    return status.st_size > 0 and status.st_blocks == 0
