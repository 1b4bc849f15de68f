"""What watching a cluster costs: metrics, alarms, what functions read, and their runs."""

from collections.abc import Iterator
from decimal import Decimal

from cdk_training_cluster.prices import PriceBook
from cdk_training_cluster_stacks.plan.assumptions import HOURS_OF_A_MONTH
from cdk_training_cluster_stacks.plan.lines import Line, units_line
from cdk_training_cluster_stacks.plan.shape import ClusterShape

# The counts of the README's table "What watching costs".
_FUNCTION_SERIES = 20
_FUNCTION_SERIES_OF_A_GROUP = 3
_SHARED_SERIES = 2
_SHARED_SERIES_OF_A_GROUP = 2
_SERIES_OF_A_NODE = 3
_SERIES_READ_OF_A_NODE = 5
_READS_AN_HOUR = 12
_REQUESTS_OF_A_NODE_AN_HOUR = 60
_SECONDS_OF_A_RUN = 2
_TABLE_REQUESTS_OF_A_RUN = 2
_MIB_OF_A_GB = 1024


def guardrail_lines(shape: ClusterShape, book: PriceBook) -> Iterator[Line]:
    """Yield what is billed for watching the cluster; free tiers are not taken off.

    Args:
        shape: The cluster.
        book: The prices.
    """
    nodes, groups = sum(group.count for group in shape.groups), len(shape.groups)
    series = (
        _FUNCTION_SERIES
        + _SHARED_SERIES
        + (_FUNCTION_SERIES_OF_A_GROUP + _SHARED_SERIES_OF_A_GROUP) * groups
        + _SERIES_OF_A_NODE * nodes
    )
    month = 1 / HOURS_OF_A_MONTH
    runs = sum((Decimal(60) / each.every_minutes for each in shape.functions), Decimal(0))
    gb_seconds = sum(
        (
            Decimal(60) / each.every_minutes * each.memory_mib / _MIB_OF_A_GB * _SECONDS_OF_A_RUN
            for each in shape.functions
        ),
        Decimal(0),
    )
    yield _line(shape, book, "metrics", f"{series} custom metrics", {"cloudwatch-metric": series * month})
    yield _line(
        shape,
        book,
        "alarms",
        f"{shape.alarm_metrics} metrics of alarms",
        {"cloudwatch-alarm": shape.alarm_metrics * month},
    )
    yield _line(
        shape,
        book,
        "reports",
        "PutMetricData of the nodes, GetMetricData of idle stop",
        {
            "cloudwatch-request": Decimal(nodes * _REQUESTS_OF_A_NODE_AN_HOUR),
            "cloudwatch-get-metric-data": Decimal(nodes * _SERIES_READ_OF_A_NODE * _READS_AN_HOUR),
        },
    )
    yield _line(
        shape,
        book,
        "functions",
        f"{len(shape.functions)} functions, {_SECONDS_OF_A_RUN} s a run assumed",
        {
            "lambda-request": runs,
            "lambda-gb-second": gb_seconds,
            "dynamodb-read": runs * shape.tables * _TABLE_REQUESTS_OF_A_RUN,
            "dynamodb-write": runs * shape.tables,
        },
    )


def _line(shape: ClusterShape, book: PriceBook, name: str, what: str, units: dict[str, Decimal]) -> Line:
    return units_line(f"guardrails.{name}", what, region=shape.region, book=book, an_hour=units)
