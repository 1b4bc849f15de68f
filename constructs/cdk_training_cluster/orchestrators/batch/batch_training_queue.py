"""A training cluster whose jobs run on AWS Batch."""

from typing import Unpack

from aws_cdk import aws_batch as batch_
from aws_cdk import aws_logs as logs
from constructs import Construct

from cdk_training_cluster.cluster.arguments import TrainingClusterArguments
from cdk_training_cluster.cluster.training_cluster import TrainingCluster
from cdk_training_cluster.orchestrators.batch.batch_orchestrator import BatchOrchestrator
from cdk_training_cluster.orchestrators.batch.settings import BatchSettings
from cdk_training_cluster.validation.kinds import checked


class BatchTrainingQueue(TrainingCluster):
    """Make a training cluster whose jobs run on AWS Batch: multi-node parallel jobs from zero nodes and back.

    It takes the arguments of `TrainingCluster` and makes what that makes, but for Auto Scaling groups: each node
    group is a compute environment of Batch, in the job queues that `batch` names. Batch launches the nodes that a job
    needs, and terminates them when none needs them; stopping a group keeps Batch from launching any. A job that can
    never start ends, and its status says why.

    Resources: `AWS::Batch::ComputeEnvironment` for each node group, `AWS::Batch::JobQueue` for each queue,
    `AWS::Batch::SchedulingPolicy` for each queue with shares, `AWS::Batch::JobDefinition` for each job, a role for
    the jobs' containers, a log group, and those of `TrainingCluster`.

    Attributes:
        queues: The job queues, by name.
        job_definitions: The job definitions, by name.
        log_group: Where the jobs' output goes.

    Source: https://docs.aws.amazon.com/batch/latest/userguide/multi-node-parallel-jobs.html
    """

    @checked
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        batch: BatchSettings | None = None,
        **arguments: Unpack[TrainingClusterArguments],
    ) -> None:
        """Make the cluster.

        Args:
            scope: The parent construct.
            id: The construct's id.
            batch: How Batch runs jobs. Default: - one queue of all node groups, and no job definitions.
            **arguments: As `TrainingCluster` takes them.

        Raises:
            ValueError: A setting is wrong, or Batch cannot have the node groups; every reason, a line each.
        """
        orchestrator = BatchOrchestrator(batch or BatchSettings())
        super().__init__(scope, id, _orchestrator=orchestrator, **arguments)
        self.queues: dict[str, batch_.CfnJobQueue] = orchestrator.queues
        self.job_definitions: dict[str, batch_.CfnJobDefinition] = orchestrator.job_definitions
        self.log_group: logs.LogGroup = orchestrator.log_group
