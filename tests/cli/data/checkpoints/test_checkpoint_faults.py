"""What `training-cluster checkpoints` says when AWS, the connection or the disk refuses, and that nothing is lost."""

import base64
import errno
import hashlib
import io
from collections import namedtuple
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from botocore.response import StreamingBody
from hypothesis import given
from hypothesis import strategies as st

from cdk_training_cluster_cli.core.aws_errors import explained
from cdk_training_cluster_cli.data.checkpoints.proof import ChangedError, Comparison, Part, Proof, ask_proof
from cdk_training_cluster_cli.data.checkpoints.reading import FileProblemError, pieces_of_object
from cdk_training_cluster_cli.data.checkpoints.source import Source, StoredObject
from cluster_contract.checkpoints import CheckpointPlace
from stored_runs import Runs, runs

__all__ = ["runs"]

_KMS = "User: arn:aws:iam::123456789012:user/a is not authorized to perform: kms:Decrypt on the resource"

_OF_A_FILE = {
    "access denied": (
        ("GetObject", "AccessDenied", "Access Denied"),
        "AWS denies GetObject (AccessDenied): your policy must allow it, and no other policy may deny it",
    ),
    "the attributes denied": (
        ("GetObjectAttributes", "AccessDenied", "Access Denied"),
        "AWS denies GetObjectAttributes (AccessDenied): your policy must allow it, and no other policy may deny it",
    ),
    "KMS denied": (
        ("GetObject", "AccessDenied", _KMS),
        f"KMS denies the key ({_KMS}): its policy and yours must allow that",
    ),
    "changed midway": (
        ("GetObject", "PreconditionFailed", "At least one of the pre-conditions you specified did not hold"),
        "it was changed while it was read: run the command again",
    ),
    "deleted midway": (
        ("GetObject", "NoSuchKey", "The specified key does not exist."),
        "it was deleted meanwhile: run the command again",
    ),
    "archived": (
        ("GetObject", "InvalidObjectState", "The operation is not valid for the object's storage class"),
        "it is archived: restore it first (aws s3api restore-object --restore-request Days=7), wait, and run the "
        "command again",
    ),
}


@pytest.mark.parametrize(("fault", "sentence"), _OF_A_FILE.values(), ids=_OF_A_FILE)
def test_what_is_refused_of_one_file_is_said_and_the_others_are_kept(
    runs: Runs, tmp_path: Path, fault: tuple[str, str, str], sentence: str
) -> None:
    runs.aws.fail(*fault, match="rank 0.pt", times=None)
    assert runs.problems("restore", "step-1", tmp_path) == (1, {"rank 0.pt": sentence})
    assert [path.name for path in tmp_path.iterdir()] == [".step-1.training-cluster-restore"]
    runs.aws.clear_faults()
    assert runs.ran("restore", "step-1", tmp_path).exit_code == 0


_OF_THE_PLACE = {
    "access denied": (
        ("ListObjectsV2", "AccessDenied", "Access Denied"),
        "AWS denies ListObjectsV2 (AccessDenied): your policy must allow it, and no other policy may deny it",
    ),
    "no such bucket": (
        ("ListObjectsV2", "NoSuchBucket", "The specified bucket does not exist"),
        "there is no such bucket: check the name, and AWS_PROFILE",
    ),
    "expired credentials": (
        ("ListObjectsV2", "ExpiredToken", "The provided token has expired."),
        "the credentials have expired: run aws sso login, or get new ones",
    ),
    "an inactive directory bucket": (
        ("ListObjectsV2", "503", "Service Unavailable"),
        "S3 throttles the requests, or activates a directory bucket that was not used for 90 days: run the command "
        "again in some minutes, which goes on from there",
    ),
    "another error": (("ListObjectsV2", "Odd", "It is odd."), "AWS refuses ListObjectsV2 (Odd: It is odd.)"),
}


@pytest.mark.parametrize(("fault", "sentence"), _OF_THE_PLACE.values(), ids=_OF_THE_PLACE)
def test_what_is_refused_of_the_place_is_one_sentence_and_status_2(
    runs: Runs, fault: tuple[str, str, str], sentence: str
) -> None:
    runs.aws.fail(*fault)
    found = runs.ran("list")
    assert (found.exit_code, found.stdout, found.stderr) == (2, "", f"error: {runs.url}/: {sentence}\n")


def test_too_small_a_disk_is_said_before_anything_is_written(
    runs: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = namedtuple("usage", ["free"])
    monkeypatch.setattr("shutil.disk_usage", lambda _: usage(2**20))
    found = runs.ran("restore", "step-1", tmp_path)
    assert found.stderr == (
        f"error: the checkpoint needs 2.9 MiB more at {tmp_path}/.step-1.training-cluster-restore/restored, where "
        "1.0 MiB are free\n"
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (
            OSError(errno.ENOSPC, "No space left on device"),
            "the disk is full: free some space and run the command again, which goes on from there",
        ),
        (PermissionError(errno.EACCES, "Permission denied", "/a"), "Permission denied: /a"),
        (ZeroDivisionError(), None),
    ],
)
def test_what_the_disk_refuses_is_said_and_a_defect_is_none(error: Exception, sentence: str | None) -> None:
    assert explained(error) == sentence


def test_a_directory_bucket_has_no_versions() -> None:
    source = Source(client=None, place=CheckpointPlace(bucket="a--use1-az4--x-s3"))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"^a--use1-az4--x-s3 is a directory bucket: S3 keeps no versions in one$"):
        source.found(datetime.now(UTC))


class FakeListing:
    """S3 with objects of these keys."""

    def __init__(self, *keys: str) -> None:
        self._keys = keys

    def get_paginator(self, _: str) -> "FakeListing":
        return self

    def paginate(self, **_: object) -> list[dict[str, Any]]:
        return [{"Contents": [{"Key": key, "Size": 0, "ETag": '"e"'} for key in self._keys]}]


def test_an_object_of_a_directory_is_no_file_in_the_way_of_a_restore() -> None:
    client: Any = FakeListing("ck/step-1/", "ck/step-1/deep/", "ck/step-1/deep/a")
    found = Source(client=client, place=CheckpointPlace(bucket="runs")).objects("ck/step-1/")
    assert set(found) == {"deep/a"}


def test_an_interruption_stops_the_files_that_are_read(
    runs: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("rich.progress.Progress.advance", interrupted)
    found = runs.ran("restore", "step-1", tmp_path)
    assert found.exit_code not in {0, 2}
    assert [path.name for path in tmp_path.iterdir()] == [".step-1.training-cluster-restore"]


class FakeS3:
    """ClusterAnswers with an object whose connection breaks after so many bytes, and with its attributes."""

    def __init__(self, body: bytes = b"", breaks: int = 2**40, attributes: Any = None, head: Any = None) -> None:
        self.body, self.breaks, self.head = body, breaks, head or {}
        self.attributes = attributes or {}

    def get_object(self, **asked: Any) -> Any:
        rest = self.body[int(asked["Range"].removeprefix("bytes=").removesuffix("-")) :]
        return {"Body": StreamingBody(io.BytesIO(rest[: self.breaks]), len(rest))}

    def get_object_attributes(self, **asked: Any) -> Any:
        found = {"ETag": stored().etag, "ObjectSize": 9, **self.attributes}
        if "PartNumberMarker" in asked:
            parts = found["ObjectParts"]
            found["ObjectParts"] = {"Parts": parts["more"], "IsTruncated": False}
        return found

    def head_object(self, **_: Any) -> Any:
        return self.head


def stored(size: int = 9, etag: str = "e" * 32, bucket: str = "runs") -> StoredObject:
    return StoredObject(path="a", bucket=bucket, key="a", bytes=size, etag=etag)


def test_a_truncated_download_goes_on_and_ends_some_time() -> None:
    client: Any = FakeS3(b"123456789", breaks=4)
    assert b"".join(pieces_of_object(client, stored())) == b"123456789"
    client.breaks = 1
    with pytest.raises(FileProblemError, match=r"^the download broke 5 times, the last time at byte 5$"):
        list(pieces_of_object(client, stored()))


def _sha256(data: bytes) -> str:
    return base64.b64encode(hashlib.sha256(data).digest()).decode()


def composite(*parts: bytes) -> Proof:
    whole = _sha256(b"".join(hashlib.sha256(part).digest() for part in parts))
    listed = tuple(Part(bytes=len(part), checksum=_sha256(part)) for part in parts)
    return Proof(bytes=sum(map(len, parts)), algorithm="SHA256", checksum=whole, parts=listed)


def difference(proof: Proof, *pieces: bytes) -> str | None:
    comparison = Comparison(proof)
    for piece in pieces:
        comparison.update(piece)
    return comparison.difference()


@given(st.lists(st.binary(min_size=1, max_size=9), min_size=1, max_size=4), st.data())
def test_contents_are_compared_however_they_come(parts: list[bytes], data: st.DataObject) -> None:
    body, proof = b"".join(parts), composite(*parts)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=4)))
    pieces = [body[a:b] for a, b in zip([0, *cuts], [*cuts, len(body)], strict=True)]
    assert difference(proof, *pieces) is None
    at = data.draw(st.integers(0, len(body) - 1))
    wrong = body[:at] + bytes([body[at] ^ 1]) + body[at + 1 :]
    assert "SHA256 of part" in str(difference(proof, wrong))
    assert difference(proof, body[:-1]) == f"it has {len(body) - 1:,} bytes, where S3 says {len(body):,}"


# Of "123456789": https://reveng.sourceforge.io/crc-catalogue/all.htm, where CRC-32C is CRC-32/ISCSI.
@pytest.mark.parametrize(
    ("algorithm", "digest"),
    [
        ("CRC64NVME", bytes.fromhex("ae8b14860a799888")),
        ("CRC32C", bytes.fromhex("e3069283")),
        ("CRC32", bytes.fromhex("cbf43926")),
        ("SHA1", hashlib.sha1(b"123456789").digest()),  # noqa: S324
        ("MD5", hashlib.md5(b"123456789").digest()),  # noqa: S324
    ],
)
def test_algorithms_are_s3_s(algorithm: str, digest: bytes) -> None:
    proof = Proof(bytes=9, algorithm=algorithm, checksum=base64.b64encode(digest).decode())
    assert difference(proof, b"1234", b"56789") is None
    assert f"its {algorithm} is " in str(difference(proof, b"12345678?"))


_TWO = composite(b"12345", b"6789")
_PARTS = [
    {"PartNumber": n, "Size": part.bytes, "ChecksumSHA256": part.checksum} for n, part in enumerate(_TWO.parts, 1)
]
_COMPOSITE = {"ChecksumSHA256": f"{_TWO.checksum}-2", "ChecksumType": "COMPOSITE"}
_PROOFS: dict[str, tuple[dict[str, Any], dict[str, Any], Proof]] = {
    "of the whole object": (
        {"Checksum": {"ChecksumCRC64NVME": "abc=", "ChecksumType": "FULL_OBJECT"}},
        {},
        Proof(bytes=9, algorithm="CRC64NVME", checksum="abc="),
    ),
    "of its parts, in two pages": (
        {
            "Checksum": _COMPOSITE,
            "ObjectParts": {"Parts": _PARTS[:1], "IsTruncated": True, "NextPartNumberMarker": 1, "more": _PARTS[1:]},
        },
        {},
        _TWO,
    ),
    "of parts that S3 does not list": ({"Checksum": _COMPOSITE}, {"ServerSideEncryption": "aws:kms"}, Proof(bytes=9)),
    "of an unknown kind": (
        {"Checksum": {"ChecksumXXHASH3": "a"}},
        {"ServerSideEncryption": "aws:kms"},
        Proof(bytes=9),
    ),
    "an MD5": (
        {},
        {"ServerSideEncryption": "AES256"},
        Proof(bytes=9, algorithm="MD5", checksum="7u7u7u7u7u7u7u7u7u7u7g=="),
    ),
    "an ETag of KMS": ({}, {"ServerSideEncryption": "aws:kms"}, Proof(bytes=9)),
    "an ETag of a customer's key": ({}, {"SSECustomerAlgorithm": "AES256"}, Proof(bytes=9)),
}


@pytest.mark.parametrize(("attributes", "head", "proof"), _PROOFS.values(), ids=_PROOFS)
def test_what_s3_keeps_of_an_object(attributes: dict[str, Any], head: dict[str, Any], proof: Proof) -> None:
    client: Any = FakeS3(attributes=attributes, head=head)
    assert ask_proof(client, stored()) == proof


def test_an_etag_of_parts_or_of_a_directory_bucket_is_no_md5() -> None:
    client: Any = FakeS3(attributes={"ETag": f"{'e' * 32}-2"})
    assert ask_proof(client, stored(etag=f"{'e' * 32}-2")) == Proof(bytes=9)
    assert ask_proof(FakeS3(), stored(bucket="a--use1-az4--x-s3")) == Proof(bytes=9)  # type: ignore[arg-type]


def test_an_object_that_is_not_the_listed_one_has_no_proof() -> None:
    with pytest.raises(ChangedError):
        ask_proof(FakeS3(attributes={"ObjectSize": 8}), stored())  # type: ignore[arg-type]
