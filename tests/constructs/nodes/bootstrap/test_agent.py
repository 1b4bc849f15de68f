"""The agent's configuration: fit for the agent, and true to the names that everybody else reads."""

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from cdk_training_cluster.nodes.bootstrap.agent import (
    STATSD_PORT,
    AcceleratorVendor,
    agent_configuration,
    neuron_monitor_configuration,
)
from cdk_training_cluster.nodes.bootstrap.asset import write_scripts
from cdk_training_cluster.nodes.bootstrap.node_bootstrap import failure_metric
from cluster_contract.metrics import NODE_METRICS, node_namespace

_INTERVAL = {"type": "integer", "minimum": 1, "maximum": 172_800}
_NAMES = {"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1, "uniqueItems": True}
_DIMENSIONS = {
    "type": "object",
    "additionalProperties": {"type": "string", "minLength": 1},
    "maxProperties": 30,
}


def _closed(*required: str, **properties: Any) -> dict[str, Any]:
    """Return the structure of an object that takes these keys and no other one."""
    return {
        "type": "object",
        "additionalProperties": False,
        "minProperties": 1,
        "required": list(required),
        "properties": properties,
    }


_COLLECTED = {"measurement": _NAMES, "metrics_collection_interval": _INTERVAL, "drop_original_metrics": _NAMES}

# The structure that the agent's document gives, narrowed to what is used here: an unknown key is a mistake.
# https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch-Agent-Configuration-File-Details.html
_STRUCTURE = _closed(
    *("agent", "metrics"),
    agent=_closed(metrics_collection_interval=_INTERVAL),
    metrics=_closed(
        *("namespace", "metrics_collected", "append_dimensions", "aggregation_dimensions"),
        namespace={"type": "string", "minLength": 1, "maxLength": 255},
        # Only these four, each with this value; beside metrics_collected, not in it.
        append_dimensions=_closed(
            **{
                name: {"const": f"${{aws:{name}}}"}
                for name in ("ImageId", "InstanceId", "InstanceType", "AutoScalingGroupName")
            }
        ),
        aggregation_dimensions={"type": "array", "items": _NAMES, "minItems": 1, "uniqueItems": True},
        metrics_collected=_closed(
            nvidia_gpu=_closed("measurement", append_dimensions=_DIMENSIONS, **_COLLECTED),
            cpu=_closed("measurement", totalcpu={"type": "boolean"}, **_COLLECTED),
            efa=_closed("measurement", **_COLLECTED),
            statsd=_closed(
                service_address={"type": "string", "pattern": r"^127\.0\.0\.1:\d+$"},
                metrics_collection_interval=_INTERVAL,
                metrics_aggregation_interval={"type": "integer", "minimum": 0},
                drop_original_metrics=_NAMES,
            ),
        ),
    ),
)

WITH_AGENT = pytest.mark.parametrize("vendor", [AcceleratorVendor.NVIDIA, AcceleratorVendor.NEURON])

_PLACE: dict[str, Any] = {"namespace": node_namespace("llama"), "cluster": "llama", "node_group": "workers"}


def _configuration(vendor: AcceleratorVendor) -> dict[str, Any]:
    configuration = agent_configuration(vendor, **_PLACE)
    assert configuration is not None
    return configuration


@WITH_AGENT
def test_the_agent_understands_it(vendor: AcceleratorVendor) -> None:
    jsonschema.validate(_configuration(vendor), _STRUCTURE)


@WITH_AGENT
def test_every_metric_has_a_series_an_instance_with_and_without_its_cluster_a_node_group_and_a_cluster(
    vendor: AcceleratorVendor,
) -> None:
    metrics = _configuration(vendor)["metrics"]
    assert metrics["namespace"] == "CdkTrainingCluster/Nodes/llama"
    assert metrics["append_dimensions"] == {"InstanceId": "${aws:InstanceId}"}
    series = [["InstanceId"], ["Cluster", "NodeGroup", "InstanceId"], ["Cluster", "NodeGroup"], ["Cluster"]]
    assert metrics["aggregation_dimensions"] == series


def test_gpu_metrics_have_the_names_that_are_read_and_no_series_a_gpu() -> None:
    gpu = _configuration(AcceleratorVendor.NVIDIA)["metrics"]["metrics_collected"]["nvidia_gpu"]
    published = {f"nvidia_smi_{measurement}" for measurement in gpu["measurement"]}
    assert published == {
        NODE_METRICS.gpu_utilization,
        NODE_METRICS.gpu_memory_used,
        NODE_METRICS.gpu_power,
        NODE_METRICS.gpu_temperature,
    }
    assert gpu["drop_original_metrics"] == gpu["measurement"]
    assert gpu["append_dimensions"] == {"Cluster": "llama", "NodeGroup": "workers"}


@WITH_AGENT
def test_cpu_use_of_all_vcpus_together_is_reported_by_instance_alone(vendor: AcceleratorVendor) -> None:
    cpu = _configuration(vendor)["metrics"]["metrics_collected"]["cpu"]
    assert [f"cpu_{measurement}" for measurement in cpu["measurement"]] == [NODE_METRICS.cpu_usage]
    assert (cpu["totalcpu"], cpu["drop_original_metrics"]) == (True, cpu["measurement"])


@WITH_AGENT
def test_efa_traffic_is_reported_where_a_policy_asks_for_it_and_no_series_an_adapter(
    vendor: AcceleratorVendor,
) -> None:
    asked = agent_configuration(vendor, **_PLACE, efa_traffic=True)
    assert asked is not None
    jsonschema.validate(asked, _STRUCTURE)
    efa = asked["metrics"]["metrics_collected"].pop("efa")
    assert efa["measurement"] == [*NODE_METRICS.efa_traffic, NODE_METRICS.efa_retransmits]
    assert efa["drop_original_metrics"] == efa["measurement"]
    assert asked == _configuration(vendor)


def test_neuron_metrics_arrive_at_the_address_and_under_the_name_that_are_read(tmp_path: Path) -> None:
    statsd = _configuration(AcceleratorVendor.NEURON)["metrics"]["metrics_collected"]["statsd"]
    assert statsd["service_address"] == f"127.0.0.1:{STATSD_PORT}"
    assert statsd["drop_original_metrics"] == [NODE_METRICS.neuron_core_utilization]
    write_scripts(tmp_path, AcceleratorVendor.NEURON, neuron_devices=16)
    settings = dict(re.findall(r"^(\w+)='(.*)'$", (tmp_path / "neuron.settings").read_text(), re.MULTILINE))
    assert settings == {
        "NEURON_METRIC": NODE_METRICS.neuron_core_utilization,
        "NEURON_STATSD_PORT": str(STATSD_PORT),
        "CLUSTER_DIMENSION": NODE_METRICS.cluster_dimension,
        "NODE_GROUP_DIMENSION": NODE_METRICS.node_group_dimension,
        "NEURON_DEVICES": "16",
    }


def test_neuron_monitor_reports_twice_an_interval_and_on_an_idle_node_too() -> None:
    configuration = neuron_monitor_configuration()
    assert int(configuration["period"].removesuffix("s")) * 2 == NODE_METRICS.interval_seconds
    assert configuration["neuron_runtimes"][0]["metrics"] == [{"type": "neuroncore_counters"}]
    assert configuration["system_metrics"] != []


def test_a_failure_is_counted_for_the_node_group_and_for_the_cluster() -> None:
    data = json.loads(failure_metric("llama", "workers"))
    assert [
        (datum["MetricName"], datum["Value"], {item["Name"]: item["Value"] for item in datum["Dimensions"]})
        for datum in data
    ] == [
        (NODE_METRICS.bootstrap_failed, 1, {"Cluster": "llama", "NodeGroup": "workers"}),
        (NODE_METRICS.bootstrap_failed, 1, {"Cluster": "llama"}),
    ]


def test_a_node_without_accelerator_needs_no_agent() -> None:
    assert agent_configuration(AcceleratorVendor.OTHER, **_PLACE) is None
