"""Virtual nodes for Debian's Slurm: namespaces with network, processes and mounts of their own, and their commands.

`make test-slurm` unpacks Slurm below `build/slurm`; tests skip where that was not possible.
"""

import json
import os
import shutil
import stat
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cdk_training_cluster.instance_types import InstanceTypeInfo
from cdk_training_cluster.nodes.bootstrap.agent import AcceleratorVendor
from cdk_training_cluster.nodes.bootstrap.asset import write_scripts
from cdk_training_cluster.nodes.bootstrap.shell import shell_assignments
from cdk_training_cluster.orchestrators.slurm.configuration import NodeGroupConfiguration
from cdk_training_cluster.orchestrators.slurm.node_scripts import NodeFacts, install_script, pcs_commands
from verified_node import START, nvml

_BUILT = Path(__file__).parents[2] / "build/slurm"
_MACHINE = Path(__file__).parent / "slurm/machine.sh"
# For whatever waits: a busy machine is slow, and none of the tests depends on how slow.
PATIENCE_SECONDS = 120
# The commands that nodes have of others: what each answers is in the node's own folders.
_COMMANDS = {
    # With the file it hangs.
    "cluster-node": f"""
while [[ -e /run/held ]]; do sleep 0.2; done
export LD_LIBRARY_PATH=/srv/nvml NVML_GPUS=$(compgen -G '/dev/nvidia[0-9]*' | wc -l)
exec /usr/bin/python3 -I -c '{START}' /srv/scripts "$@" """,
    # Without the file it hangs, as for a file system in maintenance.
    "stat": """
if [[ $* != *--file-system* ]]; then exec /usr/bin/stat "$@"; fi
until cat /run/file-system 2>/dev/null; do sleep 0.2; done""",
}

_INSIDE = ("nsenter", "--net", "--uts", "--pid", "--mount", "--root", "--wdns=/srv")
_ENVIRONMENT = ("/usr/bin/env", "-i", "PATH=/usr/local/bin:/usr/sbin:/usr/bin", "LC_ALL=C")


class SlurmMachines:
    """The machine of the controller, and the nodes beside it."""

    def __init__(self, first_process: int) -> None:
        """Take the namespaces, and put the nodes' scripts and commands into them.

        Args:
            first_process: Their first process.
        """
        self._process = first_process
        self.root = Path(f"/proc/{first_process}/root")
        (self.root / "srv/scripts").mkdir()
        write_scripts(self.root / "srv/scripts", AcceleratorVendor.NVIDIA)
        shutil.copytree(nvml(), self.root / "srv/nvml")
        for name, does in _COMMANDS.items():
            self.put_command(name, does)

    def run(self, *command: str, check: bool = True) -> str:
        """Run a command beside the controller; return what it printed.

        Args:
            *command: The command.
            check: Whether it must succeed.
        """
        found = subprocess.run(
            [*_INSIDE, f"--target={self._process}", *_ENVIRONMENT, *command],
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
        if check and found.returncode:
            raise AssertionError(f"{' '.join(command)}: {found.stderr}{found.stdout}")
        return found.stdout + ("" if check else found.stderr)

    def boot(self, node: str) -> None:
        """Boot a node.

        Args:
            node: Its name.
        """
        self.run("/srv/machine.sh", "up", node)

    def kill(self, node: str) -> None:
        """Take a node's power.

        Args:
            node: Its name.
        """
        self.run("/srv/machine.sh", "down", node)

    def folder(self, node: str) -> Path:
        """Return where a node's `dev`, `run`, `sys` and `opt` lie.

        Args:
            node: Its name.
        """
        return self.root / "srv/nodes" / node

    def put_command(self, name: str, does: str) -> None:
        """Put a command into /usr/local/bin of all nodes.

        Args:
            name: Its name.
            does: What it does, in Bash.
        """
        path = self.root / "srv/bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/bash\n{does}\n")
        path.chmod(0o755)

    def make_node(self, node: str, group: NodeGroupConfiguration, info: InstanceTypeInfo, version: str) -> None:
        """Make what is a node's own: its devices, its scripts and its settings.

        Args:
            node: Its name.
            group: Its node group.
            info: Its instance type.
            version: Slurm's version.
        """
        folder = self.folder(node)
        for part in ("dev", "opt/aws/pcs/scheduler", "opt/cdk-training-cluster", "run", "sys/class/infiniband/efa0"):
            (folder / part).mkdir(parents=True)
        for name in ("null", "zero", "full", "random", "urandom", "tty"):
            _copy_device(self.root / "dev" / name, folder / "dev" / name)
        for number in range(sum(int(text) for name, text in group.gres.resources.items() if name == "gpu")):
            # What a GPU answers is of no interest here: Slurm asks for a device node.
            os.mknod(folder / f"dev/nvidia{number}", stat.S_IFCHR | 0o666, os.makedev(195, number))
        commands = folder / pcs_commands(version)[1:]
        commands.parent.mkdir(parents=True, exist_ok=True)
        commands.symlink_to("/usr/bin")
        (folder / "run/file-system").write_text("lustre\n")
        facts = NodeFacts(slurm_bin=pcs_commands(version))
        (folder / "install.sh").write_text(install_script(facts))
        expected = {info.name: {"gpus": info.nvidia_gpu_count, "efa_devices": 1}}
        settings = shell_assignments({"MOUNT_POINT": "/fsx", "EXPECTED": json.dumps(expected)})
        (folder / "opt/cdk-training-cluster/settings").write_text(settings)


def _copy_device(source: Path, target: Path) -> None:
    found = source.stat()
    os.mknod(target, found.st_mode, found.st_rdev)


@contextmanager
def namespaces(directory: Path) -> Iterator[int]:
    """Make namespaces with Debian's Slurm; yield their first process, and end them with all that runs in them.

    Args:
        directory: An empty directory.
    """
    root = _BUILT / "root"
    if not root.is_dir():
        missing = _BUILT / "missing"
        reason = missing.read_text().strip() if missing.exists() else "`make test-slurm` unpacks Debian's Slurm"
        pytest.skip(reason=reason)  # there is no apt, root or namespace
    spaces = ["--net", "--uts", "--pid", "--mount", "--fork", "--kill-child"]
    boot = ["bash", str(_MACHINE), "boot", str(root), str(directory)]
    with (
        (directory.parent / "log").open("w") as log,
        subprocess.Popen(["unshare", *spaces, *boot], stdout=log, stderr=log) as process,
    ):
        try:
            yield _first_process(process)
        finally:
            process.kill()


def _first_process(process: "subprocess.Popen[bytes]") -> int:
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    end = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < end and process.poll() is None:
        for child in children.read_text().split():
            if Path(f"/proc/{child}/root/srv/booted").exists():
                return int(child)
        time.sleep(0.02)
    raise AssertionError("the namespaces do not come up")
