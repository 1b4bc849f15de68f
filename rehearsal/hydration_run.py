"""Runs the deployed hydration function to its end, with the program that the deployment ships to nodes."""

import base64
import fnmatch
import io
import os
import re
import shlex
import subprocess
import zipfile
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

from rich.console import Console

from cluster_contract.codec import read
from cluster_contract.hydration import HydratedDataset, HydrationFunctionSettings, HydrationProgress
from local_aws import LocalAws
from local_aws.functions import DeployedFunction
from local_aws.lustre_client import LFS
from rehearsal.contents import files_below, objects_below
from rehearsal.hydration_story import Contents, HydrationStory
from rehearsal.report import table_of

_TICK = timedelta(minutes=1)
# A link's task takes two looks, the contents one or two, and the last look another: so many more would be a fault.
_MAX_TICKS = 12
_SETTINGS = re.compile(r"<<'SETTINGS'\n(.*?)^SETTINGS$", re.MULTILINE | re.DOTALL)
_SCRIPTS = re.compile(r"^SCRIPTS=(.+)$", re.MULTILINE)
_HOME = Path("opt", "cdk-training-cluster")


class NodePrograms:
    """What nodes get of the asset that their user data name, installed once for all nodes of the local AWS."""

    def __init__(self, aws: LocalAws, workspace: Path) -> None:
        """Fetch the asset, and install its program.

        Args:
            aws: The local AWS.
            workspace: A directory for it.
        """
        self._aws = aws
        self._root = workspace / "node"
        scripts = self._root / _HOME / "scripts"
        settings = _settings(aws)
        bucket, _, key = shlex.split(_SCRIPTS.findall(settings)[0])[0].removeprefix("s3://").partition("/")
        with zipfile.ZipFile(io.BytesIO(aws.client("s3").get_object(Bucket=bucket, Key=key)["Body"].read())) as asset:
            asset.extractall(scripts)
        (self._root / _HOME / "settings").write_text(settings)
        self._variables = {
            "PATH": f"{LFS.parent}:{os.environ['PATH']}",
            "ROOT": str(self._root),
        }
        self._run("bash", "commands.sh", cwd=scripts)
        # A node's programs know their root directory, which is another one on each node of the local AWS.
        for program in (self._root / "usr/local/bin").iterdir():
            text = program.read_text()
            program.write_text(text.replace(f"ROOT='{self._root}'", f'ROOT="${{ROOT:-{self._root}}}"'))

    def mount(self, mount_point: str, file_system_id: str) -> None:
        """Let every node have the program, Lustre's client and the file system.

        Args:
            mount_point: Where.
            file_system_id: The file system.
        """
        self._aws.set_up_nodes(path=[LFS.parent], root=self._root, mounts={mount_point: file_system_id})

    def finds_ready(self, file_system: Path, mount_point: str, directory: str) -> bool:
        """Say whether `wait-for-dataset` on a node finds a directory ready, without waiting for it.

        Args:
            file_system: The files of the file system.
            mount_point: Where the node has mounted it.
            directory: The directory on the node.
        """
        mounted = self._root / mount_point.strip("/")
        mounted.symlink_to(file_system)
        try:
            program = self._root / "usr" / "local" / "bin" / "wait-for-dataset"
            return self._run(program, directory, "--timeout", "0s", check=False) == 0
        finally:
            mounted.unlink()

    def _run(self, *command: str | Path, cwd: Path | None = None, check: bool = True) -> int:
        return subprocess.run(command, env=self._variables, cwd=cwd, check=check, capture_output=True).returncode


def _settings(aws: LocalAws) -> str:
    """Return what the user data of the first node group write down: where the nodes' asset lies, among others."""
    ec2 = aws.client("ec2")
    for template in ec2.get_paginator("describe_launch_templates").paginate().search("LaunchTemplates[]"):
        asked = {"LaunchTemplateId": template["LaunchTemplateId"], "Versions": ["$Latest"]}
        data = ec2.describe_launch_template_versions(**asked)["LaunchTemplateVersions"][0]["LaunchTemplateData"]
        found = _SETTINGS.search(base64.b64decode(data.get("UserData", "")).decode())
        if found:
            return found[1]
    raise LookupError("no launch template has user data that name the nodes' scripts")


def tell_hydration_story(
    aws: LocalAws,
    hydration: DeployedFunction,
    settings: HydrationFunctionSettings,
    links: Sequence[Mapping[str, Any]],
    programs: NodePrograms,
) -> HydrationStory:
    """Run the function every minute until it has nothing left to do, and compare objects and files.

    Args:
        aws: The local AWS.
        hydration: The deployed function.
        settings: What it is set to.
        links: The links of the file system, as they were read back.
        programs: What nodes have.
    """
    preloaded = [one for one in settings.datasets if one.preload]
    directories = {one.path: f"{settings.mount_point}{one.path}" for one in preloaded}
    programs.mount(settings.mount_point, settings.file_system)
    story = HydrationStory(preloaded=tuple(directories.values()))
    while len(story.ticks) < _MAX_TICKS and not story.is_over:
        said = hydration({"action": "tick"}, later=_TICK * len(story.ticks))
        story.ticks.append(read(HydrationProgress, said))
    files = aws.file_system_directory(settings.file_system) / "files"
    sources = {link["file_system_path"]: link["data_repository_path"] for link in links}
    for one in preloaded:
        directory = directories[one.path]
        story.objects[directory] = _selected(one, objects_below(aws.client, sources[one.path]))
        story.files[directory] = _selected(one, files_below(files / one.path.strip("/")))
    story.ready = tuple(one for one in directories.values() if programs.finds_ready(files, settings.mount_point, one))
    return story


def _selected(dataset: HydratedDataset, contents: Contents) -> Contents:
    """Return what of a data set is preloaded; what is rehearsed is far below any limit in GiB."""
    patterns = dataset.patterns or ("*",)
    return {path: one for path, one in contents.items() if any(fnmatch.fnmatchcase(path, each) for each in patterns)}


def show_hydration(console: Console, story: HydrationStory) -> None:
    """Show how far each data set was after each run.

    Args:
        console: Where to show it.
        story: What the function said.
    """
    table = table_of("Hydration", "run", "directory", "step", "files", "bytes", "%", "nodes")
    for number, tick in enumerate(story.ticks, 1):
        for directory, said in tick.datasets.items():
            files, size = f"{said.restored_files} of {said.files}", f"{said.restored_bytes} of {said.bytes}"
            percent = "-" if said.percent is None else f"{said.percent:.0f}"
            table.add_row(str(number), directory, said.step, files, size, percent, str(said.nodes))
    console.print(table)
