"""Amazon SageMaker HyperPod, on Slurm or on EKS."""

from cdk_training_cluster.orchestrators.hyperpod import template_rules
from cdk_training_cluster.orchestrators.hyperpod.settings import (
    DeepHealthCheck,
    HyperPodOrchestration,
    HyperPodSettings,
    NodeRecovery,
)

__all__ = ["DeepHealthCheck", "HyperPodOrchestration", "HyperPodSettings", "NodeRecovery", "template_rules"]
