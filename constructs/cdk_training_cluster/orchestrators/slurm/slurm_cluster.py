"""A training cluster whose jobs run on Slurm."""

from typing import Unpack

from aws_cdk import aws_pcs as pcs
from constructs import Construct

from cdk_training_cluster.cluster.arguments import TrainingClusterArguments
from cdk_training_cluster.cluster.training_cluster import TrainingCluster
from cdk_training_cluster.orchestrators.slurm.settings import SlurmSettings
from cdk_training_cluster.orchestrators.slurm.slurm_orchestrator import SlurmOrchestrator
from cdk_training_cluster.validation.kinds import checked


class SlurmCluster(TrainingCluster):
    """Make a training cluster whose jobs run on Slurm, which AWS PCS manages.

    It takes the arguments of `TrainingCluster` and makes what that makes, but for Auto Scaling groups: each node
    group is a compute node group of AWS PCS, in the queues that `slurm` names. Where nodes are not fixed, Slurm
    launches them for jobs and ends them when they were idle; stopping a group sets the most nodes that it may have to
    zero.

    Every node is verified before a job and checked while it runs; one that fails is drained, and its job starts again
    elsewhere. Users log in to nodes of their own, and homes are on the file system.

    Resources: `AWS::PCS::Cluster`, `AWS::PCS::Queue`, `AWS::PCS::ComputeNodeGroup` of each node group and of the
    login nodes, log deliveries, and those of `TrainingCluster`.

    Attributes:
        pcs_cluster: The cluster of AWS PCS.
        queues: Its queues, by name.

    Source: https://docs.aws.amazon.com/pcs/latest/userguide/what-is-service.html
    """

    @checked
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        slurm: SlurmSettings | None = None,
        **arguments: Unpack[TrainingClusterArguments],
    ) -> None:
        """Make the cluster.

        Args:
            scope: The parent construct.
            id: The construct's id.
            slurm: How Slurm runs jobs. Default: - a queue for each node group, with accounting.
            **arguments: As `TrainingCluster` takes them.

        Raises:
            ValueError: A setting is wrong, or AWS PCS cannot have the node groups; every reason, a line each.
        """
        orchestrator = SlurmOrchestrator(slurm or SlurmSettings())
        super().__init__(scope, id, _orchestrator=orchestrator, **arguments)
        self.pcs_cluster: pcs.CfnCluster = orchestrator.pcs_cluster
        self.queues: dict[str, pcs.CfnQueue] = orchestrator.queues
