"""The files of a Lustre file system that a link to S3 keeps equal to objects: import, export and release.

A file system is a directory: `files/` is what nodes mount, and `objects/` has the contents of linked objects at the
same paths, from which the stand-in for Lustre's client restores. A file is released if it has a size and no blocks.
https://docs.aws.amazon.com/fsx/latest/LustreGuide/overview-dra-data-repo.html
"""

import filecmp
import os
import shutil
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from moto.s3.models import FakeKey

NEW, CHANGED, DELETED = EVENTS = ("NEW", "CHANGED", "DELETED")

_LONGEST_NAME = 255
_DAY_SECONDS = 86_400


@dataclass
class Count:
    """How many files something was done with, as data repository tasks tell it."""

    succeeded: int = 0
    failed: int = 0

    def add(self, other: "Count") -> None:
        """Add another count."""
        self.succeeded += other.succeeded
        self.failed += other.failed


@dataclass
class LinkedFiles:
    """The files below a link's directory, and the objects below its prefix.

    Attributes:
        root: The directory that is the file system.
        directory: The link's directory, without slashes around it.
        bucket: The bucket, as moto keeps it.
        prefix: How the keys of its objects start: empty, or with a slash at the end.
    """

    root: Path
    directory: str
    bucket: Any
    prefix: str
    _seen: dict[str, Any] = field(default_factory=dict)
    _like_object: dict[str, tuple[int, int]] = field(default_factory=dict)

    def begin(self) -> None:
        """Make the directory, and take what there is in the bucket as seen: events are about what comes later."""
        for place in (self.files, self._contents):
            place.mkdir(parents=True, exist_ok=True)
        self._seen = self._objects()

    @property
    def files(self) -> Path:
        """What nodes see of it."""
        return self.root / "files" / self.directory

    @property
    def _contents(self) -> Path:
        return self.root / "objects" / self.directory

    def import_events(self, events: Collection[str]) -> None:
        """Bring what has changed in the bucket to the files, as far as it is of these events."""
        objects, seen = self._objects(), self._seen
        for path, key in objects.items():
            known = seen.get(path)
            if known is not key and (NEW if known is None else CHANGED) in events:
                self._take_in(path, key)
        for path in seen.keys() - objects.keys():
            if DELETED in events:
                self._remove(path)
        self._seen = objects

    def import_all(self, under: str) -> Count:
        """Import the metadata of all objects whose keys start so, but for those that are files already."""
        objects, count = self._objects(), Count()
        for path, key in objects.items():
            if not f"{self.prefix}{path}".startswith(under):
                continue
            is_there = path in self._like_object and self._seen.get(path) is key
            if is_there or self._take_in(path, key):
                count.succeeded += 1
            else:
                count.failed += 1
            self._seen[path] = key
        return count

    def export(self, s3: Any, events: Collection[str], under: str = "") -> Count:
        """Bring what has changed in the files to the bucket, directories too; released files have not changed.

        Args:
            s3: The backend of S3.
            events: What is exported.
            under: A directory or a file of the file system that the files are below.
        """
        count, there = Count(), set()
        for path, stat in self._files():
            there.add(path)
            if not _is_below(f"{self.directory}/{path}", under) or not self._differs(path, stat):
                continue
            if (CHANGED if path in self._seen else NEW) in events:
                content = b"" if path.endswith("/") else (self.files / path).read_bytes()
                self._seen[path] = s3.put_object(self.bucket.name, f"{self.prefix}{path}", content)
                if not path.endswith("/"):
                    self._keep_content(path, content)
                self._like_object[path] = _signature(stat)
                count.succeeded += 1
        for path in self._like_object.keys() - there:
            del self._like_object[path]
            if DELETED in events and path in self._seen:
                s3.delete_object(self.bucket.name, f"{self.prefix}{path}")
                del self._seen[path]
                count.succeeded += 1
        return count

    def release(self, under: str, days: int) -> Count:
        """Release the contents of files that are like their objects and were last read so many days ago."""
        count, latest = Count(), time.time() - days * _DAY_SECONDS
        for path, stat in self._files():
            if path.endswith("/") or not stat.st_size or not stat.st_blocks or path not in self._seen:
                continue
            if not _is_below(f"{self.directory}/{path}", under) or stat.st_atime > latest:
                continue
            if not self._differs(path, stat):
                _make_released(self.files / path, stat.st_size)
                os.utime(self.files / path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
                count.succeeded += 1
        return count

    def forget(self, *, delete_files: bool) -> None:
        """End the link: what is released can be restored no longer.

        Args:
            delete_files: Whether the files go too.
        """
        shutil.rmtree(self._contents, ignore_errors=True)
        if delete_files:
            shutil.rmtree(self.files, ignore_errors=True)

    def _objects(self) -> dict[str, Any]:
        """Return the objects below the prefix by their paths, in the order of their keys."""
        found = (
            (name.removeprefix(self.prefix), key)
            for name, key in self.bucket.keys.items()
            if name.startswith(self.prefix) and isinstance(key, FakeKey)
        )
        return {path: key for path, key in sorted(found) if path}

    def _take_in(self, path: str, key: Any) -> bool:
        """Make an object a released file; say whether it can be a file."""
        parts = path.removesuffix("/").split("/")
        if any(part in {"", ".", ".."} or len(part.encode()) > _LONGEST_NAME for part in parts):
            return False
        file, size = self.files / path, int(key.size)
        try:
            for end in range(1, len(parts) + path.endswith("/")):
                self._make("/".join(parts[:end]))
            if not path.endswith("/"):
                self._keep_content(path, key.value)
                _make_released(file, size)
            self._like_object[path] = _signature(file.stat())
        except OSError:  # a file where a directory has to be, or the other way round
            return False
        return True

    def _keep_content(self, path: str, content: bytes) -> None:
        file = self._contents / path
        if not content:
            file.unlink(missing_ok=True)
            return
        try:
            file.write_bytes(content)
        except FileNotFoundError:
            file.parent.mkdir(parents=True)
            file.write_bytes(content)

    def _make(self, directory: str) -> None:
        """Make a directory that an object's key names; what the key does not end with is not exported as new."""
        if f"{directory}/" not in self._like_object:
            (self.files / directory).mkdir(exist_ok=True)
            self._like_object[f"{directory}/"] = (0, 0)

    def _remove(self, path: str) -> None:
        self._like_object.pop(path, None)
        if not path.endswith("/"):
            for place in (self.files, self._contents):
                (place / path).unlink(missing_ok=True)

    def _files(self) -> Iterator[tuple[str, os.stat_result]]:
        """Yield the paths below the directory, those of directories with a slash at the end, and their facts."""
        for directory, _, names in os.walk(self.files):
            place = Path(directory)
            if place != self.files:
                yield f"{place.relative_to(self.files)}/", place.stat()
            for name in sorted(names):
                yield str((place / name).relative_to(self.files)), (place / name).stat()

    def _differs(self, path: str, stat: os.stat_result) -> bool:
        """Tell whether a file is otherwise than its object; a restored one has another time and the same content."""
        if self._like_object.get(path) == _signature(stat):
            return False
        if path.endswith("/") or (stat.st_size and not stat.st_blocks):
            return path not in self._like_object
        content = self._contents / path
        if path in self._seen and content.exists() and filecmp.cmp(self.files / path, content, shallow=False):
            self._like_object[path] = _signature(stat)
            return False
        return True


def _signature(stat: os.stat_result) -> tuple[int, int]:
    return stat.st_size, stat.st_mtime_ns


def _is_below(path: str, under: str) -> bool:
    under = under.strip("/")
    return not under or path.strip("/") == under or path.strip("/").startswith(f"{under}/")


def _make_released(file: Path, size: int) -> None:
    with file.open("wb") as opened:
        opened.truncate(size)


def put_objects(backend: Any, request: Mapping[str, Any]) -> int:
    """Put many small objects into a bucket at once: their keys are a prefix and a number.

    Args:
        backend: The backend of S3.
        request: The bucket, the prefix, how many, and the text that each has before its number.
    """
    for number in range(int(request["count"])):
        name, content = f"{request['prefix']}{number:06}", f"{request['text']}{number}".encode()
        backend.put_object(request["bucket"], name, content, disable_notification=True)
    return int(request["count"])
