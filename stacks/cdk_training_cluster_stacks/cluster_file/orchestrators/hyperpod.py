"""The settings of SageMaker HyperPod in a cluster file."""

from typing import Literal

from cdk_training_cluster_stacks.cluster_file.orchestrators.engine import EngineSettings


class HyperPodSettings(EngineSettings):
    """Amazon SageMaker HyperPod."""

    engine: Literal["slurm", "eks"] = "slurm"
    """What runs jobs on it: slurm, or eks for Kubernetes."""
