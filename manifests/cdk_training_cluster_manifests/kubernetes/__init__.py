"""The Kubernetes folder of a cluster file: charts with their values, manifests, jobs, and how to apply them."""

from cdk_training_cluster_manifests.kubernetes.folder import write_folder
from cdk_training_cluster_manifests.kubernetes.generating import generated_files

__all__ = ["generated_files", "write_folder"]
