"""The settings of Kubernetes on Amazon EKS in a cluster file."""

from cdk_training_cluster_stacks.cluster_file.orchestrators.engine import EngineSettings


class EksSettings(EngineSettings):
    """Kubernetes on Amazon EKS."""
