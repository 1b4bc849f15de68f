"""The orchestrator that runs jobs: `orchestrator` in a cluster file."""

from cdk_training_cluster_file.orchestrators.choice import NONE, OrchestratorChoice, OrchestratorSettings
from cdk_training_cluster_file.orchestrators.orchestrator_model import OrchestratorModel

__all__ = ["NONE", "OrchestratorChoice", "OrchestratorModel", "OrchestratorSettings"]
