"""What the nodes report, as CloudWatch metrics of CDK."""

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch

from cluster_contract.metrics import NODE_METRICS, node_namespace


def utilization_metric(
    cluster_name: str, node_group: str | None = None, *, neuron: bool, statistic: str, period: Duration | None
) -> cloudwatch.Metric:
    """Return how busy accelerators are, in percent: GPUs, or NeuronCores.

    Args:
        cluster_name: The cluster's name.
        node_group: The node group's name. Default: - the whole cluster.
        neuron: Whether NeuronCores are asked about.
        statistic: Over what the nodes report.
        period: How much time a point covers. None: 5 minutes.
    """
    name = NODE_METRICS.neuron_core_utilization if neuron else NODE_METRICS.gpu_utilization
    return node_metric(name, cluster_name, node_group, statistic=statistic, period=period)


def node_metric(
    name: str,
    cluster_name: str,
    node_group: str | None = None,
    *,
    statistic: str,
    period: Duration | None = None,
) -> cloudwatch.Metric:
    """Return one of `NODE_METRICS`, over the nodes of a group or of a whole cluster.

    Args:
        name: The metric's name.
        cluster_name: The cluster's name.
        node_group: The node group's name. Default: - the whole cluster.
        statistic: Over what the nodes report.
        period: How much time a point covers. Default: - 5 minutes.
    """
    dimensions = {NODE_METRICS.cluster_dimension: cluster_name}
    if node_group is not None:
        dimensions[NODE_METRICS.node_group_dimension] = node_group
    return cloudwatch.Metric(
        namespace=node_namespace(cluster_name),
        metric_name=name,
        dimensions_map=dimensions,
        statistic=statistic,
        period=period or Duration.minutes(5),
    )
