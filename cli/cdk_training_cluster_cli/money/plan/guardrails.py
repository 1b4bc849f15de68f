"""What watching a cluster costs: metrics, alarms, what functions read, and their runs."""

from collections.abc import Iterator
from decimal import Decimal

from cdk_training_cluster import InstanceTypeInfo
from cdk_training_cluster.nodes.bootstrap.collector import series_of_a_node
from cdk_training_cluster.prices import PriceBook, watching
from cdk_training_cluster_cli.money.plan.lines import Line, units_line
from cdk_training_cluster_cli.money.plan.shape import ClusterShape

_SECONDS_OF_AN_HOUR = 3600


def guardrail_lines(shape: ClusterShape, book: PriceBook) -> Iterator[Line]:
    """Yield what is billed for watching the cluster; free tiers are not taken off.

    Args:
        shape: The cluster.
        book: The prices.
    """
    nodes, groups = sum(group.count for group in shape.groups), len(shape.groups)
    series = watching.series(groups, nodes, spend=shape.counts_spend, storage=shape.storage_series)
    yield _line(shape, book, "metrics", f"{series} custom metrics", watching.metric_units(series))
    yield _line(
        shape,
        book,
        "alarms",
        f"{shape.alarm_metrics} metrics of alarms",
        watching.alarm_units(shape.alarm_metrics),
    )
    if shape.dashboards:
        yield _line(shape, book, "dashboard", "CloudWatch dashboard", watching.dashboard_units(shape.dashboards))
    yield _line(
        shape,
        book,
        "reports",
        "PutMetricData of the nodes, GetMetricData of idle stop",
        watching.report_units(nodes),
    )
    yield _line(
        shape,
        book,
        "functions",
        f"{len(shape.functions)} functions, {watching.SECONDS_OF_A_RUN} s a run assumed",
        watching.function_units(shape.functions, shape.tables),
    )
    if shape.prometheus_seconds is not None:
        series = sum(group.count * max(map(_series, group.instance_types)) for group in shape.groups)
        samples = Decimal(series * _SECONDS_OF_AN_HOUR) / shape.prometheus_seconds
        yield _line(
            shape,
            book,
            "prometheus",
            f"{series} series of Prometheus, a sample every {shape.prometheus_seconds} s",
            {"prometheus-sample": samples},
        )


def _series(info: InstanceTypeInfo) -> int:
    return series_of_a_node(
        gpus=info.nvidia_gpu_count,
        efa_devices=info.maximum_efa_interfaces,
        neuron_devices=info.neuron_device_count,
    )


def _line(shape: ClusterShape, book: PriceBook, name: str, what: str, units: dict[str, Decimal]) -> Line:
    return units_line(f"guardrails.{name}", what, region=shape.region, book=book, an_hour=units)
