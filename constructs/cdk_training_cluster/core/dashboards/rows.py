"""What a dashboard shows, apart from how it is drawn: rows, of which CloudWatch's and Grafana's are made.

Each part of a cluster describes its own row; nothing here knows the parts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from cluster_contract.metrics import FUNCTION_NAMESPACE, NODE_METRICS


class Unit(Enum):
    """In what a panel's values are; the value is the text at the axis."""

    PERCENT = "%"
    COUNT = "count"
    NODES = "nodes"
    BYTES = "bytes"
    BYTES_PER_SECOND = "bytes/s"
    MEBIBYTES = "MiB"
    OPERATIONS_PER_SECOND = "operations/s"
    USD = "USD"
    USD_PER_HOUR = "USD/hour"
    SECONDS = "seconds"
    MINUTES = "minutes"
    HOURS = "hours"
    CELSIUS = "°C"
    WATTS = "W"


class PanelKind(Enum):
    """How a panel shows its values."""

    GRAPH = "graph"
    """Lines over time."""

    NUMBER = "number"
    """The newest value of each line."""


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A metric of CloudWatch; plain data, where `cloudwatch.Metric` is an object of CDK's.

    Attributes:
        namespace: Its namespace.
        name: Its name.
        dimensions: All of its dimensions; values may be tokens.
        statistic: Over what is reported in a period.
        period_seconds: How much time a point covers. Default: - 5 minutes.
    """

    namespace: str
    name: str
    dimensions: Mapping[str, str]
    statistic: str
    period_seconds: int = 300


@dataclass(frozen=True, kw_only=True)
class Line:
    """One line of a panel: a metric, or a calculation over metrics.

    Attributes:
        label: What it is, as the legend says it.
        metrics: The metric; of a calculation all that it uses, by the ids in the expression.
        expression: The calculation in CloudWatch's metric math, such as `read / PERIOD(read)`. Default: - none.
    """

    label: str
    metrics: Mapping[str, Metric]
    expression: str = ""

    @staticmethod
    def of(label: str, metric: Metric) -> "Line":
        """Return the line of one metric.

        Args:
            label: What it is.
            metric: The metric.
        """
        return Line(label=label, metrics={"metric": metric})


def function_metric(cluster_name: str, name: str, statistic: str, **dimensions: str) -> Metric:
    """Return a metric that a function of the cluster reports.

    Args:
        cluster_name: The cluster's name.
        name: The metric's name.
        statistic: Over what is reported in a period.
        **dimensions: Its dimensions beside `Cluster`.
    """
    return Metric(
        namespace=FUNCTION_NAMESPACE,
        name=name,
        dimensions={NODE_METRICS.cluster_dimension: cluster_name, **dimensions},
        statistic=statistic,
    )


@dataclass(frozen=True, kw_only=True)
class LineForEach:
    """A line for each node, node group or the like of a cluster that reports a metric, however many there are.

    Its size in a dashboard does not depend on how many report. The metric's dimensions are `Cluster` and those of
    `by`, and no others.

    Attributes:
        metric: The metric's name, such as `NODE_METRICS.gpu_utilization`.
        cluster_name: The cluster's name. None: the metric has no dimension `Cluster`, and all that report it in the
            namespace are shown.
        by: The dimensions beside `Cluster`, such as `("NodeGroup", "InstanceId")`; their values are the label.
        statistic: Over what is reported in a period.
        namespace: The metric's namespace, such as that of `node_namespace`.
        lowest: Only so many lines, those with the lowest averages. Default: - all.
        label: What stands before the dimensions' values. Default: - nothing.
    """

    metric: str
    cluster_name: str | None
    by: tuple[str, ...]
    statistic: str
    namespace: str
    lowest: int | None = None
    label: str = ""


@dataclass(frozen=True, kw_only=True)
class Threshold:
    """A horizontal line in a graph.

    Attributes:
        value: Where it is.
        label: What it is.
    """

    value: float
    label: str


@dataclass(frozen=True, kw_only=True)
class Panel:
    """A graph or numbers.

    Attributes:
        title: What it shows.
        unit: In what its values are.
        lines: What it shows, line by line.
        kind: How. Default: - as a graph.
        thresholds: Horizontal lines. Default: - none.
        maximum: Where the axis ends. Default: - where the values do.
    """

    title: str
    unit: Unit
    lines: Sequence[Line | LineForEach]
    kind: PanelKind = PanelKind.GRAPH
    thresholds: Sequence[Threshold] = ()
    maximum: float | None = None


@dataclass(frozen=True, kw_only=True)
class Text:
    """A text.

    Attributes:
        markdown: The text.
        height: How high it is, in CloudWatch's units; a graph is 6 high. Default: - 6.
    """

    markdown: str
    height: int = 6


@dataclass(frozen=True, kw_only=True)
class AlarmStatus:
    """The states of alarms.

    Attributes:
        title: What they are about.
        alarm_arns: The alarms.
    """

    title: str
    alarm_arns: Sequence[str]


@dataclass(frozen=True, kw_only=True)
class LogTable:
    """What a query of CloudWatch Logs Insights finds; Grafana's dashboards leave it out.

    Attributes:
        title: What it shows.
        log_group_name: The log group that it asks.
        query: The query's commands, without `|`.
    """

    title: str
    log_group_name: str
    query: Sequence[str]


@dataclass(frozen=True, kw_only=True)
class DashboardRow:
    """What one part of a cluster shows.

    Attributes:
        title: The part, such as `File system`.
        panels: What is side by side; a row that is too long goes on in the next line.
    """

    title: str
    panels: Sequence[Panel | Text | AlarmStatus | LogTable]
