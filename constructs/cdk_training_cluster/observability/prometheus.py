"""Prometheus for a cluster: the workspace that its nodes write to, its rules, and who is notified."""

import re
from dataclasses import dataclass
from typing import Annotated, Final

from aws_cdk import Stack
from aws_cdk import aws_aps as aps
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sns as sns
from constructs import Construct

from cdk_training_cluster.core.conditions import HERE
from cdk_training_cluster.core.encryption import KeyUser, allow
from cdk_training_cluster.core.retention import keep
from cdk_training_cluster.core.runbooks import runbook
from cdk_training_cluster.nodes.bootstrap import Collector
from cdk_training_cluster.nodes.node_metrics import node_metric
from cdk_training_cluster.observability.prometheus_rules import rules_file
from cdk_training_cluster.validation.bounds import ClusterName, Whole
from cdk_training_cluster.validation.checks import is_unknown
from cdk_training_cluster.validation.kinds import checked
from cdk_training_cluster.validation.rule import refuse
from cluster_contract.metrics import NODE_METRICS

# The DCGM exporter, which reads its fields every 30 seconds by default, reads them as often as Prometheus scrapes.
INTERVAL_SECONDS: Final = Whole(minimum=10, maximum=300)

# https://docs.aws.amazon.com/prometheus/latest/userguide/AMP_quotas.html
RETENTION_DAYS: Final = Whole(minimum=1, maximum=1095)

# As CloudFormation's lists of resource types by region say.
_WITHOUT_PROMETHEUS = re.compile(r"cn-.*")

# https://docs.aws.amazon.com/prometheus/latest/userguide/AMP-alertmanager-config.html. A subject of SNS has at most
# 100 characters; the longest name of a cluster and of an alert fit. NodeSilent ends when its node is back or when the
# samples that it compares with are too old: nothing says which, so its end is not sent. A summary holds the text of
# labels, which jobs may write: it stays one line of ASCII characters.
_ALERT_MANAGER = """\
template_files:
  cluster: |
    {{ define "cluster.subject" -}}
    {{ .CommonLabels.cluster }}: {{ .CommonLabels.alertname }}{{ if eq .Status "resolved" }} ended{{ end }}
    {{- end }}
    {{ define "cluster.message" }}{{ range .Alerts -}}
    {{ .Status }}: {{ reReplaceAll "[^ -~]+" " " .Annotations.summary }} {{ .Annotations.runbook }}
    {{ end }}{{ end }}
alertmanager_config: |
  templates:
    - cluster
  route:
    receiver: alert-topic
    group_by: [alertname, cluster]
    group_wait: 30s
    group_interval: 5m
    repeat_interval: 12h
    routes:
      - receiver: alert-topic-without-ends
        matchers: [alertname="NodeSilent"]
  receivers:
"""
# https://docs.aws.amazon.com/prometheus/latest/userguide/AMP-alertmanager-receiver-config.html
_RECEIVER = """\
    - name: @NAME@
      sns_configs:
        - topic_arn: @TOPIC@
          sigv4:
            region: @REGION@
          send_resolved: @ENDS@
          subject: '{{ template "cluster.subject" . }}'
          message: '{{ template "cluster.message" . }}'
"""
_RECEIVERS = {"alert-topic": "true", "alert-topic-without-ends": "false"}


@checked
@dataclass(frozen=True, kw_only=True)
class Observability:
    """What a cluster is observed with, beside CloudWatch. Make one with a method of the class.

    Attributes:
        interval_seconds: The seconds from one sample to the next.
        retention_days: How long samples are kept. None: AWS's default.
    """

    interval_seconds: Annotated[int, INTERVAL_SECONDS] = 30
    retention_days: Annotated[int, RETENTION_DAYS] | None = None

    @staticmethod
    @checked
    def prometheus(
        *,
        interval_seconds: Annotated[int, INTERVAL_SECONDS] = 30,
        retention_days: Annotated[int, RETENTION_DAYS] | None = None,
    ) -> "Observability":
        """Send the nodes' metrics to a workspace of Amazon Managed Service for Prometheus.

        AWS bills each sample: a p5.48xlarge with its 32 Elastic Fabric Adapters sends about 320 series, for 2.5 USD
        in a month of 30 days in which it runs day and night, at 30 seconds.

        Args:
            interval_seconds: The seconds from one sample to the next: 10 to 300. Default: - 30.
            retention_days: How many days samples are kept: 1 to 1095. Default: - 150, which is AWS's.

        Raises:
            ValueError: A setting is of the wrong kind or out of bounds.

        Source: https://aws.amazon.com/prometheus/pricing/
        """
        return Observability(interval_seconds=interval_seconds, retention_days=retention_days)


class ClusterPrometheus(Construct):
    """Make a workspace of Amazon Managed Service for Prometheus for the nodes of a cluster.

    It is kept when the stack goes, with what was measured: its samples are billed until they are as old as its
    retention says, or until `aws amp delete-workspace` deletes it. A cluster that is deployed again gets a new one.

    Resources: an `AWS::APS::Workspace` with an alert manager that notifies the alert topic, an
    `AWS::APS::RuleGroupsNamespace`, an `AWS::CloudWatch::Alarm` on nodes whose collector cannot be set up, and a
    statement in the policy of the topic.

    Attributes:
        workspace: The workspace.
        collector: The settings of the collector on the nodes.
        collector_alarm: The alarm on nodes whose collector cannot be set up.

    Source: https://docs.aws.amazon.com/prometheus/latest/userguide/what-is-Amazon-Managed-Service-Prometheus.html
    """

    @checked
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        cluster_name: ClusterName,
        observability: Observability,
        alert_topic: sns.ITopic,
        encryption_key: kms.IKey | None = None,
    ) -> None:
        """Make the workspace.

        Args:
            scope: The parent construct.
            id: The construct's id.
            cluster_name: The cluster's name, the workspace's alias.
            observability: The settings.
            alert_topic: What the alert manager notifies. A topic that is made in CDK lets it publish.
            encryption_key: The KMS key that encrypts the samples. With another key CloudFormation makes a new
                workspace, and keeps the old one. Default: - a key that AWS owns.

        Raises:
            ValueError: The service is not in the stack's region.
        """
        super().__init__(scope, id)
        region = Stack.of(self).region
        if not is_unknown(region) and _WITHOUT_PROMETHEUS.fullmatch(region):
            refuse(
                {
                    "observability": [
                        f"observability must be left out in {region}: CloudFormation has no AWS::APS::Workspace there"
                    ]
                }
            )
        self.workspace: aps.CfnWorkspace = aps.CfnWorkspace(
            self,
            "Workspace",
            alias=cluster_name,
            kms_key_arn=None if encryption_key is None else encryption_key.key_arn,
            alert_manager_definition=_alert_manager(alert_topic.topic_arn),
            workspace_configuration=None
            if observability.retention_days is None
            else aps.CfnWorkspace.WorkspaceConfigurationProperty(
                retention_period_in_days=observability.retention_days
            ),
        )
        keep(self.workspace)
        aps.CfnRuleGroupsNamespace(
            self, "Rules", name="training-cluster", workspace=self.workspace.attr_arn, data=rules_file()
        )
        self._let_publish(alert_topic, encryption_key)
        self.collector: Collector = Collector(
            remote_write_url=f"{self.workspace.attr_prometheus_endpoint}api/v1/remote_write",
            interval_seconds=observability.interval_seconds,
        )
        self.collector_alarm: cloudwatch.Alarm = self._make_alarm(cluster_name, alert_topic)

    @property
    def query_url(self) -> str:
        """The address that a data source of Grafana asks."""
        return self.workspace.attr_prometheus_endpoint

    def grant_write(self, grantee: iam.IGrantable) -> iam.Grant:
        """Let a principal write samples to this workspace.

        Args:
            grantee: The nodes' role.

        Source: https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonmanagedserviceforprometheus.html
        """
        return iam.Grant.add_to_principal(
            grantee=grantee, actions=["aps:RemoteWrite"], resource_arns=[self.workspace.attr_arn]
        )

    def grant_query(self, grantee: iam.IGrantable) -> iam.Grant:
        """Let a principal ask this workspace, as a data source of Grafana does.

        Args:
            grantee: Grafana's role, or a user.
        """
        return iam.Grant.add_to_principal(
            grantee=grantee,
            actions=["aps:GetLabels", "aps:GetMetricMetadata", "aps:GetSeries", "aps:QueryMetrics"],
            resource_arns=[self.workspace.attr_arn],
        )

    def _let_publish(self, topic: sns.ITopic, encryption_key: kms.IKey | None) -> None:
        # https://docs.aws.amazon.com/prometheus/latest/userguide/AMP-alertmanager-receiver-AMPpermission.html
        allow(self, encryption_key, KeyUser.PROMETHEUS)
        topic.add_to_resource_policy(
            iam.PolicyStatement(
                sid="PrometheusOfThisCluster",
                actions=["sns:Publish", "sns:GetTopicAttributes"],
                principals=[iam.ServicePrincipal("aps.amazonaws.com")],
                resources=[topic.topic_arn],
                conditions={
                    "ArnEquals": {"aws:SourceArn": self.workspace.attr_arn},
                    "StringEquals": {"aws:SourceAccount": HERE.account_id},
                },
            )
        )

    def _make_alarm(self, cluster_name: str, topic: sns.ITopic) -> cloudwatch.Alarm:
        alarm = node_metric(NODE_METRICS.collector_failed, cluster_name, statistic="Maximum").create_alarm(
            self,
            "CollectorFailed",
            alarm_description=f"{cluster_name}: a node works, but a part of its collector for Prometheus could not "
            f"be set up and sends no metrics. Look in the metric {NODE_METRICS.collector_failed} by NodeGroup for "
            "the node's group, and on its nodes at `journalctl -u cdk-training-cluster-collector`: it tries again "
            f"every 5 minutes. Runbook: {runbook('node', 'CollectorFailed')}",
            threshold=1,
            # What cannot be downloaded now may be a little later.
            evaluation_periods=4,
            datapoints_to_alarm=2,
            comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
            # Nodes report it only when it fails.
            treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
        )
        alarm.add_alarm_action(actions.SnsAction(topic))
        return alarm


def _alert_manager(topic: str) -> str:
    receivers = (_RECEIVER.replace("@NAME@", name).replace("@ENDS@", ends) for name, ends in _RECEIVERS.items())
    return "".join((_ALERT_MANAGER, *receivers)).replace("@TOPIC@", topic).replace("@REGION@", HERE.region)
