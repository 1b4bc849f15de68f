"""What a user says of a HyperPod cluster."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Annotated, Final

from cdk_training_cluster.nodes.orchestrator_kind import OrchestratorKind
from cdk_training_cluster.orchestrators.job_pods import DEFAULT_NAMESPACES, job_namespace
from cdk_training_cluster.validation.bounds import Form, Whole
from cdk_training_cluster.validation.kinds import checked

EKS_ARN: Final = Form(
    pattern=re.compile(r"arn:aws[a-z-]*:eks:[a-z0-9-]+:[0-9]{12}:cluster/[0-9A-Za-z][A-Za-z0-9_-]{0,99}"),
    wanted="the ARN of an EKS cluster, such as 'arn:aws:eks:us-east-1:111122223333:cluster/training'",
)
"""https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_ClusterOrchestratorEksConfig.html"""

SECURITY_GROUP: Final = Form(
    pattern=re.compile(r"sg-[0-9a-f]{8}([0-9a-f]{9})?"),
    wanted="the id of a security group, such as 'sg-0a1b2c3d4e5f67890'",
)

KUBERNETES_VERSIONS: Final = ("1.32", "1.34")
"""The oldest Kubernetes version that EKS still supports, and the newest that HyperPod's page lists.

https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-hyperpod-eks-prerequisites.html and
https://docs.aws.amazon.com/eks/latest/userguide/kubernetes-versions.html
"""

AUTHENTICATION_MODES: Final = ("API", "API_AND_CONFIG_MAP")
"""https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-hyperpod-eks-prerequisites.html"""

TASK_GOVERNANCE: Final = "amazon-sagemaker-hyperpod-taskgovernance"
"""The EKS add-on of task governance.

https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-hyperpod-eks-operate-console-ui-governance-setup.html
"""

NODE_TYPE: Final = Form(
    pattern=re.compile(r"ml\.[a-z][a-z0-9-]*\.[a-z0-9]+"),
    wanted="an instance type of SageMaker's, such as 'ml.m5.2xlarge'",
)

PARTITION: Final = Form(
    pattern=re.compile(r"(?!dev$)[a-zA-Z0-9](-*[a-zA-Z0-9])*"),
    wanted="letters, digits and hyphens, and not 'dev', the partition of all nodes",
)
"""https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_ClusterSlurmConfig.html"""

MEMORY_PERCENT: Final = Whole(minimum=1, maximum=100)
"""https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_ClusterTieredStorageConfig.html"""

WEIGHT: Final = Whole(minimum=0, maximum=100)
"""https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_PriorityClass.html"""


class HyperPodOrchestration(Enum):
    """What runs jobs on HyperPod."""

    SLURM = "slurm"
    """Slurm, with a controller node of the cluster."""

    EKS = "eks"
    """Kubernetes, on an Amazon EKS cluster that exists."""

    @property
    def kind(self) -> OrchestratorKind:
        """The orchestrator's column of the legality table."""
        return OrchestratorKind.HYPERPOD_EKS if self is HyperPodOrchestration.EKS else OrchestratorKind.HYPERPOD_SLURM


class DeepHealthCheck(Enum):
    """A test that a node passes before it takes jobs; it takes up to two hours.

    Source: https://docs.aws.amazon.com/sagemaker/latest/dg/sagemaker-hyperpod-eks-resiliency-deep-health-checks.html
    """

    STRESS = "InstanceStress"
    """Accelerators, memory and disks under load."""

    CONNECTIVITY = "InstanceConnectivity"
    """The network between nodes, with NCCL."""


class NodeRecovery(Enum):
    """What HyperPod does with a node that its health monitoring calls faulty."""

    AUTOMATIC = "Automatic"
    """It reboots or replaces it."""

    NONE = "None"
    """It labels it, and an operator decides."""


@checked
@dataclass(frozen=True, kw_only=True)
class HyperPodSettings:
    """Say how SageMaker HyperPod runs a cluster's jobs.

    Attributes:
        orchestrator: What runs jobs; it never changes, as the network and the EKS cluster. Default: - Slurm.
        eks_cluster_arn: The EKS cluster that runs jobs, with Kubernetes 1.32 to 1.34, the VPC CNI and HyperPod's Helm
            chart installed, in the VPC of the cluster's network. Default: - none: Slurm runs them.
        eks_security_group_id: The cluster security group of the EKS cluster, which nodes join: without it they
            cannot reach the API server. Required with `eks_cluster_arn`. Default: - none.
        controller_type: SageMaker's type of Slurm's controller node. Default: - `ml.m5.2xlarge`.
        login_type: SageMaker's type of Slurm's login node. Default: - there is none.
        partitions: The Slurm partition of a node group, by the group's name. Default: - of the group's own name.
        job_namespaces: The Kubernetes namespaces of jobs, in which the pods of the service account `cluster-job` get
            the job role; of use on EKS only. Default: - `training`.
        deep_health_checks: What a node passes before it takes jobs. Default: - none.
        node_recovery: What becomes of faulty nodes. Default: - `NodeRecovery.AUTOMATIC`.
        tiered_storage_percent: The part of a node's memory that keeps checkpoints, in percent; on EKS only.
            Default: - none.
        priority_classes: The weights of task governance's priority classes, 0 to 100, by name; on EKS only, with
            the EKS add-on `amazon-sagemaker-hyperpod-taskgovernance` installed before. Default: - no task governance.

    Raises:
        ValueError: A setting is wrong; every reason, a line each.
    """

    orchestrator: HyperPodOrchestration = HyperPodOrchestration.SLURM
    eks_cluster_arn: Annotated[str, EKS_ARN] | None = None
    eks_security_group_id: Annotated[str, SECURITY_GROUP] | None = None
    controller_type: Annotated[str, NODE_TYPE] = "ml.m5.2xlarge"
    login_type: Annotated[str, NODE_TYPE] | None = None
    partitions: Mapping[str, Annotated[str, PARTITION]] = field(default_factory=dict)
    job_namespaces: Sequence[Annotated[str, job_namespace]] = DEFAULT_NAMESPACES
    deep_health_checks: Sequence[DeepHealthCheck] = ()
    node_recovery: NodeRecovery = NodeRecovery.AUTOMATIC
    tiered_storage_percent: Annotated[int, MEMORY_PERCENT] | None = None
    priority_classes: Mapping[str, Annotated[int, WEIGHT]] = field(default_factory=dict)

    def partition_of(self, group: str) -> str:
        """Return the Slurm partition of a node group.

        Args:
            group: The node group's name.
        """
        return self.partitions.get(group, group)
