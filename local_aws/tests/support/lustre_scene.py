"""A Lustre file system with a bucket of its own, that a test links, fills and looks at."""

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self
from uuid import uuid4

from local_aws import LocalAws
from local_aws.lustre_client import LFS, LustreDirectory
from local_aws_scene import NODES, Stacks


@dataclass
class LinkedFileSystem:
    aws: LocalAws
    id: str
    bucket: str

    @classmethod
    @contextmanager
    def made(cls, aws: LocalAws, stacks: Stacks) -> Iterator[Self]:
        name = stacks.create({"Resources": {"Files": json.loads(json.dumps(NODES["Resources"]["Files"]))}})
        made = cls(aws, stacks.physical_ids(name)["Files"], f"linked-{uuid4().hex[:12]}")
        made.s3.create_bucket(Bucket=made.bucket)
        yield made

    @property
    def fsx(self) -> Any:
        return self.aws.client("fsx")

    @property
    def s3(self) -> Any:
        return self.aws.client("s3")

    @property
    def directory(self) -> Path:
        """What nodes see at /data."""
        return self.aws.file_system_directory(self.id) / "files" / "data"

    def bucket_in(self, region: str) -> str:
        name = f"linked-{uuid4().hex[:12]}"
        self.s3.create_bucket(Bucket=name, CreateBucketConfiguration={"LocationConstraint": region})
        return name

    def put(self, **objects: str) -> None:
        for key, text in objects.items():
            self.s3.put_object(Bucket=self.bucket, Key=f"tokens/{key}", Body=text.encode())

    def delete(self, key: str) -> None:
        self.s3.delete_object(Bucket=self.bucket, Key=f"tokens/{key}")

    def objects(self) -> dict[str, str]:
        keys = [one["Key"] for one in self.s3.list_objects_v2(Bucket=self.bucket).get("Contents", [])]
        return {
            key.removeprefix("tokens/"): self.s3.get_object(Bucket=self.bucket, Key=key)["Body"].read().decode()
            for key in keys
        }

    def version(self, key: str) -> Any:
        return self.s3.head_object(Bucket=self.bucket, Key=f"tokens/{key}")["LastModified"]

    def link(self, **more: Any) -> str:
        request = {"FileSystemPath": "/data", "DataRepositoryPath": f"s3://{self.bucket}/tokens/", **more}
        answer = self.fsx.create_data_repository_association(FileSystemId=self.id, **request)["Association"]
        assert answer["Lifecycle"] == "CREATING"
        return str(answer["AssociationId"])

    def described(self) -> dict[str, Any]:
        of_it = [{"Name": "file-system-id", "Values": [self.id]}]
        (link,) = self.fsx.describe_data_repository_associations(Filters=of_it)["Associations"]
        return dict(link)

    def task(self, kind: str, **more: Any) -> str:
        request = {"Report": {"Enabled": False}, **more}
        task = self.fsx.create_data_repository_task(FileSystemId=self.id, Type=kind, **request)["DataRepositoryTask"]
        return str(task["TaskId"])

    def tasks(self, **more: Any) -> list[dict[str, Any]]:
        of_it = {"Name": "file-system-id", "Values": [self.id]}
        filters = [of_it, *more.get("Filters", [])]
        return list(self.fsx.describe_data_repository_tasks(Filters=filters)["DataRepositoryTasks"])

    def finish_tasks(self) -> list[dict[str, Any]]:
        self.tasks()
        return self.tasks()

    def settle(self) -> None:
        self.aws.file_system_directory(self.id)

    def files(self) -> dict[str, int]:
        found = [path for path in self.directory.rglob("*") if path.is_file()]
        return {str(path.relative_to(self.directory)): path.stat().st_size for path in found}

    def released(self) -> list[str]:
        directory = LustreDirectory(self.directory.parents[1])
        return [str(path.relative_to(self.directory)) for path in directory.released()]

    def restore(self, *paths: str) -> list[str]:
        """Restore files with the stand-in for Lustre's client, and return what is in them."""
        files = [str(self.directory / path) for path in paths]
        for command in ("hsm_restore", "hsm_state"):
            subprocess.run([LFS, command, *files], check=True, capture_output=True, env={"PATH": os.environ["PATH"]})
        return [Path(file).read_text() for file in files]
