"""The construct that makes the power function, its tick, its alarms and its permissions."""

from collections.abc import Mapping

from aws_cdk import Aws, Duration, Token
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_scheduler as scheduler
from aws_cdk import aws_sns as sns
from constructs import Construct

from cdk_training_cluster.acknowledgements import acknowledge
from cdk_training_cluster.functions import ClusterFunction
from cdk_training_cluster.nodes import node_metric
from cdk_training_cluster.power.power_metrics import POWER_METRICS
from cdk_training_cluster.tags import CLUSTER_TAG

_POWER_TAGS = "cdk-training-cluster:power-*"


class ClusterPower(Construct):
    """Make the function that owns the sizes of a cluster's node groups, and all that watches it.

    Groups are created empty, so that missing capacity never rolls a stack back. Each minute the function
    brings every group to the size it should have: its count, or zero while it is stopped. It remembers what
    it did in tags on the group, leaves alone what an operator has changed, and says in plain words what EC2
    cannot give and which nodes go on running, and costing, that should not. Operators and other functions
    invoke it with `{"action": "stop", "node_groups": ["workers"], "by": "...", "reason": "..."}`, or with
    `start` or `status`.

    Let `schedule` depend on the groups: the first tick then comes when CloudFormation is done with them.

    The function itself tells the topic when a problem begins and when it ends. The alarms stand behind it; of
    those, only the one on the function's silence also says when it is over. It may ring once right after the
    first deployment, until the first tick has reported: a function that has never reported is silent too.

    Resources: what `ClusterFunction` makes, one `AWS::Scheduler::Schedule` with its role, three more alarms.

    Source: https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_SetDesiredCapacity.html
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        cluster_name: str,
        counts: Mapping[str, int],
        alert_topic: sns.ITopic,
        launch_grace: Duration | None = None,
        powertools_layer: lambda_.ILayerVersion | None = None,
    ) -> None:
        """Make the function, its tick and its alarms.

        Args:
            scope: The parent construct.
            id: The construct's id.
            cluster_name: The value of the tag `cdk-training-cluster:cluster` on the groups it owns.
            counts: Each node group's name and how many nodes it has while it is not stopped.
            alert_topic: What the function and its alarms tell. It must let CloudWatch publish; if it is
                encrypted, so must its key.
            launch_grace: How long nodes may take to launch before their absence is a problem, and how long
                they may take to go.
                Default: - 10 minutes.
            powertools_layer: A layer with Powertools for Python 3.14 on arm64. Default: - AWS's public one.

        Raises:
            ValueError: A count is not 1 or more, or `ClusterFunction` refuses its settings.
        """
        super().__init__(scope, id)
        _check_counts(counts)
        self._cluster_name = cluster_name
        self._alert_topic = alert_topic
        self._cluster_function = ClusterFunction(
            self,
            "Function",
            package="cluster_power",
            description=f"Owns the sizes of the node groups of the training cluster {cluster_name}",
            cluster_name=cluster_name,
            settings={
                "cluster": cluster_name,
                "groups": dict(counts),
                "launch_grace_seconds": (launch_grace or Duration.minutes(10)).to_seconds(),
            },
            environment={"ALERT_TOPIC_ARN": alert_topic.topic_arn},
            alert_topic=alert_topic,
            # Shorter than the time between two ticks, so that they do not overlap.
            timeout=Duration.seconds(50),
            powertools_layer=powertools_layer,
        )
        self.function: lambda_.IFunction = self._cluster_function.function
        self.error_alarm = self._cluster_function.error_alarm
        self._permit()
        self.schedule = self._make_schedule()
        self.missing_nodes_alarm = self._watch_nodes(
            "MissingNodes",
            self.metric_missing_nodes(),
            f"Nodes of {cluster_name} that should run have been missing for 15 minutes",
        )
        self.surplus_nodes_alarm = self._watch_nodes(
            "SurplusNodes",
            self.metric_surplus_nodes(),
            f"More nodes of {cluster_name} than should have been running, and costing, for 15 minutes",
        )
        self.silence_alarm = self._watch_silence()

    def grant_power(self, grantee: iam.IGrantable) -> iam.Grant:
        """Let somebody stop, start and ask about the node groups by invoking the function.

        Args:
            grantee: A role, user or function.
        """
        return self._cluster_function.grant_invoke(grantee)

    def metric_missing_nodes(
        self, *, node_group: str | None = None, statistic: str = "Minimum", period: Duration | None = None
    ) -> cloudwatch.Metric:
        """Return how many nodes should run and do not.

        Args:
            node_group: Count one node group only. Default: - the whole cluster.
            statistic: Over what the function reports each minute. Default: - `Minimum`, what was missing all
                the time.
            period: How much time a point covers. Default: - 5 minutes.
        """
        return self._metric(POWER_METRICS.missing_nodes, statistic, period, node_group)

    def metric_surplus_nodes(
        self, *, node_group: str | None = None, statistic: str = "Minimum", period: Duration | None = None
    ) -> cloudwatch.Metric:
        """Return how many nodes live, and are billed, beyond those that should.

        Args:
            node_group: Count one node group only. Default: - the whole cluster.
            statistic: Over what the function reports each minute. Default: - `Minimum`, what was too many all
                the time.
            period: How much time a point covers. Default: - 5 minutes.
        """
        return self._metric(POWER_METRICS.surplus_nodes, statistic, period, node_group)

    def metric_running_nodes(
        self, *, node_group: str | None = None, statistic: str = "Average", period: Duration | None = None
    ) -> cloudwatch.Metric:
        """Return how many nodes are in service.

        Args:
            node_group: Count one node group only. Default: - the whole cluster.
            statistic: Over what the function reports each minute. Default: - `Average`.
            period: How much time a point covers. Default: - 5 minutes.
        """
        return self._metric(POWER_METRICS.running_nodes, statistic, period, node_group)

    def metric_held_groups(self, *, statistic: str = "Maximum", period: Duration | None = None) -> cloudwatch.Metric:
        """Return how many node groups have a size that somebody else gave them.

        Args:
            statistic: Over what the function reports each minute. Default: - `Maximum`.
            period: How much time a point covers. Default: - 5 minutes.
        """
        return self._metric(POWER_METRICS.held_groups, statistic, period)

    def _metric(
        self, name: str, statistic: str, period: Duration | None, node_group: str | None = None
    ) -> cloudwatch.Metric:
        return node_metric(name, self._cluster_name, node_group, statistic=statistic, period=period)

    def _permit(self) -> None:
        """Permit what the function calls: it reads all groups, and writes on those of its cluster only.

        https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonec2autoscaling.html
        """
        groups = (
            f"arn:{Aws.PARTITION}:autoscaling:{Aws.REGION}:{Aws.ACCOUNT_ID}:autoScalingGroup:*:autoScalingGroupName/*"
        )
        of_this_cluster = {f"aws:ResourceTag/{CLUSTER_TAG}": self._cluster_name}
        role = self._cluster_function.role
        role.add_to_policy(
            iam.PolicyStatement(
                actions=["autoscaling:DescribeAutoScalingGroups", "autoscaling:DescribeScalingActivities"],
                resources=["*"],
            )
        )
        role.add_to_policy(
            iam.PolicyStatement(
                actions=["autoscaling:SetDesiredCapacity"],
                resources=[groups],
                conditions={"StringEquals": of_this_cluster},
            )
        )
        role.add_to_policy(
            iam.PolicyStatement(
                actions=["autoscaling:CreateOrUpdateTags"],
                resources=[groups],
                conditions={
                    "StringEquals": of_this_cluster,
                    "ForAllValues:StringLike": {"aws:TagKeys": [_POWER_TAGS]},
                },
            )
        )
        self._alert_topic.grant_publish(role)
        acknowledge(
            role,
            "AwsSolutions-IAM5[Resource::*]",
            "Auto Scaling's Describe actions take no resource; they change nothing.",
        )
        acknowledge(
            role,
            "AwsSolutions-IAM5[Resource::arn:<AWS::Partition>:autoscaling:<AWS::Region>:<AWS::AccountId>:"
            "autoScalingGroup:*:autoScalingGroupName/*]",
            "Names and ids of the groups are made at deployment; the condition on the cluster's tag limits "
            "the writes.",
        )

    def _make_schedule(self) -> scheduler.CfnSchedule:
        # L1, because the L2 target grants every version and alias of the function too, and by default
        # retries a tick for a day: the next one comes in a minute.
        role = iam.Role(
            self,
            "ScheduleRole",
            description=f"The tick of cluster_power of the training cluster {self._cluster_name}",
            # https://docs.aws.amazon.com/scheduler/latest/UserGuide/cross-service-confused-deputy-prevention.html
            assumed_by=iam.ServicePrincipal(
                "scheduler.amazonaws.com",
                conditions={
                    "StringEquals": {
                        "aws:SourceAccount": Aws.ACCOUNT_ID,
                        "aws:SourceArn": f"arn:{Aws.PARTITION}:scheduler:{Aws.REGION}:{Aws.ACCOUNT_ID}:"
                        "schedule-group/default",
                    }
                },
            ),
        )
        grant = self._cluster_function.grant_invoke(role)
        schedule = scheduler.CfnSchedule(
            self,
            "Schedule",
            description=f"The tick of cluster_power of the training cluster {self._cluster_name}",
            schedule_expression="rate(1 minute)",
            flexible_time_window=scheduler.CfnSchedule.FlexibleTimeWindowProperty(mode="OFF"),
            target=scheduler.CfnSchedule.TargetProperty(
                arn=self.function.function_arn,
                role_arn=role.role_arn,
                input='{"action":"tick"}',
                retry_policy=scheduler.CfnSchedule.RetryPolicyProperty(
                    maximum_retry_attempts=0, maximum_event_age_in_seconds=60
                ),
            ),
        )
        # Scheduler checks at once that it may assume the role and call the function.
        grant.apply_before(schedule)
        return schedule

    def _watch_nodes(self, id: str, metric: cloudwatch.Metric, trouble: str) -> cloudwatch.Alarm:
        alarm = metric.create_alarm(
            self,
            id,
            alarm_description=f"{trouble}; the log group {self._cluster_function.log_group.log_group_name} says why.",
            threshold=1,
            comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
            evaluation_periods=3,
            datapoints_to_alarm=3,
            # Silence says nothing of the nodes: then the alarm has no state, and the other alarm goes off.
            treat_missing_data=cloudwatch.TreatMissingData.MISSING,
        )
        return self._notify(alarm)

    def _watch_silence(self) -> cloudwatch.Alarm:
        alarm = self._metric(POWER_METRICS.successful_ticks, "Sum", None).create_alarm(
            self,
            "Silence",
            alarm_description=f"cluster_power of {self._cluster_name} has not once succeeded in 15 minutes: "
            "nobody knows whether the nodes that should run do.",
            threshold=1,
            comparison_operator=cloudwatch.ComparisonOperator.LESS_THAN_THRESHOLD,
            evaluation_periods=3,
            datapoints_to_alarm=3,
            treat_missing_data=cloudwatch.TreatMissingData.BREACHING,
        )
        alarm.add_ok_action(actions.SnsAction(self._alert_topic))
        return self._notify(alarm)

    def _notify(self, alarm: cloudwatch.Alarm) -> cloudwatch.Alarm:
        # No OK action where missing data is not breaching: a new alarm goes from no state to OK with its first
        # points, and would tell people of the end of a problem that never was.
        alarm.add_alarm_action(actions.SnsAction(self._alert_topic))
        return alarm


def _check_counts(counts: Mapping[str, int]) -> None:
    if not counts:
        raise ValueError("counts must name at least one node group, got none")
    for name, count in counts.items():
        if not Token.is_unresolved(count) and count < 1:
            raise ValueError(f"counts must be 1 or more for each node group, got {count} for {name!r}")
