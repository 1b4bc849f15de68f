"""The rules about a cluster's Slurm beside its node groups."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from cdk_training_cluster.nodes.rules.context import ClusterContext
from cdk_training_cluster.orchestrators.slurm.configuration import queues_of
from cdk_training_cluster.orchestrators.slurm.settings import (
    QUEUE_NAME,
    Preemption,
    SlurmQueue,
    SlurmSettings,
)
from cdk_training_cluster.validation.rule import Found, Rules

LOGIN_GROUP: Final = "login"
"""The name of the compute node group of the login nodes."""

_PCS = "https://docs.aws.amazon.com/pcs/latest"
_CREATE_GROUP = f"{_PCS}/APIReference/API_CreateComputeNodeGroup.html"
_CREATE_QUEUE = f"{_PCS}/APIReference/API_CreateQueue.html"
_PREEMPTION = "https://slurm.schedmd.com/preempt.html"


@dataclass(frozen=True, kw_only=True)
class SlurmContext:
    """What the rules about Slurm use.

    Attributes:
        slurm: The settings of Slurm.
        cluster: The node groups, with what holds for them.
    """

    slurm: SlurmSettings
    cluster: ClusterContext

    @property
    def queues(self) -> Sequence[SlurmQueue]:
        """The queues, the one of a cluster without among them."""
        return queues_of(self.slurm)

    @property
    def names(self) -> Sequence[str]:
        """The names of the node groups."""
        return [group.name for group in self.cluster.groups]

    def groups_of(self, queue: SlurmQueue) -> Sequence[str]:
        """Return the names of a queue's node groups."""
        return self.names if queue.node_groups is None else queue.node_groups


SLURM_RULES: Rules[SlurmContext] = Rules()


@SLURM_RULES.rule("slurmGroupName", _CREATE_GROUP)
def _group_name(of: SlurmContext) -> Iterator[Found]:
    for place, name in enumerate(of.names):
        at = ("node_groups", place, "name")
        if name == LOGIN_GROUP:
            yield at, f"the name of a node group must not be {LOGIN_GROUP!r}, which the login nodes have: rename it"
        elif not QUEUE_NAME.pattern.fullmatch(name):
            yield at, f"the name of a node group on AWS PCS must be {QUEUE_NAME.wanted}, got {name!r}"


@SLURM_RULES.rule("slurmAlikeTypes", f"{_PCS}/userguide/working-with_cng_create.html")
def _alike_types(of: SlurmContext) -> Iterator[Found]:
    """Find groups of several types that Slurm could not describe as one kind of node."""
    for place, nodes in enumerate(of.cluster.nodes):
        kinds = {(info.architectures, info.vcpus, info.nvidia_gpu_count) for info in nodes.infos}
        if len(kinds) > 1:
            sizes = ", ".join(f"{info.name} ({info.vcpus}, {info.nvidia_gpu_count})" for info in nodes.infos)
            yield (
                ("node_groups", place, "instance_types"),
                f"node group {nodes.group.name!r}: instance_types on AWS PCS must have the same architecture, number "
                f"of vCPUs and number of GPUs, got {sizes}: make a node group of each and list them in one queue",
            )


@SLURM_RULES.rule("slurmQueueNames", _CREATE_QUEUE, "slurm", "queues")
def _queue_names(of: SlurmContext) -> Iterator[Found]:
    for name, count in Counter(queue.name for queue in of.queues).items():
        if count > 1:
            yield f"queues must have a name of its own each, got {name!r} {count} times"


@SLURM_RULES.rule("slurmQueueGroups", _CREATE_QUEUE)
def _queue_groups(of: SlurmContext) -> Iterator[Found]:
    """Find queues of node groups that do not exist, and node groups without a queue: no job could reach them."""
    for place, queue in enumerate(of.queues):
        for name in of.groups_of(queue):
            if name not in of.names:
                yield (
                    ("slurm", "queues", place, "node_groups"),
                    f"node_groups of queue {queue.name!r} must name node groups of the cluster, which are "
                    f"{', '.join(of.names)}, got {name!r}",
                )
    reached = {name for queue in of.queues for name in of.groups_of(queue)}
    for place, name in enumerate(of.names):
        if name not in reached:
            yield (
                ("node_groups", place),
                f"node group {name!r} must be in a queue, or no job runs on it: add it to node_groups of a queue",
            )


@SLURM_RULES.rule("slurmNodesOf", _CREATE_GROUP, "slurm", "node_groups")
def _nodes_of(of: SlurmContext) -> Iterator[Found]:
    for name in of.slurm.node_groups:
        if name not in of.names:
            yield (
                f"node_groups of the settings of Slurm must name node groups of the cluster, which are "
                f"{', '.join(of.names)}, got {name!r}"
            )


@SLURM_RULES.rule("slurmPreemption", _PREEMPTION)
def _preemption(of: SlurmContext) -> Iterator[Found]:
    """Find queues whose jobs nothing could preempt."""
    for place, queue in enumerate(of.queues):
        groups = set(of.groups_of(queue))
        if queue.preemption is not Preemption.OFF and not any(
            other.priority_tier > queue.priority_tier and groups & set(of.groups_of(other)) for other in of.queues
        ):
            yield (
                ("slurm", "queues", place, "preemption"),
                f"preemption of queue {queue.name!r} must be OFF, got {queue.preemption.value}: no queue with a "
                f"priority_tier above {queue.priority_tier} shares a node group with it; raise the other's, or leave "
                "preemption out",
            )
