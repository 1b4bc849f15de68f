"""Debian's Slurm with virtual nodes, under the configuration that a cluster's construct emits.

`make test-slurm` unpacks it below `build/slurm`; tests skip where that was not possible. Its processes have a
network, process ids and mounts of their own, and each node its own devices.
"""

import json
import os
import shutil
import stat
import subprocess
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

import pytest

from cdk_training_cluster.instance_types import InstanceTypeInfo
from cdk_training_cluster.nodes.bootstrap.agent import AcceleratorVendor
from cdk_training_cluster.nodes.bootstrap.asset import write_scripts
from cdk_training_cluster.nodes.bootstrap.settings import shell_assignments
from cdk_training_cluster.nodes.rules.context import ClusterContext
from cdk_training_cluster.orchestrators.slurm.configuration import NodeGroupConfiguration, SlurmConfiguration
from cdk_training_cluster.orchestrators.slurm.node_scripts import (
    NodeFacts,
    install_script,
    pcs_commands,
)
from cluster_contract.node_files import DRAIN
from slurm_files import slurm_files
from verified_node import START

BUILT = Path(__file__).parents[2] / "build/slurm"
_MACHINE = Path(__file__).parent / "slurm/machine.sh"
# For whatever waits: a busy machine is slow, and none of the tests depends on how slow.
_PATIENCE_SECONDS = 120
# The commands that nodes have of others: what each answers is in the node's own folders.
_COMMANDS = {
    "nvidia-smi": """
if [[ $* != *query-gpu* ]]; then exit; fi
for each in /dev/nvidia[0-9]*; do
  echo "${each#/dev/nvidia}, NVIDIA, 1, 00000000:00:00.0, 1, 0, No, No, Disabled"
done""",
    "cluster-node": f"exec /usr/bin/python3 -I -c '{START}' /srv/scripts /srv/scripts \"$@\"",
    "stat": 'if [[ $* == *--file-system* ]]; then cat /run/file-system; else exec /usr/bin/stat "$@"; fi',
}

_INSIDE = ("nsenter", "--net", "--uts", "--pid", "--mount", "--root", "--wdns=/srv")
_ENVIRONMENT = ("/usr/bin/env", "-i", "PATH=/usr/local/bin:/usr/sbin:/usr/bin", "LC_ALL=C")

T = TypeVar("T")


class RealSlurm:
    """A controller and the nodes of a configuration's node groups: `<group>-1`, `<group>-2`, …"""

    def __init__(self, first_process: int, configuration: SlurmConfiguration, nodes: ClusterContext) -> None:
        """Take the namespaces.

        Args:
            first_process: Their first process.
            configuration: What the construct emits.
            nodes: The node groups.
        """
        self.times: dict[str, float] = {}
        self.configuration = configuration
        self._process = first_process
        self.root = Path(f"/proc/{first_process}/root")
        self._counts = {each.group.name: each.group.count for each in nodes.nodes}
        self._write_configuration()
        (self.root / "srv/scripts").mkdir()
        write_scripts(self.root / "srv/scripts", AcceleratorVendor.NVIDIA)
        for name, does in _COMMANDS.items():
            self.put_command(name, does)
        for each, group in zip(nodes.nodes, configuration.node_groups, strict=True):
            for node in self.nodes_of(group.name):
                self._make_node(node, group, each.infos[0])

    def nodes_of(self, group: str) -> list[str]:
        """Return the names of a group's nodes.

        Args:
            group: Its name.
        """
        return [f"{group}-{number}" for number in range(1, self._counts[group] + 1)]

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
            timeout=_PATIENCE_SECONDS,
            check=False,
        )
        if check and found.returncode:
            raise AssertionError(f"{' '.join(command)}: {found.stderr}{found.stdout}")
        return found.stdout + ("" if check else found.stderr)

    def start(self) -> None:
        """Start the controller and the nodes that always run, and wait for them."""
        self.run("slurmctld")
        for group in self.configuration.node_groups:
            if group.fixed:
                for node in self.nodes_of(group.name):
                    self.boot(node)
        fixed = [node for each in self.configuration.node_groups if each.fixed for node in self.nodes_of(each.name)]
        for node in fixed:
            self.wait_for_state(node, "IDLE")

    def refuses(self, line: str) -> str:
        """Start another controller with one more line in its configuration; return why it does not.

        Args:
            line: The line.
        """
        folder = self.root / "srv/refused"
        shutil.copytree(self.root / "etc/slurm", folder, dirs_exist_ok=True)
        text = (folder / "slurm.conf").read_text()
        for own in ("/srv/state", "/srv/slurmctld."):
            text = text.replace(own, f"/srv/refused/{own.removeprefix('/srv/')}")
        (folder / "slurm.conf").write_text(f"{text}SlurmctldPort=6900\n{line}\n")
        (folder / "state").mkdir(exist_ok=True)
        # Its sockets are not those of the controller that works.
        start = "mount -t tmpfs tmpfs /run; timeout 20 slurmctld -D -f /srv/refused/slurm.conf"
        said = self.run("unshare", "--mount", "--propagation=unchanged", "bash", "-c", start, check=False)
        log = folder / "slurmctld.log"
        return said + (log.read_text() if log.exists() else "")

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

    def stop_group(self, group: str) -> None:
        """Stop a node group that always runs: its nodes end, and Slurm has none of them.

        Args:
            group: Its name.
        """
        for node in self.nodes_of(group):
            self.kill(node)
        self._write_configuration(stopped=[group])
        self.run("scontrol", "reconfigure")

    def start_group(self, group: str) -> None:
        """Start a node group that was stopped.

        Args:
            group: Its name.
        """
        self._write_configuration()
        self.run("scontrol", "reconfigure")
        for node in self.nodes_of(group):
            self.boot(node)

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

    def ask_to_drain(self, node: str, reason: str) -> None:
        """Write a file that drains a node.

        Args:
            node: Its name.
            reason: Why.
        """
        folder = self.folder(node) / DRAIN[1:]
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "xid").write_text(reason + "\n")

    def mend(self, node: str) -> None:
        """Take a node back into its queues.

        Args:
            node: Its name.
        """
        shutil.rmtree(self.folder(node) / DRAIN[1:], ignore_errors=True)
        self.run("scontrol", "update", f"nodename={node}", "state=resume")
        self.wait_for_state(node, "IDLE")

    def hosts(self, text: str) -> list[str]:
        """Return the nodes of a list as Slurm writes it: `workers-[1-2]`.

        Args:
            text: The list.
        """
        return self.run("scontrol", "show", "hostnames", text).split()

    def shown(self, kind: str, name: str) -> dict[str, str]:
        """Return what scontrol shows of a node or a job.

        Args:
            kind: `node` or `job`.
            name: Its name or number.
        """
        text = self.run("scontrol", "--oneliner", "show", kind, name)
        pairs = dict(word.partition("=")[::2] for word in text.split() if "=" in word)
        # The reason of a node is the one text with blanks that tests read.
        reason = {"Reason": text.partition(" Reason=")[2].partition(" [")[0].strip()} if kind == "node" else {}
        return pairs | reason

    def submit(self, *arguments: str, script: str) -> str:
        """Submit a batch script; return the job's number. What it prints is in its `output`.

        Args:
            *arguments: For sbatch.
            script: The script, with or without its first line.
        """
        path = self.root / f"srv/script-{time.monotonic_ns()}.sh"
        path.write_text(script if script.startswith("#!") else f"#!/bin/bash\n{script}\n")
        where = ("--chdir=/srv", "--output=/srv/%j.out", "--open-mode=append")
        return self.run("sbatch", "--parsable", *where, *arguments, f"/srv/{path.name}", "train.py").strip()

    def output(self, job: str) -> str:
        """Return what a job has printed so far.

        Args:
            job: Its number.
        """
        path = self.root / f"srv/{job}.out"
        return path.read_text() if path.exists() else ""

    def wait_for(self, what: str, found: Callable[[], T | None]) -> T:
        """Wait until something is so; return it.

        Args:
            what: What it is, for the message where it never is.
            found: Returns neither None nor False when it is so.

        Raises:
            AssertionError: It is not so after minutes.
        """
        end = time.monotonic() + _PATIENCE_SECONDS
        while time.monotonic() < end:
            value = found()
            if value is not None and value is not False:
                return value
            time.sleep(0.1)
        logs = [
            "\n".join([path.name, *path.read_text().splitlines()[-20:]]) for path in (self.root / "srv").glob("*.log")
        ]
        raise AssertionError("\n".join([f"not so in {_PATIENCE_SECONDS} s: {what}", self.run("sinfo", "-Nl"), *logs]))

    def wait_for_state(self, node: str, *states: str) -> dict[str, str]:
        """Wait until a node's state has all of some words; return what is shown of it.

        Args:
            node: Its name.
            *states: Such as `DRAIN`; `IDLE` is nothing else.
        """

        def found() -> dict[str, str] | None:
            shown = self.shown("node", node)
            have = set(shown["State"].rstrip("*").split("+")) - {"CLOUD"}
            return shown if (have == {"IDLE"} if states == ("IDLE",) else have >= set(states)) else None

        return self.wait_for(f"{node} is {'+'.join(states)}", found)

    def wait_for_job(self, job: str, state: str) -> dict[str, str]:
        """Wait until a job has a state; return what is shown of it.

        Args:
            job: Its number.
            state: Such as `RUNNING`.
        """

        def found() -> dict[str, str] | None:
            shown = self.shown("job", job)
            return shown if shown["JobState"] == state else None

        return self.wait_for(f"job {job} is {state}", found)

    def seconds_of(self, job: str) -> float:
        """Return how long an ended job took from its submission.

        Args:
            job: Its number.
        """
        shown = self.shown("job", job)
        return (_time(shown["EndTime"]) - _time(shown["SubmitTime"])).total_seconds()

    def ended(self, job: str, *nodes: str) -> float:
        """Wait until nodes have been ended after a job; return after how many seconds the last was.

        Args:
            job: The job's number.
            *nodes: Names of nodes.
        """
        end = _time(self.shown("job", job)["EndTime"]).timestamp()

        def found() -> float | None:
            log = [line.split() for line in (self.root / "srv/power.log").read_text().splitlines()]
            last = [
                max((int(at) for at, what, who in log if (what, who) == ("suspend", node)), default=0)
                for node in nodes
            ]
            return max(last) - end if min(last) >= end else None

        return self.wait_for(f"{' and '.join(nodes)} are ended", found)

    @contextmanager
    def timed(self, what: str) -> Iterator[None]:
        """Note how long something takes.

        Args:
            what: A line of the table at the end.
        """
        start = time.monotonic()
        yield
        self.times[what] = time.monotonic() - start

    def _make_node(self, node: str, group: NodeGroupConfiguration, info: InstanceTypeInfo) -> None:
        folder = self.folder(node)
        for part in ("dev", "opt/aws/pcs/scheduler", "opt/cdk-training-cluster", "run", "sys/class/infiniband/efa0"):
            (folder / part).mkdir(parents=True)
        for name in ("null", "zero", "full", "random", "urandom", "tty"):
            _copy_device(self.root / "dev" / name, folder / "dev" / name)
        for number in range(sum(int(text) for name, text in group.gres.resources.items() if name == "gpu")):
            # What a GPU answers is of no interest here: Slurm asks for a device node.
            os.mknod(folder / f"dev/nvidia{number}", stat.S_IFCHR | 0o666, os.makedev(195, number))
        commands = folder / pcs_commands(self.configuration.version)[1:]
        commands.parent.mkdir(parents=True, exist_ok=True)
        commands.symlink_to("/usr/bin")
        (folder / "run/file-system").write_text("lustre\n")
        facts = NodeFacts(slurm_bin=pcs_commands(self.configuration.version))
        (folder / "install.sh").write_text(install_script(facts))
        expected = {info.name: {"gpus": info.nvidia_gpu_count, "efa_devices": 1}}
        settings = shell_assignments({"MOUNT_POINT": "/fsx", "EXPECTED": json.dumps(expected)})
        (folder / "opt/cdk-training-cluster/settings").write_text(settings)

    def _write_configuration(self, stopped: Collection[str] = ()) -> None:
        for name, text in slurm_files(self.configuration, self._counts, stopped=stopped).items():
            (self.root / "etc/slurm" / name).write_text(text)


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def _copy_device(source: Path, target: Path) -> None:
    found = source.stat()
    os.mknod(target, found.st_mode, found.st_rdev)


@contextmanager
def real_slurm(directory: Path, configuration: SlurmConfiguration, nodes: ClusterContext) -> Iterator[RealSlurm]:
    """Make namespaces with a Slurm that is configured and not started; end all of it in the end.

    Args:
        directory: An empty directory.
        configuration: What the construct emits.
        nodes: The node groups.
    """
    root = BUILT / "root"
    if not root.is_dir():
        missing = BUILT / "missing"
        reason = missing.read_text().strip() if missing.exists() else "`make test-slurm` unpacks Debian's Slurm"
        pytest.skip(reason)  # without apt, root or namespaces
    spaces = ["--net", "--uts", "--pid", "--mount", "--fork", "--kill-child"]
    boot = ["bash", str(_MACHINE), "boot", str(root), str(directory)]
    with (
        (directory.parent / "log").open("w") as log,
        subprocess.Popen(["unshare", *spaces, *boot], stdout=log, stderr=log) as process,
    ):
        try:
            yield RealSlurm(_first_process(process), configuration, nodes)
        finally:
            process.kill()


def _first_process(process: "subprocess.Popen[bytes]") -> int:
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    end = time.monotonic() + _PATIENCE_SECONDS
    while time.monotonic() < end and process.poll() is None:
        for child in children.read_text().split():
            if Path(f"/proc/{child}/root/srv/booted").exists():
                return int(child)
        time.sleep(0.02)
    raise AssertionError("the namespaces do not come up")
