"""The dashboard of a cluster: what it shows, that its size stays, and that CloudWatch takes it."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_s3 as s3

from cdk_training_cluster import (
    Budget,
    Capacity,
    Dataset,
    IdlePolicy,
    IdleSignal,
    NodeGroup,
    Observability,
    TrainingCluster,
)
from cdk_training_cluster.core.dashboards.widgets import MAX_WIDGETS, dashboard_body
from cdk_training_cluster.core.runbooks import anchor
from cdk_training_cluster.observability import DashboardRow, Line, Metric, Panel, Text, Unit
from checkpoint_scene import exported_checkpoints
from cluster_contract.checkpoints import CheckpointMetric
from cluster_contract.health_settings import HealthMetric
from cluster_contract.hydration import HydrationMetric
from cluster_contract.idle import IdleMetric
from cluster_contract.metrics import FUNCTION_NAMESPACE, NODE_METRICS, job_namespace, node_namespace
from cluster_contract.power import PowerMetric
from cluster_contract.runs import RUN_DIMENSION, RunMetric
from cluster_contract.spend import SpendMetric
from synthesis import ZONE, new_stack, only, resources

_MOST_BYTES = 20_000


def _cluster(*groups: NodeGroup, **settings: Any) -> TrainingCluster:
    return TrainingCluster(
        new_stack(), "Cluster", cluster_name="pod", availability_zone=ZONE, node_groups=groups, **settings
    )


def _group(name: str = "workers", *types: str, **settings: Any) -> NodeGroup:
    return NodeGroup(name=name, instance_types=types or ("p5.48xlarge",), count=2, **settings)


def _widgets(cluster: TrainingCluster, kind: str = "metric") -> dict[str, Any]:
    assert cluster.dashboard is not None
    found = cluster.dashboard.body("us-east-1")["widgets"]
    return {one["properties"].get("title", "").partition(" (")[0]: one for one in found if one["type"] == kind}


def _expression(widget: dict[str, Any]) -> str:
    return str(widget["properties"]["metrics"][0][0]["expression"])


@pytest.fixture(scope="module")
def whole() -> TrainingCluster:
    """Return a cluster with every part that shows anything."""
    stack = new_stack()
    store, corpus = exported_checkpoints(stack), s3.Bucket.from_bucket_name(stack, "Corpus", "corpus-bucket")
    groups = [
        _group(
            capacity=Capacity.capacity_block("cr-0a1b2c3d4e5f67890"),
            idle_policy=IdlePolicy(signals=[IdleSignal.efa()]),
        ),
        _group("trainium", "trn1.32xlarge"),
        _group("spare", "g5.xlarge", capacity=Capacity.spot_fleet()),
    ]
    return TrainingCluster(
        stack,
        "Cluster",
        cluster_name="pod",
        network=store.file_system.network,
        file_system=store.file_system,
        checkpoints=store,
        node_groups=groups,
        datasets=[Dataset(bucket=corpus, prefix="tokens/", file_system_path="/corpus", preload=["*"])],
        budget=Budget(monthly_usd=1000, max_usd_per_hour=5),
        observability=Observability.prometheus(),
    )


def test_each_part_shows_its_row(whole: TrainingCluster) -> None:
    assert whole.dashboard is not None
    assert [row.title for row in whole.dashboard.rows] == [
        "Training cluster pod",
        "Nodes",
        "Accelerators and network",
        "Training runs",
        "Data sets",
        "Idle nodes",
        "Health",
        "Checkpoints",
        "Money",
        "File system",
    ]
    shown = {panel.unit for row in whole.dashboard.rows for panel in row.panels if isinstance(panel, Panel)}
    assert {Unit.WATTS, Unit.CELSIUS, Unit.MEBIBYTES, Unit.HOURS, Unit.USD_PER_HOUR} <= shown


def test_every_metric_is_reported_with_these_dimensions(whole: TrainingCluster) -> None:
    """Nodes and functions report under the sets that `NODE_METRICS` and the functions' own metrics have."""
    assert whole.dashboard is not None
    lines = [
        line
        for row in whole.dashboard.rows
        for panel in row.panels
        if isinstance(panel, Panel)
        for line in panel.lines
    ]
    searched = [line for line in lines if not isinstance(line, Line)]
    found: dict[str, set[frozenset[str]]] = {}
    for line in searched:
        dimensions = frozenset({*line.by, *(("Cluster",) if line.cluster_name else ())})
        found.setdefault(line.namespace, set()).add(dimensions)
    assert found.pop(node_namespace("pod")) <= {frozenset(each) for each in NODE_METRICS.series}
    assert found == {
        job_namespace("pod"): {frozenset({"Cluster", RUN_DIMENSION})},
        FUNCTION_NAMESPACE: {frozenset({"Cluster", each}) for each in ("NodeGroup", "Dataset", "Kind")},
    }


_EMITTED = (
    *HealthMetric,
    *IdleMetric,
    *PowerMetric,
    *HydrationMetric,
    *CheckpointMetric,
    *SpendMetric,
    *RunMetric,
    *NODE_METRICS.efa_traffic,
    *(
        value
        for name, value in vars(NODE_METRICS).items()
        if isinstance(value, str) and not name.endswith("_dimension")
    ),
)
_NOT_SHOWN = {
    NODE_METRICS.node_fault: "the health function counts the nodes that report it: HealthFaultyNodes",
    NODE_METRICS.accelerator_utilization: "this cluster has no accelerators that a command measures: see below",
    NODE_METRICS.cpu_usage: "the idle function reads it, and logs it where it keeps a node",
}
"""The metrics that no widget and no alarm has, each with the reason."""


def test_every_metric_that_is_emitted_is_shown_or_watched(whole: TrainingCluster) -> None:
    assert whole.dashboard is not None
    alarms = resources(Stack.of(whole), "AWS::CloudWatch::Alarm")
    seen = json.dumps([whole.dashboard.body("us-east-1"), alarms])
    missing = [name for name in _EMITTED if not re.search(rf"\b{name}\b", seen)]
    assert sorted(missing) == sorted(_NOT_SHOWN)


def test_the_document_says_how_many_widgets_there_are(whole: TrainingCluster) -> None:
    least = _cluster(_group("workers", "g5.xlarge"), idle_policy=IdlePolicy.off())
    counts = []
    for cluster in (least, whole):
        assert cluster.dashboard is not None
        counts.append(len(cluster.dashboard.body("us-east-1")["widgets"]))
    text = Path("docs/dashboard.md").read_text(encoding="utf-8")
    found = re.search(r"has (\d+) to (\d+) widgets", text)
    assert found is not None
    assert [int(each) for each in found.groups()] == counts


def test_nodes_are_searched_by_cluster_and_the_least_busy_are_shown(whole: TrainingCluster) -> None:
    assert _expression(_widgets(whole)["Use of GPUs, the 50 least busy nodes"]) == (
        'SORT(SEARCH(\'{"CdkTrainingCluster/Nodes/pod",Cluster,NodeGroup,InstanceId} '
        'MetricName="nvidia_smi_utilization_gpu" Cluster="pod"\', \'Average\'), AVG, ASC, 50)'
    )


def test_the_table_of_nodes_asks_the_log_of_the_idle_function(whole: TrainingCluster) -> None:
    (table,) = _widgets(whole, "log").values()
    assert whole.idle_stop is not None
    assert table["properties"]["query"].startswith("SOURCE '${Token[")
    assert "latest(verdict) as state" in table["properties"]["query"]


def test_all_alarms_are_shown_and_each_has_a_runbook(whole: TrainingCluster) -> None:
    (alarms,) = _widgets(whole, "alarm").values()
    made = resources(Stack.of(whole), "AWS::CloudWatch::Alarm")
    assert len(alarms["properties"]["alarms"]) == len(made) > 30
    for alarm in made.values():
        assert "/operations/#" in json.dumps(alarm["Properties"]["AlarmDescription"])


def test_its_size_does_not_depend_on_the_node_groups() -> None:
    bodies = [
        only(Stack.of(_cluster(*(_group(f"g{number}") for number in range(count)))), "AWS::CloudWatch::Dashboard")
        for count in (1, 50)
    ]
    few, many = (len(json.dumps(body["Properties"]["DashboardBody"])) for body in bodies)
    assert few == many < _MOST_BYTES


def test_what_no_node_has_is_not_shown() -> None:
    neuron = _widgets(_cluster(_group("workers", "trn1.32xlarge"), idle_policy=IdlePolicy.off()))
    assert not [title for title in neuron if "EFA" in title or "idle" in title or "ends" in title]
    assert [title for title in neuron if "GPU" in title or "NeuronCores" in title] == [
        "Use of NeuronCores, the 50 least busy nodes",
        "Use of NeuronCores by group",
    ]


def test_a_cluster_can_do_without() -> None:
    cluster = _cluster(_group(), dashboard=False)
    assert cluster.dashboard is None
    assert resources(Stack.of(cluster), "AWS::CloudWatch::Dashboard") == {}


def test_widgets_do_not_overlap_and_fill_the_width(whole: TrainingCluster) -> None:
    assert whole.dashboard is not None
    taken: set[tuple[int, int]] = set()
    for widget in whole.dashboard.body("us-east-1")["widgets"]:
        x, y, width, height = (widget[key] for key in ("x", "y", "width", "height"))
        assert x + width <= 24
        cells = {(column, line) for column in range(x, x + width) for line in range(y, y + height)}
        assert not cells & taken
        taken |= cells


def test_calculations_hide_what_they_use_and_thresholds_are_lines() -> None:
    metric = Metric(namespace="AWS/FSx", name="DataReadBytes", dimensions={"FileSystemId": "fs-1"}, statistic="Sum")
    line = Line(label="read", metrics={"read": metric}, expression="read / PERIOD(read)")
    panel = Panel(title="Throughput", unit=Unit.BYTES_PER_SECOND, lines=[line, Line.of("all", metric)])
    properties = dashboard_body([DashboardRow(title="It", panels=[panel])], "eu-west-1")["widgets"][1]["properties"]
    assert properties["metrics"] == [
        [{"expression": "read / PERIOD(read)", "label": "read", "id": "line0"}],
        ["AWS/FSx", "DataReadBytes", "FileSystemId", "fs-1", {"stat": "Sum", "id": "read", "visible": False}],
        ["AWS/FSx", "DataReadBytes", "FileSystemId", "fs-1", {"stat": "Sum", "label": "all"}],
    ]
    assert (properties["region"], properties["yAxis"]["left"]["min"]) == ("eu-west-1", 0)


def test_more_widgets_than_cloudwatch_takes_are_refused() -> None:
    row = DashboardRow(title="Texts", panels=[Text(markdown="-")] * MAX_WIDGETS)
    with pytest.raises(ValueError, match=r"^a dashboard must have at most 500 widgets, got 501: show fewer panels$"):
        dashboard_body([row], "us-east-1")


@pytest.mark.parametrize(
    ("part", "alarm", "expected"),
    [
        ("cluster_power", "MissingNodes", "power-missing-nodes"),
        ("billing_alarms", "Silence", "billing-alarms-silence"),
        ("cluster_spend", "Month12Point5", "spend-month"),
        ("cluster_spend", "Forecast100", "spend-forecast"),
    ],
)
def test_an_alarm_has_an_anchor_that_no_number_changes(part: str, alarm: str, expected: str) -> None:
    assert anchor(part, alarm) == expected


def test_the_utilization_that_a_command_measures_is_shown() -> None:
    image = ec2.MachineImage.generic_linux({"us-east-1": "ami-0a1b2c3d4e5f67890"})
    group = NodeGroup("gaudi", instance_types=["dl1.24xlarge"], count=1, machine_image=image)
    cluster = TrainingCluster(new_stack(), "Cluster", availability_zone="us-east-1b", node_groups=[group])
    assert cluster.dashboard is not None
    assert NODE_METRICS.accelerator_utilization in json.dumps(cluster.dashboard.body("us-east-1"))
