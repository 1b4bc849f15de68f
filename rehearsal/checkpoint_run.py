"""Writes a checkpoint as training does, finds it in the bucket, and restores it from there with the command."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console

from cluster_contract.checkpoints import CheckpointPlace, place_parameter
from local_aws import LocalAws
from rehearsal.contents import files_below, objects_below
from rehearsal.hydration_story import CheckpointStory
from rehearsal.report import table_of

NAME = "step-1000"
# The marker comes last, as scripts are asked to write it.
_FILES = {"model-0.pt": b"weights of rank 0" * 1000, "model-1.pt": b"weights of rank 1" * 1000, ".complete": b""}
_COMMAND = Path(sys.executable).with_name("training-cluster")


def exported_place(aws: LocalAws, cluster: str) -> CheckpointPlace | None:
    """Return where a cluster's checkpoints are exported to from its file system, if it has such a place.

    Args:
        aws: The local AWS.
        cluster: The cluster's name.
    """
    ssm, name = aws.client("ssm"), place_parameter(cluster)
    try:
        place = CheckpointPlace.parse(ssm.get_parameter(Name=name)["Parameter"]["Value"])
    except ssm.exceptions.ParameterNotFound:
        return None
    return place if place.directory else None


def tell_checkpoint_story(
    aws: LocalAws,
    place: CheckpointPlace,
    *,
    file_system: str,
    mount_point: str,
    watch: Callable[[], dict[str, Any]],
    workspace: Path,
) -> CheckpointStory:
    """Write a checkpoint below the exported directory, and restore it from the bucket.

    Args:
        aws: The local AWS.
        place: Where checkpoints are exported to.
        file_system: The file system.
        mount_point: Where nodes mount it.
        watch: Calls the deployed checkpoint function.
        workspace: A directory for what is restored.
    """
    files = aws.file_system_directory(file_system) / "files"
    written = files / place.directory.removeprefix(mount_point).strip("/") / NAME
    written.mkdir(parents=True)
    for name, content in _FILES.items():
        (written / name).write_bytes(content)
    aws.file_system_directory(file_system)
    address, restored = f"s3://{place.bucket}/{place.prefix}", workspace / "restored"
    restored.mkdir()
    command = [str(_COMMAND), "checkpoints", "restore", address, NAME, str(restored), "--region", aws.region]
    done = subprocess.run(command, env=aws.environment(), capture_output=True, text=True, check=False)
    return CheckpointStory(
        written=files_below(written),
        exported=objects_below(aws.client, f"{address}{NAME}/"),
        restored=files_below(restored / NAME),
        said=watch(),
        status=done.returncode,
        words=done.stderr.strip() or done.stdout.strip(),
    )


def show_checkpoint(console: Console, place: CheckpointPlace, story: CheckpointStory) -> None:
    """Show what became of each file of the checkpoint.

    Args:
        console: Where to show it.
        place: Where checkpoints are exported to.
        story: What became of it.
    """
    table = table_of(f"Checkpoint {NAME} in {place.directory}", "file", "in the bucket", "restored from it")
    for path, digest in story.written.items():
        table.add_row(
            path, *("as written" if one.get(path) == digest else "no" for one in (story.exported, story.restored))
        )
    console.print(table)
