"""What FSx says of links to buckets and of their tasks, and the tasks that the function asks for."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from cluster_common.errors import error_code

if TYPE_CHECKING:
    from mypy_boto3_fsx.client import FSxClient

_IMPORT, _RELEASE = "IMPORT_METADATA_FROM_REPOSITORY", "RELEASE_DATA_FROM_FILESYSTEM"
_ANY_TASK_RUNS = "DataRepositoryTaskExecuting"


@dataclass(frozen=True, kw_only=True)
class Link:
    """A data repository association.

    Attributes:
        id: Its id.
        source: What it shows, such as `s3://bucket/prefix/`.
        lifecycle: Its lifecycle, as FSx calls it.
        message: What FSx says of a failure; empty: nothing.
        imports_new: Whether new objects appear without a task.
        created: When it was made.
    """

    id: str
    source: str
    lifecycle: str
    message: str
    imports_new: bool
    created: datetime

    @property
    def identity(self) -> str:
        """A text that no other link has, nor this one when it shows something else."""
        return f"{self.id} {self.source}"


@dataclass(frozen=True, kw_only=True)
class Task:
    """A data repository task.

    Attributes:
        id: Its id.
        lifecycle: Its lifecycle, as FSx calls it.
        created: When it was asked for.
        message: What FSx says of a failure; empty: nothing.
        failed: How many files it could not process.
    """

    id: str
    lifecycle: str
    created: datetime
    message: str
    failed: int

    @property
    def runs(self) -> bool:
        """Whether it has not ended."""
        return self.lifecycle in ("PENDING", "EXECUTING", "CANCELING")


class Links:
    """The links of one file system.

    Source: https://docs.aws.amazon.com/fsx/latest/APIReference/API_DataRepositoryTask.html
    """

    def __init__(self, client: "FSxClient", file_system: str) -> None:
        """Read nothing yet.

        Args:
            client: The client of FSx.
            file_system: The file system's id.
        """
        self._client = client
        self._file_system = file_system
        self._found: dict[str, Link] | None = None

    def at(self, path: str) -> Link | None:
        """Return the link of a directory of the file system, or None; all of them are read once.

        Args:
            path: The directory, such as `/data`.
        """
        if self._found is None:
            of_it: Any = [{"Name": "file-system-id", "Values": [self._file_system]}]
            pages = self._pages(self._client.describe_data_repository_associations, "Associations", of_it)
            self._found = {raw["FileSystemPath"].rstrip("/") or "/": _link(raw) for raw in pages}
        return self._found.get(path)

    def import_tasks(self, link: Link) -> list[Task]:
        """Return the import tasks of a link, the newest first; FSx forgets those that ended two weeks ago.

        Args:
            link: The link.
        """
        of_it: Any = [{"Name": "data-repository-association-id", "Values": [link.id]}]
        pages = self._pages(self._client.describe_data_repository_tasks, "DataRepositoryTasks", of_it)
        tasks = [_task(raw) for raw in pages if raw["Type"] == _IMPORT]
        return sorted(tasks, key=lambda task: task.created, reverse=True)

    def task(self, id: str) -> Task | None:
        """Return one task, or None: FSx has forgotten it.

        Args:
            id: The task's id.
        """
        try:
            found = self._client.describe_data_repository_tasks(TaskIds=[id])["DataRepositoryTasks"]
        except ClientError as error:
            if error_code(error) == "DataRepositoryTaskNotFound":
                return None
            raise
        return _task(found[0]) if found else None

    def ask_import(self, link: Link, token: str) -> str | None:
        """Ask for the names and sizes of a link's objects, and return the task's id. None: another task runs.

        Args:
            link: The link.
            token: What makes two requests one.
        """
        return self._ask(Type=_IMPORT, Paths=[link.source], ClientRequestToken=token)

    def ask_release(self, path: str, unused_for: timedelta, token: str) -> str | None:
        """Ask to free the space of files that the bucket has, and return the task's id. None: another task runs.

        Args:
            path: The directory of the file system.
            unused_for: For how long a file must not have been used, in whole days.
            token: What makes two requests one.
        """
        unused: Any = {"DurationSinceLastAccess": {"Unit": "DAYS", "Value": unused_for.days}}
        # Paths are relative to the mount point, but for the whole.
        paths = [path.lstrip("/") or "/"]
        return self._ask(Type=_RELEASE, Paths=paths, ReleaseConfiguration=unused, ClientRequestToken=token)

    def _ask(self, **request: Any) -> str | None:  # noqa: ANN401 (what CreateDataRepositoryTask takes)
        try:
            made = self._client.create_data_repository_task(
                FileSystemId=self._file_system, Report={"Enabled": False}, **request
            )
        except ClientError as error:
            if error_code(error) == _ANY_TASK_RUNS:
                return None
            raise
        return made["DataRepositoryTask"]["TaskId"]

    def _pages(self, describe: Any, key: str, filters: Sequence[Any]) -> Iterator[Any]:  # noqa: ANN401
        answer = describe(Filters=filters)
        yield from answer[key]
        while answer.get("NextToken"):
            answer = describe(Filters=filters, NextToken=answer["NextToken"])
            yield from answer[key]


def _link(raw: Any) -> Link:  # noqa: ANN401 (an answer of FSx)
    return Link(
        id=raw["AssociationId"],
        source=raw["DataRepositoryPath"],
        lifecycle=raw["Lifecycle"],
        message=raw.get("FailureDetails", {}).get("Message", ""),
        imports_new="NEW" in raw.get("S3", {}).get("AutoImportPolicy", {}).get("Events", []),
        created=raw["CreationTime"],
    )


def _task(raw: Any) -> Task:  # noqa: ANN401 (an answer of FSx)
    return Task(
        id=raw["TaskId"],
        lifecycle=raw["Lifecycle"],
        created=raw["CreationTime"],
        message=raw.get("FailureDetails", {}).get("Message", ""),
        failed=raw.get("Status", {}).get("FailedCount", 0),
    )
