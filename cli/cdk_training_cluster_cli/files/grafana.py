"""Writes what Grafana and a Prometheus of one's own are provisioned with, for the cluster of a file."""

import json
from collections.abc import Mapping
from typing import Any

import yaml

from cdk_training_cluster.observability.grafana import data_sources, grafana_dashboard
from cdk_training_cluster.observability.prometheus_rules import rules_file
from cdk_training_cluster_file import ClusterFile
from cdk_training_cluster_stacks.building import built_stacks

# Where Grafana's containers and packages look for dashboards of a provider.
# https://grafana.com/docs/grafana/latest/administration/provisioning/
_DASHBOARDS = "/var/lib/grafana/dashboards"
_PROVIDER = {
    "apiVersion": 1,
    "providers": [{"name": "training-cluster", "type": "file", "options": {"path": _DASHBOARDS}}],
}
# Grafana puts in what its environment has.
_URL = "$PROMETHEUS_URL"


def grafana_files(cluster: ClusterFile) -> Mapping[str, str]:
    """Return the files by their paths.

    Args:
        cluster: What the file says.

    Raises:
        ValueError: A construct refuses its settings, or the file has no Prometheus.
    """
    if cluster.observability is None:
        raise ValueError(
            f"{cluster.name} sends no metrics to Prometheus: add observability: {{prometheus: {{}}}} to its cluster "
            "file"
        )
    with built_stacks(cluster) as (_, stack):
        shown, fleets = stack.training_cluster.dashboard, stack.training_cluster.node_groups
        board = grafana_dashboard(
            cluster.name,
            cluster.region,
            () if shown is None else shown.rows,
            gpus=any(fleet.instance_type.has_nvidia_gpus for fleet in fleets),
            efa=any(fleet.efa_interfaces for fleet in fleets),
        )
    return {
        f"dashboards/{cluster.name}.json": json.dumps(board, indent=2) + "\n",
        "provisioning/datasources/training-cluster.yaml": _yaml(data_sources(cluster.region, _URL)),
        "provisioning/dashboards/training-cluster.yaml": _yaml(_PROVIDER),
        "rules.yaml": rules_file(),
    }


def _yaml(content: Mapping[str, Any]) -> str:
    return yaml.safe_dump(dict(content), sort_keys=False)
