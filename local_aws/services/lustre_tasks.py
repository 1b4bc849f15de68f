"""Data repository tasks: bulk imports of metadata, exports and releases of a Lustre file system.

Each look at a task brings it a step further: PENDING, EXECUTING, and its end. One task executes at a time.
https://docs.aws.amazon.com/fsx/latest/LustreGuide/data-repository-tasks.html
"""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from secrets import token_hex
from typing import Any

from moto.s3.models import s3_backends

from local_aws.refusal import Refusal
from local_aws.services import lustre_links
from local_aws.services.answers import page
from local_aws.services.lustre import LustreFileSystem, body_of, found_file_system
from local_aws.services.lustre_files import CHANGED, NEW, Count
from local_aws.services.lustre_links import LOCK, Link, links_of

IMPORT, EXPORT, RELEASE = (
    *("IMPORT_METADATA_FROM_REPOSITORY", "EXPORT_TO_REPOSITORY"),
    "RELEASE_DATA_FROM_FILESYSTEM",
)
_NEXT = {"PENDING": "EXECUTING", "CANCELING": "CANCELED"}
_WAITING = ("PENDING", "EXECUTING")
_ENDS = ("CANCELED", "FAILED", "SUCCEEDED")
_PAGE = 50

Task = dict[str, Any]
"""What DescribeDataRepositoryTasks says of a task, but for its tags."""

FATES: dict[str, tuple[str, str]] = {}
"""The lifecycles at which a test has ordered tasks to stay or to end, with their messages, by their types."""


def _wrong(message: str) -> Refusal:
    return Refusal("BadRequest", message)


def create_data_repository_task(response: Any) -> str:
    """Answer CreateDataRepositoryTask."""
    request = body_of(response)
    file_system = found_file_system(response, request["FileSystemId"])
    with LOCK:
        _begin_imports(file_system)
        # A request of the same token is the same request: its answer may have been lost.
        task = file_system.requested.get(request["ClientRequestToken"])
        if task is None:
            _check(file_system, request)
            task = _made(file_system, request["Type"], request.get("Paths") or [])
            task |= {name: request[name] for name in ("Report", "ReleaseConfiguration") if name in request}
            file_system.requested[request["ClientRequestToken"]] = task
    if request.get("Tags"):
        response.fsx_backend.tagger.tag_resource(task["ResourceARN"], request["Tags"])
    return json.dumps({"DataRepositoryTask": _described(response, task)})


def _check(file_system: LustreFileSystem, request: Mapping[str, Any]) -> None:
    """Raise what FSx answers if it would not make the task.

    https://docs.aws.amazon.com/fsx/latest/APIReference/API_CreateDataRepositoryTask.html
    """
    kind, paths = request["Type"], request.get("Paths") or []
    if kind not in _STEPS:
        raise Refusal("UnsupportedOperation", f"A task of the type {kind} is not supported for Lustre file systems.")
    if not links_of(file_system):
        raise _wrong("A data repository task needs a data repository association of the file system.")
    if request["Report"]["Enabled"]:
        missing = [name for name in ("Path", "Format", "Scope") if not request["Report"].get(name)]
        if missing:
            raise _wrong(f"An enabled report needs {', '.join(missing)}.")
        raise NotImplementedError("the report of a data repository task")
    if request.get("CapacityToRelease") is not None:
        raise _wrong("CapacityToRelease is for Amazon File Cache.")
    if request.get("ReleaseConfiguration") is not None and kind != RELEASE:
        raise _wrong(f"ReleaseConfiguration is for tasks of the type {RELEASE}.")
    if any(path.startswith("s3://") != (kind == IMPORT) for path in paths):
        raise _wrong(
            "Paths of an import are in S3 and start with s3://; those of other tasks are in the file system."
        )
    if any(task["Lifecycle"] in _WAITING for task in file_system.tasks.values()):
        raise Refusal(
            "DataRepositoryTaskExecuting",
            "An existing data repository task is currently executing on the file system. Wait until the existing "
            "task has completed, then create the new task.",
        )


def _made(file_system: LustreFileSystem, kind: str, paths: Sequence[str]) -> Task:
    task_id = f"task-0{token_hex(8)}"
    file_system.tasks[task_id] = {
        "TaskId": task_id,
        "Lifecycle": "PENDING",
        "Type": kind,
        "CreationTime": time.time(),
        "ResourceARN": file_system.arn("task", task_id),
        "FileSystemId": file_system.file_system_id,
        "Paths": list(paths),
        "Report": {"Enabled": False},
        "Status": {"TotalCount": 0, "SucceededCount": 0, "FailedCount": 0},
    }
    task: Task = file_system.tasks[task_id]
    return task


def _begin_imports(file_system: LustreFileSystem) -> None:
    """Make the task of each link that has become available and was to import at its creation."""
    lustre_links.settle(file_system)
    for link in links_of(file_system):
        if link.is_available and link.imports_first:
            link.imports_first = False
            _made(file_system, IMPORT, [link.described["DataRepositoryPath"]])


def advance(file_system: LustreFileSystem) -> None:
    """Bring each task of a file system a step further."""
    with LOCK:
        _begin_imports(file_system)
        is_executing = any(task["Lifecycle"] == "EXECUTING" for task in file_system.tasks.values())
        for task in file_system.tasks.values():
            before, fate = task["Lifecycle"], FATES.get(task["Type"], ("", ""))
            if before == fate[0] or (before == "PENDING" and is_executing):
                continue
            if before == "EXECUTING":
                _end(file_system, task, *fate)
            elif before in _NEXT:
                task["Lifecycle"] = _NEXT[before]
                task["StartTime" if before == "PENDING" else "EndTime"] = time.time()
                is_executing = is_executing or before == "PENDING"


def _end(file_system: LustreFileSystem, task: Task, lifecycle: str, message: str) -> None:
    """Do what a task is for, or what a test ordered."""
    links = [link for link in links_of(file_system) if _is_about(task, link)]
    trouble = [found[1] for link in links if (found := lustre_links.trouble_of(file_system, link))]
    if not links:
        trouble = [f"No data repository association has the paths {', '.join(task['Paths'])}."]
    if lifecycle in _ENDS:
        pass
    elif trouble:
        lifecycle, message = "FAILED", trouble[0]
    else:
        lifecycle, count = "SUCCEEDED", Count()
        for link in links:
            for path in task["Paths"] or [""]:
                count.add(_STEPS[task["Type"]](file_system, link, task, path))
        if count.failed:
            lifecycle, message = "FAILED", f"{count.failed} files failed to process."
        task["Status"] = {
            "TotalCount": count.succeeded + count.failed,
            "SucceededCount": count.succeeded,
            "FailedCount": count.failed,
            "LastUpdatedTime": time.time(),
        }
    task |= {"Lifecycle": lifecycle, "EndTime": time.time()}
    if lifecycle == "FAILED":
        task["FailureDetails"] = {"Message": message[:256]}


def _import(_: LustreFileSystem, link: Link, __: Task, path: str) -> Count:
    return link.files.import_all(path.removeprefix(f"s3://{link.files.bucket.name}").strip("/"))


def _export(file_system: LustreFileSystem, link: Link, _: Task, path: str) -> Count:
    s3 = s3_backends[file_system.account][file_system.partition]
    return link.files.export(s3, (NEW, CHANGED), path)


def _release(_: LustreFileSystem, link: Link, task: Task, path: str) -> Count:
    last_access = task.get("ReleaseConfiguration", {}).get("DurationSinceLastAccess", {})
    return link.files.release(path, last_access.get("Value", 0))


_STEPS: Mapping[str, Callable[[LustreFileSystem, Link, Task, str], Count]] = {
    IMPORT: _import,
    EXPORT: _export,
    RELEASE: _release,
}


def _is_about(task: Task, link: Link) -> bool:
    """Tell whether a task is about a link: one of its paths is in the link's, or the link's in it."""
    name = "DataRepositoryPath" if task["Type"] == IMPORT else "FileSystemPath"
    own = link.described[name].strip("/") + "/"
    return not task["Paths"] or any(
        f"{path.strip('/')}/".startswith(own) or own.startswith(f"{path.strip('/')}/".lstrip("/"))
        for path in task["Paths"]
    )


def describe_data_repository_tasks(response: Any) -> str:
    """Answer DescribeDataRepositoryTasks."""
    request = body_of(response)
    for file_system in response.fsx_backend.file_systems.values():
        advance(file_system)
    found = dict(_all(response))
    missing = [one for one in request.get("TaskIds") or [] if one not in found]
    if missing:
        raise _not_found(missing[0])
    tasks = [task for task, _ in found.values() if task["TaskId"] in (request.get("TaskIds") or found)]
    for condition in request.get("Filters") or []:
        tasks = [one for one in tasks if _passes(response, one, condition["Name"], condition["Values"])]
    shown, token = page(tasks, request.get("NextToken"), request.get("MaxResults") or _PAGE)
    # Its model has a token in groups of four characters.
    more = {} if token is None else {"NextToken": token.zfill(8)}
    return json.dumps({"DataRepositoryTasks": [_described(response, task) for task in shown], **more})


def _passes(response: Any, task: Task, name: str, values: Sequence[str]) -> bool:
    match name:
        case "file-system-id":
            return task["FileSystemId"] in values
        case "task-lifecycle":
            return task["Lifecycle"] in values
        case "data-repository-association-id":
            links = found_file_system(response, task["FileSystemId"]).associations
            return any(_is_about(task, links[one]) for one in values if one in links)
        case _:
            raise NotImplementedError(f"the filter {name}")


def cancel_data_repository_task(response: Any) -> str:
    """Answer CancelDataRepositoryTask."""
    task_id = body_of(response)["TaskId"]
    task, _ = dict(_all(response)).get(task_id, (None, None))
    if task is None:
        raise _not_found(task_id)
    if task["Lifecycle"] not in _WAITING:
        raise Refusal(
            "DataRepositoryTaskEnded",
            "The data repository task could not be canceled because the task has already ended.",
        )
    task["Lifecycle"] = "CANCELING"
    return json.dumps({"TaskId": task_id, "Lifecycle": "CANCELING"})


def _all(response: Any) -> Iterator[tuple[str, tuple[Task, LustreFileSystem]]]:
    for file_system in response.fsx_backend.file_systems.values():
        for task_id, task in file_system.tasks.items():
            yield task_id, (task, file_system)


def _not_found(task_id: str) -> Refusal:
    return Refusal("DataRepositoryTaskNotFound", f"Data repository task '{task_id}' does not exist.")


def _described(response: Any, task: Task) -> Task:
    return {**task, "Tags": response.fsx_backend.list_tags_for_resource(task["ResourceARN"])}


def set_fate(request: Mapping[str, Any]) -> Mapping[str, Any]:
    """Order the lifecycle at which tasks of a type stay (PENDING, EXECUTING) or end, or take the order back."""
    kind, lifecycle = str(request["type"]), request.get("lifecycle")
    if kind not in _STEPS:
        raise ValueError(f"a task's type is {', '.join(_STEPS)}, not {kind}")
    if lifecycle is None:
        FATES.pop(kind, None)
    else:
        FATES[kind] = str(lifecycle), str(request.get("message") or "")
    return {}
