"""Reads objects and files in pieces, many at a time, and says of each whether it is proven."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from cdk_training_cluster_cli.core.aws_errors import explained
from cdk_training_cluster_cli.data.checkpoints.proof import ChangedError, Comparison, Proof
from cdk_training_cluster_cli.data.checkpoints.source import StoredObject

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

PIECE = 2**20
_AT_A_TIME = 16
_ATTEMPTS = 5
_CHANGED = "it was changed while it was read: run the command again"

Advance = Callable[[int], None]
"""Called with the number of bytes that are done since its last call."""


class Outcome(StrEnum):
    """What is known of a file after it was read."""

    PROVEN = "proven"
    """Its contents have the checksum that S3 keeps."""

    SIZE_ONLY = "size only"
    """It has the size that S3 says; S3 keeps no checksum of it that can be compared."""

    FAILED = "failed"
    """It differs, is missing, or cannot be read."""


@dataclass(frozen=True, kw_only=True)
class FileResult:
    """What was found out about a file.

    Attributes:
        path: Its path below the checkpoint.
        bytes: Its size in S3.
        outcome: What is known.
        algorithm: The algorithm of the checksum that was compared; empty: none.
        problem: Why it failed; empty: it did not.
    """

    path: str
    bytes: int
    outcome: Outcome
    algorithm: str = ""
    problem: str = ""


class FileProblemError(Exception):
    """What is wrong with a file, as a sentence without its name."""


def result_of(stored: StoredObject, proof: Proof, *others: Proof) -> FileResult:
    """Return what is known of a file whose contents do not differ from a proof.

    Args:
        stored: The file in S3.
        proof: What S3 says of it.
        others: What else its contents were compared with.
    """
    algorithm = next((one.algorithm for one in (proof, *others) if one.algorithm), "")
    outcome = Outcome.PROVEN if algorithm else Outcome.SIZE_ONLY
    return FileResult(path=stored.path, bytes=stored.bytes, outcome=outcome, algorithm=algorithm)


def for_each(files: Sequence[StoredObject], act: Callable[[StoredObject], FileResult]) -> tuple[FileResult, ...]:
    """Do something with each file, many at a time; what fails for one is its result, and the others go on.

    Args:
        files: The files.
        act: What to do.
    """

    def one(stored: StoredObject) -> FileResult:
        try:
            return act(stored)
        except FileProblemError as error:
            problem = str(error)
        except ChangedError:
            problem = _CHANGED
        except Exception as error:
            said = explained(error)
            if said is None:
                raise
            problem = said
        return FileResult(path=stored.path, bytes=stored.bytes, outcome=Outcome.FAILED, problem=problem)

    pool = ThreadPoolExecutor(max_workers=_AT_A_TIME)
    try:
        return tuple(pool.map(one, files))
    finally:
        # After an interruption what runs is stopped by `advance`, which raises.
        pool.shutdown(wait=False, cancel_futures=True)


def pieces_of_object(client: "S3Client", stored: StoredObject, start: int = 0) -> Iterator[bytes]:
    """Yield an object's contents in pieces; where the connection breaks, go on behind the last piece.

    Args:
        client: S3.
        stored: The object; it is read only if it still is what was listed.
        start: Where to begin.

    Raises:
        ClientError: S3 refuses.
        FileProblemError: The connection broke again and again.
    """
    from botocore.exceptions import BotoCoreError  # noqa: PLC0415 - slow, and needed with AWS only

    at = start
    for attempt in range(_ATTEMPTS):
        if at >= stored.bytes:
            return
        answer = client.get_object(**stored.asked, IfMatch=f'"{stored.etag}"', Range=f"bytes={at}-")
        try:
            for piece in answer["Body"].iter_chunks(PIECE):
                at += len(piece)
                yield piece
        except BotoCoreError as error:
            if attempt + 1 == _ATTEMPTS:
                raise FileProblemError(
                    f"the download broke {_ATTEMPTS} times, the last time at byte {at:,}"
                ) from error
    if at < stored.bytes:
        raise FileProblemError(f"S3 sent {at:,} of {stored.bytes:,} bytes")


def pieces_of_file(path: Path) -> Iterator[bytes]:
    """Yield a file's contents in pieces.

    Args:
        path: The file.
    """
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            yield piece


def difference(
    pieces: Iterator[bytes], proof: Proof, advance: Advance | None = None, *, others: Sequence[Proof] = ()
) -> str | None:
    """Return in what contents differ from what S3 says. None: in nothing.

    Args:
        pieces: The contents.
        proof: What S3 says.
        advance: Called with the number of bytes that are done since its last call.
        others: What else to compare them with.
    """
    comparisons = [Comparison(one) for one in (proof, *others)]
    for piece in pieces:
        for comparison in comparisons:
            comparison.update(piece)
        if advance is not None:
            advance(len(piece))
    return next((found for one in comparisons if (found := one.difference()) is not None), None)
