"""What of a cluster is shown on dashboards."""

from cdk_training_cluster.core.dashboards.rows import (
    AlarmStatus,
    DashboardRow,
    Line,
    LineForEach,
    LogTable,
    Metric,
    Panel,
    PanelKind,
    Text,
    Threshold,
    Unit,
    function_metric,
)
from cdk_training_cluster.observability.dashboard import ClusterDashboard

__all__ = [
    "AlarmStatus",
    "ClusterDashboard",
    "DashboardRow",
    "Line",
    "LineForEach",
    "LogTable",
    "Metric",
    "Panel",
    "PanelKind",
    "Text",
    "Threshold",
    "Unit",
    "function_metric",
]
