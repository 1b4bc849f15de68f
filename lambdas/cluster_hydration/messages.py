"""The notifications of the hydration function: that a data set is hydrated, or why it is not and what to do."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from cluster_common.messages import one_line, subject
from cluster_common.times import format_minutes
from cluster_contract.hydration import FileFailure, HydratedDataset, HydrationFunctionSettings
from cluster_hydration.links import Link, Task
from cluster_hydration.records import DatasetState, Shard

DONE, FAILED, RELEASE = "done", "failed", "release"
"""The kinds of notifications."""

_GIB = 1024**3


def broken_link(path: str, link: Link) -> str:
    """Return why a link that FSx calls MISCONFIGURED or FAILED stops hydration, and what to do.

    Args:
        path: The data set's directory on the file system.
        link: The link.

    Source: https://docs.aws.amazon.com/fsx/latest/LustreGuide/dra-lifecycles.html
    """
    said = f"FSx says: {one_line(link.message)}" if link.message else "FSx does not say why"
    bucket = link.source.removeprefix("s3://").partition("/")[0]
    if link.lifecycle == "FAILED":
        return (
            f"The link {link.id} of {path} to {link.source} has failed for good. {said}. Take the dataset out of the "
            "settings, deploy, put it back, and deploy again; the bucket loses nothing"
        )
    return (
        f"The link {link.id} of {path} to {link.source} is MISCONFIGURED. {said}. See that the event notification "
        f"named FSx is on the bucket {bucket} (a tool that sets the bucket's notifications, such as CDK, overwrites "
        "it), and that the policies of the bucket and of its KMS key let FSx's role AWSServiceRoleForFSxS3Access_* "
        "use them; then update the link's import events in the FSx console. Hydration goes on when FSx calls the "
        "link AVAILABLE"
    )


def no_link(path: str) -> str:
    """Return what to do where there is no link.

    Args:
        path: The data set's directory on the file system.
    """
    return (
        f"FSx has had no link at {path} for an hour: deploy the stack with the file system again. Hydration goes on "
        "when the link is AVAILABLE"
    )


def failed_import(path: str, task: Task | None, asked: int) -> str:
    """Return why names could not be imported.

    Args:
        path: The data set's directory on the file system.
        task: The last task. None: FSx does not know it.
        asked: How many the function has started.
    """
    if task is None:
        return (
            f"FSx has not begun the import of names for {path}, which the function has started {asked} times. Look "
            "at the file system's data repository tasks in the FSx console"
        )
    said = f"FSx says: {one_line(task.message)}" if task.message else "FSx does not say why"
    count = f", {task.failed:,} files failed" if task.failed else ""
    return (
        f"The task {task.id} that imports the names of the objects for {path} has ended in the state {task.lifecycle}"
        f"{count}; the function has started {asked}. {said}. See that the policies of the bucket and of its KMS key "
        "let FSx's role AWSServiceRoleForFSxS3Access_* read"
    )


def blocked_import(path: str) -> str:
    """Return what an import of names waits for.

    Args:
        path: The data set's directory on the file system.
    """
    return (
        f"The import of names for {path} cannot begin, since another data repository task of the file system runs, "
        "and FSx runs one at a time: see its data repository tasks in the FSx console, and cancel the one that hangs"
    )


def failed_files(total: Shard, failures: Sequence[FileFailure]) -> str:
    """Return which files could not be restored.

    Args:
        total: All shards together.
        failures: The first files.
    """
    named = "".join(f"; {one_line(one.path)}: {one_line(one.error)}" for one in failures)
    return (
        f"{total.failed_files:,} of {total.files:,} files could not be restored{named}. See that the objects "
        "still exist, that the policies of the bucket and of its KMS key let FSx's role "
        "AWSServiceRoleForFSxS3Access_* read them, and that the file system has space"
    )


def too_little_space(directory: str, seen: Shard) -> str:
    """Return what to do where the file system has too little space for what is left.

    Args:
        directory: The data set's directory on a node.
        seen: What a node said last.
    """
    left, said = max(seen.bytes - seen.restored_bytes, 0) / _GIB, one_line(seen.shortage or "")
    return (
        f"The file system has too little space for {directory}, of which {'' if seen.counted else 'at least '}"
        f"{left:,.1f} GiB are left to restore: {said}. Increase storage_capacity_gib of the file system, limit "
        "the data set with preload_max_gib, or have unused files released with release_after_days"
    )


def failing_commands(directory: str, error: str) -> str:
    """Return why commands fail on the nodes.

    Args:
        directory: The data set's directory on a node.
        error: The error of the last command.
    """
    return (
        f"Commands to restore {directory} fail on the nodes, the last one with: {one_line(error)}. See on that node "
        "that the file system is mounted and the Lustre client is installed"
    )


def nothing_selected(directory: str, dataset: HydratedDataset) -> str:
    """Return what to do where no file is preloaded although not all files are asked for.

    Args:
        directory: The data set's directory on a node.
        dataset: Its settings.
    """
    given = [
        f"patterns {', '.join(dataset.patterns)}" if dataset.patterns else "",
        "" if dataset.max_gib is None else f"at most {dataset.max_gib:,} GiB",
    ]
    return (
        f"preload selects no file of {directory}: {', '.join(filter(None, given))}. Compare the patterns with the "
        f"paths that `find {directory} -type f` shows on a node, without {directory}/ at their beginning; a maximum "
        "must hold the first file in their order. Then correct the setting and deploy"
    )


def stalled(directory: str, time: timedelta) -> str:
    """Return what to do where nodes work and nothing is restored.

    Args:
        directory: The data set's directory on a node.
        time: For how long.
    """
    return (
        f"Nodes have worked at {directory} for {format_minutes(time)} without restoring anything. See the file "
        "system's metrics in CloudWatch, and `lfs hsm_action FILE` on a node, which says what a file waits for"
    )


def too_long(directory: str, time: timedelta) -> str:
    """Return what to do where nodes have worked longer at a run than its size explains.

    Args:
        directory: The data set's directory on a node.
        time: For how long they may.
    """
    return (
        f"Nodes have worked at {directory} for more than {round(time / timedelta(hours=1)):,} hours, the limit for "
        "the files that the run began with. The idle function no longer keeps nodes for it. See whether the bucket "
        "gets objects while files are restored, and the throughput of the file system in CloudWatch"
    )


def too_many_passes(directory: str, passes: int) -> str:
    """Return what to do where the bucket changes faster than it is restored.

    Args:
        directory: The data set's directory on a node.
        passes: How often all of it was restored.
    """
    return (
        f"After each of {passes} restores of all files, files of {directory} had no contents again: the bucket "
        "changes, or files are released, faster than they are restored. Wait until these changes have ended"
    )


def failed_release(path: str, task: Task) -> str:
    """Return what to do where files could not be released.

    Args:
        path: The data set's directory on the file system.
        task: The task.
    """
    said = f"FSx says: {one_line(task.message)}" if task.message else "FSx does not say why"
    return (
        f"The task {task.id} that frees the space of unused files of {path} has failed for {task.failed:,} files. "
        f"{said}. The function starts another each day"
    )


def notification(
    settings: HydrationFunctionSettings, directory: str, state: DatasetState, now: datetime
) -> tuple[str, str]:
    """Return the subject and the text of the notification that is due in a state.

    Args:
        settings: The function's settings.
        directory: The data set's directory on a node.
        state: How far it is.
        now: The time.
    """
    head, total = f"{settings.cluster}: {directory}", state.found
    if state.notice == DONE and not total.files:
        source = (state.link or "").partition(" ")[2]
        return subject(f"{head} is hydrated"), (
            f"{directory} has no file: if {source} should hold objects, correct bucket and prefix of the data set. "
            "Jobs that wait for it go on.\n"
        )
    if state.notice == DONE:
        return subject(f"{head} is hydrated"), (
            f"All {total.files:,} selected files ({total.bytes / _GIB:,.1f} GiB) of {directory} have their contents, "
            f"{format_minutes(now - state.began)} after the run began. Jobs that wait with "
            f"`wait-for-dataset {directory}` go on.\n"
        )
    if state.notice == RELEASE:
        return subject(f"{head}: files were not released"), f"{state.reason}.\n"
    restored = "Files that are restored stay, and are not restored again."
    how = "goes on by itself" if state.recovers or state.awaits_node else f"starts with: {run_command(settings)}"
    text = f"{state.reason}.\n\n{restored} When that is mended, hydration {how}\n"
    return subject(f"{head} is not hydrated"), text


def run_command(settings: HydrationFunctionSettings) -> str:
    """Return the command with which an operator begins a new run.

    Args:
        settings: The function's settings.
    """
    return (
        f"aws lambda invoke --region {settings.region} --function-name {settings.function} "
        """--cli-binary-format raw-in-base64-out --payload '{"action":"run"}' /dev/stdout"""
    )
