"""Kubernetes on Amazon EKS."""

from cdk_training_cluster.orchestrators.eks import template_rules
from cdk_training_cluster.orchestrators.eks.settings import EksSettings, SystemNodes

__all__ = ["EksSettings", "SystemNodes", "template_rules"]
