"""The names under which nodes and functions report: one place for the agent, `metric_*` methods and functions.

Plain data, so that anything may import it. A test compares the configuration of nodes with what is written here.
"""

from dataclasses import dataclass

from cluster_contract.health import NODE_FAULT, VERIFICATION_FAILED


@dataclass(frozen=True, kw_only=True)
class NodeMetrics:
    """The dimensions and metrics of training nodes, in the namespace that `node_namespace` returns.

    Every metric of an accelerator exists in four series: one an instance, one an instance with its node group and
    cluster, by which a dashboard finds the nodes of a cluster, one a node group, one a cluster.
    A sample is one reading of one device: a GPU once an interval, a NeuronCore twice. So `Average` is over devices
    and readings, `Maximum` is the busiest device and `SampleCount` shows a device that reports nothing. CloudWatch
    bills each series; those of single devices are not published. CPU use exists by instance only.

    Attributes:
        cluster_dimension: The dimension that holds the cluster's name.
        node_group_dimension: The dimension that holds the node group's name.
        instance_id_dimension: The dimension that holds the instance's id.
        interval_seconds: How often a node reports.
        gpu_utilization: Percent (0 to 100) of NVML's last sample period, between a sixth of a second and a second
            long, in which at least one kernel ran on an NVIDIA GPU. The agent reads it once an interval, so that
            nothing is known of the rest of it. A GPU in MIG mode has none.
        gpu_memory_used: MiB in use on an NVIDIA GPU.
        neuron_core_utilization: Percent (0 to 100) of half an interval in which a NeuronCore computed; 0 for a
            core that no process holds, nothing where any device is not seen. Neuron's own Prometheus
            exporter gives a ratio of 0 to 1 under a similar name, and nothing at all on an idle node.
        accelerator_utilization: Percent (0 to 100) of another accelerator, as a command on the node says it, such as
            hl-smi of a Gaudi; nothing while the command does not answer for every one of them.
        cpu_usage: Percent (0 to 100, with a fraction) of the last interval in which a node's vCPUs were not idle,
            all of them together.
        gpu_power: Watts that an NVIDIA GPU draws.
        gpu_temperature: Degrees Celsius of an NVIDIA GPU's core.
        efa_traffic: Bytes that a node's Elastic Fabric Adapters received, and sent, since the last report; by
            instance only, and only where an `IdlePolicy` uses them.
        efa_retransmits: Bytes that they sent again since the last report, likewise.
        bootstrap_failed: 1 when a node could not be set up, by cluster and node group and by cluster alone;
            no data otherwise.
        collector_failed: Likewise, when a node works but a part of its collector for Prometheus cannot be set up.
        node_fault: 1 when a node reports a fault that a reboot or another node ends, by cluster and node group and by
            cluster alone; no data otherwise.
        verification_failed: 1 when a node failed its verification, 0 when it passed, by cluster and node group and by
            cluster alone.
    """

    cluster_dimension: str
    node_group_dimension: str
    instance_id_dimension: str
    interval_seconds: int
    gpu_utilization: str
    gpu_memory_used: str
    gpu_power: str
    gpu_temperature: str
    neuron_core_utilization: str
    accelerator_utilization: str
    cpu_usage: str
    efa_traffic: tuple[str, ...]
    efa_retransmits: str
    bootstrap_failed: str
    collector_failed: str
    node_fault: str
    verification_failed: str

    @property
    def series(self) -> tuple[tuple[str, ...], ...]:
        """The sets of dimensions under which a metric of an accelerator exists."""
        node = (self.cluster_dimension, self.node_group_dimension, self.instance_id_dimension)
        return ((self.instance_id_dimension,), node, *self.shared_series)

    @property
    def shared_series(self) -> tuple[tuple[str, ...], ...]:
        """The sets of dimensions that the nodes of a group or cluster share."""
        return ((self.cluster_dimension, self.node_group_dimension), (self.cluster_dimension,))


# The names of GPUs, CPUs and EFA are the agent's own: AWS's documents and existing dashboards use the
# same names.
# https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch-Agent-NVIDIA-GPU.html
# https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/metrics-collected-by-CloudWatch-agent.html
# https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch-Agent-EFA.html
# What NVML calls utilization: https://docs.nvidia.com/deploy/nvml-api/structnvmlUtilization__t.html
# The Neuron name is that of the field in neuron-monitor's report.
# https://awsdocs-neuron.readthedocs-hosted.com/en/latest/tools/neuron-sys-tools/neuron-monitor-user-guide.html
NODE_METRICS = NodeMetrics(
    cluster_dimension="Cluster",
    node_group_dimension="NodeGroup",
    instance_id_dimension="InstanceId",
    interval_seconds=60,
    gpu_utilization="nvidia_smi_utilization_gpu",
    gpu_memory_used="nvidia_smi_memory_used",
    gpu_power="nvidia_smi_power_draw",
    gpu_temperature="nvidia_smi_temperature_gpu",
    neuron_core_utilization="neuroncore_utilization",
    accelerator_utilization="accelerator_utilization",
    cpu_usage="cpu_usage_active",
    efa_traffic=("efa_rx_bytes", "efa_tx_bytes"),
    efa_retransmits="efa_retrans_bytes",
    bootstrap_failed="BootstrapFailed",
    collector_failed="CollectorFailed",
    node_fault=NODE_FAULT,
    verification_failed=VERIFICATION_FAILED,
)
"""What the nodes of this library report."""

# IAM limits PutMetricData by the namespace alone, and not by dimensions, so that nodes and jobs of each cluster have
# namespaces of their own. The cluster's name is the last part, since it may contain slashes: no two names share one.
# https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/iam-cw-condition-keys-namespace.html
_BASE = "CdkTrainingCluster"

FUNCTION_NAMESPACE = f"{_BASE}/Functions"
"""The CloudWatch namespace of what the functions report, which no role of nodes or jobs may write."""


def node_namespace(cluster: str) -> str:
    """Return the CloudWatch namespace of what the nodes of a cluster report, which only their role may write.

    Args:
        cluster: The cluster's name.
    """
    return f"{_BASE}/Nodes/{cluster}"


def job_namespace(cluster: str) -> str:
    """Return the CloudWatch namespace of what the jobs of a cluster report, which only their role may write.

    Args:
        cluster: The cluster's name.
    """
    return f"{_BASE}/Jobs/{cluster}"
