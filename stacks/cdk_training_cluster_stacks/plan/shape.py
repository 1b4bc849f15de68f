"""What of a cluster is billed: counted in the stacks that its file makes, which are built in memory."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from aws_cdk import App, CfnResource
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_scheduler as scheduler

from cdk_training_cluster import Capacity, InstanceTypeInfo, NodeFleet
from cdk_training_cluster.nodes.node_launch_template import root_volume_gib
from cdk_training_cluster_stacks.building import built_stacks
from cdk_training_cluster_stacks.cluster_file import ClusterFile

_MINUTES = {"minute": 1, "minutes": 1, "hour": 60, "hours": 60}


@dataclass(frozen=True, kw_only=True)
class GroupShape:
    """Nodes that are bought together.

    Attributes:
        name: The node group's name.
        instance_types: Its types, the best first.
        count: How many nodes run.
        capacity: How they are bought.
        root_volume_gib: The size of each one's root volume; the largest of all types.
        warm_nodes: How many nodes at most are kept stopped while the group is.
        efa: Whether they have Elastic Fabric Adapters.
    """

    name: str
    instance_types: tuple[InstanceTypeInfo, ...]
    count: int
    capacity: Capacity
    root_volume_gib: int = 200
    warm_nodes: int = 0
    efa: bool = True


@dataclass(frozen=True, kw_only=True)
class FileSystemShape:
    """An FSx for Lustre file system (PERSISTENT_2, SSD).

    Attributes:
        capacity_gib: Its size; a GB that AWS bills is a GiB.
        mbps_per_tib: Its throughput for each TiB.
    """

    capacity_gib: int
    mbps_per_tib: int


@dataclass(frozen=True, kw_only=True)
class ScheduledFunction:
    """A function that runs again and again.

    Attributes:
        memory_mib: Its memory.
        every_minutes: The time between two runs.
    """

    memory_mib: int
    every_minutes: int


@dataclass(frozen=True, kw_only=True)
class ClusterShape:
    """What of a cluster is billed.

    Attributes:
        name: The cluster's name.
        availability_zone: Its zone.
        region: Its region.
        groups: Its node groups.
        file_system: Its file system, or None.
        own_buckets: Buckets of the user's that datasets are read from.
        own_network: Whether it lives in a network that it did not make.
        nat_gateways: How many NAT gateways it makes, each with a public address.
        alarm_metrics: How many metrics its alarms look at.
        functions: Its functions that run on a schedule.
        tables: How many DynamoDB tables it has.
    """

    name: str
    availability_zone: str
    region: str
    groups: tuple[GroupShape, ...]
    file_system: FileSystemShape | None = None
    own_buckets: tuple[str, ...] = ()
    own_network: bool = False
    nat_gateways: int = 0
    alarm_metrics: int = 0
    functions: tuple[ScheduledFunction, ...] = ()
    tables: int = 0


def shape_of(cluster: ClusterFile) -> ClusterShape:
    """Build the stacks of a cluster file in memory, and count what is billed. It asks nothing of AWS.

    Args:
        cluster: What the file says.

    Raises:
        ValueError: A construct refuses its settings.
    """
    with built_stacks(cluster) as (app, stack):
        resources = [each for each in app.node.find_all() if CfnResource.is_cfn_resource(each)]
        kinds = Counter(each.cfn_resource_type for each in resources if isinstance(each, CfnResource))
        files = cluster.file_system
        return ClusterShape(
            name=cluster.name,
            availability_zone=cluster.availability_zone,
            region=cluster.region,
            groups=tuple(map(_group, stack.training_cluster.node_groups)),
            file_system=None
            if files is None
            else FileSystemShape(capacity_gib=files.storage_capacity_gib, mbps_per_tib=files.throughput_mbps_per_tib),
            own_buckets=tuple(sorted({each.bucket for each in cluster.datasets if each.bucket is not None})),
            own_network=cluster.network is not None,
            nat_gateways=kinds["AWS::EC2::NatGateway"],
            alarm_metrics=sum(_metrics(each) for each in resources if isinstance(each, cloudwatch.CfnAlarm)),
            functions=_functions(app),
            tables=kinds["AWS::DynamoDB::Table"],
        )


def _group(fleet: NodeFleet) -> GroupShape:
    group = fleet.node_group
    return GroupShape(
        name=group.name,
        instance_types=tuple(fleet.instance_types),
        count=group.count,
        capacity=group.capacity,
        root_volume_gib=max(root_volume_gib(group, info) for info in fleet.instance_types),
        warm_nodes=0 if group.warm_pool is None else group.warm_pool.size,
        efa=group.efa is not False,
    )


def _metrics(alarm: cloudwatch.CfnAlarm) -> int:
    """Count what CloudWatch bills an alarm for: each metric it looks at, not the expressions over them."""
    queries: Sequence[object] = alarm.metrics if isinstance(alarm.metrics, list) else ()
    of_metrics = [each for each in queries if getattr(each, "metric_stat", None) is not None]
    return max(len(of_metrics), 1)


def _functions(app: App) -> tuple[ScheduledFunction, ...]:
    """Return a function for each schedule: the schedule's constructs are siblings of the function it calls."""
    found = []
    for schedule in app.node.find_all():
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
        raise ValueError(f"the plan cannot read the schedule {expression!r}")
    return int(match[1]) * _MINUTES[match[2]]


def gib(mib: int) -> Decimal:
    """Return MiB in GiB."""
    return Decimal(mib) / 1024
