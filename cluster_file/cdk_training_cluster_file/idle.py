"""When nodes are idle and what becomes of them: `idle:` in a cluster file, for the cluster and for a node group."""

from typing import Annotated, Literal

from pydantic import Field

from cdk_training_cluster import IdlePolicy, IdleSignal
from cdk_training_cluster.nodes.idle_signal import ABOVE_0, MIB_PER_SECOND
from cdk_training_cluster_file.derivation import ModelOf
from cdk_training_cluster_file.fields import Flag
from cdk_training_cluster_file.forms import within
from cdk_training_cluster_file.model_base import Settings

_Above0 = Annotated[float, within(ABOVE_0)]
_MibPerSecond = Annotated[float, within(MIB_PER_SECOND)]
_Text = Annotated[str, Field(min_length=1)]


class MetricSignalSettings(Settings, ModelOf[IdleSignal], maker=IdleSignal.metric):
    """A metric of your own, with the one dimension InstanceId, that is low on idle nodes."""

    namespace: _Text = Field(examples=["CWAgent"])
    """The metric's namespace."""

    name: _Text = Field(examples=["mem_used_percent"])
    """The metric's name."""

    statistic: Literal["Average", "Maximum", "Minimum", "SampleCount", "Sum"] = Field(examples=["Maximum"])
    """What is asked of each period of five minutes."""

    below: float = Field(examples=[20])
    """Idle is a node with less than that in each period."""


class IdleSignalSettings(Settings, ModelOf[list[IdleSignal]]):
    """What must agree, beside utilization, before a node is idle. A node of which any of it is unknown stays."""

    host_vcpus: _Above0 | None = Field(default=None, examples=[0.5])
    """CPU time in use, in vCPUs: part of host_activity. Left out: 0.5."""

    host_mib_per_second: _MibPerSecond | None = Field(default=None, examples=[0.125])
    """Traffic over the network interfaces, in each direction: part of host_activity. Left out: 0.125."""

    network_mib_per_second: _MibPerSecond | None = Field(default=None, examples=[1])
    """Traffic over the network interfaces, in each direction; EFA bypasses them. Left out: it does not count."""

    efa_mib_per_second: _MibPerSecond | None = Field(default=None, examples=[1])
    """Traffic over the Elastic Fabric Adapters, in each direction; the image's CloudWatch agent must know EFA.
    Left out: it does not count."""

    gpu_memory_mib: _Above0 | None = Field(default=None, examples=[2048])
    """Memory in use on the fullest NVIDIA GPU. Left out: it does not count."""

    heartbeat: Flag = False
    """Whether a job's heartbeat, the metric JobHeartbeat, keeps its node."""

    session: Flag = False
    """Whether an open session of Session Manager keeps its node."""

    metrics: tuple[MetricSignalSettings, ...] = ()
    """Metrics of your own."""

    def for_constructs(self, **_: object) -> list[IdleSignal]:
        """Return the signals as the constructs take them."""
        limits = (
            (self.network_mib_per_second, IdleSignal.network),
            (self.efa_mib_per_second, IdleSignal.efa),
            (self.gpu_memory_mib, IdleSignal.gpu_memory),
        )
        host = {"below_vcpus": self.host_vcpus, "below_mib_per_second": self.host_mib_per_second}
        given = {name: limit for name, limit in host.items() if limit is not None}
        return [
            *([IdleSignal.host(**given)] if given else []),
            *(make(limit) for limit, make in limits if limit is not None),
            *([IdleSignal.heartbeat()] if self.heartbeat else []),
            *([IdleSignal.session()] if self.session else []),
            *(each.for_constructs() for each in self.metrics),
        ]


class NodeGroupIdleSettings(Settings, ModelOf[IdlePolicy], names={"off": "is_off"}):
    """When nodes of a group are idle and what becomes of them; what is left out is as for the cluster."""

    window_minutes: int | None = Field(default=None, examples=[60])
    """How long nodes must have been idle: 15 to 720, in steps of 5. Left out for the cluster: 60."""

    warning_minutes: int | None = Field(default=None, examples=[30])
    """How long before the stop the alert topic gets a warning: 10 to 660. Left out for the cluster: 30."""

    grace_minutes: int | None = Field(default=None, examples=[30])
    """How long after its launch a node is left alone: at most 1440. Left out for the cluster: 30."""

    utilization_below_percent: float | None = Field(default=None, examples=[5])
    """Idle is a node whose busiest accelerator is below that: above 0, at most 50. Left out for the cluster: 5."""

    coverage: float | None = Field(default=None, examples=[0.9])
    """The share of the window of which there must be data: 0.5 to 1. Left out for the cluster: 0.9."""

    scope: Literal["gang", "node"] | None = None
    """`gang` stops a node group when all its nodes are idle, `node` each node by itself. Left out for the cluster:
    gang."""

    host_activity: Flag | None = None
    """Whether CPUs and network interfaces must say that a node is idle, too. Left out for the cluster: true."""

    signals: IdleSignalSettings | None = Field(default=None, examples=[{"session": True}])
    """What else must say that a node is idle. Left out for the cluster: nothing."""

    dry_run: Flag | None = None
    """Whether everything is done but the stop. Left out for the cluster: nodes are stopped."""

    off: Flag | None = None
    """Whether these nodes are neither measured nor stopped. Left out for the cluster: false."""


class IdleSettings(NodeGroupIdleSettings):
    """When nodes are idle and what becomes of them."""

    max_stops: int | None = Field(default=None, examples=[100])
    """The most nodes that one run, every five minutes, stops. Left out: 100."""

    max_unknown_share: float | None = Field(default=None, examples=[0.5])
    """Nothing is stopped if more than this share of the nodes becomes unknown at once: above 0, at most 1. Left out:
    0.5."""
