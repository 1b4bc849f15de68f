"""The power function's settings, which its construct writes, and its metrics."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Annotated

from cluster_contract.codec import FunctionSettings, Within, variable
from cluster_contract.owners import OwnedGroupSettings
from cluster_contract.schedule import ScheduleSettings

_Time = Annotated[timedelta, Within(minimum=0)]


@dataclass(frozen=True, kw_only=True)
class PowerGroupSettings(OwnedGroupSettings):
    """What the power function has to know of one node group.

    Attributes:
        count: How many nodes it has.
        block: The id of the Capacity Block that its nodes run in. Default: - none.
        block_ends_early: How long before the block's end EC2 begins to terminate its nodes.
        listed: The ids of the reservations that some of its nodes may run in; their ends are reported, and the group
            keeps its size.
        blocks: The ids of Capacity Blocks that others of its nodes may run in; their ends are reported likewise.
        on_demand: Whether On-Demand Instances replace the nodes in those blocks.
        reservation: The id of the capacity reservation that its nodes run in. Default: - none.
        released: The id of the one that its nodes run in, and that is lowered while the group is stopped.
            Default: - none.
        warm_pool: Whether it has a warm pool, whose nodes are renewed after a deployment when the group grows.
        schedule: The place of its schedule among the cluster's. Default: - it has none.
    """

    count: Annotated[int, Within(minimum=0)]
    block: str | None = None
    block_ends_early: _Time = timedelta(minutes=30)
    listed: tuple[str, ...] = ()
    blocks: tuple[str, ...] = ()
    on_demand: bool = True
    reservation: str | None = None
    released: str | None = None
    warm_pool: bool = False
    schedule: Annotated[int, Within(minimum=0)] | None = None

    @property
    def reservation_id(self) -> str | None:
        """The id of the capacity reservation that its nodes run in, whether or not it is lowered."""
        return self.reservation or self.released


@dataclass(frozen=True, kw_only=True)
class PowerFunctionSettings(FunctionSettings):
    """The settings of the power function.

    Attributes:
        cluster: The cluster's name, the value of the tag on everything that belongs to it.
        groups: The cluster's node groups, by name.
        launch_grace: How long nodes may take to launch before their absence is a problem.
        closing_notice: How long before its nodes are terminated an alert says that a Capacity Block ends.
        schedules: The schedules of its node groups, each once.
        topic_arn: The SNS topic that is notified when a problem begins and ends. Empty: there is none.
        state_table: The name of the cluster's state table.
        stack_id: The id of the stack that the function and the cluster's Auto Scaling groups belong to. Items that
            another stack wrote are ignored unless their owners are still there: a cluster that is deployed again
            starts.
        region: The region that the function runs in.
        function: The function's name.
    """

    environment_variable = "CLUSTER_POWER_SETTINGS"

    cluster: str
    groups: Mapping[str, PowerGroupSettings]
    launch_grace: _Time = timedelta(minutes=10)
    closing_notice: _Time = timedelta(minutes=30)
    schedules: tuple[ScheduleSettings, ...] = ()
    topic_arn: str = variable("ALERT_TOPIC_ARN")
    state_table: str = variable("STATE_TABLE")
    stack_id: str = variable("STACK_ID")
    region: str = variable("AWS_REGION")
    function: str = variable("AWS_LAMBDA_FUNCTION_NAME")

    def schedule(self, node_group: str) -> ScheduleSettings | None:
        """The schedule of a node group. None: it has none."""
        own = self.groups.get(node_group)
        return None if own is None or own.schedule is None else self.schedules[own.schedule]

    @property
    def reservations(self) -> dict[str, tuple[str, ...]]:
        """The ids of the Capacity Blocks and reservations, by node group, where there are any."""
        ids = {
            name: tuple(one for one in (group.block, *group.blocks, *group.listed, group.reservation_id) if one)
            for name, group in self.groups.items()
        }
        return {name: found for name, found in ids.items() if found}


class PowerMetric(StrEnum):
    """The metrics of the power function, one point a minute each."""

    MISSING_NODES = "MissingNodes"
    """How many nodes should run and do not, by cluster and by node group."""

    SURPLUS_NODES = "SurplusNodes"
    """How many nodes live, and are billed, beyond those that should, likewise."""

    RUNNING_NODES = "RunningNodes"
    """How many nodes are in service, by cluster and by node group."""

    WANTED_NODES = "WantedNodes"
    """How many nodes should run, likewise."""

    HOURS_TO_END = "HoursToCapacityEnd"
    """In how many hours the first of its reservations and blocks ends, by node group; no data where none does."""

    HELD_GROUPS = "HeldGroups"
    """How many node groups have a size that the power function did not give them, by cluster."""

    MIXED_GROUPS = "MixedGroups"
    """How many node groups have nodes of different launch template versions, by cluster."""

    SUCCESSFUL_TICKS = "SuccessfulTicks"
    """1 for a run of the schedule in which nothing failed, else 0, by cluster."""
