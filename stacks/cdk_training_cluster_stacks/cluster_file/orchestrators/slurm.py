"""The settings of Slurm on AWS PCS in a cluster file."""

from cdk_training_cluster_stacks.cluster_file.orchestrators.engine import EngineSettings


class SlurmSettings(EngineSettings):
    """Slurm on AWS PCS."""
