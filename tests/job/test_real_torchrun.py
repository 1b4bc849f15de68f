"""Jobs under real torchrun, `make test-torch`: nodes are killed, drained and left out, and training goes on."""

import itertools
import logging
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from signal import SIGABRT, SIGBUS, SIGKILL, SIGSEGV

import pytest

pytest.importorskip("torch", reason="torch is not installed: make test-torch")
pytest.importorskip("psutil", reason="psutil is not installed: make test-torch")

from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs, start_processes

from cluster_job.exits import Exit
from cluster_job.fencing import Token
from cluster_job.hangs import STUCK_EXIT_CODE
from cluster_job.rendezvous import ExitStatus
from torchrun_job import TorchrunJob

pytestmark = pytest.mark.torch


def say(line: str) -> None:
    sys.stdout.write(f"\n{line}\n")


@pytest.fixture
def job(endpoint: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[TorchrunJob]:
    made = TorchrunJob(tmp_path, endpoint, run=request.node.name, nnodes="2:3")
    yield made
    made.stop()


def test_killed_nodes_cost_no_run_rank_0s_neither(job: TorchrunJob) -> None:
    for node in "abc":
        job.start(node)
    first = job.wait_for(lambda event: event["world"] == 3 and event["step"] >= 3)
    victim = first["rank_0"]
    job.kill(victim)
    killed, step = time.time(), job.events()[-1]["step"]
    again = job.wait_for(lambda event: event["world"] == 2 and event["step"] > step)
    say(f"rank 0's node killed: {again['at'] - killed:.1f} s until the next step")
    job.start(victim)
    back = job.wait_for(lambda event: event["world"] == 3 and event["at"] > again["at"])
    last = max("abc", key=lambda node: node != back["rank_0"])
    job.kill(last)
    killed, step = time.time(), job.events()[-1]["step"]
    again = job.wait_for(lambda event: event["world"] == 2 and event["step"] > step and event["at"] > killed)
    say(f"another node killed: {again['at'] - killed:.1f} s until the next step")
    events = job.events()
    steps = [event["step"] for event in events]
    assert sorted(set(steps)) == list(range(1, max(steps) + 1))
    tokens = [Token.parse(event["token"]) for event in events]
    assert all(one == other or one.is_before(other) for one, other in itertools.pairwise(tokens))
    assert len(set(tokens)) == 4, "one for each time that the processes start"
    assert "the run failed" not in "".join(map(job.log, "abc"))


def test_a_silent_node_is_left_out_though_its_connections_stay(job: TorchrunJob) -> None:
    for node in "abc":
        job.start(node)
    first = job.wait_for(lambda event: event["world"] == 3 and event["step"] >= 3)
    # The one that reads the signs of rank 0's node is not it, and the third learns it from that one.
    job.silence(first["rank_0"])
    at = time.time()
    again = job.wait_for(lambda event: event["world"] == 2 and event["at"] > at)
    say(f"rank 0's node silent: {again['at'] - at:.1f} s until the next step")
    said = "".join(map(job.log, "abc"))
    assert f"{first['rank_0']} has given no sign of life for 45 s: the processes start again" in said
    assert "a node joins" not in said


def test_nodes_that_come_while_all_agents_are_late_train_no_second_world(tmp_path: Path, endpoint: str) -> None:
    job = TorchrunJob(tmp_path, endpoint, run="late", nnodes="1:3")
    try:
        for node in "ab":
            job.start(node)
        job.wait_for(lambda event: event["world"] == 2)
        job.pause("ab", lambda: time.sleep(5))
        at = time.time()
        job.wait_for(lambda event: event["at"] > at + 5)
        job.start("c")  # finds both in their round
        at = job.wait_for(lambda event: event["world"] == 3)["at"]
        job.kill("c")
        job.wait_for(lambda event: event["world"] == 2 and event["at"] > at)
        job.start("d")
        job.pause("ab", lambda: job.wait_for_line("d", "late is trained by nodes that these did not meet"))
        job.wait_for(lambda event: event["world"] == 3 and event["at"] > at + 10)
    finally:
        job.stop()
    steps = [event["step"] for event in sorted(job.events(), key=lambda event: event["at"])]
    assert len(steps) == len(set(steps)), "two worlds trained at once"


def test_a_drained_node_leaves_and_the_others_go_on(job: TorchrunJob) -> None:
    for node in "abc":
        job.start(node, "--term-seconds", "11")
    job.wait_for(lambda event: event["world"] == 3)
    job.nodes["b"].terminate()
    assert job.exit_code("b") == Exit.AGAIN
    at = time.time()
    job.wait_for(lambda event: event["world"] == 2 and event["at"] > at)
    assert "cluster-run got SIGTERM: the job saves and ends" in job.log("b")


def test_a_run_ends_on_all_nodes_when_its_budget_is_used_up(job: TorchrunJob) -> None:
    for node in "ab":
        job.start(node, "--restarts", "1")
    at = 0.0
    for node in "ab":
        at = job.wait_for(lambda event, since=at: event["at"] > since + 2)["at"]  # type: ignore[misc]
        (job.events_file.parent / f"fail-{node}").touch()
    assert {job.exit_code("a"), job.exit_code("b")} == {Exit.BUDGET}
    assert "the run failed more than 1 times within 60 minutes" in job.log("a")


def test_a_script_that_ends_well_ends_well_and_can_be_started_again(job: TorchrunJob) -> None:
    for node in "ab":
        job.start(node, arguments=("5",))
    assert [job.exit_code(node) for node in "ab"] == [0, 0]
    assert {event["lease"] for event in job.events()} == {
        "test_a_script_that_ends_well_ends_well_and_can_be_started_again"
    }
    job.start("a", arguments=("5",))
    assert job.exit_code("a") == Exit.AGAIN
    assert "start it again in" in job.log("a")


def test_a_second_step_of_a_slurm_job_is_refused_while_the_first_trains(job: TorchrunJob) -> None:
    for node in "ab":
        job.start(node, SLURM_JOB_ID="7", SLURM_STEP_ID="0")
    job.wait_for(lambda event: event["world"] == 2)
    job.start("c", SLURM_JOB_ID="7", SLURM_STEP_ID="1")
    assert job.exit_code("c") == Exit.USAGE
    assert "is being trained by start 7-0 on " in job.log("c")


@pytest.mark.parametrize(
    ("script", "of_script"),
    [
        ("exit(3)", True),
        (f"exit({STUCK_EXIT_CODE})", False),
        ("", False),
        *(
            (f"import os; os.kill(os.getpid(), {number:d})", number is SIGABRT)
            for number in (SIGABRT, SIGBUS, SIGKILL, SIGSEGV)
        ),
    ],
)
def test_how_a_process_failed_is_known_from_what_torchs_agent_logs(script: str, of_script: bool) -> None:
    status = ExitStatus()
    logger = logging.getLogger(ExitStatus.LOGGER)
    logger.addHandler(status)
    context = start_processes(
        "worker", sys.executable, args={0: ("-c", script)}, envs={0: {}}, logs_specs=DefaultLogsSpecs()
    )
    assert context.wait(60)
    logger.removeHandler(status)
    assert status.is_of_script() is of_script
    assert status.is_hung() is (str(STUCK_EXIT_CODE) in script)
