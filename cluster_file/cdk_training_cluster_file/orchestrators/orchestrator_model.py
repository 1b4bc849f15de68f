"""What the settings of every orchestrator have in common."""

from typing import Unpack

from constructs import Construct

from cdk_training_cluster import TrainingCluster
from cdk_training_cluster.cluster.arguments import TrainingClusterArguments
from cdk_training_cluster.cluster.orchestrator import Orchestrator
from cdk_training_cluster_file.model_base import Settings


class OrchestratorModel(Settings):
    """The settings of an orchestrator; a subclass has a setting for each one of the construct, and its words."""

    def to_orchestrator(self) -> Orchestrator:
        """Return the orchestrator as the rules ask it.

        Raises:
            SettingsError: The settings contradict each other; every reason, a line each.
        """
        raise NotImplementedError

    def make_cluster(
        self, scope: Construct, id: str, **arguments: Unpack[TrainingClusterArguments]
    ) -> TrainingCluster:
        """Make the cluster, such as a `SlurmCluster`.

        Args:
            scope: The stack.
            id: The construct's id.
            arguments: What a cluster of any orchestrator takes.
        """
        raise NotImplementedError
