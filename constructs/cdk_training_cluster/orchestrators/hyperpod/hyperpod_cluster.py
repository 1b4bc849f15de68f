"""A training cluster on SageMaker HyperPod."""

from typing import Unpack

from aws_cdk import aws_sagemaker as sagemaker
from constructs import Construct

from cdk_training_cluster.cluster.arguments import TrainingClusterArguments
from cdk_training_cluster.cluster.training_cluster import TrainingCluster
from cdk_training_cluster.orchestrators.hyperpod.hyperpod_orchestrator import HyperPodOrchestrator
from cdk_training_cluster.orchestrators.hyperpod.settings import HyperPodSettings
from cdk_training_cluster.validation.kinds import checked


class HyperPodCluster(TrainingCluster):
    """Make a training cluster whose nodes are instance groups of Amazon SageMaker HyperPod, on Slurm or on EKS.

    HyperPod replaces faulty nodes, tests new ones, and keeps job queues. Nodes are bought on demand, on Spot (on EKS)
    or with a training plan: `Capacity.training_plan()`.

    Resources: what `TrainingCluster` makes but launch templates, groups and placement groups; an
    `AWS::SageMaker::Cluster` with continuous provisioning, so that no deployment waits for nodes, on Slurm with a
    controller node that always runs; for each node group a lifecycle script and an SSM parameter; an
    `AWS::SageMaker::ClusterSchedulerConfig` for task governance.

    A deployment that changes a property of the HyperPod cluster, such as one that adds a node group, sends the
    `count` of every node group again. Nodes that run stay; a group that was stopped, or given fewer nodes, asks for
    all of them until the power function sets its size again within minutes. A new version of the library alone
    changes no property.

    Attributes:
        hyperpod_cluster: The HyperPod cluster.

    Source: https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-hyperpod.html
    """

    @checked
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        hyperpod: HyperPodSettings | None = None,
        **arguments: Unpack[TrainingClusterArguments],
    ) -> None:
        """Make the cluster.

        Args:
            scope: The parent construct.
            id: The construct's id.
            hyperpod: How HyperPod runs jobs. Default: - on Slurm.
            arguments: The arguments of `TrainingCluster`.

        Raises:
            ValueError: A setting is wrong; every reason, a line each.
        """
        orchestrator = HyperPodOrchestrator(hyperpod or HyperPodSettings())
        super().__init__(scope, id, _orchestrator=orchestrator, **arguments)
        self.hyperpod_cluster: sagemaker.CfnCluster = orchestrator.cluster
