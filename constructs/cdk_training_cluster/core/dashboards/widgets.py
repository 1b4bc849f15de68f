"""CloudWatch's widgets, made from the rows of a dashboard.

https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/CloudWatch-Dashboard-Body-Structure.html
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

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
)
from cluster_contract.metrics import NODE_METRICS

MAX_WIDGETS = 500
"""The most widgets of a dashboard; the document names no limit on the body's length."""

_COLUMNS, _HEIGHT, _TITLE_HEIGHT = 24, 6, 1
_MOST_IN_A_LINE = 4
_PERIOD = 300

Widget = dict[str, Any]


def dashboard_body(rows: Sequence[DashboardRow], region: str) -> dict[str, Any]:
    """Return the body of a dashboard.

    Args:
        rows: What it shows, from the top.
        region: The region of all that it shows.

    Raises:
        ValueError: There are more widgets than CloudWatch takes.
    """
    widgets: list[Widget] = []
    top = 0
    for row in rows:
        title = _widget("text", {"markdown": f"## {row.title}", "background": "transparent"})
        widgets.append({**title, "x": 0, "y": top, "width": _COLUMNS, "height": _TITLE_HEIGHT})
        top += _TITLE_HEIGHT
        for panels in _lines_of_panels(row.panels):
            width = _COLUMNS // len(panels)
            height = max(panel.height if isinstance(panel, Text) else _HEIGHT for panel in panels)
            for number, panel in enumerate(panels):
                place = {"x": number * width, "y": top, "width": width, "height": height}
                widgets.append({**_widget_of(panel, region), **place})
            top += height
    if len(widgets) > MAX_WIDGETS:
        raise ValueError(
            f"a dashboard must have at most {MAX_WIDGETS} widgets, got {len(widgets)}: show fewer panels"
        )
    return {"start": "-PT12H", "widgets": widgets}


def _lines_of_panels(panels: Sequence[Any]) -> Iterator[Sequence[Any]]:
    """Yield what is side by side: as many lines as are needed, each about as long."""
    lines = -(-len(panels) // _MOST_IN_A_LINE)
    longest = -(-len(panels) // max(lines, 1))
    for start in range(0, len(panels), max(longest, 1)):
        yield panels[start : start + longest]


def _widget_of(panel: Panel | Text | AlarmStatus | LogTable, region: str) -> Widget:
    match panel:
        case Text():
            return _widget("text", {"markdown": panel.markdown})
        case AlarmStatus():
            return _widget("alarm", {"title": panel.title, "alarms": list(panel.alarm_arns)})
        case LogTable():
            query = " | ".join((f"SOURCE '{panel.log_group_name}'", *panel.query))
            return _widget("log", {"title": panel.title, "region": region, "query": query, "view": "table"})
        case Panel():
            return _widget("metric", _metric_properties(panel, region))


def _widget(kind: str, properties: Mapping[str, Any]) -> Widget:
    return {"type": kind, "properties": properties}


def _metric_properties(panel: Panel, region: str) -> dict[str, Any]:
    properties: dict[str, Any] = {
        "title": f"{panel.title} ({panel.unit.value})",
        "region": region,
        "period": _PERIOD,
        "metrics": [entry for number, line in enumerate(panel.lines) for entry in _entries(line, number)],
    }
    if panel.kind is PanelKind.NUMBER:
        return {**properties, "view": "singleValue"}
    axis: dict[str, Any] = {"min": 0, "showUnits": False}
    if panel.maximum is not None:
        axis["max"] = panel.maximum
    properties |= {"view": "timeSeries", "yAxis": {"left": axis}}
    if panel.thresholds:
        marks = [{"value": each.value, "label": each.label} for each in panel.thresholds]
        properties["annotations"] = {"horizontal": marks}
    return properties


def _entries(line: Line | LineForEach, number: int) -> Iterator[list[Any]]:
    if isinstance(line, LineForEach):
        yield [{"expression": search(line), "label": _label(line), "id": f"each{number}"}]
    elif line.expression:
        yield [{"expression": line.expression, "label": line.label, "id": f"line{number}"}]
        for name, metric in line.metrics.items():
            yield _metric(metric, id=name, visible=False)
    else:
        for metric in line.metrics.values():
            yield _metric(metric, label=line.label)


def _metric(metric: Metric, **settings: object) -> list[Any]:
    dimensions = [text for pair in metric.dimensions.items() for text in pair]
    return [metric.namespace, metric.name, *dimensions, {"stat": metric.statistic, **settings}]


def search(line: LineForEach) -> str:
    """Return the expression that finds the metrics of a line for each, as far as they reported in the last two weeks.

    Args:
        line: The line.

    Sources: https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/search-expression-syntax.html and
    https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/using-metric-math.html
    """
    of_cluster = {} if line.cluster_name is None else {NODE_METRICS.cluster_dimension: line.cluster_name}
    schema = ",".join((f'"{line.namespace}"', *of_cluster, *line.by))
    terms = " ".join(f'{name}="{value}"' for name, value in {"MetricName": line.metric, **of_cluster}.items())
    found = f"SEARCH('{{{schema}}} {terms}', '{line.statistic}')"
    return found if line.lowest is None else f"SORT({found}, AVG, ASC, {line.lowest})"


def _label(line: LineForEach) -> str:
    """Return a label that CloudWatch fills in.

    Source: https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/graph-dynamic-labels.html
    """
    return " ".join(filter(None, (line.label, *(f"${{PROP('Dim.{name}')}}" for name in line.by))))
