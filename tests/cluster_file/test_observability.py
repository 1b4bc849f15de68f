"""What a cluster file says of Prometheus: read, refused in its own words, and deployed."""

import json
import re
from pathlib import Path

import pytest
import yaml
from aws_cdk.assertions import Template
from typer.testing import CliRunner

from cdk_training_cluster import Observability
from cdk_training_cluster_cli.files.grafana import grafana_files
from cdk_training_cluster_cli.main import training_cluster
from cdk_training_cluster_cli.money.plan.shape import shape_of
from cdk_training_cluster_file import read_cluster_file
from cdk_training_cluster_stacks.building import built_stacks
from cluster_contract.metrics import FUNCTION_NAMESPACE, NODE_METRICS, job_namespace, node_namespace
from cluster_contract.runs import RunMetric
from cluster_files import RIGHT, problems

TEXT = f"{RIGHT}observability: {{prometheus: {{interval_seconds: 60, retention_days: 90}}}}\n"


def test_a_file_that_asks_for_prometheus_gets_it(tmp_path: Path) -> None:
    (tmp_path / "cluster.yaml").write_text(TEXT)
    cluster = read_cluster_file("cluster.yaml", relative_to=tmp_path)
    assert cluster.observability is not None
    assert cluster.observability.prometheus.for_constructs() == Observability(interval_seconds=60, retention_days=90)
    assert shape_of(cluster).prometheus_seconds == 60
    with built_stacks(cluster) as (_, stack):
        template = Template.from_stack(stack)
    [name] = template.find_resources("AWS::APS::Workspace")
    template.has_output("PrometheusUrl", {"Value": {"Fn::GetAtt": [name, "PrometheusEndpoint"]}})


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("observability: {}", "observability.prometheus"),
        ("observability: {prometheus: {interval_seconds: 5}}", "observability.prometheus.interval_seconds"),
        ("observability: {prometheus: {retention_days: 2000}}", "observability.prometheus.retention_days"),
        ("observability: {grafana: {}}", "observability.grafana"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, setting: str, said: str) -> None:
    found = problems(tmp_path, f"{RIGHT}{setting}\n")
    assert any(said in str(each) for each in found), found


def test_grafana_gets_a_dashboard_data_sources_and_rules(tmp_path: Path) -> None:
    (tmp_path / "cluster.yaml").write_text(TEXT)
    ended = CliRunner().invoke(
        training_cluster, ["grafana", str(tmp_path / "cluster.yaml"), "-o", str(tmp_path / "made")]
    )
    assert ended.exit_code == 0, ended.output
    name = read_cluster_file("cluster.yaml", relative_to=tmp_path).name
    board = json.loads((tmp_path / f"made/dashboards/{name}.json").read_text())
    sources = yaml.safe_load((tmp_path / "made/provisioning/datasources/training-cluster.yaml").read_text())
    known = {source["uid"] for source in sources["datasources"]}
    assert {panel["datasource"]["uid"] for panel in board["panels"] if "datasource" in panel} <= known
    assert len({panel["id"] for panel in board["panels"]}) == len(board["panels"])
    asked = [target for panel in board["panels"] for target in panel.get("targets", ())]
    # What nodes report comes from Prometheus, and what functions and training runs do from CloudWatch.
    assert {target["namespace"] for target in asked if "namespace" in target} >= {FUNCTION_NAMESPACE}
    assert node_namespace(name) not in json.dumps(board)
    of_runs = {target["metricName"] for target in asked if target.get("namespace") == job_namespace(name)}
    assert of_runs
    assert of_runs <= set(RunMetric)
    assert "${Token" not in json.dumps(board)
    assert "groups" in yaml.safe_load((tmp_path / "made/rules.yaml").read_text())


@pytest.mark.parametrize(
    ("instance_type", "absent", "present"),
    [
        ("trn1.32xlarge", "DCGM_", "node:efa_"),
        ("g6e.xlarge", "node_amazonefa_", "DCGM_"),
        ("p5.48xlarge", NODE_METRICS.neuron_core_utilization, "node_amazonefa_"),
    ],
)
def test_grafana_shows_what_the_nodes_have(tmp_path: Path, instance_type: str, absent: str, present: str) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text(re.sub(r"instance_types: .*?\]", f"instance_types: [{instance_type}]", TEXT))
    board = grafana_files(read_cluster_file(file))
    (text,) = (text for path, text in board.items() if path.startswith("dashboards/"))
    assert absent not in text
    assert present in text
    titled = [each for each in json.loads(text)["panels"] if each["type"] == "row"]
    assert [each["title"] for each in titled if "GPU" in each["title"]] == (
        ["Errors of GPUs"] if absent != "DCGM_" else []
    )


@pytest.mark.parametrize(
    ("text", "directory", "said"),
    [
        (RIGHT, "made", "sends no metrics to Prometheus: add observability: {prometheus: {}} to its cluster file"),
        (TEXT, "cluster.yaml/made", "cannot be written: Not a directory"),
    ],
)
def test_what_cannot_be_written_is_one_sentence(tmp_path: Path, text: str, directory: str, said: str) -> None:
    file = tmp_path / "cluster.yaml"
    file.write_text(text)
    ended = CliRunner().invoke(training_cluster, ["grafana", str(file), "-o", str(tmp_path / directory)])
    assert ended.exit_code == 2
    assert ended.stderr.startswith("error: ")
    assert ended.stderr.endswith(f"{said}\n")
    assert ended.stderr.count("\n") == 1
