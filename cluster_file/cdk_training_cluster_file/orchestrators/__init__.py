"""The engine that runs jobs: `orchestrator` in a cluster file."""

from cdk_training_cluster_file.orchestrators.choice import NONE, OrchestratorChoice, OrchestratorSettings
from cdk_training_cluster_file.orchestrators.engine import EngineSettings

__all__ = ["NONE", "EngineSettings", "OrchestratorChoice", "OrchestratorSettings"]
