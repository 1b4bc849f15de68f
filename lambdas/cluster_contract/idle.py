"""The settings of the idle function, which its construct writes, and the names of its metrics."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from functools import cached_property
from typing import Annotated

from cluster_contract.codec import FunctionSettings, Within, variable
from cluster_contract.metrics import node_namespace
from cluster_contract.owners import OwnedGroupSettings
from cluster_contract.tags import CLUSTER_TAG

PERIOD = timedelta(minutes=5)
"""How much time one point of a metric covers."""


_Limit = Annotated[float, Within(minimum=0)]
_Share = Annotated[float, Within(above=0, maximum=1)]
_Time = Annotated[timedelta, Within(minimum=0)]
_Index = Annotated[int, Within(minimum=0)]


class IdleScope(StrEnum):
    """What is stopped together."""

    GANG = "gang"
    """A node group, when all its nodes are idle: one that waits for its peers is not idle."""

    NODE = "node"
    """Each node by itself: right for nodes that work alone, such as a lab's or an inference group's."""


class SignalKind(StrEnum):
    """What else must agree that a node is idle."""

    CPU = "cpu"
    NETWORK = "network"
    GPU_MEMORY = "gpu_memory"
    HEARTBEAT = "heartbeat"
    SESSION = "session"
    METRIC = "metric"


@dataclass(frozen=True, kw_only=True)
class Signal:
    """One more thing that must agree that a node is idle.

    Attributes:
        kind: What is looked at.
        below: What it stays below on an idle node: vCPUs, bytes per second, MiB, or the metric's own unit.
        namespace: Of `METRIC`: the metric's namespace. Empty: that of the nodes' metrics.
        metric: Of `METRIC`: its name; its one dimension is `InstanceId`.
        statistic: Of `METRIC`: the statistic over a period.
    """

    kind: SignalKind
    below: _Limit = 0.0
    namespace: str = ""
    metric: str = ""
    statistic: str = ""


@dataclass(frozen=True, kw_only=True)
class _Rule:
    """What a policy says but for its signals.

    Attributes:
        below: The utilization, in percent, that every period of an idle window stays below.
        window: For how long; without a period in it, a node of which nothing was seen would be idle.
        coverage: The share of the window's periods that must have a point.
        grace: How long after its launch a node is left alone.
        warning: How long before the stop the warning is sent.
        scope: What is stopped together.
        dry_run: Whether nodes are reported and not stopped.
        off: Whether it is never stopped, nor looked at.
    """

    below: _Limit = 5.0
    window: Annotated[timedelta, Within(minimum=PERIOD.total_seconds())] = timedelta(minutes=60)
    coverage: _Share = 0.9
    grace: _Time = timedelta(minutes=30)
    warning: _Time = timedelta(minutes=30)
    scope: IdleScope = IdleScope.GANG
    dry_run: bool = False
    off: bool = False


@dataclass(frozen=True, kw_only=True)
class Policy(_Rule):
    """When a node counts as idle, and what is done then.

    Attributes:
        signals: What else must agree.
    """

    signals: tuple[Signal, ...] = ()

    @property
    def span(self) -> timedelta:
        """How far back metrics are read: as far as a warning and the window before it reach."""
        return self.window + self.warning + PERIOD


@dataclass(frozen=True, kw_only=True)
class PolicySettings(_Rule):
    """A policy as the function's environment has it, where policies share their signals.

    Attributes:
        signals: The indices of what else must agree.
    """

    signals: tuple[_Index, ...] = ()

    @classmethod
    def of(cls, policy: Policy, signals: Sequence[Signal]) -> "PolicySettings":
        """Return a policy with the indices of its signals.

        Args:
            policy: The policy.
            signals: Each signal once.
        """
        return cls(**{**vars(policy), "signals": tuple(signals.index(one) for one in policy.signals)})


@dataclass(frozen=True, kw_only=True)
class IdleGroupSettings(OwnedGroupSettings):
    """What the idle function has to know of one node group.

    Attributes:
        policy: The index of its policy.
        release: Whether its reservation is lowered while it is stopped, so that stopping saves money.
    """

    policy: _Index = 0
    release: bool = False


@dataclass(frozen=True, kw_only=True)
class IdleFunctionSettings(FunctionSettings):
    """The settings of the idle function.

    Attributes:
        cluster: The cluster's name, the value of the tag on its instances.
        signals: Each signal once.
        policies: Each policy once; the first is that of every instance of no node group.
        groups: The cluster's node groups, by name.
        max_stops: How many nodes one run stops at most.
        max_unknown_share: If more than this share of the cluster turns unknown within three ticks, nothing is done.
        tag: The key of the tag that says which instances are the cluster's.
        namespace: Where the nodes' metrics are. Empty: in the namespace of the cluster's nodes.
        tick: How much time passes between two runs.
        prices: What an hour of an instance type costs, in USD, where the price list is not to be used.
        gpus: How many NVIDIA GPUs an instance type has, of those that the function does not know.
        preloads: Whether nodes restore data sets: how far these are stands in an SSM parameter, and while some are
            restored no node is idle.
        topic_arn: The SNS topic that is notified. Empty: there is none.
        state_table: The name of the cluster's state table.
        stack_id: The end of the id of the stack that the function and the cluster's Auto Scaling groups belong to:
            `/` and its UUID, since an environment is small.
        power_function: The name of the function that owns the sizes of node groups. Empty: there is none.
        region: The region that the function runs in.
    """

    environment_variable = "CLUSTER_IDLE_SETTINGS"

    cluster: str
    signals: tuple[Signal, ...] = ()
    policies: tuple[PolicySettings, ...] = (PolicySettings(),)
    groups: Mapping[str, IdleGroupSettings] = field(default_factory=dict)
    max_stops: Annotated[int, Within(minimum=1)] = 100
    max_unknown_share: _Share = 0.5
    tag: str = CLUSTER_TAG
    namespace: str = ""
    tick: Annotated[timedelta, Within(above=0)] = timedelta(minutes=5)
    prices: Mapping[str, Annotated[float, Within(above=0)]] = field(default_factory=dict)
    gpus: Mapping[str, Annotated[int, Within(minimum=1)]] = field(default_factory=dict)
    preloads: bool = False
    topic_arn: str = variable("ALERT_TOPIC_ARN")
    state_table: str = variable("STATE_TABLE")
    stack_id: str = variable("STACK_ID")
    power_function: str = variable("POWER_FUNCTION")
    region: str = variable("AWS_REGION")

    def __post_init__(self) -> None:
        """Check that every policy's signals and every group's policy are there."""
        for number, policy in enumerate(self.policies):
            for index in policy.signals:
                if index >= len(self.signals):
                    raise ValueError(f"policies[{number}].signals must be one of {len(self.signals)}, got {index}")
        for name, group in self.groups.items():
            if group.policy >= len(self.policies):
                raise ValueError(f"groups[{name!r}].policy must be one of {len(self.policies)}, got {group.policy}")

    @property
    def node_namespace(self) -> str:
        """The namespace of the nodes' metrics."""
        return self.namespace or node_namespace(self.cluster)

    @property
    def policy(self) -> Policy:
        """The policy of every instance of no node group."""
        return self._whole_policies[0]

    def policy_of(self, node_group: str) -> Policy:
        """Return the policy for the nodes of a group, or for those of none."""
        own = self.groups.get(node_group)
        return self._whole_policies[own.policy] if own else self.policy

    @cached_property
    def _whole_policies(self) -> tuple[Policy, ...]:
        return tuple(
            Policy(**{**vars(one), "signals": tuple(self.signals[index] for index in one.signals)})
            for one in self.policies
        )


class IdleMetric(StrEnum):
    """The metrics of the idle function, by cluster, one point a run each."""

    IDLE_NODES = "IdleNodes"
    """How many nodes are idle."""

    BUSY_NODES = "BusyNodes"
    """How many work."""

    STOPPED_NODES = "IdleStoppedNodes"
    """How many this run stopped."""

    WARNED_NODES = "IdleWarnedNodes"
    """How many will be stopped unless they work or a tag keeps them."""

    DEFERRED_NODES = "IdleDeferredNodes"
    """How many a later run stops, since one run stops no more than it may."""

    UNKNOWN_NODES = "IdleUnknownNodes"
    """Of how many too little is known."""

    STUCK_NODES = "IdleStuckNodes"
    """How many are idle and cannot be stopped from here."""

    LINGERING_NODES = "IdleLingeringNodes"
    """How many run on though their accelerators have been idle for a window: they wait for young or unknown nodes of
    their group, for nodes that keep coming anew, or for their turn; or only CPUs, network or a session keep them or
    their group."""

    RESERVED_NODES = "IdleReservedNodes"
    """How many are idle in reservations and Capacity Blocks, where a stop saves nothing; also those whose group
    works."""

    DOLLARS_IDLE = "IdleDollars"
    """USD an hour that all idle nodes cost, where the price is known."""

    DOLLARS_SAVED = "IdleDollarsSaved"
    """USD an hour that the nodes cost which this run stopped, where the price is known."""

    DOLLARS_RESERVED = "IdleDollarsReserved"
    """USD an hour that nodes cost which are idle in reservations and blocks, likewise."""

    EVALUATIONS = "IdleEvaluations"
    """1 for a run that could read everything its decisions rest on, else 0."""

    BREAKER = "IdleBreaker"
    """1 while so many nodes have just turned unknown that nothing is stopped, else 0."""

    UNCLEAR_TAGS = "IdleUnclearTags"
    """How many tags keep nodes from being stopped without an end that is clear."""

    FAILED_NOTIFICATIONS = "IdleFailedNotifications"
    """How many messages the alert topic did not take."""
