"""What of a cluster is billed by the hour whether or not nodes run: counted in the constructs that make it."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_scheduler as scheduler
from constructs import IConstruct

from cdk_training_cluster.core.state import ClusterState
from cdk_training_cluster.guardrails.checkpoint_watch import CheckpointWatch
from cdk_training_cluster.guardrails.hydration import DatasetHydration
from cdk_training_cluster.guardrails.money.budget import Budget
from cdk_training_cluster.network import ClusterNetwork
from cdk_training_cluster.prices import watching
from cdk_training_cluster.prices.watching import ScheduledFunction
from cdk_training_cluster.storage import TrainingFileSystem
from cluster_contract.listings import has_source
from cluster_contract.spend import HOURS_OF_A_MONTH, SpendKind

_MINUTES = {"minute": 1, "minutes": 1, "hour": 60, "hours": 60}

# A cluster has one, which may be another stack's.
_STATE_TABLES = 1

UNKNOWN_FILE_SYSTEM = "file system whose size is not known"
"""Names a price that no list has."""

FixedParts = dict[str, dict[str, float]]
"""Units an hour by their names in the price list, by the kind of charge."""


@dataclass(frozen=True, kw_only=True)
class WatchedParts:
    """What watches a cluster, and what its network takes.

    Attributes:
        alarm_metrics: How many metrics its alarms use.
        functions: Its functions that run on a schedule.
        tables: How many tables there are in which functions keep their state.
        nat_gateways: How many NAT gateways there are.
        dashboards: How many CloudWatch dashboards there are.
        storage_series: How many custom metrics the checkpoint and hydration functions have.
    """

    alarm_metrics: int = 0
    functions: tuple[ScheduledFunction, ...] = ()
    tables: int = 0
    nat_gateways: int = 0
    dashboards: int = 0
    storage_series: int = 0


def watched_parts(scope: IConstruct) -> WatchedParts:
    """Count what is in a construct and below it.

    Args:
        scope: The construct.
    """
    every = scope.node.find_all()
    return WatchedParts(
        alarm_metrics=sum(_metrics(each) for each in every if isinstance(each, cloudwatch.CfnAlarm)),
        functions=_functions(every),
        tables=sum(isinstance(each, ClusterState) for each in every),
        nat_gateways=sum(isinstance(each, ec2.CfnNatGateway) for each in every),
        dashboards=sum(isinstance(each, cloudwatch.CfnDashboard) for each in every),
        storage_series=watching.CHECKPOINT_SERIES * any(isinstance(each, CheckpointWatch) for each in every)
        + watching.HYDRATION_SERIES * any(isinstance(each, DatasetHydration) for each in every),
    )


def file_system_units(file_system: TrainingFileSystem | None) -> dict[str, Decimal]:
    """Return what a file system takes in an hour; what is stored with Intelligent-Tiering is known to AWS alone.

    Args:
        file_system: The file system, or None.
    """
    if file_system is None:
        return {}
    units = None if file_system.settings is None else file_system.settings.units_of_a_month()
    if units is None:
        return {UNKNOWN_FILE_SYSTEM: Decimal(1)}
    return {name: count / HOURS_OF_A_MONTH for name, count in units.items()}


def network_units(nat_gateways: int) -> dict[str, Decimal]:
    """Return what NAT gateways with their addresses take in an hour.

    Args:
        nat_gateways: How many there are.
    """
    return {"nat-gateway": Decimal(nat_gateways), "public-ipv4": Decimal(nat_gateways)} if nat_gateways else {}


def fixed_parts(
    scope: IConstruct,
    *,
    network: ClusterNetwork | None,
    file_system: TrainingFileSystem | None,
    groups: int,
    own_alarms: int,
    own_function: ScheduledFunction,
    dashboards: int,
    orchestrator: Mapping[str, Decimal],
) -> FixedParts:
    """Return what of a cluster is billed by the hour whether or not nodes run.

    Args:
        scope: The cluster, with everything in it but the spend function.
        network: Its network, which may be another stack's. None: another cluster counts it.
        file_system: Its file system, or None.
        groups: How many node groups it has.
        own_alarms: How many alarms the spend function adds.
        own_function: The spend function.
        dashboards: How many dashboards are made.
        orchestrator: What the orchestrator that runs jobs takes in an hour.
    """
    watched = watched_parts(scope)
    guardrails = (
        watching.metric_units(watching.series(groups, 0, spend=True, storage=watched.storage_series)),
        watching.alarm_units(watched.alarm_metrics + own_alarms),
        watching.dashboard_units(dashboards),
        watching.function_units([*watched.functions, own_function], _STATE_TABLES),
    )
    parts = {
        SpendKind.FILE_SYSTEM: file_system_units(file_system),
        SpendKind.NETWORK: network_units(watched_parts(network).nat_gateways) if network else {},
        SpendKind.GUARDRAILS: watching.sum_units(guardrails),
        SpendKind.ORCHESTRATOR: dict(orchestrator),
    }
    return {kind.value: as_floats(units) for kind, units in parts.items() if units}


def orchestrator_price_problems(budget: Budget, units: Iterable[Mapping[str, Decimal]], region: str) -> Iterator[str]:
    """Yield which prices of the orchestrator that runs jobs its budget must state, since nothing else can say them.

    Args:
        budget: The budget.
        units: What the orchestrator bills by the hour.
        region: The region.
    """
    names = sorted({name for each in units for name in each})
    missing = [name for name in names if name not in budget.prices and not has_source(name, region)]
    if missing:
        yield (
            f"budget.prices must state the price an hour, in USD, of {', '.join(missing)}: no price list that this "
            "library reads has it, and without it neither the month's dollars nor on_exceed would count "
            "the orchestrator; look it up at https://aws.amazon.com/pcs/pricing/"
        )


def as_floats(units: Mapping[str, Decimal]) -> dict[str, float]:
    """Return units as settings hold them, to nine digits."""
    return {name: float(f"{count:.9g}") for name, count in units.items()}


def _metrics(alarm: cloudwatch.CfnAlarm) -> int:
    """Count what CloudWatch bills an alarm for: each metric it uses, not the expressions over them."""
    queries: Sequence[object] = alarm.metrics if isinstance(alarm.metrics, list) else ()
    of_metrics = [each for each in queries if getattr(each, "metric_stat", None) is not None]
    return max(len(of_metrics), 1)


def _functions(every: Sequence[IConstruct]) -> tuple[ScheduledFunction, ...]:
    """Return a function for each schedule: the schedule's constructs are siblings of the function it calls."""
    found = []
    for schedule in every:
        if isinstance(schedule, scheduler.CfnSchedule) and schedule.node.scope is not None:
            near = schedule.node.scope.node.find_all()
            memory = [each.memory_size or 128 for each in near if isinstance(each, lambda_.CfnFunction)]
            found.append(
                ScheduledFunction(
                    memory_mib=int(max(memory, default=128)), every_minutes=_minutes(schedule.schedule_expression)
                )
            )
    return tuple(sorted(found, key=lambda each: (each.every_minutes, each.memory_mib)))


def _minutes(expression: str) -> int:
    match = re.fullmatch(r"rate\((\d+) (minutes?|hours?)\)", expression)
    if match is None:
        raise ValueError(f"the schedule {expression!r} must be a rate of minutes or hours")
    return int(match[1]) * _MINUTES[match[2]]
