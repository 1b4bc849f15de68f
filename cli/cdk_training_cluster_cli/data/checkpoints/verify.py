"""Proves that a checkpoint in S3 is whole, and that a local copy of it is the same."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cdk_training_cluster_cli.data.checkpoints.proof import ask_proof, written_proofs
from cdk_training_cluster_cli.data.checkpoints.reading import (
    Advance,
    FileProblemError,
    FileResult,
    Outcome,
    difference,
    for_each,
    pieces_of_object,
    result_of,
)
from cdk_training_cluster_cli.data.checkpoints.source import StoredObject

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client


def verify(
    client: "S3Client", files: Sequence[StoredObject], advance: Advance, *, directory: Path | None = None
) -> tuple[FileResult, ...]:
    """Read every file of a checkpoint, and compare it with S3's checksum, `Run`'s digest and a local copy.

    Args:
        client: S3.
        files: The checkpoint's files.
        advance: Called with the number of bytes that are done since its last call.
        directory: The local copy of the checkpoint. None: there is none.
    """

    written = written_proofs(client, files)

    def one(stored: StoredObject) -> FileResult:
        proof = ask_proof(client, stored)
        others = [written[stored.path]] if stored.path in written else []
        pieces = pieces_of_object(client, stored)
        if directory is not None:
            pieces = _compared(pieces, directory / stored.path, stored)
        problem = difference(pieces, proof, advance, others=others)
        if problem is not None:
            raise FileProblemError(problem)
        return result_of(stored, proof, *others)

    return (*for_each(files, one), *_only_local(files, directory))


def _compared(pieces: Iterator[bytes], path: Path, stored: StoredObject) -> Iterator[bytes]:
    """Pass an object's contents on, and compare them with a file."""
    if not path.is_file():
        raise FileProblemError(f"{path} is missing")
    size = path.stat().st_size
    if size != stored.bytes:
        raise FileProblemError(f"{path} has {size:,} bytes, where S3 has {stored.bytes:,}")
    at = 0
    with path.open("rb") as file:
        for piece in pieces:
            if file.read(len(piece)) != piece:
                raise FileProblemError(f"{path} differs from S3 between bytes {at:,} and {at + len(piece):,}")
            at += len(piece)
            yield piece


def _only_local(files: Sequence[StoredObject], directory: Path | None) -> Iterator[FileResult]:
    if directory is None:
        return
    for path in sorted(files_below(directory) - {each.path for each in files}):
        problem = f"{directory / path} is not in S3: it is not exported yet, or was deleted there"
        yield FileResult(path=path, bytes=(directory / path).stat().st_size, outcome=Outcome.FAILED, problem=problem)


def files_below(directory: Path) -> set[str]:
    """Return the paths of all files below a directory.

    Args:
        directory: The directory; it need not be there.
    """
    return {
        os.path.relpath(os.path.join(place, name), directory)  # noqa: PTH118 - many files: no objects for them
        for place, _, names in os.walk(directory)
        for name in names
    }
