"""The rules about a cluster's AWS Batch beside its node groups."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from cdk_training_cluster.nodes.rules.context import ClusterContext, NodeGroupContext
from cdk_training_cluster.orchestrators.batch.settings import BatchJob, BatchQueue, BatchSettings
from cdk_training_cluster.validation.rule import Found, Level, Rules

_BATCH = "https://docs.aws.amazon.com/batch/latest"
_CREATE_QUEUE = f"{_BATCH}/APIReference/API_CreateJobQueue.html"
_MULTI_NODE = f"{_BATCH}/userguide/mnp-ce.html"
_STUCK = f"{_BATCH}/userguide/job_stuck_in_runnable.html"

_MAX_ENVIRONMENTS = 3


@dataclass(frozen=True, kw_only=True)
class BatchContext:
    """What the rules about Batch use.

    Attributes:
        batch: The settings of Batch.
        cluster: The node groups, with what holds for them.
    """

    batch: BatchSettings
    cluster: ClusterContext

    @cached_property
    def nodes(self) -> Mapping[str, NodeGroupContext]:
        """What holds for each node group, by name."""
        return {nodes.group.name: nodes for nodes in self.cluster.nodes}

    def groups_of(self, queue: BatchQueue) -> Sequence[str]:
        """Return the names of a queue's node groups."""
        return list(self.nodes) if queue.node_groups is None else queue.node_groups

    def nodes_of(self, job: BatchJob) -> NodeGroupContext | None:
        """Return what holds for a job's node group. None: there is none."""
        return self.nodes.get(job.node_group or next(iter(self.nodes), ""))


BATCH_RULES: Rules[BatchContext] = Rules()


@BATCH_RULES.rule("batchNames", _CREATE_QUEUE)
def _names(of: BatchContext) -> Iterator[Found]:
    for setting, names in (
        ("queues", [queue.name for queue in of.batch.queues]),
        ("jobs", [job.name for job in of.batch.jobs]),
    ):
        twice = [name for name, times in Counter(names).items() if times > 1]
        if twice:
            yield ("batch", setting), f"{setting} must have names of their own, got {', '.join(twice)} twice"


@BATCH_RULES.rule("batchNodeGroups", _CREATE_QUEUE)
def _known_groups(of: BatchContext) -> Iterator[Found]:
    known = ", ".join(of.nodes)
    for place, queue in enumerate(of.batch.queues):
        for name in queue.node_groups or ():
            if name not in of.nodes:
                at = ("batch", "queues", place, "node_groups")
                yield at, f"queue {queue.name!r} must use node groups of the cluster, which are {known}, got {name!r}"
    for place, job in enumerate(of.batch.jobs):
        if job.node_group is not None and job.node_group not in of.nodes:
            yield (
                ("batch", "jobs", place, "node_group"),
                f"job {job.name!r} must run on a node group of the cluster, which are {known}, got "
                f"{job.node_group!r}",
            )


@BATCH_RULES.rule("batchQueueEnvironments", _CREATE_QUEUE)
def _few_environments(of: BatchContext) -> Iterator[Found]:
    for place, queue in enumerate(of.batch.all_queues):
        count = len(of.groups_of(queue))
        if count > _MAX_ENVIRONMENTS:
            at = ("batch", "queues", place, "node_groups") if of.batch.queues else ("batch", "queues")
            yield (
                at,
                f"queue {queue.name!r} must use at most {_MAX_ENVIRONMENTS} node groups, got {count}: Batch takes so "
                "many compute environments a queue; list node_groups, and make more queues",
            )


@BATCH_RULES.rule("batchQueueArchitecture", _CREATE_QUEUE)
def _one_architecture(of: BatchContext) -> Iterator[Found]:
    for place, queue in enumerate(of.batch.all_queues):
        infos = [info for name in of.groups_of(queue) if name in of.nodes for info in of.nodes[name].infos]
        if len({info.architectures for info in infos}) > 1:
            got = ", ".join(f"{info.name} ({info.architectures[-1]})" for info in infos)
            yield (
                ("batch", "queues", place, "node_groups") if of.batch.queues else ("batch", "queues"),
                f"queue {queue.name!r} must use node groups of one architecture, got {got}: make a queue of each",
            )


@BATCH_RULES.rule("batchUnusedGroup", _CREATE_QUEUE)
def _each_group_in_a_queue(of: BatchContext) -> Iterator[Found]:
    used = {name for queue in of.batch.all_queues for name in of.groups_of(queue)}
    for place, name in enumerate(of.nodes):
        if name not in used:
            yield (
                ("node_groups", place, "name"),
                f"node group {name!r} is in no queue, so that no job can run on it: list it in a queue",
            )


@BATCH_RULES.rule("batchJobNodes", _STUCK)
def _job_fits(of: BatchContext) -> Iterator[Found]:
    for place, job in enumerate(of.batch.jobs):
        nodes = of.nodes_of(job)
        if nodes is not None and job.nodes is not None and job.nodes > nodes.group.count:
            yield (
                ("batch", "jobs", place, "nodes"),
                f"job {job.name!r} must run on at most the {nodes.group.count} nodes of node group "
                f"{nodes.group.name!r}, got {job.nodes}: it could never start; raise count, or take fewer nodes",
            )


@BATCH_RULES.rule("batchJobMemory", f"{_BATCH}/userguide/memory-management.html")
def _job_memory(of: BatchContext) -> Iterator[Found]:
    for place, job in enumerate(of.batch.jobs):
        nodes = of.nodes_of(job)
        for info in () if nodes is None else nodes.infos[:1]:
            if job.memory_mib is not None and job.memory_mib >= info.memory_mib:
                yield (
                    ("batch", "jobs", place, "memory_mib"),
                    f"memory_mib of job {job.name!r} must be below the {info.memory_mib} of {info.name}, got "
                    f"{job.memory_mib}: a part is the system's and the ECS agent's, and the job could never start; "
                    "leave it out for 90 percent",
                )


@BATCH_RULES.rule("batchPublicSubnet", _MULTI_NODE, "network")
def _way_out(of: BatchContext) -> Iterator[str]:
    if of.cluster.public_subnet:
        yield (
            "the nodes' subnet must be private with a NAT gateway on AWS Batch, got a public one: the containers of "
            "multi-node jobs get no public address, and would have no way out"
        )


@BATCH_RULES.rule("batchDefaultSecurityGroup", _MULTI_NODE, "network", level=Level.WARNING)
def _containers_reach_each_other(of: BatchContext) -> Iterator[str]:
    if of.cluster.existing_network:
        yield (
            "the containers of multi-node jobs on AWS Batch get the default security group of the VPC: in a VPC of "
            "your own it must allow all traffic from itself and all traffic out, or each job waits at its rendezvous "
            "and is billed; look at it with aws ec2 describe-security-groups --filters "
            "Name=group-name,Values=default Name=vpc-id,Values=<the VPC>"
        )


@BATCH_RULES.rule("batchGpuSharing", f"{_BATCH}/userguide/gpu-jobs.html")
def _whole_gpus(of: BatchContext) -> Iterator[Found]:
    for place, name in enumerate(of.nodes):
        if of.nodes[name].group.gpu_sharing is not None:
            yield (
                ("node_groups", place, "gpu_sharing"),
                f"node group {name!r}: gpu_sharing must be left out with AWS Batch, whose jobs take whole GPUs; use "
                "Slurm or EKS to share them",
            )
