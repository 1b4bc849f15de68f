"""What watches a cluster so that nothing of it costs money unnoticed."""

from cdk_training_cluster.guardrails.idle_group import IdleGroup
from cdk_training_cluster.guardrails.idle_metrics import IDLE_METRICS, IdleMetrics
from cdk_training_cluster.guardrails.idle_stop import IdleStop
from cdk_training_cluster.guardrails.resume_document import ResumeDocument

__all__ = ["IDLE_METRICS", "IdleGroup", "IdleMetrics", "IdleStop", "ResumeDocument"]
