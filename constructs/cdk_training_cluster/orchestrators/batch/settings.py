"""What a user says of a cluster's AWS Batch: queues and job definitions."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Final

from aws_cdk import Duration

from cdk_training_cluster.orchestrators.batch.commands import nccl_test_command, torchrun_command
from cdk_training_cluster.validation.bounds import Form, Minutes, Number, Whole, written
from cdk_training_cluster.validation.kinds import checked
from cdk_training_cluster.validation.rule import refuse

BATCH_NAME: Final = Form(
    pattern=re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}"),
    wanted="up to 63 letters, digits, '_' and '-', a letter or digit first",
)
"""https://docs.aws.amazon.com/batch/latest/APIReference/API_CreateJobQueue.html"""

QUEUE_PRIORITY: Final = Whole(minimum=0, maximum=1000)
"""https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-batch-jobqueue.html"""

SHARE_WEIGHT: Final = Number(minimum=0.0001, maximum=999.9999)
"""https://docs.aws.amazon.com/batch/latest/APIReference/API_ShareAttributes.html"""

ATTEMPTS: Final = Whole(minimum=1, maximum=10)
"""https://docs.aws.amazon.com/batch/latest/APIReference/API_RetryStrategy.html"""

# https://docs.aws.amazon.com/batch/latest/APIReference/API_JobStateTimeLimitAction.html
LIMIT: Final = Minutes(minimum=10, maximum=24 * 60)

# https://docs.aws.amazon.com/batch/latest/APIReference/API_UpdatePolicy.html
UPDATE: Final = Minutes(minimum=1, maximum=7200, step=1)

# https://docs.aws.amazon.com/batch/latest/APIReference/API_ComputeScalingPolicy.html
DELAY: Final = Minutes(minimum=20, maximum=10_080, step=1)

_YEAR = 365 * 24 * 60
# https://docs.aws.amazon.com/batch/latest/APIReference/API_ShareAttributes.html: letters and digits, a `*` last.
_SHARE = re.compile(r"[A-Za-z0-9]{1,254}\*?")
_MAX_SHARES = 500


@checked
@dataclass(frozen=True, kw_only=True)
class BatchQueue:
    """Say what jobs of a queue may use: an `AWS::Batch::JobQueue`.

    Attributes:
        name: What the queue is called in the cluster; Batch's name has the cluster's before it.
        node_groups: The names of the node groups whose nodes it uses, best first: at most three. Default: - all of
            the cluster.
        priority: Queues of a higher one get the nodes first: 0 to 1000. Default: - 1.
        shares: Who shares the queue, by share identifier, and the weight of each: the lower the weight, the more of
            the nodes. Jobs are then submitted with `--share-identifier`. A queue keeps for its life whether it has
            shares. Default: - none: jobs start in the order in which they came.

    Raises:
        ValueError: A setting is wrong; every reason, a line each.
    """

    name: Annotated[str, BATCH_NAME] = field(kw_only=False)
    node_groups: Sequence[str] | None = None
    priority: Annotated[int, QUEUE_PRIORITY] = 1
    shares: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check what settings demand of each other."""
        refuse({"node_groups": self._group_problems(), "shares": self._share_problems()})

    def _group_problems(self) -> Iterator[str]:
        names = self.node_groups
        if names is not None and (not names or len(set(names)) < len(names)):
            yield f"node_groups of queue {self.name!r} must name one or more node groups once each, got {list(names)}"

    def _share_problems(self) -> Iterator[str]:
        if len(self.shares) > _MAX_SHARES:
            yield f"shares of queue {self.name!r} must be at most {_MAX_SHARES}, got {len(self.shares)}"
        for identifier, weight in self.shares.items():
            if not _SHARE.fullmatch(identifier):
                yield (
                    f"shares of queue {self.name!r} must be identified by up to 255 letters and digits, a '*' "
                    f"allowed at the end, got {identifier!r}"
                )
            yield from SHARE_WEIGHT(f"the weight of share {identifier!r} of queue {self.name!r}", weight)


@checked
@dataclass(frozen=True, kw_only=True)
class BatchJob:
    """Say what a job runs: an `AWS::Batch::JobDefinition` for a multi-node parallel job, one container a node.

    The container gets all accelerators of its node, each Elastic Fabric Adapter's device, the file system at its
    mount point, locked memory without limit, shared memory for data loaders and NCCL, and the environment variables
    of the node group and of the checkpoints. `BatchJob.torchrun()` and `BatchJob.nccl_test()` start the program on
    every GPU of every node.

    Attributes:
        name: What the job definition is called in the cluster; Batch's name has the cluster's before it.
        image: The container image.
        command: What each node runs; Batch's variables `AWS_BATCH_JOB_NODE_INDEX`, `AWS_BATCH_JOB_NUM_NODES` and,
            except on the main node, `AWS_BATCH_JOB_MAIN_NODE_PRIVATE_IPV4_ADDRESS` say which it is.
        node_group: The name of the node group that it runs on. Default: - the cluster's first.
        nodes: On how many nodes; `submit-job --node-overrides numNodes=…` takes another number. Default: - all of
            the group.
        memory_mib: The container's memory in MiB. Default: - 90 percent of a node's: the rest is for the system and
            the ECS agent.
        shared_memory_mib: The size of `/dev/shm` in MiB. Default: - half of the container's memory.
        environment: Environment variables, above those of the cluster. Default: - none.
        attempts: How often Batch starts it at most, 1 to 10: again after each failure of the main node or of the
            program on it, since it ends so too when another node fails. 1 ends the job at its first failure.
            Default: - 3.
        timeout: How long an attempt may run. Default: - without limit.

    Raises:
        ValueError: A setting is wrong; every reason, a line each.

    Source: https://docs.aws.amazon.com/batch/latest/userguide/multi-node-parallel-jobs.html
    """

    name: Annotated[str, BATCH_NAME] = field(kw_only=False)
    image: str
    command: Sequence[str]
    node_group: str | None = None
    nodes: Annotated[int, Whole(minimum=1, maximum=1000)] | None = None
    memory_mib: Annotated[int, Whole(minimum=4)] | None = None
    shared_memory_mib: Annotated[int, Whole(minimum=64)] | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    attempts: Annotated[int, ATTEMPTS] = 3
    timeout: Annotated[Duration, Minutes(minimum=1, maximum=_YEAR)] | None = None

    @staticmethod
    @checked
    def torchrun(
        name: Annotated[str, BATCH_NAME],
        *,
        image: str,
        script: str,
        arguments: Sequence[str] = (),
        processes: Annotated[int, Whole(minimum=1)] | None = None,
        node_group: str | None = None,
        nodes: Annotated[int, Whole(minimum=1, maximum=1000)] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> "BatchJob":
        """Return a job that trains with torchrun, such as with FSDP: a process a GPU on every node.

        Args:
            name: What the job definition is called in the cluster.
            image: A container image with PyTorch and aws-ofi-nccl, such as one of AWS's Deep Learning Containers.
            script: The program's file in the container, or on the file system.
            arguments: What it is given. Default: - nothing.
            processes: How many processes a node runs. Default: - one a GPU.
            node_group: The name of the node group that it runs on. Default: - the cluster's first.
            nodes: On how many nodes. Default: - all of the group.
            environment: Environment variables, above those of the cluster. Default: - none.
        """
        return BatchJob(
            name,
            image=image,
            command=torchrun_command(script, arguments, "gpu" if processes is None else str(processes)),
            node_group=node_group,
            nodes=nodes,
            environment=environment or {},
        )

    @staticmethod
    @checked
    def nccl_test(
        name: Annotated[str, BATCH_NAME] = "nccl-test",
        *,
        image: str,
        node_group: str | None = None,
        nodes: Annotated[int, Whole(minimum=1, maximum=1000)] | None = None,
    ) -> "BatchJob":
        """Return a job that measures what an all-reduce over all GPUs reaches, and says it in its log.

        Args:
            name: What the job definition is called in the cluster. Default: - `nccl-test`.
            image: A container image with PyTorch and aws-ofi-nccl.
            node_group: The name of the node group that it runs on. Default: - the cluster's first.
            nodes: On how many nodes. Default: - all of the group.
        """
        return BatchJob(
            name,
            image=image,
            command=nccl_test_command(),
            node_group=node_group,
            nodes=nodes,
            environment={"NCCL_DEBUG": "INFO"},
        )

    def __post_init__(self) -> None:
        """Check what settings demand of each other."""
        refuse(
            {
                "image": self._filled("image", self.image),
                "command": self._filled("command", self.command),
                "shared_memory_mib": self._memory_problems(),
            }
        )

    def _filled(self, setting: str, value: Sequence[str]) -> Iterator[str]:
        if not value:
            yield f"{setting} of job {self.name!r} must not be empty"

    def _memory_problems(self) -> Iterator[str]:
        memory, shared = self.memory_mib, self.shared_memory_mib
        if memory is not None and shared is not None and shared > memory:
            yield (
                f"shared_memory_mib of job {self.name!r} must be at most its memory_mib, {written(memory)}, got "
                f"{written(shared)}: it is a part of it"
            )


@checked
@dataclass(frozen=True, kw_only=True)
class BatchSettings:
    """Say how AWS Batch runs a cluster's jobs.

    Attributes:
        queues: The job queues. Default: - one queue `main` of all node groups.
        jobs: The job definitions. Default: - none; register your own.
        unplaceable_timeout: After how long a job ends that no node of its queue can ever run: one that asks for more
            nodes or vCPUs than there may be, or for what the types lack. 10 minutes to 24 hours. Default: - 10
            minutes.
        capacity_timeout: After how long a job ends that waits for capacity that EC2 does not have: 10 minutes to 24
            hours. Default: - 24 hours.
        scale_down_delay: How long a node waits for another job before Batch terminates it, and is billed: 20 minutes
            to 7 days. Default: - none: Batch terminates it when no job needs it.
        update_timeout: How long running jobs may go on after a deployment that changes how nodes are launched; the
            deployment waits so long. 1 to 7200 minutes. Default: - 24 hours.

    Raises:
        ValueError: A setting is wrong; every reason, a line each.
    """

    queues: Sequence[BatchQueue] = ()
    jobs: Sequence[BatchJob] = ()
    unplaceable_timeout: Annotated[Duration, LIMIT] = field(default_factory=lambda: Duration.minutes(10))
    capacity_timeout: Annotated[Duration, LIMIT] = field(default_factory=lambda: Duration.hours(24))
    scale_down_delay: Annotated[Duration, DELAY] | None = None
    update_timeout: Annotated[Duration, UPDATE] = field(default_factory=lambda: Duration.hours(24))

    @property
    def all_queues(self) -> Sequence[BatchQueue]:
        """The queues, the one of a cluster without among them."""
        return self.queues or (BatchQueue("main"),)
