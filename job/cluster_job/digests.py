"""Digests of a checkpoint's files: taken while the files are written, compared before they are loaded; without torch.

A file system returns other bytes than were written without an error where a disk, a network or a restored copy is
damaged, and torch ignores the checksums of its own files when it reads them. CRC-32 misses one of four billion
damaged files and is the cheapest hash of the standard library. It protects from damage, and not from a person who may
write: who writes the files can write the digests, too. `training-cluster checkpoints verify` compares the same ones.
"""

import base64
import json
import os
import re
import stat
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ALGORITHM = "CRC32"
"""The name that Amazon S3 gives to the algorithm."""

DIGESTS = "digests"
"""The key in a marker that holds the algorithm and the digest of each file in base64, as Amazon S3 writes it."""

_PIECE = 2**20
_LARGEST_MARKER = 2**26
_NUMBER = re.compile(r"\d+")


class DigestStream:
    """A file that is written from its start to its end, and the digest of what is written.

    Args:
        raw: The open file.
    """

    def __init__(self, raw: Any) -> None:  # noqa: ANN401 - any file
        self._raw = raw
        self._crc = 0

    @property
    def digest(self) -> str:
        """The digest of what was written until now."""
        return _text(self._crc)

    def write(self, data: Any) -> Any:  # noqa: ANN401 - any buffer
        """Write the next bytes."""
        self._crc = zlib.crc32(data, self._crc)
        return self._raw.write(data)

    def tell(self) -> int:
        """Return how many bytes are written."""
        return int(self._raw.tell())

    def flush(self) -> None:
        """Give the bytes to the operating system."""
        self._raw.flush()

    def fileno(self) -> int:
        """Return the file's descriptor, after all bytes are with the operating system: `fsync` takes it."""
        self._raw.flush()
        return int(self._raw.fileno())

    def close(self) -> None:
        """Close the file."""
        self._raw.close()


@dataclass(frozen=True, kw_only=True)
class Unreadable:
    """The reason for which a checkpoint cannot be loaded.

    Attributes:
        reason: The reason, as a part of a sentence.
        damaged: Whether its contents are wrong. Otherwise a rank could not read it, and another time may.
    """

    reason: str
    damaged: bool


def file_digest(file: Path) -> str:
    """Return the digest of a file.

    Args:
        file: The file.
    """
    crc = 0
    with file.open("rb") as stream:
        while piece := stream.read(_PIECE):
            crc = zlib.crc32(piece, crc)
    return _text(crc)


def read_marker(marker: Path) -> Any:  # noqa: ANN401 - whatever JSON it holds
    """Return what a marker holds.

    Args:
        marker: The marker. A larger one than a run writes, or a link to a device, would fill the memory of the node.

    Raises:
        OSError: It cannot be read.
        ValueError: It is not one that a run writes.
    """
    with os.fdopen(os.open(marker, os.O_RDONLY | os.O_NONBLOCK), "rb") as stream:
        status = os.fstat(stream.fileno())
        if not stat.S_ISREG(status.st_mode) or status.st_size > _LARGEST_MARKER:
            raise ValueError(f"{status.st_size:,} bytes are not a marker of a run")
        return json.loads(stream.read())


def unreadable(
    marker: Path, *, rank: int = 0, world_size: int = 1, digest_of: Callable[[Path], str] = file_digest
) -> Unreadable | None:
    """Compare a rank's part of a checkpoint's files with their digests. None: they hold what was written.

    The files are divided over the ranks, so that each is read once. A rank gets those that it wrote, and that it
    reads next, where there are as many ranks as before.

    Args:
        marker: The checkpoint's marker. One of an earlier release holds no digests, and nothing is compared.
        rank: This rank's number.
        world_size: The number of ranks that compare together.
        digest_of: Returns the digest of a file.
    """
    try:
        details = read_marker(marker)
        digests = details.get(DIGESTS, {})
        if digests.get("algorithm") != ALGORITHM:
            return None
        strange = sorted(digests["files"].keys() - details["files"].keys())
        if strange:
            raise KeyError(strange[0])  # noqa: TRY301 - as of each other entry that no run writes
        for name in sorted(digests["files"], key=_by_number)[rank::world_size]:
            if digest_of(marker.parent / name) != digests["files"][name]:
                return Unreadable(reason=f"{name} does not hold what was written", damaged=True)
    except OSError as error:
        return Unreadable(reason=f"rank {rank} cannot read it ({error})", damaged=False)
    except ValueError as error:
        return Unreadable(reason=f"rank {rank} cannot read its marker ({error})", damaged=False)
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        return Unreadable(reason=f"its marker is none that a run writes ({type(error).__name__})", damaged=True)
    return None


def has_digests(marker: Path) -> bool:
    """Return whether a marker holds digests that this release compares.

    Args:
        marker: The marker.
    """
    try:
        return bool(read_marker(marker)[DIGESTS]["algorithm"] == ALGORITHM)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return False


def _text(crc: int) -> str:
    return base64.b64encode(crc.to_bytes(4, "big")).decode()


def _by_number(name: str) -> tuple[bool, list[int], str]:
    """Order `__10_0.distcp` after `__9_0.distcp`, and files without a number last."""
    numbers = [int(one) for one in _NUMBER.findall(name)]
    return not numbers, numbers, name
