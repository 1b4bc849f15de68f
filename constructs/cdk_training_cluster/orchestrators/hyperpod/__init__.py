"""Amazon SageMaker HyperPod, on Slurm or on EKS."""

# Its rules about templates join those of all others where it is used.
from cdk_training_cluster.orchestrators.hyperpod.template_rules import CLUSTER

__all__ = ["CLUSTER"]
