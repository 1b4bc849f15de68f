"""A node with the program `cluster-node`, the stand-in for `lfs` and a file system that is linked to S3."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cdk_training_cluster.nodes.bootstrap.asset import AGENT
from cluster_contract.hydration import HydrationAction, HydrationAnswer, HydrationRequest, parse_answer
from local_aws.lustre_client import LFS, LustreDirectory
from max_seconds import MAX_SECONDS

# The stand-in for the file system has a size of its own, whatever the disk that it lies on.
_START = """
import os, sys
sys.path[:0] = [sys.argv.pop(1), sys.argv.pop(1)]
from pathlib import Path
from directory import LustreDirectory
os.statvfs = LustreDirectory(Path(sys.argv.pop(1))).statvfs
from cluster_node.__main__ import main
main()
"""


class HydratedNode:
    """A node whose file system is mounted at `/fsx`, with the data set `/fsx/data`."""

    def __init__(self, directory: Path) -> None:
        """Mount it.

        Args:
            directory: An empty directory.
        """
        self.root = directory / "root"
        self.root.mkdir()
        self.lustre = LustreDirectory(directory / "lustre")
        (self.lustre.files / "data").mkdir()
        (self.root / "fsx").symlink_to(self.lustre.files)

    def command(self, *arguments: str) -> list[str]:
        """Return how a command of `cluster-node` is started."""
        paths = (str(AGENT.parent), str(LFS.parent), str(self.lustre.home))
        return [sys.executable, "-I", "-c", _START, *paths, *arguments]

    def environment(self, **more: str) -> dict[str, str]:
        """Return what its programs find."""
        path = f"{LFS.parent}:{Path(sys.executable).parent}:{os.defpath}"
        # A hundredth of each pause.
        known = {"CLUSTER_NODE_CLUSTER": "science", "CLUSTER_NODE_MOUNT_POINT": "/fsx"}
        return {"PATH": path, "ROOT": str(self.root), "CLUSTER_NODE_TIME_SCALE": "0.01", **known, **more}

    def run(self, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a command."""
        return subprocess.run(
            self.command(*arguments),
            env=self.environment(**environment),
            capture_output=True,
            text=True,
            timeout=MAX_SECONDS,
            check=False,
        )

    def hydrate(
        self, action: str = "restore", /, environment: dict[str, str] | None = None, **request: Any
    ) -> HydrationAnswer:
        """Send a request, which must be answered."""
        done = self.run("hydrate", self.request(action, **request), **environment or {})
        assert done.returncode == 0, done.stderr
        return parse_answer(done.stdout)

    def request(self, action: str = "restore", /, **request: Any) -> str:
        """Return a request for the data set."""
        given = {"run": "r1", "directory": "/fsx/data", "mount_point": "/fsx", "seconds": MAX_SECONDS, **request}
        return HydrationRequest(action=HydrationAction(action), **given).to_parameter()

    @contextmanager
    def restoring(self, **environment: str) -> Iterator[subprocess.Popen[str]]:
        """Begin to restore, and yield when the first progress is written."""
        with subprocess.Popen(
            self.command("hydrate", self.request()),
            env=self.environment(**environment),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            try:
                yield process
            finally:
                process.kill()

    def progress(self, name: str) -> dict[str, Any]:
        """Return a file of the data set's progress, empty if there is none."""
        file = self.lustre.files / ".cdk-training-cluster/hydration/science/%2Ffsx%2Fdata" / name
        content: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
        return content
