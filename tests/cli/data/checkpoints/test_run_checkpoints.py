"""`training-cluster checkpoints` and what `Run` writes: digests, directories that are set aside, owners."""

import base64
import json
import os
import re
import zlib
from pathlib import Path

import pytest

from stored_runs import Runs, runs

__all__ = ["runs"]


def marked(contents: bytes, **files: str) -> bytes:
    """Return the marker of `Run`, with the digest of contents in each file that is not given."""
    digest = base64.b64encode(zlib.crc32(contents).to_bytes(4, "big")).decode()
    digests = {"algorithm": "CRC32", "files": {"__0_0.distcp": digest, **files}}
    return json.dumps({"step": 2, "files": {"__0_0.distcp": len(contents)}, "digests": digests}).encode()


def test_the_digests_of_a_run_are_compared_too(runs: Runs) -> None:
    """S3's own checksum is that of what arrived there: it is right for a file that was damaged before."""
    for name, contents in (("whole", b"state"), ("damaged", b"stAte")):
        runs.put(f"{name}/__0_0.distcp", contents)
        runs.put(f"{name}/.complete", marked(b"state"))
    assert runs.problems("verify", "whole") == (0, {})
    status, problems = runs.problems("verify", "damaged")
    assert status == 1
    assert problems.keys() == {"__0_0.distcp"}
    assert re.fullmatch(r"its CRC32 is \S+, where .complete says \S+", problems["__0_0.distcp"])


@pytest.mark.parametrize(
    "marker",
    [b"", b"[]", b"\xff", b"[" * 100_000, b'{"digests": {"algorithm": "CRC7", "files": {"__0_0.distcp": ""}}}'],
)
def test_a_marker_without_digests_proves_nothing_and_refutes_nothing(runs: Runs, marker: bytes) -> None:
    runs.put("other/__0_0.distcp", b"state")
    runs.put("other/.complete", marker)
    assert runs.problems("verify", "other") == (0, {})


def test_what_a_run_has_set_aside_is_no_complete_checkpoint(runs: Runs) -> None:
    for name in ("run/step-000000002-0a0a0a0a.damaged", "run/step-000000003-0a0a0a0a.abandoned"):
        runs.put(f"{name}/.complete", b"{}")
    _, said = runs.told("list")
    assert [each["name"] for each in said["checkpoints"] if each["complete"]] == ["step-1"]


@pytest.mark.parametrize(("owner", "is_warned"), [(os.getuid(), False), (12345, True)])
def test_who_restores_the_checkpoint_of_another_user_is_warned(
    runs: Runs, tmp_path: Path, owner: int, is_warned: bool
) -> None:
    runs.put("step-3/.metadata", b"pickle", Metadata={"file-owner": str(owner)})
    said = runs.ran("restore", "step-3", tmp_path)
    assert said.exit_code == 0
    assert ("warning: user 12345 wrote the checkpoint, and you are user" in said.stderr) is is_warned
