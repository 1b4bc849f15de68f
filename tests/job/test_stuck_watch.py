"""When a run reports and ends a rank that the others wait for: ranks and one table, with a clock of the test."""

import json
from collections.abc import Mapping
from contextlib import nullcontext
from io import StringIO
from pathlib import Path

import pytest

from cluster_job.drain import JOB_FOLDER
from cluster_job.environment import Environment, Launcher
from cluster_job.flight_recorder import Collectives
from cluster_job.hang_watch import HangProbe
from cluster_job.hangs import HUNG_EXIT_CODE, STUCK_EXIT_CODE
from cluster_job.metrics import Lines
from cluster_job.motion import Motion
from cluster_job.records import Records
from cluster_job.reporter import Reporter
from cluster_job.stuck import END_SHARE, GRACE_SECONDS, LOOK_SHARE, REPORT_SHARE
from cluster_job.stuck_watch import GRACE_VARIABLE, HangSettings
from cluster_job.table import Versioned
from cluster_job.work import Work

_LOOK = GRACE_SECONDS * LOOK_SHARE


class _Items(dict[str, bytes]):
    """A table's items in memory."""

    def put(self, key: str, value: bytes) -> None:
        self[key] = value

    def read(self, key: str) -> Versioned | None:
        return Versioned(value=self[key], version=0) if key in self else None

    def list(self, prefix: str) -> Mapping[str, bytes]:
        return {key: value for key, value in self.items() if key.startswith(prefix)}


class _Rank:
    """A process whose clock, stack and collectives the test moves; it waits in torch for the others."""

    def __init__(self, run: "_Run", rank: int) -> None:
        self.line, self.in_torch, self.cpu, self.collectives, self.is_dead = 40, True, 0.0, 6, False
        self.exits: list[int] = []
        self.out = StringIO()
        environment = Environment(
            launcher=Launcher.TORCHRUN, run="llama", cluster=None, rank=rank, world_size=3, local_rank=0,
            local_world_size=1, node_rank=rank, nodes=3, node=f"node-{rank}",
        )  # fmt: skip
        node = HangProbe(
            now=lambda: run.now,
            gpus=lambda: (),
            efa=lambda: None,
            motion=lambda: Motion(
                at=run.now, stack=(("train.py", self.line),), where=f"train.py:{self.line} in step",
                in_torch=self.in_torch, cpu_seconds=self.cpu, io_bytes=0,
            ),
            collectives=lambda: Collectives(counts={"0": self.collectives}, last="gloo:all_reduce"),
            stacks=run.folder,
            end=self.exits.append,
        )  # fmt: skip
        work, records = Work(name="llama", global_batch=8), Records(run=run.items, reports=run.reports)
        self.reporter = Reporter(
            work, environment, Lines(self.out), records=records, node=node, hangs=HangSettings(ends=run.ends)
        )
        self.reporter._watch._clock = lambda: run.now

    @property
    def hang(self) -> Mapping[str, object] | None:
        lines = self.out.getvalue().splitlines()
        found: Mapping[str, object] | None = json.loads(lines[-1])["hang"] if lines else None
        return found


class _Run:
    def __init__(self, folder: Path, *, items: _Items | None = None, ends: bool = True, now: float = 1e9) -> None:
        self.folder, self.now, self.ends = folder, now, ends
        self.items, self.reports = items if items is not None else _Items(), _Items()
        self.ranks = [_Rank(self, rank) for rank in range(3)]

    def train(self, steps: range) -> None:
        for step in steps:
            for rank in self.ranks:
                rank.reporter.begin(step)
            self.now += 1.0
            for rank in self.ranks:
                rank.reporter.done(step, loss=None, samples=1, share=1)

    def hang_in_loader(self, rank: int) -> None:
        self.ranks[rank].collectives, self.ranks[rank].in_torch, self.ranks[rank].line = 5, False, 17

    def look_until(self, wanted: float | None = None) -> float:
        """Look until rank 0 reports a hang, or for some seconds; return how long it took."""
        began = self.now
        while self.now - began < (wanted or 600.0):
            self.now += _LOOK
            for rank in reversed(self.ranks):
                if not rank.exits and not rank.is_dead:
                    rank.reporter.look_for_stuck_ranks()
            if wanted is None and self.ranks[0].hang is not None:
                break
        return self.now - began

    @property
    def exits(self) -> list[list[int]]:
        return [rank.exits for rank in self.ranks]


def test_a_rank_that_hangs_is_named_within_two_graces_and_then_ended(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    run = _Run(tmp_path)
    run.train(range(20))
    run.hang_in_loader(1)
    seconds = run.look_until()
    assert seconds <= 2 * GRACE_SECONDS
    line = capfd.readouterr().err
    assert line.startswith("cluster_job: rank 1 on node-1 hangs: it has begun fewer collectives than others;")
    assert "its last step is 19, " in line
    assert "number 5 of group 0, where others wait in number 6 (gloo:all_reduce)" in line
    assert line.endswith("its main thread is at train.py:17 in step\n")
    hang = run.ranks[0].hang
    assert hang is not None
    assert hang["sentence"] == line.removeprefix("cluster_job: ").strip()
    assert run.exits == [[], [], []]
    ended = seconds + run.look_until(END_SHARE * GRACE_SECONDS)
    assert ended <= (1 + END_SHARE + REPORT_SHARE + 2 * LOOK_SHARE) * GRACE_SECONDS
    assert run.exits == [[], [STUCK_EXIT_CODE], []]
    assert "rank 1 on node-1 ends with status 87, since the other ranks wait for it" in capfd.readouterr().err
    assert len(list(tmp_path.rglob("*rank-1*.txt"))) == 1
    # The report of the next process names it still.
    hang = run.ranks[0].hang
    again = _Run(tmp_path, items=run.items, now=run.now)
    again.reports.update(run.reports)
    again.ranks = [_Rank(again, rank) for rank in range(3)]
    again.train(range(20, 90))
    again.ranks[0].reporter.look()
    assert again.ranks[0].hang == hang


def test_where_the_rank_cannot_end_the_others_do(tmp_path: Path) -> None:
    run = _Run(tmp_path)
    run.train(range(20))
    run.hang_in_loader(1)
    run.look_until(120.0)
    run.ranks[1].exits.clear()
    run.ranks[1].is_dead = True  # in an operation that the kernel does not interrupt
    run.look_until(END_SHARE * GRACE_SECONDS)
    assert run.exits == [[HUNG_EXIT_CODE], [], [HUNG_EXIT_CODE]]


def test_what_an_earlier_start_left_in_the_table_ends_nobody(tmp_path: Path) -> None:
    run = _Run(tmp_path)
    run.train(range(20))
    run.hang_in_loader(1)
    run.look_until(120.0)
    assert run.exits[1] == [STUCK_EXIT_CODE]
    again = _Run(tmp_path, items=run.items, now=run.now)
    again.train(range(20))
    for rank in again.ranks[1:]:
        rank.is_dead = True
    again.look_until(300.0)
    assert again.exits == [[], [], []]


@pytest.mark.parametrize("ends", [True, False])
@pytest.mark.parametrize("case", ["computes", "evaluates", "saves", "moves", "communicates", "starts"])
def test_a_step_that_is_long_for_a_reason_is_no_hang(tmp_path: Path, case: str, ends: bool) -> None:
    run = _Run(tmp_path, ends=ends)
    run.train(range(5 if case == "starts" else 20))
    run.hang_in_loader(1)
    rank = run.ranks[1]
    if case == "evaluates":
        rank.reporter.alive()
    with rank.reporter.saving() if case == "saves" else nullcontext():
        for _ in range(100):
            run.look_until(_LOOK)
            rank.cpu += _LOOK / 4 if case == "computes" else 0.0
            rank.line += case == "moves"
            for one in run.ranks:
                one.collectives += case == "communicates"
    assert run.exits == [[], [], []]
    assert run.ranks[0].hang is None


def test_a_checkpoint_may_take_ten_minutes(tmp_path: Path) -> None:
    run = _Run(tmp_path)
    run.train(range(20))
    run.hang_in_loader(1)
    with run.ranks[1].reporter.saving():
        assert 600.0 < run.look_until(600.0) + run.look_until() <= 660.0


def test_without_cluster_run_a_hang_is_reported_alone(tmp_path: Path) -> None:
    run = _Run(tmp_path, ends=False)
    run.train(range(20))
    run.hang_in_loader(1)
    run.look_until(600.0)
    assert run.exits == [[], [], []]
    assert run.ranks[0].hang is not None


@pytest.mark.parametrize(
    ("variables", "launcher", "settings"),
    [
        ({}, Launcher.TORCHRUN, HangSettings(grace=30.0, ends=False)),
        ({JOB_FOLDER: "/tmp/x", GRACE_VARIABLE: "90.0"}, Launcher.TORCHRUN, HangSettings(grace=90.0, ends=True)),
        ({JOB_FOLDER: "/tmp/x", GRACE_VARIABLE: "0"}, Launcher.SLURM, HangSettings(grace=0.0, ends=False)),
    ],
)
def test_only_processes_that_cluster_run_starts_again_are_ended(
    variables: dict[str, str], launcher: Launcher, settings: HangSettings
) -> None:
    environment = Environment(
        launcher=launcher, run="llama", cluster=None, rank=0, world_size=1, local_rank=0, local_world_size=1,
        node_rank=0, nodes=1, node="node-0",
    )  # fmt: skip
    assert HangSettings.of(variables, environment) == settings
