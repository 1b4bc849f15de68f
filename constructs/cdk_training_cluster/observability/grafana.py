"""Dashboards of Grafana, made of the rows that CloudWatch's dashboard is made of.

A metric of the nodes comes from Prometheus, by one table; what only AWS and the cluster's functions know comes from
CloudWatch. https://grafana.com/docs/grafana/latest/dashboards/build-dashboards/view-dashboard-json-model/
"""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from cdk_training_cluster.core.dashboards.rows import (
    DashboardRow,
    Line,
    LineForEach,
    Metric,
    Panel,
    PanelKind,
    Threshold,
    Unit,
)
from cdk_training_cluster.nodes.bootstrap.collector import EFA_PREFIX, NEURON_UTILIZATION
from cdk_training_cluster.validation.checks import is_unknown
from cluster_contract.metrics import NODE_METRICS, node_namespace

PROMETHEUS_UID: Final = "training-cluster-prometheus"
CLOUDWATCH_UID: Final = "training-cluster-cloudwatch"

# The metrics of CloudWatch's agent and what Prometheus has for them; @ is where the labels are limited to a cluster.
PROMQL: Final[Mapping[str, str]] = {
    NODE_METRICS.gpu_utilization: "DCGM_FI_DEV_GPU_UTIL@",
    NODE_METRICS.gpu_memory_used: "DCGM_FI_DEV_FB_USED@",
    NODE_METRICS.gpu_temperature: "DCGM_FI_DEV_GPU_TEMP@",
    NODE_METRICS.gpu_power: "DCGM_FI_DEV_POWER_USAGE@",
    NODE_METRICS.neuron_core_utilization: f"{NEURON_UTILIZATION}@ * 100",
    # The agent reports what came since its last report.
    NODE_METRICS.efa_traffic[0]: f"increase({EFA_PREFIX}rx_bytes@[5m])",
    NODE_METRICS.efa_traffic[1]: f"increase({EFA_PREFIX}tx_bytes@[5m])",
    NODE_METRICS.efa_retransmits: f"increase({EFA_PREFIX}retrans_bytes@[5m])",
}
_AGGREGATIONS = {"Average": "avg", "Maximum": "max", "Minimum": "min", "Sum": "sum", "SampleCount": "count"}
_LABELS = {
    NODE_METRICS.cluster_dimension: "cluster",
    NODE_METRICS.node_group_dimension: "node_group",
    NODE_METRICS.instance_id_dimension: "instance",
}

# https://github.com/grafana/grafana/blob/main/packages/grafana-data/src/valueFormats/categories.ts
_UNITS = {
    Unit.PERCENT: "percent",
    Unit.BYTES: "bytes",
    Unit.BYTES_PER_SECOND: "Bps",
    Unit.MEBIBYTES: "mbytes",
    Unit.OPERATIONS_PER_SECOND: "ops",
    Unit.USD: "currencyUSD",
    Unit.USD_PER_HOUR: "currencyUSD",
    Unit.SECONDS: "s",
    Unit.MINUTES: "m",
    Unit.HOURS: "h",
    Unit.CELSIUS: "celsius",
    Unit.WATTS: "watt",
}

_COLUMNS, _PANELS_OF_A_LINE, _HEIGHT = 24, 3, 8


@dataclass(frozen=True, kw_only=True)
class Query:
    """One line, or a line for each series, of a panel that Prometheus fills.

    Attributes:
        legend: What it is; `{{instance}}` and the like are labels.
        expression: The query in PromQL; @ is where the labels are limited to the cluster.
    """

    legend: str
    expression: str


@dataclass(frozen=True, kw_only=True)
class PrometheusPanel:
    """A graph of what only Prometheus knows.

    Attributes:
        title: What it shows.
        unit: In what its values are.
        queries: Its lines.
        maximum: Where the axis ends. Default: - where the values do.
        thresholds: Horizontal lines. Default: - none.
    """

    title: str
    unit: Unit
    queries: Sequence[Query]
    maximum: float | None = None
    thresholds: Sequence[Threshold] = ()


_GPU, _NODE, _DEVICE = "{{instance}} GPU {{gpu}}", "{{instance}}", "{{instance}} {{device}}"


def _panel(title: str, unit: Unit, legend: str, expression: str, maximum: float | None = None) -> PrometheusPanel:
    return PrometheusPanel(
        title=title, unit=unit, queries=[Query(legend=legend, expression=expression)], maximum=maximum
    )


NODE_PANELS: Final[Mapping[str, Sequence[PrometheusPanel]]] = {
    "Accelerators": [
        _panel("Busy, by node", Unit.PERCENT, _NODE, "node:accelerator_utilization:avg@", 100),
        _panel("GPU memory in use", Unit.PERCENT, _GPU,
               "100 * DCGM_FI_DEV_FB_USED@ / (DCGM_FI_DEV_FB_USED@ + DCGM_FI_DEV_FB_FREE@)", 100),
        _panel("Power", Unit.WATTS, _NODE, "sum by (instance) (DCGM_FI_DEV_POWER_USAGE@)"),
        _panel("GPU temperature", Unit.CELSIUS, _GPU, "DCGM_FI_DEV_GPU_TEMP@"),
        _panel("GPU memory temperature", Unit.CELSIUS, _GPU, "DCGM_FI_DEV_MEMORY_TEMP@"),
        _panel("SM clock in MHz, slowest GPU", Unit.COUNT, _NODE, "min by (instance) (DCGM_FI_DEV_SM_CLOCK@)"),
    ],
    "Errors of GPUs": [
        _panel("Last Xid", Unit.COUNT, _GPU, "DCGM_FI_DEV_XID_ERRORS@"),
        _panel("Uncorrectable memory errors", Unit.COUNT, _GPU,
               "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL@ + DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS@"),
        _panel("Rows that could not be remapped", Unit.COUNT, _GPU, "DCGM_FI_DEV_ROW_REMAP_FAILURE@"),
        _panel("Slowed down by temperature", Unit.COUNT, _GPU, "rate(DCGM_FI_DEV_THERMAL_VIOLATION@[5m])"),
    ],
    "Elastic Fabric Adapters": [
        PrometheusPanel(
            title="Traffic",
            unit=Unit.BYTES_PER_SECOND,
            queries=[
                Query(legend=f"{_NODE} received", expression="node:efa_received_bytes:rate5m@"),
                Query(legend=f"{_NODE} sent", expression="node:efa_sent_bytes:rate5m@"),
            ],
        ),
        _panel("Sent again", Unit.PERCENT, _NODE, "100 * node:efa_retransmitted_bytes:ratio5m@"),
        _panel("Retransmission timeouts and lost remotes in 10 minutes", Unit.COUNT, _DEVICE,
               f"increase({EFA_PREFIX}retrans_timeout_events@[10m]) "
               f"+ increase({EFA_PREFIX}unresponsive_remote_events@[10m])"),
        _panel("Dropped packets a second", Unit.COUNT, _DEVICE, f"rate({EFA_PREFIX}rx_drops@[5m])"),
    ],
    "Hosts": [
        _panel("Load", Unit.COUNT, _NODE, "node_load1@"),
        _panel("Memory in use", Unit.PERCENT, _NODE,
               "100 * (1 - node_memory_MemAvailable_bytes@ / node_memory_MemTotal_bytes@)", 100),
        _panel("Disks and file systems in use", Unit.PERCENT, "{{instance}} {{mountpoint}}",
               "100 * (1 - node_filesystem_avail_bytes@ / node_filesystem_size_bytes@)", 100),
        PrometheusPanel(
            title="Network interfaces",
            unit=Unit.BYTES_PER_SECOND,
            queries=[
                Query(legend=f"{_DEVICE} received", expression="rate(node_network_receive_bytes_total@[5m])"),
                Query(legend=f"{_DEVICE} sent", expression="rate(node_network_transmit_bytes_total@[5m])"),
            ],
        ),
        _panel("Nodes that send metrics", Unit.NODES, "{{node_group}}", "count by (node_group) (node_load1@)"),
    ],
}  # fmt: skip


def limited(expression: str, cluster_name: str) -> str:
    """Return a query of PromQL that sees one cluster.

    Args:
        expression: The query, with @ after each series.
        cluster_name: The cluster's name.
    """
    return expression.replace("@", f"{{cluster={json.dumps(cluster_name)}}}")


def grafana_dashboard(
    cluster_name: str, region: str, rows: Iterable[DashboardRow], *, gpus: bool, efa: bool
) -> dict[str, Any]:
    """Return a dashboard as Grafana imports it.

    Args:
        cluster_name: The cluster's name.
        region: The region of what CloudWatch is asked.
        rows: What the parts of the cluster show.
        gpus: Whether nodes have NVIDIA GPUs. Without them nothing reports what DCGM reads.
        efa: Whether nodes have Elastic Fabric Adapters.
    """
    board = _Board(cluster_name, region)
    absent = (*(() if gpus else ("DCGM_",)), *(() if efa else (EFA_PREFIX, "node:efa_")))
    for title, panels in NODE_PANELS.items():
        board.add(title, [panel for panel in panels if not _asks(panel, absent)])
    for row in rows:
        # Texts and states of alarms are about CloudWatch's own dashboard.
        board.add(row.title, [panel for panel in row.panels if isinstance(panel, Panel)])
    return {
        # At most 40 characters.
        "uid": hashlib.sha256(f"training cluster {cluster_name}".encode()).hexdigest()[:40],
        "title": f"Training cluster {cluster_name}",
        "tags": ["training-cluster"],
        "timezone": "browser",
        "time": {"from": "now-6h", "to": "now"},
        "refresh": "1m",
        "schemaVersion": 39,
        "templating": {"list": board.variables},
        "panels": board.panels,
    }


def _asks(panel: PrometheusPanel, series: Sequence[str]) -> bool:
    return any(name in query.expression for query in panel.queries for name in series)


def data_sources(region: str, query_url: str) -> dict[str, Any]:
    """Return the provisioning file of the dashboard's data sources.

    Grafana signs its requests with the credentials of its own role.

    Args:
        region: The region of the cluster.
        query_url: The workspace's address.

    Source: https://grafana.com/docs/plugins/grafana-amazonprometheus-datasource/latest/configure/
    """
    return {
        "apiVersion": 1,
        "datasources": [
            {
                "name": "Training cluster (Prometheus)",
                "uid": PROMETHEUS_UID,
                "type": "grafana-amazonprometheus-datasource",
                "access": "proxy",
                "url": query_url,
                "jsonData": {
                    "httpMethod": "POST",
                    "sigV4Auth": True,
                    "sigV4AuthType": "default",
                    "sigV4Region": region,
                },
            },
            {
                "name": "Training cluster (CloudWatch)",
                "uid": CLOUDWATCH_UID,
                "type": "cloudwatch",
                "access": "proxy",
                "jsonData": {"authType": "default", "defaultRegion": region},
            },
        ],
    }


class _Board:
    """Collects panels, one under the other."""

    def __init__(self, cluster_name: str, region: str) -> None:
        self._cluster_name, self._region = cluster_name, region
        self.panels: list[dict[str, Any]] = []
        self.variables: list[dict[str, Any]] = []
        self._y = 0

    def add(self, title: str, panels: Sequence[PrometheusPanel | Panel]) -> None:
        if not panels:
            return
        self._place({"type": "row", "title": title, "panels": []}, 0, _COLUMNS, 1)
        self._y += 1
        for start in range(0, len(panels), _PANELS_OF_A_LINE):
            line = panels[start : start + _PANELS_OF_A_LINE]
            width = _COLUMNS // len(line)
            for number, panel in enumerate(line):
                self._place(self._panel(panel), number * width, width, _HEIGHT)
            self._y += _HEIGHT

    def _place(self, panel: dict[str, Any], x: int, width: int, height: int) -> None:
        place = {"x": x, "y": self._y, "w": width, "h": height}
        self.panels.append({"id": len(self.panels) + 1, "gridPos": place, **panel})

    def _panel(self, panel: PrometheusPanel | Panel) -> dict[str, Any]:
        as_number = isinstance(panel, Panel) and panel.kind is PanelKind.NUMBER
        defaults: dict[str, Any] = {"unit": _UNITS.get(panel.unit, "short"), "min": 0}
        if panel.maximum is not None:
            defaults["max"] = panel.maximum
        if panel.thresholds:
            steps: list[dict[str, object]] = [{"color": "green", "value": None}]
            steps += [{"color": "red", "value": each.value} for each in panel.thresholds]
            defaults |= {"thresholds": {"mode": "absolute", "steps": steps}}
            defaults |= {"custom": {"thresholdsStyle": {"mode": "line"}}}
        queries = panel.queries if isinstance(panel, PrometheusPanel) else _queries(panel.lines, self._cluster_name)
        if queries is not None:
            source = {"type": "grafana-amazonprometheus-datasource", "uid": PROMETHEUS_UID}
            targets = [
                {"expr": limited(query.expression, self._cluster_name), "legendFormat": query.legend}
                for query in queries
            ]
        else:
            source, targets = {"type": "cloudwatch", "uid": CLOUDWATCH_UID}, [*self._cloudwatch(panel)]
        return {
            "type": "stat" if as_number else "timeseries",
            "title": panel.title,
            "datasource": source,
            "fieldConfig": {"defaults": defaults, "overrides": []},
            "targets": [{"refId": _ref(number), **target} for number, target in enumerate(targets)],
        }

    def _cloudwatch(self, panel: PrometheusPanel | Panel) -> Iterator[dict[str, Any]]:
        lines = () if isinstance(panel, PrometheusPanel) else panel.lines
        for number, line in enumerate(lines):
            if isinstance(line, LineForEach):
                dimensions = dict.fromkeys(line.by, "*")
                if line.cluster_name is not None:
                    dimensions[NODE_METRICS.cluster_dimension] = line.cluster_name
                metric = Metric(
                    namespace=line.namespace, name=line.metric, dimensions=dimensions, statistic=line.statistic
                )
                label = " ".join(filter(None, (line.label, *(f"${{PROP('Dim.{name}')}}" for name in line.by))))
                yield self._target(metric, label=label)
                continue
            for name, metric in line.metrics.items():
                hidden = {"id": f"{name}{number}", "hide": True} if line.expression else {}
                yield self._target(metric, label=line.label, **hidden)
            if line.expression:
                yield self._calculation(line, number)

    def _target(self, metric: Metric, *, label: str, **more: object) -> dict[str, Any]:
        return {
            "queryMode": "Metrics",
            "metricQueryType": 0,
            "metricEditorMode": 0,
            "region": self._region,
            "namespace": metric.namespace,
            "metricName": metric.name,
            "dimensions": {name: self._value(metric, name, value) for name, value in metric.dimensions.items()},
            "matchExact": True,
            "statistic": metric.statistic,
            "period": str(metric.period_seconds),
            "label": label,
            **more,
        }

    def _calculation(self, line: Line, number: int) -> dict[str, Any]:
        # Ids are unique in a panel, where lines may use the same.
        ids = "|".join(map(re.escape, line.metrics))
        expression = re.sub(rf"\b({ids})\b", rf"\g<1>{number}", line.expression)
        return {
            "queryMode": "Metrics",
            "metricQueryType": 0,
            "metricEditorMode": 1,
            "region": self._region,
            "expression": expression,
            "label": line.label,
            "id": f"line{number}",
        }

    def _value(self, metric: Metric, dimension: str, value: str) -> str:
        """Return a dimension's value; of what only the deployment knows, a variable that lists what reports."""
        if not is_unknown(value):
            return value
        if dimension not in [each["name"] for each in self.variables]:
            query = f"dimension_values({self._region},{metric.namespace},{metric.name},{dimension})"
            source = {"type": "cloudwatch", "uid": CLOUDWATCH_UID}
            self.variables.append(
                {"name": dimension, "type": "query", "datasource": source, "query": query, "refresh": 1}
            )
        return f"${dimension}"


def _ref(number: int) -> str:
    return chr(ord("A") + number) if number < len("ABCDEFGHIJKLMNOPQRSTUVWXYZ") else f"A{number}"


def _queries(lines: Iterable[Line | LineForEach], cluster_name: str) -> list[Query] | None:
    """Return what Prometheus is asked for the lines of a panel; None: it does not have all of them."""
    found = [_query(line, cluster_name) for line in lines]
    return None if None in found else [query for query in found if query is not None]


def _query(line: Line | LineForEach, cluster_name: str) -> Query | None:
    if isinstance(line, LineForEach):
        namespace, name, statistic, by = line.namespace, line.metric, line.statistic, line.by
    elif line.expression or len(line.metrics) != 1:
        return None
    else:
        [metric] = line.metrics.values()
        namespace, name, statistic, by = metric.namespace, metric.name, metric.statistic, tuple(metric.dimensions)
    if namespace != node_namespace(cluster_name) or name not in PROMQL or statistic not in _AGGREGATIONS:
        return None
    labels = [_LABELS[dimension] for dimension in by if dimension in _LABELS]
    told = [line.label] if line.label or not isinstance(line, LineForEach) else []
    legend = " ".join([*told, *(f"{{{{{label}}}}}" for label in labels if isinstance(line, LineForEach))])
    whole = f"{_AGGREGATIONS[statistic]} by ({', '.join(labels)}) ({PROMQL[name]})"
    if isinstance(line, LineForEach) and line.lowest is not None:
        whole = f"bottomk({line.lowest}, {whole})"
    return Query(legend=legend, expression=whole)
