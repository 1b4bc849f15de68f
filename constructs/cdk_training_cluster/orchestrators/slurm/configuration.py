"""Slurm's whole configuration as AWS PCS takes it; it depends on settings alone and makes no construct.

PCS writes `slurm.conf`, `gres.conf` and `cgroup.conf` of these settings and of what it owns itself: node names, power
saving, authentication, and the GPUs of nodes that are not shared.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from aws_cdk import Duration

from cdk_training_cluster.nodes.gpu_sharing import SharingMethod
from cdk_training_cluster.nodes.node_group import NodeGroup
from cdk_training_cluster.nodes.rules.context import ClusterContext, NodeGroupContext
from cdk_training_cluster.orchestrators.slurm import paths
from cdk_training_cluster.orchestrators.slurm.gres import NodeGres, node_gres
from cdk_training_cluster.orchestrators.slurm.settings import Preemption, SlurmQueue, SlurmSettings

_PAID_WEIGHT, _SPOT_WEIGHT, _ON_DEMAND_WEIGHT = 1, 50, 100


@dataclass(frozen=True, kw_only=True)
class NodeGroupConfiguration:
    """A node group as `AWS::PCS::ComputeNodeGroup` takes it.

    Attributes:
        name: The node group's name.
        fixed: Whether all its nodes run as long as the cluster is on.
        settings: `SlurmCustomSettings`, in order.
        gres: What jobs may ask for on a node; `GresCustomSettings` holds its records unless PCS derives them.
        scale_down_idle_seconds: How long a node waits for a job before it ends. None: as the cluster's.
    """

    name: str
    fixed: bool
    settings: Mapping[str, str]
    gres: NodeGres
    scale_down_idle_seconds: int | None = None


@dataclass(frozen=True, kw_only=True)
class QueueConfiguration:
    """A queue as `AWS::PCS::Queue` takes it.

    Attributes:
        name: The queue's name.
        node_groups: The names of its node groups.
        settings: `SlurmCustomSettings`, in order.
    """

    name: str
    node_groups: Sequence[str]
    settings: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class SlurmConfiguration:
    """A cluster's Slurm as `AWS::PCS::Cluster` takes it, with its node groups and queues.

    Attributes:
        version: Slurm's version.
        settings: `SlurmCustomSettings`, in order.
        cgroup_settings: `CgroupCustomSettings`, in order.
        scale_down_idle_seconds: How long a node that Slurm launched waits for a job before it ends.
        node_groups: The node groups, in order.
        queues: The queues, in order.
    """

    version: str
    settings: Mapping[str, str]
    cgroup_settings: Mapping[str, str]
    scale_down_idle_seconds: int
    node_groups: Sequence[NodeGroupConfiguration]
    queues: Sequence[QueueConfiguration]


def slurm_configuration(slurm: SlurmSettings, cluster: ClusterContext) -> SlurmConfiguration:
    """Return the configuration of a cluster's Slurm.

    Args:
        slurm: The settings of Slurm.
        cluster: The node groups, with the facts about their types.
    """
    names = [group.name for group in cluster.groups]
    queues = queues_of(slurm, names)
    settings = _cluster_settings(slurm, preempts=any(_is_preempted(queue) for queue in queues))
    return SlurmConfiguration(
        version=slurm.version.value,
        settings=settings,
        cgroup_settings={
            "ConstrainCores": "yes",
            "ConstrainDevices": "yes",
            # https://docs.aws.amazon.com/pcs/latest/userguide/cgroup-custom-settings.html
            **({"ConstrainRAMSpace": "yes"} if "memory" in settings["SelectTypeParameters"].lower() else {}),
        },
        scale_down_idle_seconds=_seconds(slurm.scale_down_idle_time),
        node_groups=[_node_group(slurm, nodes) for nodes in cluster.nodes],
        queues=[
            QueueConfiguration(
                name=queue.name,
                node_groups=names if queue.node_groups is None else queue.node_groups,
                settings=_queue_settings(queue, is_default=place == 0),
            )
            for place, queue in enumerate(queues)
        ],
    )


def queues_of(slurm: SlurmSettings, groups: Sequence[str]) -> Sequence[SlurmQueue]:
    """Return the queues that were given, or else one for each node group, of its name.

    A queue of one node group keeps its jobs while the group is stopped; in one of several they ask for the nodes of
    a group with a constraint, which Slurm refuses then.

    Args:
        slurm: The settings of Slurm.
        groups: The names of the node groups.
    """
    return slurm.queues or [SlurmQueue(name, node_groups=[name]) for name in groups]


def _is_preempted(queue: SlurmQueue) -> bool:
    return queue.preemption is not Preemption.OFF


def _cluster_settings(slurm: SlurmSettings, *, preempts: bool) -> Mapping[str, str]:
    """Return the settings of `slurm.conf` as a whole: https://slurm.schedmd.com/slurm.conf.html."""
    settings = {
        "Prolog": paths.PROLOG,
        # Every node of a job is verified when the job gets it; without, a node's prolog waits for its first step.
        "PrologFlags": "Alloc",
        "Epilog": paths.EPILOG,
        "HealthCheckProgram": paths.HEALTH_CHECK,
        "HealthCheckInterval": str(_seconds(slurm.health_check_interval)),
        "HealthCheckNodeState": "ANY",
        "JobRequeue": "1",
        # Of memory that is given out too, a job that asks for none gets all: no other would share its node.
        "SelectTypeParameters": "CR_CPU",
        **({"RequeueExit": ",".join(map(str, slurm.requeue_exit_codes))} if slurm.requeue_exit_codes else {}),
        # A job whose node fails its prolog runs on other nodes instead of being held for an operator.
        "SchedulerParameters": "nohold_on_prolog_fail,requeue_delay=5",
    }
    if preempts:
        settings |= {
            "PreemptType": "preempt/partition_prio",
            "PreemptMode": "REQUEUE",
            # Without it only the steps get a signal, and the batch script's trap never runs.
            "PreemptParameters": "send_user_signal",
        }
    return _with_own(settings, slurm.custom_settings)


def _with_own(settings: Mapping[str, str], own: Mapping[str, str]) -> Mapping[str, str]:
    """Return settings with a user's: lists are joined, and of one item given twice the user's stays."""
    joined = {name: _joined(settings[name], own[name]) for name in _LISTS if name in settings and name in own}
    return {**settings, **own, **joined}


_LISTS: Final = ("Features", "PreemptParameters", "PrologFlags", "SchedulerParameters")


def _joined(ours: str, own: str) -> str:
    items = {item.partition("=")[0]: item for text in (ours, own) for item in text.split(",")}
    return ",".join(items.values())


def _node_group(slurm: SlurmSettings, nodes: NodeGroupContext) -> NodeGroupConfiguration:
    group, said = nodes.group, slurm.nodes_of(nodes.group.name)
    gres = node_gres(nodes.infos[0], group.gpu_sharing)
    types = group.instance_types if len(group.instance_types) == 1 else ()
    settings = {
        **({} if gres.from_pcs else {"Gres": gres.text}),
        # A job of one gang stays in one placement group with --constraint=<node group>.
        "Features": ",".join([group.name, *types]),
        "Weight": str(_weight(nodes)),
    }
    idle = said.scale_down_idle_time
    return NodeGroupConfiguration(
        name=group.name,
        fixed=is_fixed(slurm, nodes),
        settings=_with_own(settings, said.custom_settings),
        gres=gres,
        scale_down_idle_seconds=None if idle is None else _seconds(idle),
    )


def is_fixed(slurm: SlurmSettings, nodes: NodeGroupContext) -> bool:
    """Say whether all nodes of a group run as long as the cluster is on.

    Args:
        slurm: The settings of Slurm.
        nodes: The node group, with what holds for it.
    """
    said = slurm.nodes_of(nodes.group.name).fixed
    return _is_paid(nodes) or _is_divided(nodes.group) if said is None else said


def _is_divided(group: NodeGroup) -> bool:
    # Slurm knows the devices of a node in MIG mode only when it has registered once.
    # https://docs.aws.amazon.com/pcs/latest/userguide/mig-configuration.html#mig-configuration-limitations
    return group.gpu_sharing is not None and group.gpu_sharing.method is SharingMethod.MIG


def _weight(nodes: NodeGroupContext) -> int:
    """Return the group's weight: Slurm gives out the nodes of the least first, so the cheapest."""
    if _is_paid(nodes):
        return _PAID_WEIGHT
    return _SPOT_WEIGHT if nodes.group.capacity.uses_spot else _ON_DEMAND_WEIGHT


def _is_paid(nodes: NodeGroupContext) -> bool:
    """Say whether the nodes are paid for whether they run or not."""
    capacity = nodes.group.capacity
    return capacity.makes_reservation or capacity.capacity_reservation_id is not None


def _queue_settings(queue: SlurmQueue, *, is_default: bool) -> Mapping[str, str]:
    """Return the settings of a partition: https://slurm.schedmd.com/slurm.conf.html#SECTION_PARTITION-CONFIGURATION."""
    grace = queue.grace_time or Duration.minutes(5)
    return {
        "Default": "YES" if is_default else "NO",
        "PriorityTier": str(queue.priority_tier),
        "PreemptMode": queue.preemption.value,
        **({"GraceTime": str(_seconds(grace))} if _is_preempted(queue) else {}),
        **({} if queue.max_time is None else {"MaxTime": str(_seconds(queue.max_time) // 60)}),
        **({"PowerDownOnIdle": "YES"} if queue.power_down_on_idle else {}),
        **queue.custom_settings,
    }


def _seconds(time: Duration) -> int:
    return int(time.to_seconds())
