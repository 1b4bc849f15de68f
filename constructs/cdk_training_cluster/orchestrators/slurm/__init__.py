"""Slurm on AWS PCS: the scheduler, its queues, and the groups that it launches nodes in."""

from cdk_training_cluster.orchestrators.slurm import template_rules
from cdk_training_cluster.orchestrators.slurm.settings import (
    LoginNodes,
    Preemption,
    SlurmNodes,
    SlurmQueue,
    SlurmSettings,
    SlurmSize,
    SlurmVersion,
)

__all__ = [
    "LoginNodes",
    "Preemption",
    "SlurmNodes",
    "SlurmQueue",
    "SlurmSettings",
    "SlurmSize",
    "SlurmVersion",
    "template_rules",
]
