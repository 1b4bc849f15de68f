"""Asks CloudWatch what a cluster's nodes did: what the idle stop found, and what accelerators were used.

An hour without data is unknown, never idle.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import TYPE_CHECKING

from cdk_training_cluster import InstanceTypeInfo
from cluster_contract.idle import IdleMetric
from cluster_contract.metrics import FUNCTION_NAMESPACE, NODE_METRICS, node_namespace
from cluster_contract.power import PowerMetric

if TYPE_CHECKING:
    from mypy_boto3_cloudwatch import CloudWatchClient
    from mypy_boto3_cloudwatch.type_defs import MetricDataQueryTypeDef

# CloudWatch keeps points of an hour for 455 days, finer ones for 63 at most:
# https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_MetricStat.html
_HOUR_SECONDS = 3600

_Points = dict[datetime, Decimal]


@dataclass(frozen=True, kw_only=True)
class GroupUse:
    """What the accelerators of a node group did.

    Attributes:
        group: The node group's name.
        hours: In how many hours they reported.
        average_percent: Their utilization over these hours. None: nothing was reported.
        busiest_hour_percent: Their average utilization in the hour with the highest.
        maximum_percent: The highest utilization of one of them in a minute.
        memory_mib: The most memory that was in use on one. None: Neuron devices report none.
    """

    group: str
    hours: int = 0
    average_percent: Decimal | None = None
    busiest_hour_percent: Decimal | None = None
    maximum_percent: Decimal | None = None
    memory_mib: Decimal | None = None


@dataclass(frozen=True, kw_only=True)
class Usage:
    """What the nodes of a cluster did.

    Attributes:
        groups: The node groups with accelerators.
        hours: In how many hours both the idle stop and the power function reported.
        node_hours: How many hours nodes ran in these.
        idle_node_hours: How many of these they were idle.
        reserved_usd: What nodes cost that were idle in reservations and Capacity Blocks, in US dollars.
    """

    groups: tuple[GroupUse, ...] = ()
    hours: int = 0
    node_hours: Decimal = Decimal(0)
    idle_node_hours: Decimal = Decimal(0)
    reserved_usd: Decimal = Decimal(0)

    @property
    def idle_share(self) -> Decimal | None:
        """Which share of the nodes' time they were idle. None: unknown, as where more were idle than ran.

        The idle stop counts every node of the cluster, the power function those of its node groups.
        """
        if not self.node_hours or self.idle_node_hours > self.node_hours:
            return None
        return self.idle_node_hours / self.node_hours


def ask_usage(
    client: "CloudWatchClient",
    cluster: str,
    groups: Sequence[tuple[str, InstanceTypeInfo]],
    start: date,
    end: date,
) -> Usage:
    """Return what the nodes of a cluster did.

    Args:
        client: CloudWatch in the cluster's region.
        cluster: The cluster's name.
        groups: The node groups by name, with their first types.
        start: The first day.
        end: The day after the last.
    """
    idle, running, reserved = (
        _Series(metric=metric, statistic="Average", namespace=FUNCTION_NAMESPACE, dimensions=(cluster,))
        for metric in (IdleMetric.IDLE_NODES, PowerMetric.RUNNING_NODES, IdleMetric.DOLLARS_RESERVED)
    )
    of_groups = {name: _of_group(cluster, name, info) for name, info in groups if _utilization(info) is not None}
    wanted = [idle, running, reserved, *(each for series in of_groups.values() for each in series)]
    points = _ask(client, wanted, start=start, end=end)
    both = points[idle].keys() & points[running].keys()
    return Usage(
        groups=tuple(_group_use(name, [points[each] for each in series]) for name, series in of_groups.items()),
        hours=len(both),
        node_hours=sum((points[running][hour] for hour in both), Decimal(0)),
        idle_node_hours=sum((points[idle][hour] for hour in both), Decimal(0)),
        reserved_usd=sum(points[reserved].values(), Decimal(0)),
    )


@dataclass(frozen=True, kw_only=True)
class _Series:
    """A series of CloudWatch.

    Attributes:
        metric: Its metric.
        statistic: What is asked of each hour.
        namespace: Its namespace.
        dimensions: The cluster's name and, for a node group, the group's.
    """

    metric: str
    statistic: str
    namespace: str
    dimensions: tuple[str, ...]

    def query(self, number: int) -> "MetricDataQueryTypeDef":
        names = (NODE_METRICS.cluster_dimension, NODE_METRICS.node_group_dimension)
        return {
            "Id": f"m{number}",
            "MetricStat": {
                "Metric": {
                    "Namespace": self.namespace,
                    "MetricName": str(self.metric),
                    "Dimensions": [
                        {"Name": name, "Value": value} for name, value in zip(names, self.dimensions, strict=False)
                    ],
                },
                "Period": _HOUR_SECONDS,
                "Stat": self.statistic,
            },
        }


def _utilization(info: InstanceTypeInfo) -> str | None:
    """Return the metric of the utilization of a type's accelerators. None: nodes report none."""
    if info.has_nvidia_gpus:
        return NODE_METRICS.gpu_utilization
    return NODE_METRICS.neuron_core_utilization if info.has_neuron_devices else None


def _of_group(cluster: str, name: str, info: InstanceTypeInfo) -> list[_Series]:
    """Return the series of a group's utilization, its maximum and the memory in use, as far as nodes report them."""
    wanted = [(_utilization(info), "Average"), (_utilization(info), "Maximum")]
    if info.has_nvidia_gpus:
        wanted.append((NODE_METRICS.gpu_memory_used, "Maximum"))
    return [
        _Series(metric=metric, statistic=statistic, namespace=node_namespace(cluster), dimensions=(cluster, name))
        for metric, statistic in wanted
        if metric is not None
    ]


def _ask(client: "CloudWatchClient", wanted: Sequence[_Series], *, start: date, end: date) -> dict[_Series, _Points]:
    points: list[_Points] = [{} for _ in wanted]
    pages = client.get_paginator("get_metric_data").paginate(
        MetricDataQueries=[series.query(number) for number, series in enumerate(wanted)],
        StartTime=datetime.combine(start, time(), UTC),
        EndTime=datetime.combine(end, time(), UTC),
    )
    for page in pages:
        for result in page["MetricDataResults"]:
            values = [Decimal(str(value)) for value in result["Values"]]
            points[int(result["Id"][1:])].update(zip(result["Timestamps"], values, strict=True))
    return dict(zip(wanted, points, strict=True))


def _group_use(name: str, points: Sequence[_Points]) -> GroupUse:
    average, maximum, *memory = points
    return GroupUse(
        group=name,
        hours=len(average),
        average_percent=sum(average.values(), Decimal(0)) / len(average) if average else None,
        busiest_hour_percent=max(average.values(), default=None),
        maximum_percent=max(maximum.values(), default=None),
        memory_mib=max((value for each in memory for value in each.values()), default=None),
    )
