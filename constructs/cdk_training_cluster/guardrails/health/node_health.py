"""The construct that makes the health function: its tick, its events, its alarms and its permissions."""

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import ClassVar, Unpack

from aws_cdk import Annotations, Duration
from aws_cdk import aws_autoscaling as autoscaling
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from cdk_training_cluster.core.dashboards.rows import DashboardRow, Panel, Unit
from cdk_training_cluster.core.encryption import KeyUser, allow
from cdk_training_cluster.core.times import to_duration
from cdk_training_cluster.functions import (
    OWNER_ACTIONS,
    Guardrail,
    GuardrailArguments,
    GuardrailSpec,
    OwnedGroup,
    Silence,
    Watch,
)
from cdk_training_cluster.guardrails.health.health_permissions import HealthPermissions, let_nodes_report
from cdk_training_cluster.guardrails.health.health_policy import HealthPolicy
from cdk_training_cluster.nodes import NodeFleet
from cdk_training_cluster.nodes.bootstrap.node_bootstrap import let_nodes_complete_actions
from cdk_training_cluster.nodes.node_metrics import node_metric
from cdk_training_cluster.validation.kinds import checked
from cluster_contract.aliases import EVENTS_ALIAS
from cluster_contract.health import DRAIN_HOOK, REPORT_DETAIL_TYPE, report_source
from cluster_contract.health_settings import HealthFunctionSettings, HealthMetric
from cluster_contract.metrics import NODE_METRICS
from cluster_contract.owners import OwnedGroupSettings
from cluster_contract.state import StatePart

# Lambda keeps an event that the function has no time for; a report that comes later than that is sent again.
_MAX_REPORT_AGE = timedelta(hours=1)

REPAIR_GRACE_SECONDS = 365 * 24 * 3600
"""How long a group whose nodes are repaired leaves nodes with failed checks alone."""

# https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/spot-instance-termination-notices.html,
# https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/rebalance-recommendations.html and
# https://docs.aws.amazon.com/health/latest/ug/aws-health-events-eventbridge-schema.html
_WATCHES = (
    Watch(
        id="UnrepairedNodes",
        metric=HealthMetric.WAITING_NODES,
        trouble="for 15 minutes some nodes have been broken or have failed their verification, and the health "
        "function leaves them as they are",
        records="waiting = 1",
        remedy="Each record names a node, its fault, why it is left, such as that the function may only report, and "
        "a command. Let its job save a checkpoint, then reboot, replace or verify the node with that",
    ),
    Watch(
        id="SpentBudget",
        metric=HealthMetric.BUDGET_SPENT,
        statistic="Maximum",
        periods=1,
        trouble="nodes of one node group have been repaired as often as the policy allows within its window, and "
        "another one has a fault",
        remedy="Faults of many nodes often have one cause: look in the records for what the nodes share, such as an "
        "image, a driver or a job. Then raise max_repairs of the policy, or wait for the window to pass",
    ),
)

# Nodes report it once for each verification, 1 or 0; without a verification there is no data. A job that adds numbers
# below zero would hide a failure from a sum.
_FAILED_VERIFICATIONS = Watch(
    id="FailedVerifications",
    metric=NODE_METRICS.verification_failed,
    statistic="Maximum",
    periods=1,
    sporadic=True,
    trouble="a node has failed its verification, takes no job, and is billed",
    records="ispresent(checks.0)",
    remedy="Each record names a node and its failed checks. Auto Scaling replaces a new node whose fault another "
    "would not have, at most three of a group a day. Any other waits for you, unless the health policy repairs it: "
    "mend what the checks name and run `cluster-node verify` on it, or terminate it",
)


class NodeHealth(Guardrail):
    """Make the function that learns of broken nodes, and repairs them if its policy says so.

    Nodes report faults of their accelerators, fabric and disks, and what EC2 says of them; EventBridge brings the
    reports to the function. A broken node takes no new job, its job saves a checkpoint and ends, and the node is
    rebooted and verified, or replaced; never more nodes than the policy allows, one at a time of each node group,
    never on missing data, and never a node that an operator keeps. By default the function only reports: with
    `HealthPolicy(act=True)` it acts.

    It repairs nodes of Auto Scaling groups, Spot Fleets and AWS PCS. EKS, HyperPod and AWS Batch repair nodes
    themselves; there it only reports.

    A node that its Auto Scaling group terminates, whatever for, gets the policy's `grace`: a lifecycle hook waits
    until the node says that no job runs on it. EC2 itself waits for no hook: an interrupted Spot Instance has two
    minutes. Where the function acts, Auto Scaling still replaces nodes that are stopped or terminated in EC2, and
    leaves those whose status checks fail to the function, which replaces them within its budget.

    Resources: what `ClusterFunction` makes, one `AWS::Scheduler::Schedule` with its role, four more alarms, two
    `AWS::Events::Rule`s with an `AWS::Lambda::Permission` each, an `AWS::Lambda::Alias` for them with an
    `AWS::Lambda::EventInvokeConfig`, for each Auto Scaling group an
    `AWS::AutoScaling::LifecycleHook`, statements in the policies of the nodes' roles, and where no `state` is given,
    what `ClusterState` makes.

    Attributes:
        policy: What the function may do.

    Sources: https://docs.aws.amazon.com/autoscaling/ec2/userguide/as-enter-exit-standby.html,
    https://docs.aws.amazon.com/autoscaling/ec2/userguide/lifecycle-hooks-overview.html and
    https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-rule-dlq.html
    """

    spec: ClassVar[GuardrailSpec] = GuardrailSpec(
        package="cluster_health",
        called="the health function",
        purpose="Reports and repairs broken nodes of the training cluster $name",
        output="HealthFunctionName",
        every=timedelta(minutes=1),
        timeout=timedelta(seconds=50),
        # A stop of hundreds of nodes brings two reports of each, and they are taken in one by one.
        memory_size_mib=1024,
        max_event_age=_MAX_REPORT_AGE,
        # No tick makes a report good that was lost. https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-error-handling.html
        retries=2,
        silence=Silence(
            metric=HealthMetric.EVALUATIONS,
            trouble="the health function has not succeeded for 15 minutes, so broken nodes may fail jobs without a "
            "message",
        ),
        watches=_WATCHES,
        keeps=StatePart.HEALTH,
    )

    @checked
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        fleets: Sequence[NodeFleet],
        policy: HealthPolicy | None = None,
        **arguments: Unpack[GuardrailArguments],
    ) -> None:
        """Make the function, its tick, its events and its alarms, and let the nodes report.

        Args:
            scope: The parent construct.
            id: The construct's id.
            fleets: The nodes of every group.
            policy: What the function may do. Default: - it reports only; see `HealthPolicy`.
            **arguments: As `GuardrailArguments` says.

        Raises:
            ValueError: There is no fleet, the policy acts and there are no nodes that the function can repair, or
                `ClusterFunction` refuses its settings.
        """
        super().__init__(scope, id, **arguments)
        cluster_name = self._cluster_name
        if not fleets:
            raise ValueError("fleets must hold the nodes of at least one group, got none")
        self.policy: HealthPolicy = policy or HealthPolicy()
        groups = {fleet.node_group.name: OwnedGroup(owner=fleet.owner_settings) for fleet in fleets}
        if self.policy.act and not any(OWNER_ACTIONS[group.owner_kind].repairs for group in groups.values()):
            raise ValueError(
                "act of the health policy must be left out: no node group has nodes that the function can repair, "
                f"and {OWNER_ACTIONS[next(iter(groups.values())).owner_kind].own_repair}"
            )
        settings = HealthFunctionSettings(
            cluster=cluster_name,
            groups={name: OwnedGroupSettings(owner=group.owner_settings) for name, group in groups.items()},
            policy=self.policy.to_contract(),
            topic_arn=self._alert_topic.topic_arn,
            state_table=self.state.table_name,
            stack_id=self._stack_id_end,
        )
        permissions = HealthPermissions(cluster_name, groups.values(), act=self.policy.act)

        def permit(role: iam.Role) -> None:
            permissions.grant(role)
            self.state.grant_read(role, StatePart.POWER, cluster_name)

        self._make(settings, permit)
        allow(self, self._encryption_key, KeyUser.EVENTS)
        # A role that may look invokes the function through no alias, and brings no report.
        self._events = lambda_.Function.from_function_attributes(
            self,
            "EventsFunction",
            function_arn=self._cluster_function.alias(EVENTS_ALIAS).ref,
            same_environment=True,
        )
        self._make_rule(
            "NodeReports",
            f"What nodes of the training cluster {cluster_name} report of their health",
            events.EventPattern(
                source=events.Match.prefix(report_source(cluster_name, "")),
                detail_type=[REPORT_DETAIL_TYPE],
                detail={"cluster": [cluster_name]},
            ),
        )
        # Of an interruption of a Spot Instance EC2 tells the node itself.
        self._make_rule(
            "Notices",
            "Maintenance and retirements of instances, which AWS Health announces",
            events.EventPattern(source=["aws.health"], detail_type=["AWS Health Event"], detail={"service": ["EC2"]}),
        )
        for role in dict.fromkeys(fleet.role for fleet in fleets):
            let_nodes_report(role.grant_principal, cluster_name)
        scaled = {fleet: fleet.owner for fleet in fleets if isinstance(fleet.owner, autoscaling.CfnAutoScalingGroup)}
        self._has_auto_scaling = bool(scaled)
        for fleet, group in scaled.items():
            self._set_up_group(fleet, group)
        self.unrepaired_nodes_alarm: cloudwatch.Alarm = self._alarms["UnrepairedNodes"]
        self.spent_budget_alarm: cloudwatch.Alarm = self._alarms["SpentBudget"]
        self.failed_verifications_alarm: cloudwatch.Alarm = self._watch(
            _FAILED_VERIFICATIONS, node_metric(NODE_METRICS.verification_failed, cluster_name, statistic="Maximum")
        )

    def describe(self) -> Iterator[str]:
        """See `Guardrail.describe`."""
        yield f"Broken nodes: {self.policy.describe()}"
        # https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-health-checks.html
        if self._has_auto_scaling and not self.policy.act:
            yield "  Auto Scaling replaces nodes that fail EC2's status checks"

    def dashboard_row(self) -> DashboardRow:
        """See `Guardrail.dashboard_row`."""
        return DashboardRow(
            title="Health",
            panels=[
                Panel(
                    title="Broken nodes",
                    unit=Unit.NODES,
                    lines=[
                        self._line("broken", HealthMetric.FAULTY_NODES, "Maximum"),
                        self._line("left as they are", HealthMetric.WAITING_NODES, "Maximum"),
                        self._line("repaired", HealthMetric.REPAIRED_NODES, "Sum"),
                    ],
                ),
            ],
        )

    def metric_faulty_nodes(self, *, statistic: str = "Maximum", period: Duration | None = None) -> cloudwatch.Metric:
        """Return how many nodes have a fault that a reboot or another node ends, or are under repair.

        Args:
            statistic: Over what the function reports each minute. Default: - `Maximum`.
            period: How much time a point covers. Default: - 5 minutes.
        """
        return self._metric(HealthMetric.FAULTY_NODES, statistic, period)

    def _set_up_group(self, fleet: NodeFleet, group: autoscaling.CfnAutoScalingGroup) -> None:
        """Have an Auto Scaling group wait for jobs, and leave nodes with failed checks to a function that acts.

        Within the grace period of the health check a group replaces a node only if it does not run in EC2. To suspend
        ReplaceUnhealthy would keep those, too. In Standby no node is checked. The period begins when a node enters
        service, and no document names a maximum: a node that serves for longer than a year is the group's again.

        Sources: https://docs.aws.amazon.com/autoscaling/ec2/userguide/health-check-grace-period.html,
        https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_CreateAutoScalingGroup.html,
        https://docs.aws.amazon.com/autoscaling/ec2/userguide/as-enter-exit-standby.html and
        https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_PutLifecycleHook.html
        """
        group.health_check_grace_period = REPAIR_GRACE_SECONDS if self.policy.act else 0
        # An instance refresh would wait for that long after each node otherwise: a node in service is verified.
        # https://docs.aws.amazon.com/autoscaling/ec2/userguide/understand-instance-refresh-default-values.html
        group.default_instance_warmup = 0
        # In the fleet's scope, so that a group may be called as its users like.
        autoscaling.CfnLifecycleHook(
            fleet,
            "DrainHook",
            auto_scaling_group_name=group.ref,
            lifecycle_hook_name=DRAIN_HOOK,
            lifecycle_transition="autoscaling:EC2_INSTANCE_TERMINATING",
            # A node that says nothing goes when its time is up. The service's own default is ABANDON, after which a
            # group may retain the node. https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_RetentionTriggers.html
            default_result="CONTINUE",
            heartbeat_timeout=self.policy.grace_seconds,
        )
        let_nodes_complete_actions(fleet.role.grant_principal, self._cluster_name)

    def _make_rule(self, id: str, description: str, pattern: events.EventPattern) -> None:
        """Bring events to the function; one that cannot be brought for an hour goes to its queue of failed events.

        Sources: https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-rule-retry-policy.html and
        https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-rule-dlq.html
        """
        rule = events.Rule(
            self,
            id,
            description=description,
            event_pattern=pattern,
            targets=[
                targets.LambdaFunction(
                    self._events,
                    max_event_age=to_duration(_MAX_REPORT_AGE),
                    dead_letter_queue=self._cluster_function.failed_events,
                )
            ],
        )
        # CDK does not know from an alias's ARN that the alias is in this stack.
        Annotations.of(rule).acknowledge_warning("@aws-cdk/aws-events:ruleUnresolvedEnvironment")
