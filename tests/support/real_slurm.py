"""Debian's Slurm with virtual nodes, under the configuration that a cluster's construct emits."""

import os
import shutil
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from cdk_training_cluster.nodes.rules.context import ClusterContext
from cdk_training_cluster.orchestrators.slurm.configuration import SlurmConfiguration
from cluster_contract.node_files import DRAIN
from slurm_files import slurm_files
from slurm_machines import PATIENCE_SECONDS, SlurmMachines, namespaces

T = TypeVar("T")


class RealSlurm(SlurmMachines):
    """A controller and the nodes of a configuration's node groups: `<group>-1`, `<group>-2`, …"""

    def __init__(self, first_process: int, configuration: SlurmConfiguration, nodes: ClusterContext) -> None:
        """Take the namespaces.

        Args:
            first_process: Their first process.
            configuration: What the construct emits.
            nodes: The node groups.
        """
        super().__init__(first_process)
        self.times: dict[str, float] = {}
        self.configuration = configuration
        self._counts = {each.group.name: each.group.count for each in nodes.nodes}
        self._write_configuration()
        for each, group in zip(nodes.nodes, configuration.node_groups, strict=True):
            for node in self.nodes_of(group.name):
                self.make_node(node, group, each.infos[0], configuration.version)

    def nodes_of(self, group: str) -> list[str]:
        """Return the names of a group's nodes.

        Args:
            group: Its name.
        """
        return [f"{group}-{number}" for number in range(1, self._counts[group] + 1)]

    def start(self) -> None:
        """Start the controller and the nodes that always run, and wait for them."""
        self.run("slurmctld")
        fixed = [node for each in self.configuration.node_groups if each.fixed for node in self.nodes_of(each.name)]
        for node in fixed:
            self.boot(node)
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

    def let_minutes_pass(self, node: str) -> None:
        """Make the files of a node old for which it waits before it looks at its reason again.

        Args:
            node: Its name.
        """
        for waits in ("run/cdk-training-cluster/slurm-asked", "state/slurm-reasons"):
            for each in self.folder(node).glob(waits):
                os.utime(each, (0, 0))

    def is_taken_back(self, node: str) -> bool:
        """Return whether a node that was drained takes jobs again, after the minutes that it waits.

        Args:
            node: Its name.
        """
        self.let_minutes_pass(node)
        return "DRAIN" not in self.shown("node", node)["State"]

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
        end = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < end:
            value = found()
            if value is not None and value is not False:
                return value
            time.sleep(0.1)
        logs = [
            "\n".join([path.name, *path.read_text().splitlines()[-20:]]) for path in (self.root / "srv").glob("*.log")
        ]
        raise AssertionError("\n".join([f"not so in {PATIENCE_SECONDS} s: {what}", self.run("sinfo", "-Nl"), *logs]))

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

    def _write_configuration(self, stopped: Collection[str] = ()) -> None:
        for name, text in slurm_files(self.configuration, self._counts, stopped=stopped).items():
            (self.root / "etc/slurm" / name).write_text(text)


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@contextmanager
def real_slurm(directory: Path, configuration: SlurmConfiguration, nodes: ClusterContext) -> Iterator[RealSlurm]:
    """Make namespaces with a Slurm that is configured and not started; end all of it in the end.

    Args:
        directory: An empty directory.
        configuration: What the construct emits.
        nodes: The node groups.
    """
    with namespaces(directory) as first_process:
        yield RealSlurm(first_process, configuration, nodes)
