"""What finds broken nodes, repairs them within a budget, and lets their jobs end first."""

from cdk_training_cluster.guardrails.health.health_policy import HealthPolicy
from cdk_training_cluster.guardrails.health.node_health import NodeHealth

__all__ = ["HealthPolicy", "NodeHealth"]
