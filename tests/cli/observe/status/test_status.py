"""`training-cluster status`: what it says of data sets and checkpoints, on a terminal, in a pipe and to programs."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner, Result

from cdk_training_cluster_cli.data.checkpoints.source import Source
from cdk_training_cluster_cli.main import training_cluster
from cdk_training_cluster_cli.observe.status.checkpoints import Checkpoints, LastCheckpoints, last_checkpoints
from cdk_training_cluster_cli.observe.status.command import StatusOptions, run
from cdk_training_cluster_cli.observe.status.hydration import Hydrated, Hydration
from cdk_training_cluster_cli.observe.status.part import Bar, Moment
from cluster_contract.checkpoints import Checkpoint, CheckpointPlace, place_parameter
from cluster_contract.codec import encode
from cluster_contract.description import ClusterDescription, description_parameter
from cluster_contract.hydration import DatasetProgress, HydrationProgress, HydrationStep, progress_parameter
from examples import PROJECT
from stored_runs import Runs, runs

__all__ = ["runs"]

_FILE = PROJECT / "clusters/p4de.yaml"
_NAMES = [each("p4de") for each in (progress_parameter, place_parameter, description_parameter)]
NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)
_COUNTED = {"files": 1000, "bytes": 4 * 2**40, "counted": True, "restored_files": 250, "restored_bytes": 2**40}
_HOUR = timedelta(hours=1)


def progress(step: HydrationStep, **more: Any) -> DatasetProgress:
    return DatasetProgress(step=step, since=NOW, **more)


def checkpoint(name: str, *, ago: timedelta, complete: bool = True) -> Checkpoint:
    completed = NOW - ago if complete else None
    # What was added to a complete one makes it no newer.
    newest = NOW if complete else NOW - ago
    return Checkpoint(name=name, files=2, bytes=3 * 2**30, newest=newest, completed=completed)


_DATASETS: dict[str, tuple[DatasetProgress, str]] = {
    "contents are restored": (
        progress(HydrationStep.RESTORING, **_COUNTED, nodes=8, bytes_per_second=2**30, seconds_left=3071),
        "contents are restored, 25.0 %, 250 of 1,000 files (1.0 TiB), 1.0 GiB/s from 8 nodes, 51 min left",
    ),
    "files are counted still": (
        progress(HydrationStep.RESTORING, files=10, bytes=20, restored_files=1, failed_files=2),
        "contents are restored, 1 of 10 or more files (0 B), 2 files failed",
    ),
    "it has failed": (
        progress(HydrationStep.FAILED, reason="the link is MISCONFIGURED"),
        "has failed: the link is MISCONFIGURED",
    ),
    "it is done": (progress(HydrationStep.DONE), "all files have their contents"),
}


def hydration_lines(written: datetime, *datasets: DatasetProgress) -> list[str]:
    found = HydrationProgress(time=written, datasets={f"/fsx/{number}": each for number, each in enumerate(datasets)})
    items = Hydration().lines(Hydrated(progress=found), Moment(now=NOW, notes={}))
    return [item.text if isinstance(item, Bar) else str(item) for item in items]


@pytest.mark.parametrize(("known", "said"), _DATASETS.values(), ids=_DATASETS)
def test_how_far_a_data_set_is_takes_one_line(known: DatasetProgress, said: str) -> None:
    assert hydration_lines(NOW, known) == [said]


def test_a_function_that_is_silent_while_something_is_to_be_done_is_said() -> None:
    linking, done = progress(HydrationStep.LINKING), progress(HydrationStep.DONE)
    assert hydration_lines(NOW - 3 * _HOUR, linking)[-1] == (
        "The hydration function last reported its progress 3 h 0 min ago: see its alarms and its log."
    )
    assert hydration_lines(NOW - 3 * _HOUR, done) == ["all files have their contents"]


_CHECKPOINTS: dict[str, tuple[dict[str, Any], str]] = {
    "no checkpoint": ({}, "No checkpoint is in s3://runs/ yet."),
    "no complete checkpoint": (
        {"newest": checkpoint("step-2", ago=timedelta(seconds=59), complete=False)},
        "No complete checkpoint is in s3://runs/: the newest, step-2, written 59 s ago, has no marker.",
    ),
    "a complete and a newer one": (
        {
            "newest": checkpoint("step-2", ago=_HOUR, complete=False),
            "complete": checkpoint("step-1", ago=26 * _HOUR),
        },
        "The last complete checkpoint is step-1, written 1 d 2 h ago, 3.0 GiB, in s3://runs/. A newer one, "
        "step-2, written 1 h 0 min ago, is not complete.",
    ),
}


@pytest.mark.parametrize(("known", "said"), _CHECKPOINTS.values(), ids=_CHECKPOINTS)
def test_the_last_checkpoint_is_a_sentence(known: dict[str, Any], said: str) -> None:
    found = LastCheckpoints(place="s3://runs/", now=NOW, **known)
    assert list(Checkpoints().lines(found, Moment(now=NOW, notes={}))) == [said]


class _Endless:
    """S3: a listing without end."""

    def __init__(self) -> None:
        self.listed = 0

    def get_paginator(self, _: str) -> "_Endless":
        return self

    def paginate(self, **_: object) -> Iterator[dict[str, Any]]:
        while True:
            self.listed += 1000
            yield {"Contents": [{"Key": "a/b", "Size": 1, "LastModified": NOW, "ETag": '"e"'}] * 1000}


def test_many_objects_delay_the_status_no_longer_than_a_hundred_requests() -> None:
    client: Any = _Endless()
    source = Source(client=client, place=CheckpointPlace(bucket="runs"))
    with pytest.raises(ValueError, match=r"^s3://runs/ has more than 100,000 objects: run training-cluster checkpo"):
        last_checkpoints(source, NOW)
    assert client.listed == 101_000


class Cluster:
    """A cluster's parameters on the local AWS."""

    def __init__(self, runs: Runs) -> None:
        self.ssm = runs.aws.client("ssm")
        self.place = CheckpointPlace(bucket=runs.bucket, prefix="ck/")
        self.put(place_parameter("p4de"), json.dumps(encode(self.place)))
        described = ClusterDescription(
            functions={}, alert_topic="arn", state_table="table", resume_document="doc", security_group="sg-1"
        )
        self.put(description_parameter("p4de"), json.dumps(described.values()))

    def put(self, name: str, value: str) -> None:
        self.ssm.put_parameter(Name=name, Type="String", Value=value, Overwrite=True)

    def write(self, *datasets: DatasetProgress) -> None:
        found = {f"/fsx/{number}": each for number, each in enumerate(datasets)}
        text = HydrationProgress(time=datetime.now(UTC), datasets=found).to_parameter()
        self.put(progress_parameter("p4de"), text)


@pytest.fixture
def cluster(runs: Runs) -> Iterator[Cluster]:
    made = Cluster(runs)
    yield made
    made.ssm.delete_parameters(Names=_NAMES)


def ran(*arguments: str) -> Result:
    return CliRunner().invoke(training_cluster, ["status", str(_FILE), *arguments])


def test_a_pipe_gets_plain_lines_and_a_failure_status_1(cluster: Cluster) -> None:
    cluster.write(progress(HydrationStep.RESTORING, **_COUNTED), progress(HydrationStep.FAILED, reason="why"))
    found = ran()
    assert (found.exit_code, found.stderr) == (1, "")
    alarms, nodes, first, second, last = found.stdout.splitlines()
    assert (alarms, nodes) == ("Alarms: None is in ALARM.", "Nodes: There are none.")
    assert first == "Data sets: /fsx/0: contents are restored, 25.0 %, 250 of 1,000 files (1.0 TiB)"
    assert second == "Data sets: /fsx/1: has failed: why"
    assert last.startswith("Checkpoints: The last complete checkpoint is step-1, written ")


def test_programs_get_everything(cluster: Cluster) -> None:
    cluster.write(progress(HydrationStep.DONE, **_COUNTED))
    found = ran("--output", "json")
    said = json.loads(found.stdout)
    dataset = said["hydration"]["datasets"]["/fsx/0"]
    assert (found.exit_code, dataset["step"], dataset["percent"], dataset["files"]) == (0, "done", 100.0, 1000)
    assert (said["checkpoints"]["newest_complete"]["name"], said["checkpoints"]["newest"]["complete"]) == (
        "step-1",
        True,
    )


def waited(cluster: Cluster, *datasets: DatasetProgress) -> int:
    """Wait while the function writes how far it is, once before each further look."""
    cluster.write(datasets[0])
    further = iter(datasets[1:])
    return run(
        str(_FILE),
        StatusOptions(wait=True),
        region=None,
        profile=None,
        pause=lambda _: cluster.write(next(further)),
    )


def test_a_pipe_that_waits_gets_what_changes_until_it_is_over(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    linking, done = progress(HydrationStep.LINKING), progress(HydrationStep.DONE)
    assert waited(cluster, linking, linking, done) == 0
    written = [line for line in capsys.readouterr().out.splitlines() if line.startswith("Data sets")]
    assert written == ["Data sets: /fsx/0: FSx links the bucket", "Data sets: /fsx/0: all files have their contents"]


def test_a_terminal_gets_bars(
    cluster: Cluster, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Console, "is_terminal", True)
    monkeypatch.setenv("TERM", "xterm")
    assert waited(cluster, progress(HydrationStep.RESTORING, **_COUNTED), progress(HydrationStep.DONE)) == 0
    shown = capsys.readouterr().out
    assert "25.0 %" in shown
    assert "━" * 30 in shown


@pytest.mark.usefixtures("runs")
def test_a_cluster_that_is_not_deployed_is_one_sentence_and_status_2() -> None:
    found = ran()
    assert (found.exit_code, found.stdout) == (2, "")
    assert found.stderr.startswith("error: no cluster 'p4de' is deployed in us-east-1")


def test_what_cannot_be_read_is_unknown_and_the_rest_is_told(cluster: Cluster, runs: Runs) -> None:
    cluster.write(progress(HydrationStep.DONE))
    runs.aws.fail("DescribeInstances", "UnauthorizedOperation", "not authorized")
    found = ran("--output", "json")
    said = json.loads(found.stdout)
    assert (found.exit_code, said["nodes"], said["alarms"]) == (0, None, [])
    assert list(said["unknown"]) == ["nodes"]
    cluster.put(progress_parameter("p4de"), '{"time": "soon"}')
    spoiled = "/training-cluster/p4de/hydration does not hold what a deployment writes"
    assert f"Data sets: unknown: the parameter {spoiled}" in ran().stdout
    wrong = ran("--output", "markdown")
    assert (wrong.exit_code, wrong.stderr) == (2, "error: --output must be table or json, got 'markdown'\n")
