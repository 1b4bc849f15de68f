"""The stack that comes and goes: launch templates, groups, and the functions that watch them."""

from aws_cdk import Environment, Stack, Tags
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from constructs import Construct

from cdk_training_cluster import TrainingCluster
from cdk_training_cluster.core.acknowledgements import warn
from cdk_training_cluster_file import ClusterFile
from cdk_training_cluster_stacks.foundation import FoundationStack, encryption_key, speak_as_a_file

# Of 50 groups of p5.48xlarge a template takes more than CloudFormation's 1 MB with indentation.
_MAX_INDENTED_GROUPS = 20


class ClusterStack(Stack):
    """Make the nodes of a cluster file in the network of its foundation.

    The references to the foundation are exports and imports: CloudFormation refuses to replace or delete what
    this stack uses.
    """

    training_cluster: TrainingCluster

    def __init__(self, scope: Construct, id: str, *, cluster: ClusterFile, foundation: FoundationStack) -> None:
        """Make the stack.

        Args:
            scope: The app.
            id: The construct's id.
            cluster: What the file says.
            foundation: The stack with the network and the file system.

        Raises:
            ValueError: A part refuses its settings.
        """
        super().__init__(
            scope,
            id,
            stack_name=cluster.cluster_stack_name,
            description=f"The nodes of the training cluster {cluster.name}",
            env=Environment(account=cluster.account, region=cluster.region),
            # A third of a template is indentation, which CloudFormation counts too.
            suppress_template_indentation=len(cluster.node_groups) > _MAX_INDENTED_GROUPS,
        )
        # Exports and imports, whatever a later CDK makes of references by default.
        self.node.set_context("@aws-cdk/core:defaultCrossStackReferences", "strong")
        speak_as_a_file(self, cluster)
        orchestrator = cluster.orchestrator.settings
        make_cluster = TrainingCluster if orchestrator is None else orchestrator.make_cluster
        self.training_cluster = make_cluster(
            self,
            "TrainingCluster",
            cluster_name=cluster.name,
            network=foundation.network,
            file_system=foundation.file_system,
            checkpoints=foundation.checkpoints,
            state=foundation.state,
            node_groups=[settings.to_node_group(cluster.region) for settings in cluster.node_groups],
            **cluster.to_guardrails(),
            powertools_layer=self._powertools_layer(cluster.powertools_layer_arn),
            encryption_key=encryption_key(self, cluster),
            backup_alert_topic=self._backup_topic(cluster.alerts.backup_topic_arn),
            observability=None
            if cluster.observability is None
            else cluster.observability.prometheus.for_constructs(),
            dashboard=cluster.dashboard,
            instance_type_facts=[facts.to_info() for facts in cluster.instance_type_facts],
        )
        if not cluster.alerts.emails:
            warn(
                self,
                "noAlerts",
                "no address receives messages about missing nodes and failures: list one under alerts.emails, or "
                "subscribe to the topic that the output AlertTopicArn names.",
            )
        topic = self.training_cluster.alert_topic
        if isinstance(topic, sns.Topic):
            for address in cluster.alerts.emails:
                topic.add_subscription(subscriptions.EmailSubscription(address))
        self.training_cluster.make_outputs()
        for key, value in cluster.tags.items():
            Tags.of(self).add(key, value)

    def _backup_topic(self, arn: str | None) -> sns.ITopic | None:
        return None if arn is None else sns.Topic.from_topic_arn(self, "BackupTopic", arn)

    def _powertools_layer(self, arn: str | None) -> lambda_.ILayerVersion | None:
        return None if arn is None else lambda_.LayerVersion.from_layer_version_arn(self, "PowertoolsLayer", arn)
