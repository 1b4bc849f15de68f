"""What a cluster file says of Prometheus: read, refused in its own words, and deployed."""

from pathlib import Path

import pytest
from aws_cdk.assertions import Template

from cdk_training_cluster import Observability
from cdk_training_cluster_stacks.building import built_stacks
from cdk_training_cluster_stacks.cluster_file import read_cluster_file
from cdk_training_cluster_stacks.plan.shape import shape_of
from cluster_files import RIGHT, problems

TEXT = f"{RIGHT}observability: {{prometheus: {{interval_seconds: 60, retention_days: 90}}}}\n"


def test_a_file_that_asks_for_prometheus_gets_it(tmp_path: Path) -> None:
    (tmp_path / "cluster.yaml").write_text(TEXT)
    cluster = read_cluster_file("cluster.yaml", relative_to=tmp_path)
    assert cluster.observability is not None
    assert cluster.observability.to_observability() == Observability(interval_seconds=60, retention_days=90)
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
