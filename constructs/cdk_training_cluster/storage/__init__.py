"""Where the training data lies: a file system, and the S3 data sets that it shows."""

from cdk_training_cluster.storage.choosing import StorageChoice, StorageNeed, StorageOption, choose_storage
from cdk_training_cluster.storage.dataset import Dataset, DatasetEvent
from cdk_training_cluster.storage.file_system import TrainingFileSystem

__all__ = [
    "Dataset",
    "DatasetEvent",
    "StorageChoice",
    "StorageNeed",
    "StorageOption",
    "TrainingFileSystem",
    "choose_storage",
]
