"""The rules about a cluster's Slurm beside its node groups."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from cdk_training_cluster.nodes.gpu_sharing import SharingMethod
from cdk_training_cluster.nodes.layouts import launch_layouts
from cdk_training_cluster.nodes.rules.context import ClusterContext
from cdk_training_cluster.orchestrators.slurm.settings import (
    QUEUE_NAME,
    Preemption,
    SlurmQueue,
    SlurmSettings,
    SlurmSize,
    SlurmVersion,
)
from cdk_training_cluster.validation.rule import Found, Level, Rules

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
    def names(self) -> Sequence[str]:
        """The names of the node groups."""
        return [group.name for group in self.cluster.groups]

    def groups_of(self, queue: SlurmQueue) -> Sequence[str]:
        """Return the names of a queue's node groups."""
        return self.names if queue.node_groups is None else queue.node_groups


def controller_size(slurm: SlurmSettings, cluster: ClusterContext) -> SlurmSize:
    """Return the size of the controller: as the user said, or the smallest that has room for all nodes.

    Args:
        slurm: The settings of Slurm.
        cluster: The node groups.
    """
    nodes = _node_count(slurm, cluster)
    fitting = (each for each in SlurmSize if nodes <= each.max_nodes)
    return slurm.size or next(fitting, SlurmSize.LARGE)


def _node_count(slurm: SlurmSettings, cluster: ClusterContext) -> int:
    return slurm.login.count + sum(group.count for group in cluster.groups)


SLURM_RULES: Rules[SlurmContext] = Rules()


@SLURM_RULES.rule("slurmSize", f"{_PCS}/userguide/working-with_clusters_size.html", "slurm", "size")
def _size(of: SlurmContext) -> Iterator[Found]:
    nodes, size = _node_count(of.slurm, of.cluster), controller_size(of.slurm, of.cluster)
    if nodes > size.max_nodes:
        mend = "make two clusters" if size is SlurmSize.LARGE else "leave size out, or give a larger one"
        yield f"the size {size.value} of AWS PCS has at most {size.max_nodes} nodes, got {nodes}: {mend}"


@SLURM_RULES.rule(
    "slurmRoomToGrow", f"{_PCS}/userguide/working-with_clusters_size.html", "slurm", "size", level=Level.WARNING
)
def _room_to_grow(of: SlurmContext) -> Iterator[Found]:
    """Find clusters that a few more nodes would replace."""
    nodes, size = _node_count(of.slurm, of.cluster), controller_size(of.slurm, of.cluster)
    if of.slurm.size is None and size is not SlurmSize.LARGE and nodes * 2 > size.max_nodes:
        yield (
            f"the cluster has {nodes} nodes, login nodes among them, and the size {size.value} of AWS PCS has at "
            f"most {size.max_nodes}: with more nodes a later deployment makes a new cluster, and ends the jobs, "
            "queues and records of this one. Give a size to keep it."
        )


@SLURM_RULES.rule(
    "slurmLoginType", f"{_PCS}/userguide/working-with_login-nodes.html", "slurm", "login", "instance_type"
)
def _login_type(of: SlurmContext) -> Iterator[Found]:
    """Find login nodes with accelerators, which no job could use."""
    login = of.slurm.login
    if login.count and login.has_accelerators:
        yield (
            f"instance_type of the login nodes must be without accelerators, since no job runs on them, got "
            f"{login.instance_type}: use a type such as m7i.2xlarge"
        )


@SLURM_RULES.rule("slurmSpotPrice", _CREATE_GROUP)
def _spot_price(of: SlurmContext) -> Iterator[Found]:
    for place, group in enumerate(of.cluster.groups):
        if group.capacity.uses_spot and group.capacity.max_price is not None:
            yield (
                ("node_groups", place, "capacity", "max_price"),
                f"node group {group.name!r}: max_price must be left out on AWS PCS, which pays up to the On-Demand "
                f"price, got {group.capacity.max_price}: leave it out",
            )


@SLURM_RULES.rule("slurmOneTemplate", _CREATE_GROUP)
def _one_template(of: SlurmContext) -> Iterator[Found]:
    """Find groups whose types differ in their network interfaces: PCS takes one launch template a group."""
    for place, nodes in enumerate(of.cluster.nodes):
        if nodes.infos and len(launch_layouts(nodes.group, nodes.infos)) > 1:
            yield (
                ("node_groups", place, "instance_types"),
                f"node group {nodes.group.name!r}: instance_types on AWS PCS must have the same network interfaces, "
                f"got {', '.join(nodes.group.instance_types)}: make a node group of each and list them in one queue",
            )


@SLURM_RULES.rule("slurmMigSockets", f"{_PCS}/userguide/mig-configuration.html")
def _mig_sockets(of: SlurmContext) -> Iterator[Found]:
    """Find GPUs in MIG mode that Slurm cannot find: below 26.05 it does not know the sockets of a node."""
    for place, group in enumerate(of.cluster.groups):
        divided = group.gpu_sharing is not None and group.gpu_sharing.method is SharingMethod.MIG
        said = of.slurm.nodes_of(group.name).custom_settings
        if divided and of.slurm.version is SlurmVersion.V25_11 and "Sockets" not in said:
            yield (
                ("node_groups", place, "gpu_sharing"),
                f"node group {group.name!r}: GPUs in MIG mode need the number of sockets with Slurm 25.11, or the "
                "nodes drain as INVALID_REG: use version 26.05, or give Sockets in custom_settings of this group, in "
                "node_groups of the settings of Slurm",
            )


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
    for name, count in Counter(queue.name for queue in of.slurm.queues).items():
        if count > 1:
            yield f"queues must have a name of its own each, got {name!r} {count} times"


@SLURM_RULES.rule("slurmQueueGroups", _CREATE_QUEUE)
def _queue_groups(of: SlurmContext) -> Iterator[Found]:
    """Find queues of node groups that do not exist, and node groups without a queue: no job could reach them."""
    for place, queue in enumerate(of.slurm.queues):
        for name in of.groups_of(queue):
            if name not in of.names:
                yield (
                    ("slurm", "queues", place, "node_groups"),
                    f"node_groups of queue {queue.name!r} must name node groups of the cluster, which are "
                    f"{', '.join(of.names)}, got {name!r}",
                )
    reached = {name for queue in of.slurm.queues for name in of.groups_of(queue)}
    for place, name in enumerate(of.names):
        if of.slurm.queues and name not in reached:
            yield (
                ("node_groups", place, "name"),
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
    for place, queue in enumerate(of.slurm.queues):
        groups = set(of.groups_of(queue))
        if queue.preemption is not Preemption.OFF and not any(
            other.priority_tier > queue.priority_tier and groups & set(of.groups_of(other))
            for other in of.slurm.queues
        ):
            yield (
                ("slurm", "queues", place, "preemption"),
                f"preemption of queue {queue.name!r} must be OFF, got {queue.preemption.value}: no queue with a "
                f"priority_tier above {queue.priority_tier} shares a node group with it; raise the other's, or leave "
                "preemption out",
            )
