"""The settings of AWS Batch in a cluster file."""

from cdk_training_cluster_stacks.cluster_file.orchestrators.engine import EngineSettings


class BatchSettings(EngineSettings):
    """AWS Batch."""
