"""Rules, collector and dashboards against Debian's Prometheus, which scrapes recorded answers of exporters."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from cdk_training_cluster.core.dashboards.rows import DashboardRow, Line, LineForEach, Metric, Panel, Unit
from cdk_training_cluster.nodes.bootstrap.collector import (
    SERIES,
    Exporter,
    prometheus_configuration,
    series_of_a_node,
)
from cdk_training_cluster.observability.grafana import PROMQL, grafana_dashboard
from cdk_training_cluster.observability.prometheus_rules import RECORDING_RULES, rules_file
from cluster_contract.metrics import node_namespace
from real_prometheus import Server, exporter, prometheus

# `make test-prometheus` runs it.
pytestmark = pytest.mark.sweep("test-prometheus")

RECORDED = Path(__file__).parent / "recorded"
# Every metric of nodes that a row of CloudWatch's dashboard can name.
ROW = DashboardRow(
    title="Nodes",
    panels=[
        Panel(title=metric, unit=Unit.COUNT, lines=[line])
        for metric in PROMQL
        for line in (
            LineForEach(
                metric=metric,
                cluster_name="llama",
                by=("NodeGroup", "InstanceId"),
                statistic="Maximum",
                namespace=node_namespace("llama"),
                lowest=50,
            ),
            Line.of(
                metric,
                Metric(
                    namespace=node_namespace("llama"),
                    name=metric,
                    dimensions={"Cluster": "llama"},
                    statistic="Average",
                ),
            ),
        )
    ],
)


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A Prometheus that stands for the workspace, and a node's collector that writes to it."""
    directory = tmp_path_factory.mktemp("prometheus")
    (directory / "rules.yml").write_text(rules_file(interval="1s"))
    rules = {"rule_files": [str(directory / "rules.yml")]}
    with (
        exporter(RECORDED / "node.prom") as node,
        exporter(RECORDED / "dcgm.prom") as dcgm,
        prometheus(directory / "workspace", rules, "--web.enable-remote-write-receiver") as server,
    ):
        scraped = prometheus_configuration({Exporter.NODE: node, Exporter.DCGM: dcgm}, interval_seconds=1)
        names = {
            "@CLUSTER@": "llama",
            "@NODE_GROUP@": "workers",
            "@REGION@": "us-east-1",
            "@INSTANCE_ID@": "i-0a1b2c3d4e5f67890",
            "@REMOTE_WRITE_URL@": f"http://{server.address}/api/v1/write",
        }
        text = json.dumps(scraped)
        for placeholder, value in names.items():
            text = text.replace(placeholder, value)
        with prometheus(directory / "agent", json.loads(text), "--enable-feature=agent"):
            yield server


def test_what_a_node_sends_is_what_is_named_and_nothing_else(workspace: Server) -> None:
    named = {name for names in SERIES.values() for name in names}
    assert workspace.wait_for(*named) == []
    scraped = {each["metric"]["__name__"] for each in workspace.query('{__name__!="",cluster="llama"}')}
    # What Prometheus itself says of a scrape is not limited by the configuration.
    own = {name for name in scraped if name == "up" or name.startswith(("scrape_", "ALERTS"))}
    recorded = {rule.name for rule in RECORDING_RULES}
    assert scraped - own - recorded == named
    # Without a third file system, but with a NeuronCore.
    paid = workspace.query(f'{{__name__!~"ALERTS.*|{"|".join(recorded)}",cluster="llama"}}')
    assert len(paid) == series_of_a_node(gpus=2, efa_devices=2, neuron_devices=0) - 3 + 1
    labels = {name for each in workspace.query("DCGM_FI_DEV_GPU_UTIL") for name in each["metric"]}
    assert labels == {"__name__", "UUID", "cluster", "device", "gpu", "instance", "job", "node_group"}


def test_every_query_of_the_dashboard_finds_something(workspace: Server) -> None:
    board = grafana_dashboard("llama", "us-east-1", [ROW], gpus=True, efa=True)
    queries = [target["expr"] for panel in board["panels"] for target in panel.get("targets", ()) if "expr" in target]
    assert len(queries) > len(SERIES[Exporter.DCGM])
    assert workspace.wait_for(*queries) == []
    assert not [query for query in queries if workspace.query(query.replace('"llama"', '"another"'))]


def test_every_rule_is_evaluated_and_the_broken_gpu_alerts(workspace: Server) -> None:
    assert workspace.wait_for(*(rule.name for rule in RECORDING_RULES)) == []
    assert workspace.wait_for('ALERTS{alertname="GpuThermalThrottling",gpu="1"}') == []
    groups = workspace.get("rules")["groups"]
    assert {rule["health"] for group in groups for rule in group["rules"]} == {"ok"}


def test_every_series_that_is_paid_for_is_used() -> None:
    used = json.dumps(grafana_dashboard("llama", "us-east-1", [ROW], gpus=True, efa=True)) + rules_file()
    assert [name for names in SERIES.values() for name in names if name not in used] == []
