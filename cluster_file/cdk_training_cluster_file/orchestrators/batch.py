"""The settings of AWS Batch in a cluster file."""

from dataclasses import replace
from typing import Annotated, Unpack

from aws_cdk import Duration
from constructs import Construct
from pydantic import Field

from cdk_training_cluster import BatchJob, BatchQueue, TrainingCluster
from cdk_training_cluster import BatchSettings as Batch
from cdk_training_cluster.cluster.arguments import TrainingClusterArguments
from cdk_training_cluster.cluster.orchestrator import Orchestrator
from cdk_training_cluster.orchestrators.batch.settings import (
    ATTEMPTS,
    BATCH_NAME,
    DELAY,
    LIMIT,
    QUEUE_PRIORITY,
    SHARE_WEIGHT,
    UPDATE,
)
from cdk_training_cluster_file.fields import Count
from cdk_training_cluster_file.forms import text_of, within
from cdk_training_cluster_file.model_base import Settings
from cdk_training_cluster_file.orchestrators.orchestrator_model import OrchestratorModel

_Name = Annotated[str, text_of(BATCH_NAME)]


class BatchQueueSettings(Settings):
    """A job queue."""

    name: _Name = Field(examples=["main"])
    """What the queue is called in the cluster."""

    node_groups: Annotated[tuple[str, ...], Field(min_length=1)] | None = Field(default=None, examples=[["workers"]])
    """The node groups whose nodes its jobs use, best first: at most three. Left out: all of them."""

    priority: Annotated[int, within(QUEUE_PRIORITY)] = 1
    """Queues of a higher one get the nodes first: 0 to 1000."""

    shares: dict[str, Annotated[float, within(SHARE_WEIGHT)]] = Field(default={}, examples=[{"research": 0.5}])
    """Who shares the queue, by share identifier, and the weight of each: the lower, the more of the nodes. Left out:
    jobs start in the order in which they came."""

    def to_queue(self) -> BatchQueue:
        """Return the queue as the construct takes it."""
        return BatchQueue(self.name, node_groups=self.node_groups, priority=self.priority, shares=self.shares)


class BatchJobSettings(Settings):
    """A job definition that trains with torchrun, or measures NCCL where there is no script."""

    name: _Name = Field(examples=["train"])
    """What the job definition is called in the cluster."""

    image: Annotated[str, Field(min_length=1)] = Field(
        examples=[
            "763104351884.dkr.ecr.us-east-1.amazonaws.com/pytorch-training:2.8.0-gpu-py312-cu129-ubuntu22.04-ec2"
        ]
    )
    """The container image, with PyTorch and aws-ofi-nccl."""

    script: str | None = Field(default=None, examples=["/fsx/train.py"])
    """The program that torchrun starts, in the container or on the file system. Left out: an all-reduce is measured
    over all GPUs."""

    arguments: tuple[str, ...] = ()
    """What the script is given."""

    node_group: str | None = Field(default=None, examples=["workers"])
    """The node group that it runs on. Left out: the first."""

    nodes: Count | None = Field(default=None, examples=[2])
    """On how many nodes it runs. Left out: on all of the group."""

    environment: dict[str, str] = Field(default={}, examples=[{"NCCL_DEBUG": "INFO"}])
    """Environment variables, above those of the cluster."""

    attempts: Annotated[int, within(ATTEMPTS)] = 3
    """How often Batch starts it at most: 1 to 10. 1 ends the job at its first failure."""

    def to_job(self) -> BatchJob:
        """Return the job as the construct takes it."""
        return replace(self._job(), attempts=self.attempts)

    def _job(self) -> BatchJob:
        if self.script is None:
            return BatchJob.nccl_test(self.name, image=self.image, node_group=self.node_group, nodes=self.nodes)
        return BatchJob.torchrun(
            self.name,
            image=self.image,
            script=self.script,
            arguments=self.arguments,
            node_group=self.node_group,
            nodes=self.nodes,
            environment=self.environment,
        )


class BatchSettings(OrchestratorModel):
    """AWS Batch."""

    queues: tuple[BatchQueueSettings, ...] = Field(default=(), examples=[[{"name": "main"}]])
    """The job queues. Left out: one queue `main` of all node groups."""

    jobs: tuple[BatchJobSettings, ...] = Field(
        default=(), examples=[[{"name": "train", "image": "my/image:1", "script": "/fsx/train.py"}]]
    )
    """The job definitions. Left out: none; register your own."""

    unplaceable_minutes: Annotated[float, within(LIMIT)] = 10
    """After how long a job ends that no node of its queue can ever run: 10 to 1440."""

    capacity_minutes: Annotated[float, within(LIMIT)] = 1440
    """After how long a job ends that waits for capacity that EC2 does not have: 10 to 1440."""

    scale_down_delay_minutes: Annotated[int, within(DELAY)] | None = Field(default=None, examples=[30])
    """How long a node waits for another job before Batch terminates it, and is billed: 20 to 10080. Left out: Batch
    terminates it when no job needs it."""

    update_minutes: Annotated[int, within(UPDATE)] = 1440
    """How long running jobs may go on after a deployment that changes how nodes are launched; the deployment waits so
    long: 1 to 7200."""

    def to_batch(self) -> Batch:
        """Return the settings as the construct takes them."""
        delay = self.scale_down_delay_minutes
        return Batch(
            queues=[each.to_queue() for each in self.queues],
            jobs=[each.to_job() for each in self.jobs],
            unplaceable_timeout=Duration.seconds(self.unplaceable_minutes * 60),
            capacity_timeout=Duration.seconds(self.capacity_minutes * 60),
            scale_down_delay=None if delay is None else Duration.minutes(delay),
            update_timeout=Duration.minutes(self.update_minutes),
        )

    def to_orchestrator(self) -> Orchestrator:
        """Return the orchestrator as the rules ask it."""
        from cdk_training_cluster.orchestrators.batch.batch_orchestrator import BatchOrchestrator  # noqa: PLC0415 - only for its clusters

        return BatchOrchestrator(self.to_batch())

    def make_cluster(
        self, scope: Construct, id: str, **arguments: Unpack[TrainingClusterArguments]
    ) -> TrainingCluster:
        """Make the cluster."""
        from cdk_training_cluster import BatchTrainingQueue  # noqa: PLC0415 - only for its clusters

        return BatchTrainingQueue(scope, id, batch=self.to_batch(), **arguments)
