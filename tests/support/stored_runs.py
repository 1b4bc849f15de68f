"""A bucket with checkpoints on the local AWS, and the command that a user calls."""

import itertools
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from cdk_training_cluster_cli.main import training_cluster
from local_aws import LocalAws

FILES: Mapping[str, bytes] = {
    "rank 0.pt": bytes(range(256)) * 12_000,
    "deep/rank é+1 %.pt": b"deep" * 1000,
    "empty": b"",
    ".metadata": b"meta",
}
_numbers = itertools.count()


@dataclass(frozen=True)
class Runs:
    """A versioned bucket with one complete checkpoint, `ck/step-1`."""

    aws: LocalAws
    bucket: str

    @property
    def url(self) -> str:
        return f"s3://{self.bucket}/ck"

    @property
    def s3(self) -> Any:
        return self.aws.client("s3")

    def put(self, path: str, body: bytes, **more: Any) -> None:
        given = {"ChecksumAlgorithm": "CRC64NVME", **more}
        self.s3.put_object(Bucket=self.bucket, Key=f"ck/{path}", Body=body, **given)

    def keys(self, prefix: str) -> set[str]:
        found = self.s3.list_objects_v2(Bucket=self.bucket, Prefix=prefix)
        return {each["Key"].removeprefix(prefix) for each in found.get("Contents", ())}

    def ran(self, command: str, *arguments: object) -> Result:
        return CliRunner().invoke(training_cluster, ["checkpoints", command, self.url, *map(str, arguments)])

    def told(self, command: str, *arguments: object) -> tuple[int, Any]:
        """Return the exit status, and what a program reads."""
        found = self.ran(command, *arguments, "--output", "json")
        return found.exit_code, json.loads(found.stdout)

    def problems(self, command: str, *arguments: object) -> tuple[int, dict[str, str]]:
        """Return the exit status, and what is wrong with each file."""
        status, said = self.told(command, *arguments)
        return status, {each["path"]: each["problem"] for each in said["files"] if each["problem"]}


@pytest.fixture
def runs(aws: LocalAws, monkeypatch: pytest.MonkeyPatch) -> Iterator[Runs]:
    for name, value in aws.environment().items():
        if name.startswith("AWS_"):
            monkeypatch.setenv(name, value)
    monkeypatch.setenv("COLUMNS", "160")
    made = Runs(aws, f"runs-{next(_numbers)}")
    made.s3.create_bucket(Bucket=made.bucket)
    made.s3.put_bucket_versioning(Bucket=made.bucket, VersioningConfiguration={"Status": "Enabled"})
    for path, body in FILES.items():
        made.put(f"step-1/{path}", body)
    yield made
    aws.clear_faults()
