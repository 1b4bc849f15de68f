"""AWS Batch: compute environments, job queues and multi-node job definitions."""

from cdk_training_cluster.orchestrators.batch import template_rules
from cdk_training_cluster.orchestrators.batch.settings import BatchJob, BatchQueue, BatchSettings

__all__ = ["BatchJob", "BatchQueue", "BatchSettings", "template_rules"]
