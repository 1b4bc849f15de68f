"""The orchestrators that a cluster's jobs can run on."""

from enum import Enum


class OrchestratorKind(Enum):
    """What launches nodes for jobs; the value is what sentences call it."""

    NONE = "Auto Scaling groups"
    SLURM = "AWS PCS"
    EKS = "Amazon EKS"
    HYPERPOD_SLURM = "SageMaker HyperPod on Slurm"
    HYPERPOD_EKS = "SageMaker HyperPod on EKS"
    BATCH = "AWS Batch"

    @property
    def is_hyperpod(self) -> bool:
        """Whether nodes are instance groups of SageMaker HyperPod, which takes no launch template."""
        return self in {OrchestratorKind.HYPERPOD_SLURM, OrchestratorKind.HYPERPOD_EKS}
