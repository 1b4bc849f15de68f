"""`training-cluster status`: what it says of data sets and checkpoints, on a terminal, in a pipe and to programs."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner, Result

from cdk_training_cluster_stacks.commands import training_cluster
from cdk_training_cluster_stacks.status.command import lines, run
from cdk_training_cluster_stacks.status.report import Status
from cluster_contract.checkpoints import Checkpoint, CheckpointPlace, place_parameter
from cluster_contract.codec import encode
from cluster_contract.hydration import DatasetProgress, HydrationProgress, HydrationStep, progress_parameter
from examples import PROJECT
from stored_runs import Runs, aws, runs

__all__ = ["aws", "runs"]

_FILE = PROJECT / "clusters/base-pod.yaml"
_NAMES = {"base-pod": [progress_parameter("base-pod"), place_parameter("base-pod")]}
NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)


def progress(step: HydrationStep, **more: Any) -> DatasetProgress:
    return DatasetProgress(step=step, since=NOW, **more)


def status(*datasets: DatasetProgress, **more: Any) -> Status:
    given = {"hydrates": True, "written": NOW, **more}
    return Status(
        cluster="pod",
        region="us-east-1",
        time=NOW,
        datasets={f"/fsx/{number}": each for number, each in enumerate(datasets)},
        **given,
    )


def checkpoint(name: str, *, ago: timedelta, complete: bool = True) -> Checkpoint:
    completed = NOW - ago if complete else None
    # What was added to a complete one makes it no newer.
    newest = NOW if complete else NOW - ago
    return Checkpoint(name=name, files=2, bytes=3 * 2**30, newest=newest, completed=completed)


_COUNTED = {"files": 1000, "bytes": 4 * 2**40, "counted": True, "restored_files": 250, "restored_bytes": 2**40}
_HOUR = timedelta(hours=1)
_SAID: dict[str, tuple[Status, list[str]]] = {
    "nothing is deployed": (
        status(hydrates=False, written=None),
        [
            "Cluster 'pod' has reported no progress in us-east-1: it is not deployed there, or its file has neither "
            "preloaded data sets nor checkpoints."
        ],
    ),
    "nothing is written yet": (
        status(written=None),
        ["The hydration function has not reported its progress yet: it runs every minute."],
    ),
    "contents are restored": (
        status(progress(HydrationStep.RESTORING, **_COUNTED, nodes=8, bytes_per_second=2**30, seconds_left=3071)),
        ["/fsx/0: contents are restored, 25.0 %, 250 of 1,000 files (1.0 TiB), 1.0 GiB/s from 8 nodes, 51 min left"],
    ),
    "files are counted still": (
        status(progress(HydrationStep.RESTORING, files=10, bytes=20, restored_files=1, failed_files=2)),
        ["/fsx/0: contents are restored, 1 of 10 or more files (0 B), 2 files failed"],
    ),
    "it has failed": (
        status(progress(HydrationStep.FAILED, reason="the link is MISCONFIGURED")),
        ["/fsx/0: has failed: the link is MISCONFIGURED"],
    ),
    "the function is silent": (
        status(progress(HydrationStep.LINKING), written=NOW - 3 * _HOUR),
        [
            "/fsx/0: FSx links the bucket",
            "The hydration function last reported its progress 3 h 0 min ago: see its alarms and its log.",
        ],
    ),
    "it is done, and was last written when it was": (
        status(progress(HydrationStep.DONE), written=NOW - 3 * _HOUR),
        ["/fsx/0: all files have their contents"],
    ),
    "no checkpoint": (
        status(hydrates=False, written=None, place="s3://runs/"),
        ["No checkpoint is in s3://runs/ yet."],
    ),
    "no complete checkpoint": (
        status(
            hydrates=False,
            written=None,
            place="s3://runs/",
            newest=checkpoint("step-2", ago=timedelta(seconds=59), complete=False),
        ),
        ["No complete checkpoint is in s3://runs/: the newest, step-2, written 59 s ago, has no marker."],
    ),
    "a complete and a newer one": (
        status(
            hydrates=False,
            written=None,
            place="s3://runs/",
            newest=checkpoint("step-2", ago=_HOUR, complete=False),
            complete=checkpoint("step-1", ago=26 * _HOUR),
        ),
        [
            "The last complete checkpoint is step-1, written 1 d 2 h ago, 3.0 GiB, in s3://runs/. A newer one, "
            "step-2, written 1 h 0 min ago, is not complete."
        ],
    ),
}


@pytest.mark.parametrize(("known", "said"), _SAID.values(), ids=_SAID)
def test_each_thing_that_is_known_is_a_sentence(known: Status, said: list[str]) -> None:
    assert list(lines(known)) == said


class Cluster:
    """A cluster's parameters on the local AWS."""

    def __init__(self, runs: Runs) -> None:
        self.ssm = runs.aws.client("ssm")
        self.place = CheckpointPlace(bucket=runs.bucket, prefix="ck/")
        self.put(place_parameter("base-pod"), json.dumps(encode(self.place)))

    def put(self, name: str, value: str) -> None:
        self.ssm.put_parameter(Name=name, Type="String", Value=value, Overwrite=True)

    def write(self, *datasets: DatasetProgress) -> None:
        found = {f"/fsx/{number}": each for number, each in enumerate(datasets)}
        text = HydrationProgress(time=datetime.now(UTC), datasets=found).to_parameter()
        self.put(progress_parameter("base-pod"), text)


@pytest.fixture
def cluster(runs: Runs) -> Iterator[Cluster]:
    made = Cluster(runs)
    yield made
    made.ssm.delete_parameters(Names=_NAMES["base-pod"])


def ran(*arguments: str) -> Result:
    return CliRunner().invoke(training_cluster, ["status", str(_FILE), *arguments])


def test_a_pipe_gets_plain_lines_and_a_failure_status_1(cluster: Cluster) -> None:
    cluster.write(progress(HydrationStep.RESTORING, **_COUNTED), progress(HydrationStep.FAILED, reason="why"))
    found = ran()
    first, second, last = found.stdout.splitlines()
    assert (found.exit_code, found.stderr) == (1, "")
    assert first == "/fsx/0: contents are restored, 25.0 %, 250 of 1,000 files (1.0 TiB)"
    assert second == "/fsx/1: has failed: why"
    assert last.startswith("The last complete checkpoint is step-1, written ")


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


def watched(cluster: Cluster, *datasets: DatasetProgress) -> int:
    """Watch while the function writes how far it is, once before each further look."""
    cluster.write(datasets[0])
    further = iter(datasets[1:])
    return run(
        str(_FILE),
        region=None,
        profile=None,
        output="table",
        watch=True,
        wait=lambda _: cluster.write(next(further)),
    )


def test_a_pipe_that_watches_gets_what_changes_until_it_is_over(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    linking, done = progress(HydrationStep.LINKING), progress(HydrationStep.DONE)
    assert watched(cluster, linking, linking, done) == 0
    written = [line for line in capsys.readouterr().out.splitlines() if line.startswith("/fsx")]
    assert written == ["/fsx/0: FSx links the bucket", "/fsx/0: all files have their contents"]


def test_a_terminal_gets_bars(
    cluster: Cluster, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Console, "is_terminal", True)
    monkeypatch.setenv("TERM", "xterm")
    assert watched(cluster, progress(HydrationStep.RESTORING, **_COUNTED), progress(HydrationStep.DONE)) == 0
    shown = capsys.readouterr().out
    assert "25.0 %" in shown
    assert "━" * 30 in shown


@pytest.mark.usefixtures("runs")
def test_a_cluster_that_is_not_deployed_is_said() -> None:
    found = ran()
    assert (found.exit_code, found.stderr) == (0, "")
    assert found.stdout.startswith("Cluster 'base-pod' has reported no progress in us-east-1: ")


def test_what_aws_refuses_is_one_sentence_and_status_2(runs: Runs) -> None:
    runs.aws.fail("GetParameters", "AccessDeniedException", "not authorized")
    found = ran()
    assert (found.exit_code, found.stdout) == (2, "")
    assert found.stderr == (
        "error: the parameters /training-cluster/base-pod/hydration and /training-cluster/base-pod/checkpoints: AWS "
        "denies GetParameters (AccessDeniedException): your policy must allow it, and no other policy may deny it\n"
    )
    Cluster(runs).put(progress_parameter("base-pod"), '{"time": "soon"}')
    spoiled = ran()
    assert spoiled.exit_code == 2
    assert spoiled.stderr.startswith(
        "error: the parameter /training-cluster/base-pod/hydration does not hold what a deployment writes ("
    )
    runs.aws.client("ssm").delete_parameters(Names=_NAMES["base-pod"])
    wrong = ran("--output", "markdown")
    assert (wrong.exit_code, wrong.stderr) == (2, "error: --output must be table or json, got 'markdown'\n")
