"""Finds where a cluster's checkpoints lie, and lists what is there now or was there at a time."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from itertools import groupby, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from cdk_training_cluster_cli.core.aws_errors import plain_refusals
from cluster_contract.checkpoints import (
    MARKERS,
    Checkpoint,
    CheckpointPlace,
    checkpoints,
    place_parameter,
    stored_files,
)

if TYPE_CHECKING:
    import boto3
    from mypy_boto3_s3 import S3Client

_Value = TypeVar("_Value")
_CLUSTER_FILES = (".yaml", ".yml")
_URL = re.compile(r"s3://([^/]+)/?(.*)")
# https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html
_BUCKET = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_NANOSECONDS = re.compile(r"([0-9]+)ns")
_PICKLE = ".metadata"
_DIRECTORY_BUCKET = "--x-s3"
_DEFAULT_REGION = "us-east-1"
_PARALLEL = 16
_SOONEST = timedelta(days=1)


@dataclass(frozen=True, kw_only=True)
class StoredObject:
    """One file of a checkpoint in S3.

    Attributes:
        path: Its path below the checkpoint.
        bucket: Its bucket.
        key: Its key.
        bytes: Its size.
        etag: Its ETag, without quotes.
        version: Its version; empty in a bucket without versions, and for the current one.
        storage_class: Its storage class.
    """

    path: str
    bucket: str
    key: str
    bytes: int
    etag: str
    version: str = ""
    storage_class: str = "STANDARD"

    @property
    def where(self) -> str:
        """Its address: `s3://bucket/key`."""
        return f"s3://{self.bucket}/{self.key}"

    @property
    def asked(self) -> dict[str, Any]:
        """What names it in a request."""
        version = {"VersionId": self.version} if self.version else {}
        return {"Bucket": self.bucket, "Key": self.key, **version}


@dataclass(frozen=True, kw_only=True)
class Source:
    """Where checkpoints lie.

    Attributes:
        client: S3.
        place: The bucket, and the prefix in it.
    """

    client: "S3Client"
    place: CheckpointPlace

    @property
    def url(self) -> str:
        """The address of the place."""
        return f"s3://{self.place.bucket}/{self.place.prefix}"

    def found(self, at: datetime | None = None, *, most: int | None = None) -> list[Checkpoint]:
        """Return the checkpoints, the newest first.

        Args:
            at: As they were then. None: as they are.
            most: The number of objects beyond which the listing would take too long. None: there is none.

        Raises:
            ValueError: AWS does not list the bucket, or there are more objects.
        """
        with plain_refusals(self.url):
            contents = self._contents(self.place.prefix, at)
            limited = contents if most is None else _at_most(most, contents, self.url)
            return checkpoints(stored_files(limited, self.place.prefix))

    def checkpoint(
        self, name: str, at: datetime | None = None
    ) -> tuple[Checkpoint, tuple[StoredObject, ...], tuple[str, ...]]:
        """Return a checkpoint, its files, and sentences on what may not belong to it, or lack.

        Args:
            name: Its name.
            at: As it was then. None: as it is.

        Raises:
            ValueError: There is none of that name, or AWS does not list the bucket.
        """
        name = name.strip("/")
        prefix = f"{self.place.prefix}{name}/"
        lost: list[str] = []
        with plain_refusals(self.url):
            contents = [each for each in self._contents(prefix, at, lost) if not each["Key"].endswith("/")]
            late = self._written_after_marker(contents, prefix)
        files = list(stored_files(contents, self.place.prefix))
        found = checkpoints(files)
        holds_others = any(each.complete and each.name.startswith(f"{name}/") for each in found)
        if name and lost and not files:
            raise ValueError(
                f"{self.url}{name}/ has no version of {at}: S3 has only later ones, or there was none yet"
            )
        if not name or not files or holds_others:
            raise ValueError(self._no_such(name, at))
        whole = next((each for each in found if each.name == name), None)
        return (
            whole
            or Checkpoint(
                name=name,
                files=len(files),
                bytes=sum(each.bytes for each in files),
                newest=max(each.modified for each in files),
            ),
            tuple(self._stored(each, prefix) for each in contents),
            (
                *_doubts(lost, prefix, "may have been there then: S3 has only later versions of it"),
                *_doubts(late, prefix, "was written after the marker: it may be of another save"),
            ),
        )

    def objects(self, prefix: str) -> Mapping[str, StoredObject]:
        """Return the files below a prefix as they are, by their paths.

        Args:
            prefix: What their keys begin with.
        """
        with plain_refusals(f"s3://{self.place.bucket}/{prefix}"):
            found = [self._stored(each, prefix) for each in self._contents(prefix, None)]
        # FSx exports directories, too.
        return {each.path: each for each in found if not each.key.endswith("/")}

    def foreign_owner(self, files: Sequence[StoredObject], own: int) -> tuple[str, ...]:
        """Return a sentence about another user who wrote a checkpoint: loading it runs code of its writer.

        FSx tells a file's owner in the metadata of its object:
        https://docs.aws.amazon.com/fsx/latest/LustreGuide/posix-metadata-support.html

        Args:
            files: The checkpoint's files.
            own: The user ID of who restores it.
        """
        pickle = next((each for each in files if each.path == _PICKLE), None)
        if pickle is None:
            return ()
        with plain_refusals(pickle.where):
            owner = self.client.head_object(**pickle.asked)["Metadata"].get("file-owner", "")
        if not owner or owner == str(own):
            return ()
        return (f"user {owner} wrote the checkpoint, and you are user {own}: loading one can run code of its writer",)

    def _no_such(self, name: str, at: datetime | None) -> str:
        names = [each.name for each in self.found(at)]
        near = get_close_matches(name, names, n=3, cutoff=0.4) or names[:3]
        there = f"near ones: {', '.join(near)}" if near else "there are none"
        return f"no checkpoint {name!r} in {self.url}{f' at {at.isoformat()}' if at else ''}; {there}"

    def _stored(self, content: Mapping[str, Any], prefix: str) -> StoredObject:
        return StoredObject(
            path=content["Key"].removeprefix(prefix),
            bucket=self.place.bucket,
            key=content["Key"],
            bytes=content["Size"],
            etag=content["ETag"].strip('"'),
            version=content.get("VersionId", ""),
            storage_class=content.get("StorageClass", "STANDARD"),
        )

    def _written_after_marker(self, contents: Sequence[Mapping[str, Any]], prefix: str) -> list[str]:
        """Return the keys that were written after the newest marker.

        FSx exports files in any order, and tells when each was written in the metadata of its object:
        https://docs.aws.amazon.com/fsx/latest/LustreGuide/posix-metadata-support.html
        """
        markers = [each for each in contents if each["Key"].removeprefix(prefix) in MARKERS]
        if not markers:
            return []
        marker = max(markers, key=lambda each: each["LastModified"])
        late = [each for each in contents if each["LastModified"] > marker["LastModified"]]
        of_marker = self._written(marker) if late else None
        return [
            each["Key"]
            for each in late
            if of_marker is None or (written := self._written(each)) is None or written > of_marker
        ]

    def _written(self, content: Mapping[str, Any]) -> int | None:
        """Return when FSx says that a file was written, in nanoseconds. None: FSx did not export it."""
        metadata = self.client.head_object(**self._stored(content, "").asked)["Metadata"]
        found = _NANOSECONDS.fullmatch(metadata.get("file-mtime", ""))
        return int(found[1]) if found else None

    def _contents(
        self, prefix: str, at: datetime | None, lost: list[str] | None = None
    ) -> Iterator[Mapping[str, Any]]:
        if at is None:
            for page in self.client.get_paginator("list_objects_v2").paginate(
                Bucket=self.place.bucket, Prefix=prefix
            ):
                yield from page.get("Contents", ())
            return
        if self.place.bucket.endswith(_DIRECTORY_BUCKET):
            raise ValueError(f"{self.place.bucket} is a directory bucket: S3 keeps no versions in one")
        yield from _at(self.client, self.place.bucket, prefix, at, [] if lost is None else lost)


def _at_most(most: int, contents: Iterator[Mapping[str, Any]], url: str) -> Iterator[Mapping[str, Any]]:
    yield from islice(contents, most)
    if next(contents, None) is not None:
        raise ValueError(f"{url} has more than {most:,} objects: run training-cluster checkpoints list {url}")


def _doubts(keys: Sequence[str], prefix: str, why: str) -> Iterator[str]:
    if keys:
        more = f" (and {len(keys) - 1:,} more)" if len(keys) > 1 else ""
        yield f"{keys[0].removeprefix(prefix)}{more} {why}"


def _at(client: "S3Client", bucket: str, prefix: str, at: datetime, lost: list[str]) -> Iterator[Mapping[str, Any]]:
    """Yield each object as it was at a time; name in `lost` the keys whose versions of that time may be deleted.

    S3 lists versions by key, the newest first, and delete markers among them in a list of their own:
    https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjectVersions.html
    """
    for key, group in groupby(_versions(client, bucket, prefix), key=lambda each: each["Key"]):
        entry: Mapping[str, Any] | None = None
        oldest: Mapping[str, Any] = {}
        for oldest in group:  # not as a list: a key may have a million of them
            if entry is None and oldest["LastModified"] <= at:
                entry = oldest
        if entry is None:
            if _may_have_had_another(oldest):
                lost.append(key)
        elif "Size" in entry:
            yield entry


def _may_have_had_another(oldest: Mapping[str, Any]) -> bool:
    """Return whether S3 may have deleted a version that was before the oldest that is left.

    A file that was written once, within the last day, had none: a lifecycle rule deletes a version a day after it is
    overwritten or deleted at the earliest. Of any other file S3 does not tell.
    https://docs.aws.amazon.com/AmazonS3/latest/API/API_NoncurrentVersionExpiration.html
    """
    return not oldest["IsLatest"] or "Size" not in oldest or datetime.now(UTC) - oldest["LastModified"] > _SOONEST


def _versions(client: "S3Client", bucket: str, prefix: str) -> Iterator[Mapping[str, Any]]:
    """Yield versions and delete markers by key, the newest first, and of one second the versions first."""
    kept = set[str]()
    for page in client.get_paginator("list_object_versions").paginate(Bucket=bucket, Prefix=prefix):
        entries: list[Any] = [*page.get("Versions", ()), *page.get("DeleteMarkers", ())]
        kept.update(each["VersionId"] for each in entries)
        newest_first = sorted(entries, key=lambda each: (each["LastModified"], each["IsLatest"]), reverse=True)
        yield from sorted(newest_first, key=lambda each: each["Key"].encode())
    if kept == {"null"}:
        raise ValueError(f"S3 keeps no versions in s3://{bucket}/{prefix}: leave --version-of out")


def find_source(text: str, session: "boto3.Session", region: str | None) -> Source:
    """Return where the checkpoints of a cluster, or those in a bucket, lie.

    Args:
        text: A cluster file, the name of a cluster or of a bucket, or `s3://bucket/prefix`.
        session: The user's credentials.
        region: The region. None: the cluster file's, or the session's.

    Raises:
        ValueError: It is none of these, or the cluster keeps no checkpoints.
        ClusterFileError: The file is wrong.
    """
    if text.endswith(_CLUSTER_FILES) or Path(text).is_file():
        from cdk_training_cluster_file import read_cluster_file  # noqa: PLC0415 - starts Node.js

        cluster = read_cluster_file(Path(text))
        region = region or cluster.region
        place = _place_of(cluster.name, session, region)
    else:
        place = _place_named(text, session, region or session.region_name) or place_of_url(text)
    return Source(client=s3_client(session, region or session.region_name or _DEFAULT_REGION), place=place)


def place_of_url(text: str) -> CheckpointPlace:
    """Return the place that a bucket's name, or an address in it, names.

    Args:
        text: The name, or `s3://bucket/prefix`.

    Raises:
        ValueError: It is neither.
    """
    found = _URL.fullmatch(text)
    bucket, prefix = (found[1], found[2].strip("/")) if found else (text, "")
    if not _BUCKET.fullmatch(bucket):
        raise ValueError(f"not a cluster file (.yaml), the name of a bucket or s3://bucket/prefix: {text!r}")
    return CheckpointPlace(bucket=bucket, prefix=f"{prefix}/" if prefix else "")


def _place_named(name: str, session: "boto3.Session", region: str | None) -> CheckpointPlace | None:
    """Return the place of the checkpoints of the cluster of this name. None: there is none that one may read."""
    if region is None or "/" in name:
        return None
    try:
        return _place_of(name, session, region)
    except ValueError:
        return None


def _place_of(name: str, session: "boto3.Session", region: str) -> CheckpointPlace:
    ssm = session.client("ssm", region_name=region)
    missing = (
        f"cluster {name!r} has no checkpoint store in {region}: deploy its file with one, or name the bucket itself: "
        "s3://bucket/prefix"
    )
    with plain_refusals(f"the parameter {place_parameter(name)}", {"ParameterNotFound": missing}):
        text = ssm.get_parameter(Name=place_parameter(name))["Parameter"]["Value"]
    return parsed(place_parameter(name), text, CheckpointPlace.parse)


def parsed(name: str, text: str, parse: Callable[[str], _Value]) -> _Value:
    """Return what a parameter of the deployment holds.

    Args:
        name: The parameter's name.
        text: Its value.
        parse: Reads it.

    Raises:
        ValueError: It holds something else.
    """
    try:
        return parse(text)
    except ValueError as error:
        raise ValueError(
            f"the parameter {name} does not hold what a deployment writes ({error}): deploy the cluster again"
        ) from error


def s3_client(session: "boto3.Session", region: str) -> "S3Client":
    """Return a client of S3 that leaves checksums to this command.

    Args:
        session: The user's credentials.
        region: The region.
    """
    from botocore.config import Config  # noqa: PLC0415 - what asks AWS nothing does without it

    # Checksums are compared here, with those of parts too, which botocore leaves out.
    return session.client(
        "s3",
        region_name=region,
        config=Config(max_pool_connections=_PARALLEL, response_checksum_validation="when_required"),
    )
