"""Metrics in CloudWatch's embedded format: lines in the log, which need no call and no permission."""

from collections.abc import Mapping

from aws_lambda_powertools.metrics import EphemeralMetrics, MetricUnit

CLUSTER_DIMENSION = "Cluster"
NODE_GROUP_DIMENSION = "NodeGroup"


def emit_counts(counts: Mapping[str, int], **dimensions: str) -> None:
    """Write counts as metrics, in the namespace that `POWERTOOLS_METRICS_NAMESPACE` names.

    Args:
        counts: Metric names and values.
        **dimensions: Dimension names and values, exactly those that the alarms read.
    """
    # An empty service keeps Powertools from adding a dimension of its own, which would make another metric.
    metrics = EphemeralMetrics(service="")
    for name, value in dimensions.items():
        metrics.add_dimension(name=name, value=value)
    for name, count in counts.items():
        metrics.add_metric(name=name, unit=MetricUnit.Count, value=count)
    metrics.flush_metrics()
