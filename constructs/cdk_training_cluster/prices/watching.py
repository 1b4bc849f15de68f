"""What watching a cluster takes an hour, in units of the price list: metrics, alarms, what is read, and runs.

The counts are those of the table in docs/watching.md.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal

from cluster_contract.spend import HOURS_OF_A_MONTH

_FUNCTION_SERIES = 28
_FUNCTION_SERIES_OF_A_GROUP = 4
_SPEND_SERIES = 16
_SPEND_SERIES_OF_A_GROUP = 2
_SHARED_SERIES = 4
_SHARED_SERIES_OF_A_GROUP = 4
# Four metrics of its GPUs in two series each, and CPU use.
_SERIES_OF_A_NODE = 9
_SERIES_READ_OF_A_NODE = 5
_READS_AN_HOUR = 12
_REQUESTS_OF_A_NODE_AN_HOUR = 60
_TABLE_REQUESTS_OF_A_RUN = 2
_MIB_OF_A_GB = 1024
_MONTH = 1 / Decimal(HOURS_OF_A_MONTH)

CHECKPOINT_SERIES = 4
"""How many custom metrics the checkpoint function has."""

HYDRATION_SERIES = 2
"""How many the hydration function always has; while it restores a data set there are five more."""

SECONDS_OF_A_RUN = 2
"""How long a run of a function is assumed to take."""


@dataclass(frozen=True, kw_only=True)
class ScheduledFunction:
    """A function that runs again and again.

    Attributes:
        memory_mib: Its memory.
        every_minutes: The time between two runs.
    """

    memory_mib: int
    every_minutes: int


def series(groups: int, nodes: int, *, spend: bool, storage: int = 0) -> int:
    """Return how many custom metrics there are.

    Args:
        groups: How many node groups there are.
        nodes: How many nodes run.
        spend: Whether the spend function is there.
        storage: How many of them the checkpoint and hydration functions have.
    """
    of_a_group = _FUNCTION_SERIES_OF_A_GROUP + _SHARED_SERIES_OF_A_GROUP
    own = _SPEND_SERIES + _SPEND_SERIES_OF_A_GROUP * groups if spend else 0
    return _FUNCTION_SERIES + _SHARED_SERIES + of_a_group * groups + _SERIES_OF_A_NODE * nodes + own + storage


def metric_units(count: int) -> dict[str, Decimal]:
    """Return the units of custom metrics.

    Args:
        count: How many there are.
    """
    return {"cloudwatch-metric": count * _MONTH}


def report_units(nodes: int) -> dict[str, Decimal]:
    """Return the units of what running nodes report, and of what the idle stop reads of them.

    Args:
        nodes: How many run.
    """
    return {
        "cloudwatch-request": Decimal(nodes * _REQUESTS_OF_A_NODE_AN_HOUR),
        "cloudwatch-get-metric-data": Decimal(nodes * _SERIES_READ_OF_A_NODE * _READS_AN_HOUR),
    }


def node_units() -> dict[str, Decimal]:
    """Return the units that one running node adds."""
    return {**metric_units(_SERIES_OF_A_NODE), **report_units(1)}


def dashboard_units(dashboards: int) -> dict[str, Decimal]:
    """Return the units of dashboards.

    Args:
        dashboards: How many there are.
    """
    return {"cloudwatch-dashboard": dashboards * _MONTH} if dashboards else {}


def alarm_units(metrics: int) -> dict[str, Decimal]:
    """Return the units of alarms.

    Args:
        metrics: How many metrics they use.
    """
    return {"cloudwatch-alarm": metrics * _MONTH}


def function_units(functions: Iterable[ScheduledFunction], tables: int) -> dict[str, Decimal]:
    """Return the units of functions' runs, and of what they ask of the state table.

    Args:
        functions: The functions.
        tables: How many tables there are.
    """
    runs, gb_seconds = Decimal(), Decimal()
    for each in functions:
        runs_an_hour = Decimal(60) / each.every_minutes
        runs += runs_an_hour
        gb_seconds += runs_an_hour * SECONDS_OF_A_RUN * each.memory_mib / _MIB_OF_A_GB
    return {
        "lambda-request": runs,
        "lambda-gb-second": gb_seconds,
        "dynamodb-read": runs * tables * _TABLE_REQUESTS_OF_A_RUN,
        "dynamodb-write": runs * tables,
    }


def sum_units(parts: Iterable[Mapping[str, Decimal]]) -> dict[str, Decimal]:
    """Add up units by their names."""
    found: dict[str, Decimal] = {}
    for part in parts:
        for name, count in part.items():
            found[name] = found.get(name, Decimal()) + count
    return found
