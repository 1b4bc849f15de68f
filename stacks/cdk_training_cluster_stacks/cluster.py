"""The stack that comes and goes: launch templates, groups, and the functions that watch them."""

from aws_cdk import Annotations, CfnOutput, Environment, Stack, Tags
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from constructs import Construct

from cdk_training_cluster import TrainingCluster
from cdk_training_cluster.validation.words import IN_A_FILE, WORDS_CONTEXT
from cdk_training_cluster_stacks.cluster_file import ClusterFile
from cdk_training_cluster_stacks.foundation import FoundationStack, encryption_key


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
        )
        # Exports and imports, whatever a later CDK makes of references by default.
        self.node.set_context("@aws-cdk/core:defaultCrossStackReferences", "strong")
        self.node.set_context(WORDS_CONTEXT, IN_A_FILE)
        self.training_cluster = TrainingCluster(
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
            observability=None if cluster.observability is None else cluster.observability.to_observability(),
            dashboard=cluster.dashboard,
            instance_type_facts=[facts.to_info() for facts in cluster.instance_type_facts],
        )
        if not cluster.alerts.emails:
            Annotations.of(self).add_warning_v2(
                "cdk-training-cluster:noAlerts",
                "no address receives messages about missing nodes and failures: list one under alerts.emails, or "
                "subscribe to the topic that the output AlertTopicArn names.",
            )
        topic = self.training_cluster.alert_topic
        if isinstance(topic, sns.Topic):
            for address in cluster.alerts.emails:
                topic.add_subscription(subscriptions.EmailSubscription(address))
        CfnOutput(self, "AlertTopicArn", value=topic.topic_arn)
        for guardrail in self.training_cluster.guardrails:
            CfnOutput(self, guardrail.spec.output, value=guardrail.function_name)
        cost_budget = self.training_cluster.cost_budget
        if cost_budget is not None:
            CfnOutput(
                self,
                "ActivateCostTagCommand",
                description="Lets the AWS budget count the cluster's bill; run it once an organization, in the "
                "management account, a day after the first deployment",
                value=cost_budget.activation_command,
            )
        CfnOutput(
            self,
            "ResumeCommand",
            description="Starts every node group again; --parameters NodeGroups=<name> starts one",
            value=self.training_cluster.resume_document.command,
        )
        prometheus = self.training_cluster.prometheus
        if prometheus is not None:
            CfnOutput(self, "PrometheusUrl", description="For a data source", value=prometheus.query_url)
        for key, value in cluster.tags.items():
            Tags.of(self).add(key, value)

    def _powertools_layer(self, arn: str | None) -> lambda_.ILayerVersion | None:
        return None if arn is None else lambda_.LayerVersion.from_layer_version_arn(self, "PowertoolsLayer", arn)
