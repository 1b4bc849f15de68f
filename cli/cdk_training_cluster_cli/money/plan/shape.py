"""What of a cluster is billed: counted in the stacks that its file makes, which are built in memory."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal

from cdk_training_cluster import Capacity, InstanceTypeInfo, NodeFleet, Schedule, TrainingCluster
from cdk_training_cluster.cluster.orchestrator import Orchestrator
from cdk_training_cluster.guardrails.money.fixed_parts import watched_parts
from cdk_training_cluster.nodes.legality import LEGALITY, Choice
from cdk_training_cluster.nodes.node_launch_template import root_volume_gib
from cdk_training_cluster.prices.watching import ScheduledFunction
from cdk_training_cluster.storage.file_system_settings import FileSystemSettings
from cdk_training_cluster_cli.money.plan.assumptions import HOURS_OF_A_MONTH
from cdk_training_cluster_file import ClusterFile
from cdk_training_cluster_stacks.building import built_stacks


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
        hours_a_month: For how many hours of a month of 730 they are billed, as their schedule says. None: for all.
        price_names: What the prices of its types are listed as. Default: - the types.
        takes_spot: Whether what launches its nodes takes Spot Instances.
        runs_for_jobs: Whether a scheduler runs its nodes only while jobs need them.
    """

    name: str
    instance_types: tuple[InstanceTypeInfo, ...]
    count: int
    capacity: Capacity
    root_volume_gib: int = 200
    warm_nodes: int = 0
    efa: bool = True
    hours_a_month: Decimal | None = None
    price_names: tuple[str, ...] = ()
    takes_spot: bool = True
    runs_for_jobs: bool = False

    @property
    def priced_as(self) -> tuple[str, ...]:
        """What the prices of its types are listed as."""
        return self.price_names or tuple(info.name for info in self.instance_types)

    @property
    def sold_by_ec2(self) -> bool:
        """Whether its nodes have the prices of EC2."""
        return self.priced_as == tuple(info.name for info in self.instance_types)

    @property
    def share(self) -> Decimal:
        """The part of the time for which they are billed."""
        return Decimal(1) if self.hours_a_month is None else self.hours_a_month / HOURS_OF_A_MONTH


@dataclass(frozen=True, kw_only=True)
class ClusterShape:
    """What of a cluster is billed.

    Attributes:
        name: The cluster's name.
        availability_zone: Its zone.
        region: Its region.
        groups: Its node groups.
        file_system: What its file system is made of. None: none is made.
        existing_file_system: The id of its file system that exists already, or None.
        own_buckets: Buckets of the user's that datasets are read from.
        own_network: Whether it lives in a network that it did not make.
        nat_gateways: How many NAT gateways it makes, each with a public address.
        alarm_metrics: How many metrics its alarms look at.
        dashboards: How many dashboards it has.
        functions: Its functions that run on a schedule.
        tables: How many DynamoDB tables it has.
        counts_spend: Whether the spend function is there.
        storage_series: How many custom metrics the checkpoint and hydration functions have.
        prometheus_seconds: The seconds from one sample of Prometheus to the next. None: nodes send it nothing.
        orchestrator_units: What the orchestrator bills by the hour while all nodes run, by the names of
            `UNITS`.
        billing_starts: From when on those of them are billed that are not billed always.
    """

    name: str
    availability_zone: str
    region: str
    groups: tuple[GroupShape, ...]
    file_system: FileSystemSettings | None = None
    existing_file_system: str | None = None
    own_buckets: tuple[str, ...] = ()
    own_network: bool = False
    nat_gateways: int = 0
    alarm_metrics: int = 0
    dashboards: int = 0
    functions: tuple[ScheduledFunction, ...] = ()
    tables: int = 0
    counts_spend: bool = False
    storage_series: int = 0
    prometheus_seconds: int | None = None
    orchestrator_units: Mapping[str, Decimal] = field(default_factory=dict)
    billing_starts: Mapping[str, datetime] = field(default_factory=dict)

    @property
    def has_file_system(self) -> bool:
        """Whether it has a file system, made or existing."""
        return self.file_system is not None or self.existing_file_system is not None


def shape_of(cluster: ClusterFile) -> ClusterShape:
    """Build the stacks of a cluster file in memory, and count what is billed. It asks nothing of AWS.

    Args:
        cluster: What the file says.

    Raises:
        ValueError: A construct refuses its settings.
    """
    with built_stacks(cluster) as (app, stack):
        watched, made = watched_parts(app), stack.training_cluster
        return ClusterShape(
            name=cluster.name,
            availability_zone=cluster.availability_zone,
            region=cluster.region,
            groups=tuple(
                _group(fleet, made.orchestrator, made.power.schedules.get(fleet.node_group.name))
                for fleet in made.node_groups
            ),
            file_system=None if made.file_system is None else made.file_system.settings,
            existing_file_system=_existing(cluster),
            own_buckets=tuple(sorted({each.bucket for each in cluster.datasets if each.bucket is not None})),
            own_network=cluster.network is not None,
            nat_gateways=watched.nat_gateways,
            alarm_metrics=watched.alarm_metrics,
            dashboards=watched.dashboards,
            functions=watched.functions,
            tables=watched.tables,
            counts_spend=made.spend is not None,
            storage_series=watched.storage_series,
            prometheus_seconds=None if made.prometheus is None else made.prometheus.collector.interval_seconds,
            orchestrator_units=_orchestrator_units(made),
            billing_starts=made.orchestrator.billing_starts(),
        )


def _orchestrator_units(made: TrainingCluster) -> Mapping[str, Decimal]:
    units = dict(made.orchestrator.hourly_units())
    for fleet in made.node_groups:
        for name, each in made.orchestrator.node_units(fleet).items():
            units[name] = units.get(name, Decimal(0)) + each * fleet.node_group.count
    return units


def _existing(cluster: ClusterFile) -> str | None:
    existing = None if cluster.file_system is None else cluster.file_system.existing
    return None if existing is None else existing.file_system_id


def _group(fleet: NodeFleet, orchestrator: Orchestrator, schedule: Schedule | None) -> GroupShape:
    group, capacity = fleet.node_group, fleet.node_group.capacity
    is_reserved = bool(capacity.makes_reservation or capacity.reservation_ids or capacity.block_ids)
    # What is reserved is billed whether nodes run or not, unless it is released.
    is_billed_always = schedule is None or (is_reserved and not capacity.releases)
    return GroupShape(
        name=group.name,
        instance_types=tuple(fleet.instance_types),
        count=group.count,
        capacity=group.capacity,
        root_volume_gib=max(root_volume_gib(group, info) for info in fleet.instance_types),
        warm_nodes=0 if group.warm_pool is None else group.warm_pool.size,
        efa=group.efa is not False,
        hours_a_month=None if is_billed_always or schedule is None else Decimal(round(schedule.hours_a_month)),
        price_names=tuple(orchestrator.price_name(info.name) for info in fleet.instance_types),
        takes_spot=not LEGALITY[orchestrator.kind][Choice.SPOT].instead,
        runs_for_jobs=fleet.owner_settings is not None and fleet.owner_settings.scheduler_sized,
    )


def gib(mib: int) -> Decimal:
    """Return MiB in GiB."""
    return Decimal(mib) / 1024
