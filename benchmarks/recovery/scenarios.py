"""Four ways to go on after a node is lost, each with the same training script and the same faults.

What is measured of each, in seconds:

- stall: from the fault to the first step that had not been done before, less the time of a step.
- charged: the stall; what the return of a lost node costs; and the share of the job's nodes that is missing until
  then, which each second costs its part of a second.
"""

import os
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from benchmarks.recovery.nodes import BIN, TRAINING, Job, free_port
from cluster_job.checkpoints import CheckpointFolder

FAULT_AT = 10
SAVE_EVERY = 10
HEARTBEAT = 500
"""The milliseconds after which the Lighthouse misses a silent node: replicas send 10 heartbeats a second."""

MEETING = "is_host=0,keep_alive_interval=1,keep_alive_max_attempt=3,last_call_timeout=2,join_timeout=300"
STORE = """
import time, torch.distributed as dist
store = dist.TCPStore("127.0.0.1", {port}, is_master=True, wait_for_workers=False)
time.sleep(10**6)
"""

UNDER_WAY = 1.0
"""The seconds in which a step that the lost node had done its part of may still be finished by the others."""

PATIENCE = 1
"""The seconds after which the others go on without a silent node."""

LOCAL = ("--nproc-per-node=1", "--local-addr=127.0.0.1", "--monitor-interval=0.1")
TABLE = "runs"


@dataclass(frozen=True, kw_only=True)
class Case:
    """What is done to which job.

    Attributes:
        method: How it goes on.
        fault: What happens to a node.
        nodes: How many nodes train.
    """

    method: str
    fault: str
    nodes: int

    @property
    def victim(self) -> str:
        """The node that is lost."""
        return "n0" if self.fault == "rank 0 killed" else "n1"

    @property
    def signal(self) -> signal.Signals:
        """What the node's processes get."""
        return signal.SIGSTOP if self.fault == "silenced" else signal.SIGKILL


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a lost node cost.

    Attributes:
        stall: The seconds without progress.
        charged: The seconds of the whole job that were lost, with missing nodes counted in part.
        step: The last step.
        fingerprint: What the parameters were after it.
    """

    stall: float
    charged: float
    step: int
    fingerprint: float


def restart(job: Job, case: Case, endpoint: str) -> Outcome:
    """Start the whole job again from its checkpoint; a scheduler does so, and has another node at hand.

    The nodes meet on a host that does not train, with the settings that notice a loss soonest.
    """
    del endpoint

    def begin() -> None:
        port = free_port()
        job.start("store", [sys.executable, "-c", STORE.format(port=port)])
        endpoint = ["--rdzv-backend=c10d", f"--rdzv-endpoint=127.0.0.1:{port}", f"--rdzv-conf={MEETING}"]
        command = [str(BIN / "torchrun"), *LOCAL, f"--nnodes={case.nodes}", *endpoint, str(TRAINING)]
        for node in nodes:
            job.start(node, command, TORCH_DISABLE_SHARE_RDZV_TCP_STORE="1")

    nodes = [f"n{number}" for number in range(case.nodes)]
    begin()
    at, before = _fault(job, case)
    while all(job.nodes[node].poll() is None for node in nodes if node != case.victim):
        time.sleep(0.05)
    job.stop()
    begin()
    again = job.wait_for_step(before + 1, after=at)
    stall = again["at"] - at - job.pace(at)
    return _end(job, stall, stall)


def elastic(job: Job, case: Case, endpoint: str) -> Outcome:
    """Let `cluster-run` go on with the nodes that are left, from the checkpoint; they meet in a table of DynamoDB."""
    command, variables = cluster_run(job, case.nodes, endpoint)
    for number in range(case.nodes):
        job.start(f"n{number}", command, **variables)
    return _with_newcomer(job, case, lambda: job.start("newcomer", command, **variables))


def peers(job: Job, case: Case, endpoint: str) -> Outcome:
    """Let the others go on with what is in their memory; a node that starts cold joins them."""
    del endpoint
    start = _replicas(job, case)
    for number in range(case.nodes):
        start(f"n{number}")
    return _with_newcomer(job, case, lambda: start("newcomer"))


def spare(job: Job, case: Case, endpoint: str) -> Outcome:
    """Let a hot spare, which has followed each step, take the place of the lost node."""
    del endpoint
    start = _replicas(job, case)
    for number in range(case.nodes + 1):
        start(f"n{number}")
    job.wait(lambda event: event["event"] == "joined" and event["present"] == case.nodes + 1)
    return _with_newcomer(job, case, lambda: None)


METHODS: dict[str, Callable[[Job, Case, str], Outcome]] = {
    "restart": restart,
    "elastic": elastic,
    "peers": peers,
    "spare": spare,
}


def run(case: Case, folder: Path, endpoint: str) -> Outcome:
    """Run a case in a folder of its own."""
    job = Job(folder)
    try:
        return METHODS[case.method](job, case, endpoint)
    finally:
        job.stop()


def reference(folder: Path, steps: int) -> dict[int, float]:
    """Return what the parameters are after each step of one process to which nothing happens."""
    job = Job(folder, EACH="1", SAVE_EVERY=str(10**9))
    job.end.write_text(str(steps))
    try:
        job.start("n0", [sys.executable, str(TRAINING)])
        job.wait(lambda event: event["event"] == "ended")
        return {event["step"]: event["print"] for event in job.steps()}
    finally:
        job.stop()


def cluster_run(job: Job, nodes: int, endpoint: str) -> tuple[list[str], dict[str, str]]:
    """Return a node's command under `cluster-run`, and its variables."""
    variables = {
        "PATH": f"{BIN}:{os.environ['PATH']}",
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "TRAINING_CLUSTER_CLUSTER": "bench",
        "TRAINING_CLUSTER_NODE_GROUP": "workers",
        "TRAINING_CLUSTER_REGION": "us-east-1",
        "TRAINING_CLUSTER_RUNS_TABLE": TABLE,
    }
    command = [str(BIN / "cluster-run"), "--run", job.folder.name, "--nnodes", f"1:{nodes}", "torchrun"]
    return [*command, *LOCAL, str(TRAINING)], variables


def lighthouse(job: Job, *, patience: int, port: int | None = None) -> dict[str, str]:
    """Start torchft's Lighthouse beside the nodes; return what tells replicas where it is."""
    port = port or free_port()
    options = (f"--bind=127.0.0.1:{port}", "--min_replicas=1", f"--join_timeout_ms={2000 * patience}")
    job.start("lighthouse", [str(BIN / "torchft_lighthouse"), *options, f"--heartbeat_timeout_ms={HEARTBEAT}"])
    return {"TORCHFT_LIGHTHOUSE": f"http://127.0.0.1:{port}", "PATIENCE": str(patience)}


def _replicas(job: Job, case: Case) -> Callable[[str], None]:
    variables = {"REPLICAS": str(case.nodes), **lighthouse(job, patience=PATIENCE)}
    return lambda node: job.start(node, [sys.executable, str(TRAINING)], **variables)


def _fault(job: Job, case: Case) -> tuple[float, int]:
    """Lose a node in the middle between two checkpoints; return when, and the last step before it."""
    first = job.wait_for_step(FAULT_AT, active=case.nodes)
    if case.method in {"restart", "elastic"}:
        first = job.wait(lambda event: event["event"] == "step" and _is_saved(job), after=first["at"])
    job.wait(
        lambda event: event["event"] == "step" and event["step"] % SAVE_EVERY == SAVE_EVERY // 2, after=first["at"]
    )
    at = job.signal(case.victim, case.signal)
    time.sleep(UNDER_WAY)
    return at, max(event["step"] for event in job.steps() if event["at"] <= at + UNDER_WAY)


def _is_saved(job: Job) -> bool:
    return CheckpointFolder(job.folder / "checkpoints" / "bench").latest() is not None


def _with_newcomer(job: Job, case: Case, start: Callable[[], None]) -> Outcome:
    at, before = _fault(job, case)
    start()
    again = job.wait_for_step(before + 1, after=at)
    full = job.wait_for_step(before + 1, after=at, active=case.nodes)
    if case.signal == signal.SIGSTOP:
        job.signal(case.victim, signal.SIGCONT)  # it must do no harm when it wakes up
    pace = job.pace(at)
    stall = again["at"] - at - pace
    late = [event["at"] for event in job.steps() if again["at"] <= event["at"] <= full["at"]]
    returning = late[-1] - late[-2] - pace if len(late) > 1 else 0.0
    missing = (full["at"] - at - stall - max(0.0, returning)) / case.nodes if full is not again else 0.0
    return _end(job, stall, stall + max(0.0, returning) + max(0.0, missing))


def _end(job: Job, stall: float, charged: float) -> Outcome:
    last = job.steps()[-1]["step"] + 5
    part = job.end.with_suffix(".part")
    part.write_text(str(last))
    part.replace(job.end)
    final = job.wait_for_step(last)
    return Outcome(stall=stall, charged=charged, step=final["step"], fingerprint=final["print"])
