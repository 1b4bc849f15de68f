"""The settings of SageMaker HyperPod in a cluster file."""

from typing import Annotated, Literal, Unpack

from constructs import Construct
from pydantic import Field

from cdk_training_cluster import HyperPodSettings as ConstructSettings
from cdk_training_cluster import TrainingCluster
from cdk_training_cluster.cluster.arguments import TrainingClusterArguments
from cdk_training_cluster.cluster.orchestrator import Orchestrator
from cdk_training_cluster.orchestrators.hyperpod.settings import EKS_ARN, PARTITION
from cdk_training_cluster_file import fields
from cdk_training_cluster_file.derivation import ModelOf
from cdk_training_cluster_file.forms import Text, text_of
from cdk_training_cluster_file.kubernetes import KubernetesSettings
from cdk_training_cluster_file.orchestrators.orchestrator_model import OrchestratorModel

EksClusterArn = Annotated[str, text_of(EKS_ARN)]
_Partition = Annotated[str, Text(pattern=PARTITION.pattern.pattern, must=f"be {PARTITION.wanted}")]


class HyperPodSettings(OrchestratorModel, ModelOf[ConstructSettings], names={"kubernetes": "job_namespaces"}):
    """Amazon SageMaker HyperPod."""

    orchestrator: Literal["slurm", "eks"] = "slurm"
    """What runs jobs on it: slurm, or eks for Kubernetes."""

    eks_cluster_arn: str | None = Field(
        default=None, examples=["arn:aws:eks:us-east-1:111122223333:cluster/training"]
    )
    """The EKS cluster that runs jobs, with HyperPod's Helm chart installed, in the VPC of network. Left out: Slurm
    runs them."""

    eks_security_group_id: fields.SecurityGroupId | None = Field(default=None, examples=["sg-0a1b2c3d4e5f67890"])
    """The cluster security group of that EKS cluster, which nodes need to join it; aws eks describe-cluster shows it.
    Required with orchestrator eks."""

    controller_type: str = Field(default="ml.m5.2xlarge", examples=["ml.m5.2xlarge"])
    """SageMaker's type of Slurm's controller node, which always runs."""

    login_type: str | None = Field(default=None, examples=["ml.m5.xlarge"])
    """SageMaker's type of Slurm's login node. Left out: there is none."""

    partitions: dict[str, _Partition] = Field(default_factory=dict, examples=[{"workers": "train"}])
    """The Slurm partitions of node groups, by the groups' names. Left out: each group has one of its own name."""

    deep_health_checks: tuple[Literal["stress", "connectivity"], ...] = Field(default=(), examples=[["stress"]])
    """What a node passes before it takes jobs, in up to two hours. Left out: nothing."""

    node_recovery: Literal["automatic", "none"] = "automatic"
    """Whether HyperPod reboots or replaces nodes that it finds faulty."""

    tiered_storage_percent: int | None = Field(default=None, examples=[20])
    """The part of a node's memory that keeps checkpoints, in percent, on EKS. Left out: none."""

    priority_classes: dict[str, int] = Field(default_factory=dict, examples=[{"production": 100, "research": 10}])
    """The weights of task governance's priority classes, by name, on EKS, where its add-on must be active before.
    Left out: no task governance."""

    kubernetes: KubernetesSettings = KubernetesSettings()
    """With orchestrator eks, what is installed on the cluster and how teams share it; `training-cluster manifests`
    writes it."""

    def to_orchestrator(self) -> Orchestrator:
        """Return the orchestrator as the rules ask it."""
        from cdk_training_cluster.orchestrators.hyperpod.hyperpod_orchestrator import HyperPodOrchestrator  # noqa: PLC0415 - only for its clusters

        return HyperPodOrchestrator(self._settings())

    def make_cluster(
        self, scope: Construct, id: str, **arguments: Unpack[TrainingClusterArguments]
    ) -> TrainingCluster:
        """Make the cluster."""
        from cdk_training_cluster import HyperPodCluster  # noqa: PLC0415 - only for its clusters

        return HyperPodCluster(scope, id, hyperpod=self._settings(), **arguments)

    def _settings(self) -> ConstructSettings:
        namespaces = self.kubernetes.namespaces(governed=bool(self.priority_classes))
        return self.for_constructs(job_namespaces=[*namespaces.values()])
