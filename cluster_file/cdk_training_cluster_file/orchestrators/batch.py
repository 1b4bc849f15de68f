"""The settings of AWS Batch in a cluster file."""

from dataclasses import replace
from typing import Annotated, Unpack

from constructs import Construct
from pydantic import Field

from cdk_training_cluster import BatchJob, BatchQueue, TrainingCluster
from cdk_training_cluster import BatchSettings as Batch
from cdk_training_cluster.cluster.arguments import TrainingClusterArguments
from cdk_training_cluster.cluster.orchestrator import Orchestrator
from cdk_training_cluster.orchestrators.batch.settings import SHARE_WEIGHT
from cdk_training_cluster_file.derivation import ModelOf
from cdk_training_cluster_file.fields import Count
from cdk_training_cluster_file.forms import within
from cdk_training_cluster_file.model_base import Settings
from cdk_training_cluster_file.orchestrators.orchestrator_model import OrchestratorModel


class BatchQueueSettings(Settings, ModelOf[BatchQueue]):
    """A job queue."""

    name: str = Field(examples=["main"])
    """What the queue is called in the cluster."""

    node_groups: Annotated[tuple[str, ...], Field(min_length=1)] | None = Field(default=None, examples=[["workers"]])
    """The node groups whose nodes its jobs use, best first: at most three. Left out: all of them."""

    priority: int = 1
    """Queues of a higher one get the nodes first: 0 to 1000."""

    shares: dict[str, Annotated[float, within(SHARE_WEIGHT)]] = Field(default={}, examples=[{"research": 0.5}])
    """Who shares the queue, by share identifier, and the weight of each: the lower, the more of the nodes. Left out:
    jobs start in the order in which they came."""


class BatchJobSettings(Settings, ModelOf[BatchJob]):
    """A job definition that trains with torchrun, or measures NCCL where there is no script."""

    name: str = Field(examples=["train"])
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

    attempts: int = 3
    """How often Batch starts it at most: 1 to 10. 1 ends the job at its first failure."""

    def for_constructs(self, **_: object) -> BatchJob:
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


class BatchSettings(OrchestratorModel, ModelOf[Batch]):
    """AWS Batch."""

    queues: tuple[BatchQueueSettings, ...] = Field(default=(), examples=[[{"name": "main"}]])
    """The job queues. Left out: one queue `main` of all node groups."""

    jobs: tuple[BatchJobSettings, ...] = Field(
        default=(), examples=[[{"name": "train", "image": "my/image:1", "script": "/fsx/train.py"}]]
    )
    """The job definitions. Left out: none; register your own."""

    unplaceable_minutes: float = 10
    """After how long a job ends that no node of its queue can ever run: 10 to 1440."""

    capacity_minutes: float = 1440
    """After how long a job ends that waits for capacity that EC2 does not have: 10 to 1440."""

    scale_down_delay_minutes: int | None = Field(default=None, examples=[30])
    """How long a node waits for another job before Batch terminates it, and is billed: 20 to 10080. Left out: Batch
    terminates it when no job needs it."""

    update_minutes: int = 1440
    """How long running jobs may go on after a deployment that changes how nodes are launched; the deployment waits so
    long: 1 to 7200."""

    def to_orchestrator(self) -> Orchestrator:
        """Return the orchestrator as the rules ask it."""
        from cdk_training_cluster.orchestrators.batch.batch_orchestrator import BatchOrchestrator  # noqa: PLC0415 - only for its clusters

        return BatchOrchestrator(self.for_constructs())

    def make_cluster(
        self, scope: Construct, id: str, **arguments: Unpack[TrainingClusterArguments]
    ) -> TrainingCluster:
        """Make the cluster."""
        from cdk_training_cluster import BatchTrainingQueue  # noqa: PLC0415 - only for its clusters

        return BatchTrainingQueue(scope, id, batch=self.for_constructs(), **arguments)
