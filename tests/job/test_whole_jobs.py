"""Whole jobs as users write them, broken as nodes, users and data break them: `make test-torch`."""

import json
import os
import subprocess
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="torch is not installed: make test-torch")
pytest.importorskip("psutil", reason="psutil is not installed: make test-torch")

import torch

import sharded_job_script as script
from cluster_job.checkpoints import CheckpointFolder
from cluster_job.digests import unreadable
from torchrun_job import BIN, TorchrunJob

pytestmark = pytest.mark.torch

SUPPORT = Path(__file__).parents[1] / "support"
SHARDED, SLOW = SUPPORT / "sharded_job_script.py", SUPPORT / "slow_job_script.py"
EPOCH = script.SAMPLES // script.BATCH

Event = Mapping[str, Any]
Make = Callable[..., TorchrunJob]


@pytest.fixture
def make(tmp_path: Path, endpoint: str, request: pytest.FixtureRequest) -> Iterator[Make]:
    made: list[TorchrunJob] = []

    def start(**settings: Any) -> TorchrunJob:
        name = "".join(one if one.isalnum() else "-" for one in request.node.name)
        made.append(TorchrunJob(tmp_path, endpoint, run=name[:60], **settings))
        return made[-1]

    yield start
    for job in made:
        job.stop()


def test_a_rank_that_is_killed_costs_a_plain_job_no_step_and_its_node_stays(make: Make) -> None:
    job = make(nnodes="3:3")
    for node in "abc":
        job.start(node, arguments=("200",))
    first = job.wait_for(lambda event: event["world"] == 3 and event["step"] >= 5)
    again = first
    for _ in range(2):
        job.fail(first["rank_0"])
        at, done = job.events()[-1]["at"], job.events()[-1]["step"]
        again = job.wait_for(lambda event, at=at, done=done: event["at"] > at + 1 and event["step"] > done)  # type: ignore[misc]
        assert (again["world"], again["rank_0"]) == (3, first["rank_0"])
    assert [job.exit_code(node) for node in "abc"] == [0, 0, 0]
    steps = [event["step"] for event in job.events()]
    assert sorted(set(steps)) == list(range(1, 201))
    assert all(later > earlier for earlier, later in pairwise(steps))


def test_a_sharded_job_takes_each_sample_once_an_epoch_though_a_node_is_lost_in_a_checkpoint_and_comes_back(
    make: Make, tmp_path: Path
) -> None:
    job = make(nnodes="3:4", script=SHARDED)
    for node in "abcd":
        job.start(node, "--no-verify", arguments=("plain", "1000000"))
    job.wait_for(lambda event: event["step"] >= 2 * script.EVERY - 1 and (tmp_path / "stopped").exists())
    job.kill("d")
    killed = job.events()[-1]["at"]
    three = job.wait_for(lambda event: event["world"] == 3 and event["at"] > killed)
    assert three["step"] == script.EVERY, "it goes on after the last checkpoint that is whole"
    job.wait_for(lambda event: event["world"] == 3 and event["step"] >= 3 * script.EVERY)
    job.start("d", "--no-verify", arguments=("plain", "1000000"))
    four = job.wait_for(lambda event: event["world"] == 4 and event["at"] > three["at"])
    done = max(event["step"] for event in job.events() if event["world"] == 3)
    assert four["step"] == done + 1, "the others save before their processes end"
    end = (four["step"] // EPOCH + 2) * EPOCH
    job.wait_for(lambda event: event["world"] == 4 and event["step"] >= end)
    (tmp_path / "end").touch()
    assert [job.exit_code(node) for node in "abcd"] == [0, 0, 0, 0]
    steps = last_done(job.events())
    for epoch in range(end // EPOCH):
        taken = Counter(index for step in range(epoch * EPOCH, (epoch + 1) * EPOCH) for index in steps[step])
        assert taken == Counter(range(script.SAMPLES)), epoch
    losses = {event["step"]: event["loss"] for event in job.events()}
    for step, expected in enumerate(undisturbed(end)):
        assert losses[step] == pytest.approx(expected, abs=1e-5), step


def last_done(events: Sequence[Event]) -> Mapping[int, list[int]]:
    """Return the samples of each step as the last world took them that did it."""
    found: defaultdict[int, list[int]] = defaultdict(list)
    worlds: dict[int, int] = {}
    for event in sorted(events, key=lambda one: one["at"]):
        if worlds.get(event["step"]) != event["world"]:
            worlds[event["step"]], found[event["step"]] = event["world"], []
        found[event["step"]] += event["ids"]
    return found


def undisturbed(count: int) -> list[float]:
    """Return the loss of each step of one process without shards."""
    net, inputs, targets = script.make()
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 20, 0.5)
    losses = []
    for step in range(count):
        ids = script.drawn(step, range(step * script.BATCH, (step + 1) * script.BATCH))
        loss = (net(inputs[ids]) - targets[ids]).square().sum() / script.BATCH
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        losses.append(loss.item())
    return losses


def test_a_sharded_job_whose_loss_becomes_no_number_ends_with_its_last_good_checkpoint_and_says_so(
    tmp_path: Path,
) -> None:
    torchrun = [str(BIN / "torchrun"), "--standalone", "--nproc-per-node=2"]
    done = subprocess.run(
        [*torchrun, str(SHARDED), str(tmp_path), "nan", "30"],
        env={**os.environ, "OMP_NUM_THREADS": "1", "RUN_NAME": "nan"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    [kept] = CheckpointFolder(tmp_path / "checkpoints/nan").all()
    assert kept.step == script.EVERY <= script.NAN_AT
    assert done.stderr.count("no checkpoint is written until it is one") == 1
    *_, report = (json.loads(line) for line in done.stdout.splitlines() if line.startswith("{"))
    assert report["NonFiniteLoss"] == 1
    assert unreadable(kept.marker) is None


@pytest.mark.parametrize("mode", ["computing", "silent"])
def test_a_slow_rank_is_named_with_its_node_where_the_script_says_what_is_its_own_work(
    make: Make, tmp_path: Path, mode: str
) -> None:
    job = make(nnodes="1:1", script=SLOW, nproc=4)
    job.start("a", "--no-verify", arguments=(mode,))
    if mode == "computing":
        job.wait_for_line("a", "rank 2 on a takes ")
    else:
        job.wait_until(lambda: (tmp_path / "steps").exists() and (tmp_path / "steps").stat().st_size > 100)
    (tmp_path / "end").touch()
    assert job.exit_code("a") == 0
    reports = [json.loads(line) for line in job.log("a").splitlines() if line.startswith("{")]
    named = {rank for report in reports for rank, _ in report["slowest_ranks"]}
    assert named == ({2} if mode == "computing" else set())
    assert len(reports) > 1
    if mode == "computing":
        [factor] = [found for report in reports[-1:] for _, found in report["slowest_ranks"]]
        assert 1.5 < factor < 2.5
        assert reports[-1]["likely_cause"]["kind"] == "one rank"
