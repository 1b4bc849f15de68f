"""The CloudWatch agent's configuration for a node, made from the names in `cluster_contract.metrics`."""

from enum import Enum
from typing import Any

from cluster_contract.metrics import NODE_METRICS

STATSD_PORT = 8125
"""Where the agent listens on nodes without GPUs of NVIDIA's, on the node itself only."""

_GPU_MEASUREMENTS = ("utilization_gpu", "memory_used", "power_draw", "temperature_gpu")


class AcceleratorVendor(Enum):
    """Whose accelerators a node has; it decides how their use is read."""

    NVIDIA = "nvidia"
    NEURON = "neuron"
    COMMAND = "command"
    OTHER = "other"


_STATSD = {
    AcceleratorVendor.NEURON: NODE_METRICS.neuron_core_utilization,
    AcceleratorVendor.COMMAND: NODE_METRICS.accelerator_utilization,
}


def agent_configuration(
    vendor: AcceleratorVendor, *, namespace: str, cluster: str, node_group: str, efa_traffic: bool = False
) -> dict[str, Any] | None:
    """Return the agent's configuration, or None for a node with nothing to read.

    How the series come about: the agent reads each device as a metric with dimensions of its own (`index`,
    `name`, … of a GPU; `core` of a Neuron node) and adds `InstanceId` through the `append_dimensions` beside
    `metrics_collected`, which takes EC2's own facts only. Cluster and node group are added inside the plug-in
    (GPUs) or arrive with each value (Neuron). `aggregation_dimensions`, also beside `metrics_collected`,
    publishes every value once for each set of dimensions, and `drop_original_metrics` keeps back the series
    of the single device. `InstanceId` comes from the metadata service, so that no tag need be readable.

    Args:
        vendor: Whose accelerators the node has.
        namespace: The namespace of the cluster's nodes.
        cluster: The cluster's name.
        node_group: The node group's name.
        efa_traffic: Whether it reports what goes over Elastic Fabric Adapters. Default: - no.

    Source: https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch-Agent-Configuration-File-Details.html
    """
    accelerators = _accelerators(vendor, cluster, node_group)
    collected = {**accelerators, **(_cpu() if accelerators else {}), **(_efa() if efa_traffic else {})}
    if not collected:
        return None
    return {
        "agent": {"metrics_collection_interval": NODE_METRICS.interval_seconds},
        "metrics": {
            "namespace": namespace,
            "append_dimensions": {NODE_METRICS.instance_id_dimension: "${aws:InstanceId}"},
            "aggregation_dimensions": [list(dimensions) for dimensions in NODE_METRICS.series],
            "metrics_collected": collected,
        },
    }


def neuron_monitor_configuration() -> dict[str, Any]:
    """Return neuron-monitor's configuration: reports that come whether or not a process uses the NeuronCores.

    Each report is the average since the last one. Two reports an interval, because one that comes just after the
    agent has looked counts for the next interval. `memory_info` is asked for since neuron-monitor reports when a
    metric is due, and a node on which nothing runs has no other.
    """
    return {
        "period": f"{NODE_METRICS.interval_seconds // 2}s",
        "neuron_runtimes": [{"tag_filter": ".*", "metrics": [{"type": "neuroncore_counters"}]}],
        "system_metrics": [{"type": "memory_info"}],
    }


def _accelerators(vendor: AcceleratorVendor, cluster: str, node_group: str) -> dict[str, Any]:
    if vendor is AcceleratorVendor.NVIDIA:
        # https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch-Agent-NVIDIA-GPU.html
        return {
            "nvidia_gpu": {
                "measurement": list(_GPU_MEASUREMENTS),
                "metrics_collection_interval": NODE_METRICS.interval_seconds,
                "append_dimensions": {
                    NODE_METRICS.cluster_dimension: cluster,
                    NODE_METRICS.node_group_dimension: node_group,
                },
                "drop_original_metrics": list(_GPU_MEASUREMENTS),
            }
        }
    if vendor in _STATSD:
        # The agent has no plug-in for them: a program sends it what neuron-monitor or the group's command says, as
        # histograms, of which it publishes maximum, sum and count of all values of an interval. What is not sent
        # again is forgotten, so that a reader that dies shows as missing data.
        # https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch-Agent-custom-metrics-statsd.html
        return {
            "statsd": {
                "service_address": f"127.0.0.1:{STATSD_PORT}",
                "metrics_collection_interval": NODE_METRICS.interval_seconds,
                "metrics_aggregation_interval": NODE_METRICS.interval_seconds,
                "drop_original_metrics": [_STATSD[vendor]],
            }
        }
    return {}


def _cpu() -> dict[str, Any]:
    # All vCPUs together, and none by itself, since no `resources` are named. They know of no cluster, so that the
    # series of the instance is the only one that comes about.
    measurements = [NODE_METRICS.cpu_usage.removeprefix("cpu_")]
    return {
        "cpu": {
            "totalcpu": True,
            "measurement": measurements,
            "metrics_collection_interval": NODE_METRICS.interval_seconds,
            "drop_original_metrics": measurements,
        }
    }


def _efa() -> dict[str, Any]:
    # Its devices know of no cluster, so that the series of the instance is the only one that comes about.
    # https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch-Agent-EFA.html
    measurements = [*NODE_METRICS.efa_traffic, NODE_METRICS.efa_retransmits]
    return {
        "efa": {
            "measurement": measurements,
            "metrics_collection_interval": NODE_METRICS.interval_seconds,
            "drop_original_metrics": measurements,
        }
    }
