import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from cluster_job.causes import RankFacts
from cluster_job.environment import Cluster, Environment, Launcher
from cluster_job.exchange import Exchange
from cluster_job.hang_watch import HangProbe
from cluster_job.hangs import HUNG_EXIT_CODE
from cluster_job.metrics import PEAK_FLOPS, CloudWatch, Lines
from cluster_job.readings import EfaCounters, Gpu
from cluster_job.records import Records, decoded
from cluster_job.reporter import LOOK_EVERY, Reporter
from cluster_job.table import Versioned
from cluster_job.work import Work
from fake_service import FakeService

_CLUSTER = Cluster(cluster="llama", node_group="workers", region="us-east-1", node_hour_usd=55.0)
_ENVIRONMENT = Environment(
    launcher=Launcher.TORCHRUN,
    run="llama-1",
    cluster=_CLUSTER,
    rank=0,
    world_size=16,
    local_rank=0,
    local_world_size=8,
    node_rank=0,
    nodes=2,
    node="i-00000000000000000",
)
_WORK = Work(name="llama-1", global_batch=2048, flops_per_sample=1e13, cost_cap_usd=1100.0)


class _Reports(dict[str, bytes]):
    """A table's items in memory that are asked for by their keys."""

    def put(self, key: str, value: bytes) -> None:
        self[key] = value

    def read(self, key: str) -> Versioned | None:
        return Versioned(value=self[key], version=0) if key in self else None


class _Items(_Reports):
    """The same where they are listed too."""

    def list(self, prefix: str) -> Mapping[str, bytes]:
        return {key: value for key, value in self.items() if key.startswith(prefix)}


class _FakeCloudWatch(FakeService):
    def __init__(self) -> None:
        super().__init__("cloudwatch")

    def put_metric_data(self, **parameters: Any) -> None:
        self.record("PutMetricData", parameters)

    def values(self, name: str, *dimensions: str) -> list[float]:
        return [
            one["Value"]
            for _, request in self.requests
            for one in request["MetricData"]
            if one["MetricName"] == name and tuple(each["Name"] for each in one["Dimensions"]) == dimensions
        ]


class _Scene:
    """A process of a run on a node whose clock the test moves."""

    def __init__(
        self, folder: Path, environment: Environment = _ENVIRONMENT, records: Records | None = None, now: float = 1e9
    ) -> None:
        self.now, self.percent, self.efa_bytes = now, 100.0, 0
        self.exits: list[int] = []
        self.cloudwatch = _FakeCloudWatch()
        self.out = StringIO()
        self.records = records or Records(run=_Items(), reports=_Reports())
        self.folder = folder
        sink = CloudWatch(
            self.cloudwatch, namespace="CdkTrainingCluster/Jobs/llama", cluster="llama", lines=Lines(self.out)
        )
        node = HangProbe(
            now=lambda: self.now,
            gpus=lambda: tuple(
                Gpu(
                    index=n,
                    name="NVIDIA H100 80GB HBM3",
                    percent=self.percent,
                    is_throttled=False,
                    memory_percent=0.0,
                    power_percent=20.0,
                )
                for n in range(8)
            ),
            patience=lambda: 600.0,
            efa=lambda: EfaCounters(bytes=self.efa_bytes, sent_bytes=self.efa_bytes, retransmitted_bytes=0),
            stacks=folder,
            end=self.exits.append,
            instance_id=lambda: environment.node,
        )
        self.reporter = Reporter(_WORK, environment, sink, records=self.records, node=node)
        self.reporter._watch._clock = lambda: self.now  # the one clock of the scene

    def train(self, steps: range, seconds: float = 1.0, *, local: float = 0.5, loss: Any = 2.5) -> None:
        for step in steps:
            self.reporter.begin(step)
            with self.reporter.computing():
                self.now += local
            self.now += seconds - local
            self.reporter.done(step, loss=loss, samples=128, share=128)
            if step % int(LOOK_EVERY) == int(LOOK_EVERY) - 1:
                self.reporter.look()

    def wait(self, seconds: float) -> None:
        end = self.now + seconds
        while self.now < end and not self.exits:
            self.now += LOOK_EVERY
            self.reporter.look()

    @property
    def totals(self) -> Mapping[str, Any]:
        found = self.records.reports.read("llama-1")
        assert found is not None
        totals: Mapping[str, Any] = decoded(found.value)["totals"]
        return totals

    @property
    def lines(self) -> Iterator[dict[str, Any]]:
        return (json.loads(line) for line in self.out.getvalue().splitlines())


def test_failed_checkpoints_are_counted_until_one_is_whole(tmp_path: Path) -> None:
    scene = _Scene(tmp_path)
    for minute, saved in enumerate([(), (False,), (False, False), (True,), ()]):
        for is_whole in saved:
            scene.reporter.saved(is_whole)
        scene.train(range(60 * minute, 60 * minute + 60))
    assert scene.cloudwatch.values("CheckpointFailures", "Cluster", "Run") == [1, 3, 0, 0], "none was tried at first"
    assert scene.cloudwatch.values("CheckpointFailures", "Cluster") == [1, 3, 0, 0]


def test_a_loss_that_is_no_finite_number_is_no_missing_data(tmp_path: Path) -> None:
    scene = _Scene(tmp_path)
    for minute, loss in enumerate([2.5, 2.5, float("nan"), float("inf"), 2.5]):
        scene.train(range(60 * minute, 60 * minute + 60), loss=loss)
        if minute == 0:
            scene.reporter.refused()  # another rank's loss was none when a checkpoint was due
    assert scene.cloudwatch.values("NonFiniteLoss", "Cluster", "Run") == [0, 1, 1, 1, 0]
    assert scene.cloudwatch.values("NonFiniteLoss", "Cluster") == [0, 1, 1, 1, 0]
    assert scene.cloudwatch.values("Loss", "Cluster", "Run") == [2.5, 2.5, 2.5]


def test_rank_0_reports_once_a_minute(tmp_path: Path) -> None:
    scene = _Scene(tmp_path)
    scene.train(range(120))

    rate = 2048.0
    expected = {
        "Loss": 2.5,
        "SamplesPerSecond": rate,
        "StepSeconds": 1.0,
        "Mfu": 100 * 1e13 * rate / (16 * PEAK_FLOPS["H100"]),
        "Goodput": 100.0,
        "LostSeconds": 0.0,
        "CostUsd": 2 * 55.0 / 30,
        "CostPercentOfCap": 100 * 2 * 55.0 / 30 / 1100,
        "SecondsWithoutStep": 0.0,
        "SlowRanks": 0.0,
        "NonFiniteLoss": 0.0,
        "LowUtilization": 0.0,
    }
    found = {name: scene.cloudwatch.values(name, "Cluster", "Run") for name in expected}
    minutes = {name: [value / 2 if "Cost" in name else value, value] for name, value in expected.items()}
    assert found == {name: pytest.approx(values) for name, values in minutes.items()}
    by_cluster = {name for name in expected if scene.cloudwatch.values(name, "Cluster")}
    # Goodput of less than an hour would alarm at each start.
    assert by_cluster == {"SecondsWithoutStep", "CostPercentOfCap", "SlowRanks", "NonFiniteLoss", "LowUtilization"}
    assert [line["step"] for line in scene.lines] == [59, 119]
    assert {line["world_size"] for line in scene.lines} == {16}


def test_a_run_of_seconds_reports_its_mfu_too(tmp_path: Path) -> None:
    scene = _Scene(tmp_path)
    scene.train(range(10))
    scene.reporter.finish(complete=True)
    assert len(scene.cloudwatch.values("Mfu", "Cluster", "Run")) == 1


def test_a_loss_is_asked_for_once_a_minute_and_one_that_is_no_number_is_left_out(tmp_path: Path) -> None:
    class Tensor:
        asked = 0

        def detach(self) -> "Tensor":
            return self

        def __float__(self) -> float:
            self.asked += 1
            return float("nan")

    scene, loss = _Scene(tmp_path), Tensor()
    scene.train(range(180), loss=loss)

    assert loss.asked == 3
    assert scene.cloudwatch.values("Loss", "Cluster", "Run") == []
    assert len(scene.cloudwatch.values("Goodput", "Cluster", "Run")) == 3


def test_what_a_process_remembered_goes_on_in_the_next(tmp_path: Path) -> None:
    first = _Scene(tmp_path)
    first.train(range(120))
    second = _Scene(tmp_path, records=first.records, now=first.now + 600.0)
    second.train(range(60, 180))

    # Ten minutes until the process was there again, and 60 steps that are done again; a minute each report.
    assert second.cloudwatch.values("LostSeconds", "Cluster", "Run") == [660.0, 0.0]
    totals = second.totals
    assert totals["kept_seconds"] / (totals["kept_seconds"] + totals["lost_seconds"]) == 180 / 840


def test_ranks_that_are_slow_are_named_with_the_likely_cause_in_the_log_line_alone(tmp_path: Path) -> None:
    records = Records(run=_Items(), reports=_Reports())
    scenes = [
        _Scene(tmp_path, replace(_ENVIRONMENT, rank=rank, local_rank=rank % 8, node=f"i-{rank // 8:017}"), records)
        for rank in range(16)
    ]
    for rank, scene in reversed(list(enumerate(scenes))):
        scene.train(range(120), local=0.75 if rank == 11 else 0.5 + rank / 1000)

    *_, line = scenes[0].lines
    assert line["slowest_ranks"] == [[11, pytest.approx(1.48, abs=0.01)]]
    assert line["likely_cause"]["kind"] == "one rank"
    assert line["likely_cause"]["sentence"].startswith("rank 11 on i-00000000000000001 takes 1.4")
    assert scenes[0].cloudwatch.values("SlowRanks", "Cluster") == [1.0, 1.0]
    assert [scene.cloudwatch.values("SlowRanks", "Cluster") for scene in scenes[1:]] == [[]] * 15


# What nvidia-smi says of a node whose loader is too slow reads 0 or 100 % from one moment to the next.
_STARVED = [100.0, 0.0, 0.0, 97.0, 0.0, 100.0, 0.0, 31.0]


@pytest.mark.parametrize(
    ("percents", "data", "seconds", "low", "cause"),
    [
        ([100.0], 0.05, 1.0, None, None),
        (_STARVED, 0.45, 1.0, "GPUs run kernels for 41 % of the time, and 70 % is the least", "data"),
        (_STARVED, 0.05, 1.0, "GPUs run kernels for 41 % of the time, and 70 % is the least", None),
        # NCCL keeps GPUs at 100 % while they wait.
        ([100.0], 0.05, 10.0, "GPUs do 13 % of the FLOPs that they can (MFU), and 20 % is the least", None),
    ],
)
def test_gpus_that_are_used_too_little_while_steps_go_on_are_a_finding_with_its_cause(  # noqa: PLR0917
    tmp_path: Path, percents: list[float], data: float, seconds: float, low: str | None, cause: str | None
) -> None:
    scene = _Scene(tmp_path)
    for step in range(600):
        scene.reporter.begin(step)
        scene.now += data
        with scene.reporter.computing():
            scene.now += 0.5
        scene.now += seconds - 0.5 - data
        scene.reporter.done(step, loss=None, samples=128, share=128)
        if step % 15 == 14:
            scene.percent = percents[step // 15 % len(percents)]
            scene.reporter.look()

    *_, line = scene.lines
    assert line["low_utilization"] == low
    assert (line["likely_cause"] or {"kind": None})["kind"] == cause
    assert scene.cloudwatch.values("LowUtilization", "Cluster")[-1] == float(low is not None)
    assert scene.cloudwatch.values("GpuUtilization", "Cluster", "Run")[-1] == pytest.approx(
        sum(percents) / len(percents), abs=1
    )
    # An evaluation on the CPU is no step.
    scene.percent = 0.0
    scene.wait(120.0)
    *_, line = scene.lines
    assert "LowUtilization" not in line


@pytest.mark.parametrize(
    ("ranks", "exits"),
    [
        (("waits", "waits"), [HUNG_EXIT_CODE]),
        (("saves", "waits"), []),
        (("said that it evaluates", "waits"), []),
        (("saves", "saves"), []),
    ],
)
@pytest.mark.parametrize("has_disk", [True, False])
def test_processes_that_do_no_step_write_their_stacks_and_end_when_all_hang(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], ranks: tuple[str, str], exits: list[int], has_disk: bool
) -> None:
    records, stacks = Records(run=_Items(), reports=_Reports()), tmp_path / "stacks"
    if not has_disk:
        stacks.touch()
    pair = replace(_ENVIRONMENT, world_size=2)
    scenes = [_Scene(stacks, replace(pair, rank=rank), records) for rank in range(2)]
    for scene, does in zip(scenes, ranks, strict=True):
        scene.train(range(60))
        scene.percent = 0.0 if does == "saves" else 100.0
        if does == "said that it evaluates":
            scene.reporter.alive()
        scene.wait(285.0)
    assert not list(tmp_path.rglob("*.txt"))
    for _ in range(60):
        for scene in scenes:
            scene.wait(LOOK_EVERY)

    assert scenes[1].exits == exits
    assert "rank 0 on i-00000000000000000 has done no step for 300 s" in capfd.readouterr().err
    assert len(list(tmp_path.rglob("*rank-1*.txt"))) == (1 + len(exits) if has_disk else 0)
    # The idle stop is not kept from a node whose job hangs.
    assert len(scenes[0].cloudwatch.values("JobHeartbeat", "InstanceId")) == 2


def test_what_a_rank_measured_is_one_write_unit_and_comes_back() -> None:
    items = _Items()
    facts = RankFacts(
        rank=511, node=_ENVIRONMENT.node, step_seconds=1.23456789, data_seconds=0.0123456789, compute_seconds=0.1 / 3,
        throttled_gpus=tuple(range(8)), retransmitted_share=0.1 / 7, gpu_percent=98.7654321,
    )  # fmt: skip
    windows = {100_000 + number: 1 + number / 700 for number in range(40) if number != 7}
    exchange = Exchange(Records(run=items, reports=_Reports()))
    exchange.give(1e9, 512, facts, windows)

    # DynamoDB bills each KB; beside its value an item has the run's name, its key and when it expires.
    assert [len(value) <= 700 for value in items.values()] == [True]
    known, found = exchange.take(1e9, 512)[511]
    assert (known.throttled_gpus, known.gpu_percent) == (facts.throttled_gpus, 98.77)
    assert found == pytest.approx(windows, rel=1e-3)


def test_a_long_evaluation_that_says_it_is_at_work_is_no_hang(tmp_path: Path) -> None:
    scene = _Scene(tmp_path)
    scene.train(range(60))
    for _ in range(20):
        scene.wait(60.0)
        scene.reporter.alive()

    assert scene.exits == []
    assert not list(tmp_path.rglob("*.txt"))


def test_each_node_beats_every_four_minutes_and_while_it_sets_up(tmp_path: Path) -> None:
    scene = _Scene(tmp_path, replace(_ENVIRONMENT, rank=8, node_rank=1))
    scene.wait(1795.0)
    assert len(scene.cloudwatch.values("JobHeartbeat", "InstanceId")) == 8
    scene.wait(3600.0)

    assert len(scene.cloudwatch.values("JobHeartbeat", "InstanceId")) == 8
    other = _Scene(tmp_path, replace(_ENVIRONMENT, rank=9, local_rank=1))
    other.wait(600.0)
    assert other.cloudwatch.requests == []


def test_what_aws_refuses_is_said_once_and_training_goes_on(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    scene = _Scene(tmp_path)
    for _ in range(9):
        scene.cloudwatch.fail_next("PutMetricData", "Throttling")
    scene.train(range(180))
    scene.reporter.finish(complete=True)

    said = capfd.readouterr().err.splitlines()
    assert [line.partition(", and")[0] for line in said] == [
        "cluster_job: the heartbeat of run llama-1 failed",
        "cluster_job: the report of run llama-1 failed",
        "cluster_job: the last report of run llama-1 failed",
    ]
    assert scene.totals["finished"]
