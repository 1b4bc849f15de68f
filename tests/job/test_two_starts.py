"""Two starts of one run, with real ranks and checkpoints: `make test-torch`."""

import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="torch is not installed: make test-torch")
pytest.importorskip("psutil", reason="psutil is not installed: make test-torch")

from benchmarks.recovery.nodes import Job, free_port
from benchmarks.recovery.scenarios import cluster_run
from cluster_job.checkpoints import CheckpointFolder
from cluster_job.exits import Exit

pytestmark = pytest.mark.torch

SCRIPT = """
import json, os, sys, time
from datetime import timedelta
from pathlib import Path

ahead = float(os.environ.get("AHEAD", "0"))
real = time.time
time.time = lambda: real() + ahead

from cluster_job import holding, lease

fast = float(os.environ["FAST"])  # of a lease's times, so that no test waits for a minute
holding.RENEW_SECONDS, lease.RENEW_SECONDS, lease.LEASE_SECONDS = (one / fast for one in (15, 15, 60))
lease.LeaseView.__init__.__kwdefaults__["longest_gap"] = 15 / fast

import torch, torch.distributed as dist
from cluster_job import Run

dist.init_process_group("gloo", timeout=timedelta(seconds=60))
start, saves = os.environ["NODE"].partition("-")[0], Path(f"saves-{os.environ['NODE'].partition('-')[0]}")
run = Run(global_batch=2, name="llama", checkpoints="checkpoints", keep=1, keep_hourly=0, keep_daily=0)
state = {"x": torch.ones(1)}
run.restore(state)
for step in run.steps(10**6):
    dist.all_reduce(torch.ones(1))
    wanted = [saves.read_text() if saves.exists() and dist.get_rank() == 0 else ""]
    dist.broadcast_object_list(wanted)
    if dist.get_rank() == 0:
        event = {"at": real(), "event": "step", "step": step, "active": 2, "node": start}
        with open(os.environ["EVENTS"], "a") as file:
            file.write(json.dumps(event) + "\\n")
    if wanted[0]:
        if dist.get_rank() == 0:
            saves.unlink()
        dist.barrier()
        if wanted[0] == "last":
            run._count = run._step
        run.checkpoint(state)
        if wanted[0] == "and wait":
            run._saver.finish()
            if dist.get_rank() == 0:
                Path(f"saved-{start}").touch()
    time.sleep(0.05)
"""


@pytest.fixture
def job(tmp_path: Path, endpoint: str) -> Iterator[Job]:
    _, variables = cluster_run(Job(tmp_path / "unused"), 1, endpoint)
    made = Job(tmp_path / "job", **variables, FAST="10")
    (made.folder / "train.py").write_text(SCRIPT)
    yield made
    made.stop()


def start(job: Job, name: str, **variables: str) -> tuple[str, str]:
    """Start two ranks without a launcher that ends both."""
    meeting = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    for rank in "01":
        job.start(f"{name}-{rank}", [sys.executable, "train.py"], RANK=rank, **meeting, **variables)
    return f"{name}-0", f"{name}-1"


def log(job: Job, *nodes: str) -> str:
    return "".join((job.folder / f"{node}.log").read_text() for node in nodes)


@pytest.mark.parametrize("ahead", [3600, -3600])
def test_a_start_whose_clock_is_an_hour_off_is_refused_on_all_ranks_while_another_trains(
    job: Job, ahead: int
) -> None:
    first = start(job, "first")
    job.wait_for_step(3)
    second = start(job, "second", AHEAD=str(ahead))
    assert [job.nodes[rank].wait(120) for rank in second] == [Exit.USAGE] * 2, log(job, *second)
    assert log(job, *second).count("llama is being trained by process ") == 1
    job.wait_for_step(job.steps()[-1]["step"] + 3)
    assert [job.nodes[rank].poll() for rank in first] == [None, None]
    assert "failed, and training goes on" not in log(job, *first)


def test_a_start_that_was_stopped_for_a_minute_ends_on_all_ranks_when_it_goes_on(job: Job) -> None:
    first = start(job, "first")
    (job.folder / "saves-first").write_text("and wait")
    job.wait(lambda _: (job.folder / "saved-first").exists())
    done = job.steps()[-1]["step"]
    for rank in first:
        job.signal(rank, signal.SIGSTOP)
    second = start(job, "second")
    again = job.wait(lambda event: event["node"] == "second")
    assert 0 < again["step"] <= done + 1, "it goes on from the other's checkpoint"
    (job.folder / "saves-second").write_text("and wait")
    job.wait(lambda _: (job.folder / "saved-second").exists())
    newest = CheckpointFolder(job.folder / "checkpoints" / "llama").latest()
    for rank in first:
        job.signal(rank, signal.SIGCONT)
    assert [job.nodes[rank].wait(60) for rank in first] == [Exit.USAGE] * 2, log(job, *first)
    assert log(job, *first).count("llama was taken over by process ") == 1
    job.wait_for_step(job.steps()[-1]["step"] + 3)
    assert [job.nodes[rank].poll() for rank in second] == [None, None]
    assert CheckpointFolder(job.folder / "checkpoints" / "llama").latest() == newest


@pytest.mark.parametrize("how", ["in the background", "last"])
def test_a_start_that_does_not_know_that_it_has_lost_its_lease_marks_nothing_and_ends_on_all_ranks(
    job: Job, how: str
) -> None:
    token = {"TRAINING_CLUSTER_LEASE": "llama", "TRAINING_CLUSTER_LEASE_TOKEN": "1-a"}  # as `cluster-run` says it
    first = start(job, "first", **token)
    (job.folder / "saves-first").write_text("and wait")
    job.wait(lambda _: (job.folder / "saved-first").exists())
    folder = CheckpointFolder(job.folder / "checkpoints" / "llama")
    found = folder.all()
    second = start(job, "second", **{**token, "TRAINING_CLUSTER_LEASE_TOKEN": "2-a"})
    job.wait(lambda event: event["node"] == "second")
    (job.folder / "saves-first").write_text(how)
    assert [job.nodes[rank].wait(120) for rank in first] == [Exit.USAGE] * 2, log(job, *first)
    assert log(job, *first).count("\ncluster_job: another start of this run has opened ") == 1, log(job, *first)
    assert folder.all() == found
    (job.folder / "saves-second").write_text("and wait")
    job.wait(lambda _: (job.folder / "saved-second").exists())
    assert len(folder.all()) == 1
    assert [job.nodes[rank].poll() for rank in second] == [None, None]


HANGS = """
import os, time
from datetime import timedelta
import torch.distributed as dist
from cluster_job import Run

dist.init_process_group("gloo", timeout=timedelta(seconds=600))
run, node = Run(global_batch=2, name="hangs", checkpoints="checkpoints"), os.environ["TRAINING_CLUSTER_NODE"]
with open(os.environ["EVENTS"], "a") as file:
    file.write('{"at": %f, "event": "begun", "node": "%s"}\\n' % (time.time(), node))
for step in run.steps(10**6):
    dist.all_reduce(__import__("torch").ones(1))
    run.should_checkpoint()
    if step == 3 and not os.path.exists("failed"):
        if node == "n1":
            time.sleep(1)  # n0 hangs by then
            open("failed", "w").close()
            raise RuntimeError("CUDA error: an illegal memory access was encountered")
        time.sleep(10**6)
    time.sleep(0.05)
"""


def test_a_node_whose_processes_fail_ends_a_hung_one_at_once_and_no_save_is_asked_for(
    job: Job, endpoint: str
) -> None:
    (job.folder / "train.py").write_text(HANGS)
    command, variables = cluster_run(job, 2, endpoint)
    command[command.index("--run") + 1], command[-1] = "hangs-and-fails", str(job.folder / "train.py")
    command[command.index("--nnodes") + 1] = "2:2"
    for node in ("n0", "n1"):
        job.start(node, command, **variables)
    job.wait(lambda _: (job.folder / "failed").exists())
    failed = (job.folder / "failed").stat().st_mtime
    again = job.wait(lambda event: event["node"] == "n0", after=failed)
    sys.stdout.write(f"\na peer failed while a script hung: {again['at'] - failed:.1f} s until it is started again\n")
    said = log(job, "n0")
    assert "the processes of n1 have failed: the processes start again on the nodes that are left" in said
    assert "the job saves first" not in said
