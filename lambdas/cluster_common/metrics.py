"""Metrics in CloudWatch's embedded format: lines in the log, which need no call and no permission."""

from collections.abc import Mapping

from aws_lambda_powertools.metrics import EphemeralMetrics, MetricUnit

from cluster_contract.metrics import NODE_METRICS

CLUSTER_DIMENSION = NODE_METRICS.cluster_dimension
NODE_GROUP_DIMENSION = NODE_METRICS.node_group_dimension


def emit(values: Mapping[str, float], unit: MetricUnit, **dimensions: str) -> None:
    """Write values of one unit as metrics, in the namespace that `POWERTOOLS_METRICS_NAMESPACE` names.

    Args:
        values: Metric names and values.
        unit: The unit of all of them.
        **dimensions: Dimension names and values, exactly those that the alarms read.
    """
    # An empty service keeps Powertools from adding a dimension of its own, which would make another metric.
    metrics = EphemeralMetrics(service="")
    for dimension, of in dimensions.items():
        metrics.add_dimension(name=dimension, value=of)
    for name, value in values.items():
        metrics.add_metric(name=name, unit=unit, value=value)
    metrics.flush_metrics()


def emit_counts(counts: Mapping[str, int], **dimensions: str) -> None:
    """Write counts as metrics.

    Args:
        counts: Metric names and values.
        **dimensions: Dimension names and values, exactly those that the alarms read.
    """
    emit(counts, MetricUnit.Count, **dimensions)
