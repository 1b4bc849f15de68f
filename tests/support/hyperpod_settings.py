"""Settings of HyperPod with which tests begin."""

from typing import Any

from cdk_training_cluster import HyperPodOrchestration, NodeGroup

ARN = "arn:aws:eks:us-east-1:111122223333:cluster/training"
GROUP = "sg-0a1b2c3d4e5f67890"
EKS: dict[str, Any] = {
    "orchestrator": HyperPodOrchestration.EKS,
    "eks_cluster_arn": ARN,
    "eks_security_group_id": GROUP,
}
WORKERS = NodeGroup("workers", instance_types=["p5.48xlarge"], count=8)
