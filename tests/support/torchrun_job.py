"""Nodes of a job on this machine: each is a `cluster-run torchrun` of its own; they meet in moto's DynamoDB."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import boto3
import psutil

TABLE = "runs"
SCRIPT = Path(__file__).parent / "torchrun_job_script.py"
BIN = Path(sys.executable).parent
_SECONDS = 240  # until something has gone wrong; no test waits so long


class TorchrunJob:
    """One job.

    Args:
        folder: Where its files lie.
        endpoint: The address of DynamoDB.
        run: The run's name.
        nnodes: How many nodes train: `MIN:MAX`.
        script: What they train with.
        nproc: How many ranks each node has.
    """

    def __init__(
        self, folder: Path, endpoint: str, *, run: str, nnodes: str, script: Path = SCRIPT, nproc: int = 1
    ) -> None:
        self._script, self._nproc = script, nproc
        self.events_file = folder / "events"
        self.events_file.touch()
        self._folder = folder
        self._arguments = ["--run", run, "--nnodes", nnodes]
        self._variables = {
            **os.environ,
            "PATH": f"{BIN}:{os.environ['PATH']}",
            "AWS_ENDPOINT_URL": endpoint,
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "testing",
            "TRAINING_CLUSTER_CLUSTER": "pod",
            "TRAINING_CLUSTER_NODE_GROUP": "workers",
            "TRAINING_CLUSTER_REGION": "us-east-1",
            "TRAINING_CLUSTER_RUNS_TABLE": TABLE,
            "OMP_NUM_THREADS": "1",
            "GLOO_SOCKET_IFNAME": "lo",
        }
        self.nodes: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, node: str, *options: str, arguments: tuple[str, ...] = (), **variables: str) -> None:
        """Start a node."""
        command = [str(BIN / "cluster-run"), *self._arguments, *options]
        torchrun = ["torchrun", "--local-addr=127.0.0.1", f"--nproc-per-node={self._nproc}"]
        script = [*torchrun, str(self._script), str(self._folder), *arguments]
        with (self._folder / f"{node}.log").open("ab") as log:
            self.nodes[node] = subprocess.Popen(
                [*command, *script],
                env={**self._variables, "TRAINING_CLUSTER_NODE": node, **variables},
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self._folder,
            )

    def kill(self, node: str) -> None:
        """Kill all processes of a node at once, as if it had lost its power."""
        for process in self._processes(node):
            with suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGKILL)
        self.nodes[node].wait()

    def fail(self, node: str) -> None:
        """Kill the first process of a node that trains, and leave what has started it."""
        for process in self._processes(node):
            with suppress(psutil.Error):
                if str(self._script) in process.cmdline() and "RANK" in process.environ():
                    process.kill()
                    return

    def silence(self, node: str) -> None:
        """Stop all processes of a node where they are: their connections stay, and nothing comes over them."""
        for process in self._processes(node):
            with suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGSTOP)

    def pause(self, nodes: str, act: Callable[[], None]) -> None:
        """Stop the agents of nodes, whose processes train on, while something is done."""
        agents = [self._processes(node)[1] for node in nodes]
        for agent in agents:
            agent.suspend()
        act()
        for agent in agents:
            agent.resume()

    def stop(self) -> None:
        """Kill what runs."""
        for node in self.nodes:
            self.kill(node)

    def exit_code(self, node: str) -> int:
        """Wait for a node's end, and return its exit code."""
        return self.nodes[node].wait(_SECONDS)

    def log(self, node: str) -> str:
        """Return what a node printed."""
        return (self._folder / f"{node}.log").read_text()

    def events(self) -> list[Mapping[str, Any]]:
        """Return what the training processes wrote."""
        return [json.loads(line) for line in self.events_file.read_text().splitlines()]

    def wait_for(self, wanted: Callable[[Mapping[str, Any]], bool]) -> Mapping[str, Any]:
        """Wait for the first event that is wanted."""
        end = time.monotonic() + _SECONDS
        while time.monotonic() < end:
            found = next(filter(wanted, self.events()), None)
            if found is not None:
                return found
            time.sleep(0.05)
        logs = "\n".join(f"--- {node}\n{self.log(node)[-3000:]}" for node in self.nodes)
        raise TimeoutError(f"the event did not come; the last ones: {self.events()[-3:]}\n{logs}")

    def wait_for_line(self, node: str, wanted: str) -> None:
        """Wait until a node prints something."""
        self.wait_until(lambda: wanted in self.log(node))

    def wait_until(self, is_so: Callable[[], bool]) -> None:
        """Wait until something is so."""
        end = time.monotonic() + _SECONDS
        while not is_so():
            assert time.monotonic() < end, "\n".join(self.log(node)[-3000:] for node in self.nodes)
            time.sleep(0.2)

    def _processes(self, node: str) -> list[psutil.Process]:
        with suppress(psutil.NoSuchProcess):
            first = psutil.Process(self.nodes[node].pid)
            return [first, *first.children(recursive=True)]
        return []


def make_table(endpoint: str) -> None:
    """Make the table of the runs."""
    client = boto3.client(
        "dynamodb",
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id="testing",
        aws_secret_access_key="testing",  # noqa: S106
    )
    client.create_table(
        TableName=TABLE,
        KeySchema=[{"AttributeName": "run", "KeyType": "HASH"}, {"AttributeName": "key", "KeyType": "RANGE"}],
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in ("run", "key")],
        BillingMode="PAY_PER_REQUEST",
    )
