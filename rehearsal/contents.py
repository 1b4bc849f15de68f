"""What lies in a bucket and in a directory, as digests, so that the two can be compared."""

import hashlib
from pathlib import Path

from rehearsal.hydration_story import Contents
from rehearsal.readback import Client


def objects_below(client: Client, address: str) -> Contents:
    """Return the digests of the objects under an address by their paths below it, without those for directories.

    Args:
        client: Makes clients of the local AWS.
        address: Such as `s3://bucket/prefix/`.
    """
    bucket, _, prefix = address.removeprefix("s3://").partition("/")
    s3 = client("s3")
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
    keys = [key for key in pages.search("Contents[].Key") if key and not key.endswith("/")]
    return {
        key.removeprefix(prefix): _digest(s3.get_object(Bucket=bucket, Key=key)["Body"].read())
        for key in sorted(keys)
    }


def files_below(directory: Path) -> Contents:
    """Return the digests of the files below a directory by their paths; None for those whose contents are released.

    Args:
        directory: The directory.
    """
    files = (path for path in sorted(directory.rglob("*")) if path.is_file())
    return {str(path.relative_to(directory)): _digest_of(path) for path in files}


def _digest_of(file: Path) -> str | None:
    status = file.stat()
    return None if status.st_size and not status.st_blocks else _digest(file.read_bytes())


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
