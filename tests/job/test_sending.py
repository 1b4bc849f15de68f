import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto import mock_aws

from cluster_contract.runs import REPORTS
from cluster_job import Run
from cluster_job.environment import read_environment
from cluster_job.lease import HELD, Lease
from cluster_job.sending import Heartbeat, instance_id
from cluster_job.table import open_table


def _train(run: Run) -> None:
    for _ in run.steps(3):
        with run.computing():
            pass
        run.report(loss=1.5, samples=8)


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cluster_job.run.find_spec", lambda _: None)  # as on a machine without torch


def test_without_a_cluster_the_report_is_a_line_of_json(capsys: pytest.CaptureFixture[str]) -> None:
    _train(Run(global_batch=8, name="alone"))

    (line,) = map(json.loads, capsys.readouterr().out.splitlines())
    assert (line["run"], line["step"], line["Loss"], line["world_size"]) == ("alone", 2, 1.5, 1)
    assert "CostUsd" not in line


def test_steps_without_a_report_count_too(capsys: pytest.CaptureFixture[str]) -> None:
    for _ in (run := Run(global_batch=8)).steps(3):
        run.share(0)

    (line,) = map(json.loads, capsys.readouterr().out.splitlines())
    assert (line["step"], "Loss" in line) == (2, False)
    with pytest.raises(
        RuntimeError, match=r"run.steps\(\) was called before: count the steps of all epochs in one loop"
    ):
        next(run.steps(3))


def test_a_script_that_leaves_the_loop_or_fails_is_not_kept_waiting(capsys: pytest.CaptureFixture[str]) -> None:
    def fail() -> None:
        for step in Run(global_batch=8).steps(3):
            raise ValueError(f"the loss of step {step} is no number")

    for _ in Run(global_batch=8).steps(3):
        break
    with pytest.raises(ValueError, match="of step 0"):
        fail()

    assert capsys.readouterr().out == ""


@pytest.fixture
def _aws() -> Iterator[None]:
    with mock_aws():
        yield


def _on_a_cluster(monkeypatch: pytest.MonkeyPatch) -> Any:
    client = boto3.client("dynamodb", region_name="us-east-1")
    client.create_table(
        TableName="runs",
        KeySchema=[{"AttributeName": "run", "KeyType": "HASH"}, {"AttributeName": "key", "KeyType": "RANGE"}],
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in ("run", "key")],
        BillingMode="PAY_PER_REQUEST",
    )
    for name, value in (("CLUSTER", "llama"), ("NODE_GROUP", "workers"), ("REGION", "us-east-1")):
        monkeypatch.setenv(f"TRAINING_CLUSTER_{name}", value)
    monkeypatch.setenv("TRAINING_CLUSTER_RUNS_TABLE", "runs")
    monkeypatch.setenv("TRAINING_CLUSTER_NODE_HOUR_USD", "55")
    return client


@pytest.mark.usefixtures("_aws")
def test_a_run_whose_processes_all_wait_is_without_a_step_unless_another_node_trains_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _on_a_cluster(monkeypatch)
    monkeypatch.setenv("TRAINING_CLUSTER_NODE", "i-0123456789abcdef0")
    environment = replace(read_environment(), run="llama-1")
    lease = Lease(open_table("runs", "llama-1", region="us-east-1"), run="llama-1", owner="a", node="i-1")

    heartbeat = Heartbeat(environment)

    def reported() -> bool:
        heartbeat.send(silent=1800.0)
        made = boto3.client("cloudwatch", region_name="us-east-1").list_metrics(MetricName="SecondsWithoutStep")
        return bool(made["Metrics"])

    lease.take()
    assert not reported()
    lease.release()
    assert reported()


@pytest.mark.usefixtures("_aws")
def test_on_a_cluster_metrics_go_to_cloudwatch_and_the_last_report_to_the_table(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client = _on_a_cluster(monkeypatch)
    monkeypatch.setenv(HELD, "train-7")  # cluster-run's own name for it
    monkeypatch.setenv("SLURM_JOB_ID", "7")

    _train(Run(global_batch=8, name="llama-1"))

    own = "CdkTrainingCluster/Jobs/llama"
    made = boto3.client("cloudwatch", region_name="us-east-1").list_metrics()["Metrics"]
    assert {one["Namespace"] for one in made} == {own}
    of_run = [{"Name": "Cluster", "Value": "llama"}, {"Name": "Run", "Value": "llama-1"}]
    assert {"Namespace": own, "MetricName": "CostUsd", "Dimensions": of_run} in made
    item = client.get_item(TableName="runs", Key={"run": {"S": REPORTS}, "key": {"S": "llama-1"}})["Item"]
    totals = json.loads(item["value"]["B"])["totals"]
    assert (totals["highest_step"], totals["finished"]) == (2, True)
    lease = client.get_item(TableName="runs", Key={"run": {"S": "llama-1"}, "key": {"S": "lease"}})["Item"]
    assert json.loads(lease["value"]["B"])["owner"] == "Slurm step 7.0"


@pytest.mark.usefixtures("_aws")
def test_two_objects_of_one_run_are_one_start(monkeypatch: pytest.MonkeyPatch) -> None:
    client = _on_a_cluster(monkeypatch)
    first, second = (Run(global_batch=8, name="twice") for _ in range(2))
    token = first._hold.begin(lambda take: take())
    assert token is not None
    _train(second)
    lease = client.get_item(TableName="runs", Key={"run": {"S": "twice"}, "key": {"S": "lease"}})["Item"]
    said = json.loads(lease["value"]["B"])
    assert (said["token"], said["held"]) == (str(token), False)
    assert Run(global_batch=8, name="twice")._hold is not first._hold


class _Metadata(BaseHTTPRequestHandler):
    def do_PUT(self) -> None:
        self._answer("token" if self.headers["X-aws-ec2-metadata-token-ttl-seconds"] else "")

    def do_GET(self) -> None:
        self._answer("i-0123456789abcdef0" if self.headers["X-aws-ec2-metadata-token"] == "token" else "")

    def _answer(self, text: str) -> None:
        self.send_response(200 if text else 401)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def metadata() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), _Metadata)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("board", ["Amazon EC2", "", None])
def test_the_metadata_service_says_which_instance_it_is(metadata: str, board: str | None, tmp_path: Path) -> None:
    if board is not None:
        (tmp_path / "board").write_text(board)
    assert instance_id(metadata, tmp_path / "board") == "i-0123456789abcdef0"
    assert instance_id("http://127.0.0.1:1", tmp_path / "board") is None


def test_the_firmware_says_it_to_a_pod_that_does_not_reach_the_metadata_service(tmp_path: Path) -> None:
    (tmp_path / "board").write_text("i-0123456789abcdef1\n")
    assert instance_id("http://127.0.0.1:1", tmp_path / "board") == "i-0123456789abcdef1"


def test_on_a_cluster_a_run_without_a_name_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RUN_NAME", raising=False)
    for name, value in {"CLUSTER": "llama", "NODE_GROUP": "workers", "REGION": "us-east-1"}.items():
        monkeypatch.setenv(f"TRAINING_CLUSTER_{name}", value)
    with pytest.raises(ValueError, match="the run has no name, and would go on from the checkpoint of any other"):
        Run(global_batch=8)
