"""FSx in memory, as far as the hydration function talks to it: links, tasks and what they do to files."""

from datetime import datetime
from typing import Any

from fake_service import ACCOUNT, REGION, FakeService, refusal

FILE_SYSTEM = "fs-0123456789abcdef0"


class FakeLustre(FakeService):
    """The client of FSx.

    Attributes:
        now: The time.
        file_system: The id of the file system that has the links.
        links: The data repository associations, by their directories.
        tasks: The tasks, in the order in which they were asked for.
        ends: What the next tasks end as, one after another; then SUCCEEDED.
    """

    def __init__(self, now: datetime) -> None:
        super().__init__("fsx")
        self.now, self.file_system = now, FILE_SYSTEM
        self.links: dict[str, dict[str, Any]] = {}
        self.tasks: list[dict[str, Any]] = []
        self.ends: list[str] = []
        self._tokens: dict[str, dict[str, Any]] = {}

    def add_link(self, path: str, lifecycle: str = "AVAILABLE", *, imports: str = "SUCCEEDED", **more: Any) -> None:
        """Make a link whose import of names is as far as said; empty: there is none."""
        number = f"dra-{len(self.links):017x}"
        self.links[path] = {
            "AssociationId": number,
            "FileSystemPath": path,
            "DataRepositoryPath": f"s3://corpus{path}/",
            "Lifecycle": lifecycle,
            "CreationTime": self.now,
            "S3": {"AutoImportPolicy": {"Events": ["NEW", "CHANGED", "DELETED"]}},
            **more,
        }
        if imports:
            self._add(self.links[path]["AssociationId"], "IMPORT_METADATA_FROM_REPOSITORY", imports)

    def set_link(self, path: str, lifecycle: str, message: str = "") -> None:
        """Let a link be in a state."""
        self.links[path] |= {"Lifecycle": lifecycle, "FailureDetails": {"Message": message} if message else {}}

    def describe_data_repository_associations(self, **parameters: Any) -> dict[str, Any]:
        """Answer a page for each link."""
        self.record("DescribeDataRepositoryAssociations", parameters, context={"aws:RequestedRegion": REGION})
        assert parameters["Filters"] == [{"Name": "file-system-id", "Values": [self.file_system]}]
        found = list(self.links.values())
        at = len(parameters.get("NextToken", "")) // 4
        more = {"NextToken": "AAAA" * (at + 1)} if at + 1 < len(found) else {}
        return {"Associations": found[at : at + 1], **more}

    def describe_data_repository_tasks(self, **parameters: Any) -> dict[str, Any]:
        """Answer all tasks of a link, or one by its id."""
        self.record("DescribeDataRepositoryTasks", parameters, context={"aws:RequestedRegion": REGION})
        if "TaskIds" in parameters:
            found = [task for task in self.tasks if task["TaskId"] in parameters["TaskIds"]]
            if not found:
                raise refusal("DescribeDataRepositoryTasks", "DataRepositoryTaskNotFound", "no such task")
            return {"DataRepositoryTasks": found}
        (of_it,) = parameters["Filters"]
        assert of_it["Name"] == "data-repository-association-id"
        return {"DataRepositoryTasks": [task for task in self.tasks if task["link"] in of_it["Values"]]}

    def create_data_repository_task(self, **parameters: Any) -> dict[str, Any]:
        """Take a task, unless another runs; a token makes two requests one."""
        for resource in (f"file-system/{parameters['FileSystemId']}", "task/task-1"):
            arn = f"arn:aws:fsx:{REGION}:{ACCOUNT}:{resource}"
            self.record("CreateDataRepositoryTask", parameters, arn=arn)
        token = parameters["ClientRequestToken"]
        if token not in self._tokens:
            if any(task["Lifecycle"] in ("PENDING", "EXECUTING", "CANCELING") for task in self.tasks):
                raise refusal("CreateDataRepositoryTask", "DataRepositoryTaskExecuting", "a task is executing")
            (path,) = parameters["Paths"]
            links = [
                one for one in self.links.values() if path in (one["DataRepositoryPath"], one["FileSystemPath"][1:])
            ]
            self._tokens[token] = self._add(links[0]["AssociationId"], parameters["Type"], "PENDING", **parameters)
        return {"DataRepositoryTask": self._tokens[token]}

    def settle(self) -> None:
        """Let tasks go on by one state."""
        for task in self.tasks:
            if task["Lifecycle"] == "EXECUTING":
                end = self.ends.pop(0) if self.ends else "SUCCEEDED"
                task["Lifecycle"] = end
                if end == "FAILED":
                    task |= {"FailureDetails": {"Message": "access denied"}, "Status": {"FailedCount": 7}}
            elif task["Lifecycle"] == "PENDING":
                task["Lifecycle"] = "EXECUTING"

    def _add(self, link: str, kind: str, lifecycle: str, **more: Any) -> dict[str, Any]:
        task = {
            "TaskId": f"task-{len(self.tasks):017x}",
            "Type": kind,
            "Lifecycle": lifecycle,
            "CreationTime": self.now,
            "link": link,
            "request": more,
        }
        self.tasks.append(task)
        return task
