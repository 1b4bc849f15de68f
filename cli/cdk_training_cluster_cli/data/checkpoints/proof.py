"""Compares contents with the checksum that S3 keeps of an object.

S3 keeps one of every object that was written since December 2024, CRC64NVME if the writer gave none: of the whole
object, or of the checksums of its parts (composite). An ETag is the MD5 of an object only if that is encrypted with
S3's own keys and was written in one part.

Sources: https://docs.aws.amazon.com/AmazonS3/latest/userguide/checking-object-integrity.html and
https://docs.aws.amazon.com/AmazonS3/latest/API/API_Object.html
"""

import base64
import hashlib
import json
import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from cdk_training_cluster_cli.core.aws_errors import explained
from cdk_training_cluster_cli.data.checkpoints.source import StoredObject
from cluster_contract.checkpoints import DIGESTS

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_MD5 = re.compile(r"[0-9a-f]{32}")
_DIRECTORY_BUCKET = "--x-s3"
_MARKER, _LARGEST_MARKER = ".complete", 2**26
_NOT_THE_MD5 = {"aws:kms", "aws:kms:dsse", "aws:fsx"}


class _Running(Protocol):
    def update(self, data: bytes, /) -> None: ...
    def digest(self) -> bytes: ...


class _Crc:
    """A CRC as `hashlib` would have it."""

    def __init__(self, function: Callable[..., int], length: int) -> None:
        self._function, self._length, self._value = function, length, 0

    def update(self, data: bytes, /) -> None:
        self._value = self._function(data, self._value)

    def digest(self) -> bytes:
        return self._value.to_bytes(self._length, "big")


def _running(algorithm: str) -> _Running:
    if algorithm in {"MD5", "SHA1", "SHA256", "SHA512"}:
        return hashlib.new(algorithm, usedforsecurity=False)
    if algorithm == "CRC32":
        return _Crc(zlib.crc32, 4)
    try:
        from awscrt import checksums  # noqa: PLC0415 - a library that is loaded for objects with these alone
    except ImportError:
        raise ValueError(f"{algorithm} needs awscrt: run pip install 'cdk-training-cluster[cli]'") from None
    return _Crc(checksums.crc32c, 4) if algorithm == "CRC32C" else _Crc(checksums.crc64nvme, 8)


ALGORITHMS = ("CRC64NVME", "CRC32C", "CRC32", "SHA512", "SHA256", "SHA1", "MD5")
"""The algorithms that are compared here. S3 has more, which few programs write: objects with those are unproven."""


@dataclass(frozen=True, kw_only=True)
class Part:
    """A part of an object: its size and its checksum in base64."""

    bytes: int
    checksum: str


@dataclass(frozen=True, kw_only=True)
class Proof:
    """What S3 says of an object.

    Attributes:
        bytes: Its size.
        algorithm: The algorithm of its checksum. Empty: it has none that can be compared.
        checksum: The checksum in base64.
        parts: Its parts, if the checksum is one of theirs.
        source: What says so.
    """

    bytes: int
    algorithm: str = ""
    checksum: str = ""
    parts: tuple[Part, ...] = ()
    source: str = "S3"


class Comparison:
    """Compares contents with what S3 says of them, as they come."""

    def __init__(self, proof: Proof) -> None:
        """Begin with nothing read."""
        self._proof = proof
        self._ends = [sum(part.bytes for part in proof.parts[: number + 1]) for number in range(len(proof.parts))]
        self._digests: list[bytes] = []
        self._running = _running(proof.algorithm) if proof.algorithm else None
        self._read = 0

    def update(self, data: bytes) -> None:
        """Take the next contents.

        Args:
            data: The contents.
        """
        while len(self._digests) < len(self._ends) and self._read + len(data) >= self._ends[len(self._digests)]:
            rest = self._ends[len(self._digests)] - self._read
            self._take(data[:rest])
            data = data[rest:]
            if self._running is not None:
                self._digests.append(self._running.digest())
                self._running = _running(self._proof.algorithm)
        self._take(data)

    def _take(self, data: bytes) -> None:
        self._read += len(data)
        if self._running is not None and data:
            self._running.update(data)

    def difference(self) -> str | None:
        """Return in what the contents differ. None: in nothing that S3 says."""
        proof = self._proof
        if self._read != proof.bytes:
            return f"it has {self._read:,} bytes, where {proof.source} says {proof.bytes:,}"
        if self._running is None:
            return None
        if not proof.parts:
            found = _text(self._running.digest())
        else:
            for number, (digest, part) in enumerate(zip(self._digests, proof.parts, strict=True), 1):
                if _text(digest) != part.checksum:
                    return f"{proof.algorithm} of part {number} is {_text(digest)}, where S3 says {part.checksum}"
            whole = _running(proof.algorithm)
            whole.update(b"".join(self._digests))
            found = _text(whole.digest())
        if found != proof.checksum:
            return f"its {proof.algorithm} is {found}, where {proof.source} says {proof.checksum}"
        return None


def written_proofs(client: "S3Client", files: Sequence[StoredObject]) -> Mapping[str, Proof]:
    """Return the digests that `Run` took of a checkpoint's files while it wrote them, by their paths.

    Args:
        client: S3.
        files: The checkpoint's files. Other programs write markers that hold no digests.
    """
    marker = next((each for each in files if each.path == _MARKER and 0 < each.bytes <= _LARGEST_MARKER), None)
    if marker is None:
        return {}
    try:
        given = json.loads(client.get_object(**marker.asked)["Body"].read())[DIGESTS]
        algorithm, digests = str(given["algorithm"]), dict(given["files"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return {}
    except Exception as error:
        if explained(error) is None:
            raise
        return {}  # the marker itself is a file that cannot be read, and is reported as one
    if algorithm not in ALGORITHMS:
        return {}
    return {
        each.path: Proof(bytes=each.bytes, algorithm=algorithm, checksum=str(digests[each.path]), source=_MARKER)
        for each in files
        if each.path in digests
    }


def ask_proof(client: "S3Client", stored: StoredObject) -> Proof:
    """Ask S3 for the checksum of an object.

    Args:
        client: S3.
        stored: The object.

    Raises:
        ClientError: S3 refuses.
        ChangedError: It is not the object that was listed.
    """
    asked: Any = {**stored.asked, "ObjectAttributes": ["ETag", "Checksum", "ObjectParts", "ObjectSize"]}
    answer = client.get_object_attributes(**asked)
    if answer["ETag"].strip('"') != stored.etag or answer["ObjectSize"] != stored.bytes:
        raise ChangedError
    given: Mapping[str, Any] = answer.get("Checksum") or {}
    for algorithm in ALGORITHMS:
        text = str(given.get(f"Checksum{algorithm}") or "")
        if text:
            whole, _, count = text.partition("-")
            if given.get("ChecksumType") != "COMPOSITE" and not count:
                return Proof(bytes=stored.bytes, algorithm=algorithm, checksum=whole)
            parts = _parts(client, asked, answer, algorithm)
            if sum(part.bytes for part in parts) == stored.bytes and all(part.checksum for part in parts):
                return Proof(bytes=stored.bytes, algorithm=algorithm, checksum=whole, parts=parts)
    return _proof_of_etag(client, stored)


class ChangedError(Exception):
    """An object is not the one that was listed."""


def _parts(client: "S3Client", asked: Any, answer: Any, algorithm: str) -> tuple[Part, ...]:  # noqa: ANN401
    found: list[Part] = []
    while True:
        listed = answer.get("ObjectParts") or {}
        found += [
            Part(bytes=part["Size"], checksum=part.get(f"Checksum{algorithm}", ""))
            for part in listed.get("Parts", ())
        ]
        if not listed.get("IsTruncated"):
            return tuple(found)
        answer = client.get_object_attributes(**asked, PartNumberMarker=int(listed["NextPartNumberMarker"]))


def _proof_of_etag(client: "S3Client", stored: StoredObject) -> Proof:
    """Return the MD5 that the ETag is, if it is one."""
    if _MD5.fullmatch(stored.etag) and not stored.bucket.endswith(_DIRECTORY_BUCKET):
        head = client.head_object(**stored.asked)
        if head.get("ServerSideEncryption") not in _NOT_THE_MD5 and "SSECustomerAlgorithm" not in head:
            checksum = _text(bytes.fromhex(stored.etag))
            return Proof(bytes=stored.bytes, algorithm="MD5", checksum=checksum)
    return Proof(bytes=stored.bytes)


def _text(digest: bytes) -> str:
    return base64.b64encode(digest).decode()
