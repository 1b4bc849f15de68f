"""What the settings of every engine have in common."""

from typing import Unpack

from constructs import Construct

from cdk_training_cluster import TrainingCluster
from cdk_training_cluster.cluster.arguments import TrainingClusterArguments
from cdk_training_cluster.cluster.orchestrator import Orchestrator
from cdk_training_cluster_file.model_base import Settings


class EngineSettings(Settings):
    """The settings of an engine; a subclass has a setting for each of the construct's, and the construct's words."""

    def to_orchestrator(self) -> Orchestrator:
        """Return the engine as the rules ask it.

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
            arguments: What a cluster of any engine takes.
        """
        raise NotImplementedError
