"""The scripts of the documentation, and drains of whole jobs and of replicas: `make test-torch`."""

import os
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip("torch", reason="torch is not installed: make test-torch")
pytest.importorskip("psutil", reason="psutil is not installed: make test-torch")

from benchmarks.recovery.nodes import BIN, TRAINING, Job, free_port
from benchmarks.recovery.scenarios import cluster_run, lighthouse
from cluster_job.checkpoints import CheckpointFolder
from cluster_job.environment import read_environment
from cluster_job.exits import Exit
from cluster_job.replicas import Replicas
from cluster_job.work import Place

pytestmark = pytest.mark.torch

PAGE = Path(__file__).parents[2] / "docs/resilience/checkpoints.md"
PLAIN, REPLICAS = re.findall(r"```py\n(.*?)```", PAGE.read_text(), re.DOTALL)
REPLICA = [str(BIN / "cluster-run"), "--restarts", "1", "--nnodes", "1", "torchrun", "--standalone"]
SMALL = {"WIDTH": "64", "LAYERS": "1", "GLOBAL_BATCH": "6", "SAVE_EVERY": "1000000"}


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Job]:
    made = Job(tmp_path / "job", **SMALL)
    yield made
    made.stop()


@pytest.mark.parametrize("script", [PLAIN, REPLICAS], ids=["plain", "replicas"])
def test_the_scripts_of_the_documentation_train_to_their_end(job: Job, script: str) -> None:
    (job.folder / "train.py").write_text(script)
    ranks = 2 if script is PLAIN else 1
    command = [str(BIN / "torchrun"), "--standalone", f"--nproc-per-node={ranks}", "train.py"]
    job.start("n0", command, **lighthouse(job, patience=60))
    assert job.nodes["n0"].wait(300) == 0, (job.folder / "n0.log").read_text()
    (folder,) = (job.folder / "checkpoints").iterdir()
    latest = CheckpointFolder(folder).latest()
    assert latest is not None
    assert (latest.step, latest.ended) == (20, True)


def test_a_drained_replica_saves_and_leaves_and_a_hot_spare_takes_its_place(job: Job) -> None:
    variables = {"REPLICAS": "2", "PATH": f"{BIN}:{os.environ['PATH']}", **lighthouse(job, patience=10)}
    for node in ("n0", "n1", "n2"):
        job.start(node, [*REPLICA, str(TRAINING)], **variables)
    job.wait(lambda event: event["event"] == "joined" and event["present"] == 3)
    job.nodes["n0"].send_signal(signal.SIGUSR1)
    assert job.nodes["n0"].wait(300) == Exit.AGAIN
    assert "the processes have ended, and torchrun ends too" in (job.folder / "n0.log").read_text()
    left = job.events()[-1]["at"]
    job.wait(lambda event: event["event"] == "step" and event["active"] == 2 and event["node"] != "n0", after=left)
    latest = CheckpointFolder(job.folder / "checkpoints" / "bench").latest()
    assert latest is not None, "the first replica wrote it before it left"
    steps = [event["step"] for event in job.steps()]
    assert sorted(set(steps)) == list(range(max(steps) + 1))


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_replica_whose_process_fails_is_started_again_and_gets_the_state_from_a_peer(job: Job, ranks: int) -> None:
    variables = {"REPLICAS": "2", "PATH": f"{BIN}:{os.environ['PATH']}", **lighthouse(job, patience=10)}
    for node in ("n0", "n1"):
        job.start(node, [*REPLICA, f"--nproc-per-node={ranks}", str(TRAINING)], **variables)
    job.wait_for_step(5, active=2)
    first = job.fail("n1")
    alone = job.wait_for_step(0, active=1, after=first)
    again = job.wait_for_step(alone["step"], active=2, after=alone["at"])
    job.wait_for_step(again["step"] + 5, active=2)
    steps = [event["step"] for event in job.steps()]
    assert sorted(set(steps)) == list(range(max(steps) + 1)), "the newcomer goes on with the others' step"
    assert not [event for event in job.events() if event.get("found")], "no checkpoint was read"
    second = job.fail("n1")
    assert job.nodes["n1"].wait(120) == 1, "its budget of restarts is used up"
    job.wait_for_step(0, active=1, after=second)


def test_hot_spares_cost_though_they_take_no_samples() -> None:
    replicas = object.__new__(Replicas)
    replicas._sizes, replicas._environment = range(2, 9, 2), read_environment({"RANK": "0"})
    replicas.manager = SimpleNamespace(num_participants=lambda: 5, participating_rank=lambda: 4)
    assert replicas.place == Place(rank=4, world_size=4, nodes=5)


def test_of_a_drained_node_all_save_it_leaves_and_the_others_go_on(job: Job, endpoint: str) -> None:
    command, variables = cluster_run(job, 2, endpoint)
    for node in ("n0", "n1"):
        job.start(node, command, **variables)
    job.wait_for_step(5, active=2)
    job.nodes["n1"].send_signal(signal.SIGUSR1)
    assert job.nodes["n1"].wait(300) == Exit.AGAIN
    again = job.wait_for_step(0, active=1)
    before = [event["step"] for event in job.steps() if event["active"] == 2]
    assert again["step"] == before[-1] + 1, "no step is lost, and none done again"
    assert "the run failed" not in (job.folder / "n0.log").read_text()


def test_a_node_that_joins_costs_the_others_no_step_that_was_done_when_it_came(job: Job, endpoint: str) -> None:
    command, variables = cluster_run(job, 3, endpoint)
    for node in ("n0", "n1"):
        job.start(node, command, **variables)
    job.wait_for_step(20, active=2)
    done = job.steps()[-1]["step"]
    job.start("n2", command, **variables)
    again = job.wait_for_step(0, active=3)
    assert again["step"] > done
    before = [event["step"] for event in job.steps() if event["active"] == 2]
    assert again["step"] in {*before, before[-1] + 1}, "no step is left out"
    logs = "".join((job.folder / f"{node}.log").read_text() for node in ("n0", "n1"))
    assert "a node joins: the job saves first" in logs
    assert "the run failed" not in logs


def test_a_process_whose_peer_is_lost_in_the_first_checkpoint_ends_at_once(job: Job) -> None:
    """Its own writer would wait half an hour for the other's, and Python for its writer."""
    (job.folder / "train.py").write_text("""
import os, signal
import torch, torch.distributed as dist
from torch.distributed.checkpoint import _async_process_executor as executor
from cluster_job import Run

dist.init_process_group("gloo")
run = Run(global_batch=2, checkpoints="checkpoints")
for step in run.steps(9):
    if dist.get_rank() == 1:
        executor._AsyncCheckpointProcess = lambda **_: os.kill(os.getpid(), signal.SIGKILL)
    run.checkpoint({"x": torch.ones(1)})
    dist.all_reduce(torch.ones(1))
""")
    two_ranks(job)
    assert job.nodes["n0"].wait(120) == 1


def test_a_drain_in_a_long_step_is_answered_at_its_end_and_in_a_short_one_a_step_later(job: Job) -> None:
    (job.folder / "train.py").write_text("""
import torch.distributed as dist
from pathlib import Path
from cluster_job import torch_ranks

dist.init_process_group("gloo")
now = 0.0
ranks = torch_ranks.TorchRanks(clock=lambda: now)
answers = []
for seconds, wish in ((9, 0), (2, 0), (2, 1), (0.1, 0), (0.1, 1), (0.1, 0), (0.1, 0), (2, 0), (2, 2)):
    now += seconds * (1 if dist.get_rank() else 0.4)  # the slowest rank's step counts
    answers.append(str(ranks.agree(wish * dist.get_rank())))
print(" ".join(answers))
""")
    two_ranks(job)
    for node in ("n0", "n1"):
        assert job.nodes[node].wait(120) == 0
        assert (job.folder / f"{node}.log").read_text() == "0 0 1 0 0 1 0 0 2\n"


def two_ranks(job: Job) -> None:
    meeting = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    for rank in "01":
        job.start(f"n{rank}", [sys.executable, "train.py"], RANK=rank, **meeting)


def test_replicas_go_on_when_the_lighthouse_is_started_again(job: Job) -> None:
    variables = {"REPLICAS": "2", **lighthouse(job, patience=10)}
    for node in ("n0", "n1"):
        job.start(node, [sys.executable, str(TRAINING)], **variables)
    job.wait_for_step(5, active=2)
    job.signal("n0", signal.SIGKILL)  # so that the Lighthouse has counted more than one quorum
    job.wait_for_step(0, active=1, after=job.events()[-1]["at"])
    job.start("n0", [sys.executable, str(TRAINING)], **variables)
    job.wait_for_step(0, active=2, after=job.events()[-1]["at"])
    at = job.signal("lighthouse", signal.SIGKILL)
    lighthouse(job, patience=10, port=int(variables["TORCHFT_LIGHTHOUSE"].rpartition(":")[2]))
    again = job.wait_for_step(0, active=2, after=at + 2)
    job.wait_for_step(again["step"] + 20, active=2)


def test_no_replica_waits_for_one_that_has_given_up_after_another_was_lost(job: Job) -> None:
    patience = 400
    variables = {"REPLICAS": "4", "WIDTH": "512", **lighthouse(job, patience=patience), "PATIENCE": str(patience)}
    nodes = ["n0", "n1", "n2", "n3"]
    for node in nodes:
        job.start(node, [sys.executable, str(TRAINING)], **variables)
    for left in (3, 2):
        job.wait_for_step(5, active=left + 1)
        at = job.signal(nodes.pop(0), signal.SIGKILL)
        assert job.wait_for_step(0, active=left, after=at)["at"] - at < patience / 2
