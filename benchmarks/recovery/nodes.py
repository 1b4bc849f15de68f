"""Nodes of a job on this machine: each is a tree of processes, which can be killed or silenced as a whole."""

import itertools
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil

BIN = Path(sys.executable).parent
TRAINING = Path(__file__).with_name("training.py")
LIMIT_SECONDS = 600  # until something has gone wrong

Event = Mapping[str, Any]


def free_port() -> int:
    """Return a port that is free now."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


class Job:
    """One job.

    Args:
        folder: Where its files lie.
        variables: Environment variables of its processes.
    """

    def __init__(self, folder: Path, **variables: str) -> None:
        folder.mkdir(parents=True)
        self.folder = folder
        self.file = folder / "events"
        self.file.touch()
        self.end = folder / "end"
        self._variables = {
            **os.environ,
            "OMP_NUM_THREADS": "1",
            "GLOO_SOCKET_IFNAME": "lo",
            "TORCH_CPP_LOG_LEVEL": "ERROR",
            "EVENTS": str(self.file),
            "END": str(self.end),
            "CHECKPOINTS": str(folder / "checkpoints"),
            **variables,
        }
        self.nodes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, node: str, command: list[str], **variables: str) -> None:
        """Start a node."""
        with (self.folder / f"{node}.log").open("ab") as log:
            self.nodes[node] = subprocess.Popen(
                command,
                env={**self._variables, "NODE": node, "TRAINING_CLUSTER_NODE": node, **variables},
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.folder,
            )

    def signal(self, node: str, number: signal.Signals) -> float:
        """Send a signal to all processes of a node at once; return when."""
        processes = []
        with suppress(psutil.NoSuchProcess):
            first = psutil.Process(self.nodes[node].pid)
            processes = [first, *first.children(recursive=True)]
        at = time.time()
        for process in processes:
            with suppress(psutil.NoSuchProcess):
                process.send_signal(number)
        if number == signal.SIGKILL:
            self.nodes[node].wait()
        return at

    def fail(self, node: str) -> float:
        """Kill one process that trains, and leave what has started it; return when."""
        trains = [
            process
            for process in psutil.Process(self.nodes[node].pid).children(recursive=True)
            if process.cmdline()[-1:] == [str(TRAINING)] and "RANK" in process.environ()
        ]
        trains[-1].kill()
        return time.time()

    def stop(self) -> None:
        """Kill what runs, writers of checkpoints that outlived their rank too."""
        for node in self.nodes:
            self.signal(node, signal.SIGKILL)
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                if Path(process.cwd()) == self.folder:
                    process.kill()

    def events(self) -> list[Event]:
        """Return what the training processes wrote."""
        return [json.loads(line) for line in self.file.read_text().splitlines()]

    def steps(self) -> list[Event]:
        """Return the steps that were done."""
        return [event for event in self.events() if event["event"] == "step"]

    def wait(self, wanted: Callable[[Event], bool], *, after: float = 0) -> Event:
        """Wait for the first event after a time that is wanted."""
        limit = time.monotonic() + LIMIT_SECONDS
        while time.monotonic() < limit:
            for event in self.events():
                if event["at"] > after and wanted(event):
                    return event
            if all(node.poll() is not None for node in self.nodes.values()):
                break
            time.sleep(0.02)
        logs = "\n".join(f"--- {log.name}\n{log.read_text()[-2000:]}" for log in self.folder.glob("*.log"))
        raise TimeoutError(f"the event did not come; the last ones: {self.events()[-3:]}\n{logs}")

    def wait_for_step(self, number: int, *, after: float = 0, active: int | None = None) -> Event:
        """Wait for a step, or a later one."""
        return self.wait(
            lambda event: event["event"] == "step" and event["step"] >= number and active in {None, event["active"]},
            after=after,
        )

    def pace(self, until: float) -> float:
        """Return the usual seconds of a step until then."""
        times: list[float] = [event["at"] for event in self.steps() if event["at"] <= until]
        return statistics.median(later - earlier for earlier, later in itertools.pairwise(times[2:]))
