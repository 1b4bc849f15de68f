"""Where the training data lies: a file system, the S3 data sets that it shows, and checkpoints."""

from cdk_training_cluster.storage.checkpoint_store import CheckpointStore
from cdk_training_cluster.storage.choosing import StorageChoice, StorageNeed, StorageOption, choose_storage
from cdk_training_cluster.storage.dataset import Dataset, DatasetEvent
from cdk_training_cluster.storage.exported_checkpoints import ExportedCheckpoints
from cdk_training_cluster.storage.express_checkpoints import ExpressCheckpoints
from cdk_training_cluster.storage.file_system import TrainingFileSystem

__all__ = [
    "CheckpointStore",
    "Dataset",
    "DatasetEvent",
    "ExportedCheckpoints",
    "ExpressCheckpoints",
    "StorageChoice",
    "StorageNeed",
    "StorageOption",
    "TrainingFileSystem",
    "choose_storage",
]
