"""AWS Batch: compute environments, job queues and multi-node job definitions."""

from cdk_training_cluster.orchestrators.batch.batch_training_queue import BatchTrainingQueue
from cdk_training_cluster.orchestrators.batch.settings import BatchJob, BatchQueue, BatchSettings

__all__ = ["BatchJob", "BatchQueue", "BatchSettings", "BatchTrainingQueue"]
