"""The construct that makes the idle stop: its function, its tick, its alarms and its permissions."""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Annotated, ClassVar, Unpack

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_iam as iam
from constructs import Construct

from cdk_training_cluster.capacity import MAX_HOURLY_USD
from cdk_training_cluster.core.dashboards.rows import DashboardRow, LogTable, Panel, Unit
from cdk_training_cluster.functions import Guardrail, GuardrailArguments, GuardrailSpec, Silence
from cdk_training_cluster.guardrails.hydration import DatasetHydration
from cdk_training_cluster.guardrails.idle.idle_group import IdleGroup
from cdk_training_cluster.guardrails.idle.idle_permissions import IdlePermissions
from cdk_training_cluster.guardrails.idle.idle_watches import IDLE_WATCHES, RESERVED_IDLE
from cdk_training_cluster.guardrails.power import ClusterPower
from cdk_training_cluster.nodes import IdlePolicy, default_idle_policy
from cdk_training_cluster.validation.bounds import Number, Text, Whole
from cdk_training_cluster.validation.kinds import checked
from cluster_contract.idle import IdleFunctionSettings, IdleGroupSettings, IdleMetric, PolicySettings
from cluster_contract.state import StatePart
from cluster_contract.tags import CLUSTER_TAG

_PRICE = Number(above=0, maximum=MAX_HOURLY_USD)
_GPUS = Whole(minimum=1)

_TICK = IdleFunctionSettings.tick

# Each run writes one record of each node: the newest is what is known of it.
# https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/CWL_QuerySyntax-Stats.html
_LAST_FINDINGS = (
    "filter ispresent(verdict) and ispresent(instance_id)",
    "stats latest(node_group) as group, latest(verdict) as state, latest(idle_since) as since, "
    "latest(usd_per_hour) as usd_an_hour, latest(@timestamp) as seen, latest(message) as why by instance_id",
    "sort group asc, state asc",
    "limit 1000",
)


class IdleStop(Guardrail):
    """Make the function that finds idle accelerated instances, warns of them, and stops them.

    Every five minutes it judges all running instances that carry the cluster's tag. It never stops a node that
    might be working: what is not known to be idle is reported and left alone. A message to the topic warns of a stop,
    and a note in a tag on what owns the nodes; the tag `cdk-training-cluster:keep` or
    `cdk-training-cluster:keep-until` on an instance or its owner keeps them. Then an instance that nothing owns is
    stopped, and a node group is stopped by the power function, which also starts it again. Where a stop saves
    nothing, in reservations and Capacity Blocks, an alarm says what the idle nodes cost.

    It stands alone for any instances with a tag that report the utilization of their accelerators once a minute;
    nodes of this library do. The CPU use of nodes of `node_groups` is what their agent reports; that of others is
    EC2's, in whole percents of all vCPUs where the hypervisor is Nitro, rounded down.

    The alarms say when the guard is off: the function fails, has not succeeded in ten minutes, knows too little of
    nodes, or met so many unknown ones at once that it stops nothing; and when nodes stay idle that it cannot stop, or
    that are reserved. The one on silence may go into ALARM once right after the first deployment.

    All alarms notify `alert_topic`. If neither that topic nor the one of `add_backup_topic` takes messages, no
    further warning is sent, and nodes whose warning was sent before are stopped at their time. If the alert topic has
    no confirmed subscription (an e-mail address, a queue, a function), its messages and alarms are not read, and idle
    nodes are stopped all the same. In both cases `failed_notifications_alarm` goes into ALARM; the backup topic of a
    `TrainingCluster` gets each alarm.

    It costs, at the prices of us-east-1, about 6 USD a month for its 16 metrics and 10 alarms, less than 1 USD for
    its runs, and about 0.09 USD for each series that it reads of a node: five, and what the policy's signals add.

    Resources: what `ClusterFunction` makes, one `AWS::Scheduler::Schedule` with its role, and eight more
    `AWS::CloudWatch::Alarm`s; where neither `state` nor `power` is given, what `ClusterState` makes.

    Attributes:
        policy: The policy for instances of no node group, with nothing left out.
        policies: The policy for each node group's nodes, likewise.
        state: Where the function keeps the warnings that it has sent.

    Sources: https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_GetMetricData.html and
    https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_StopInstances.html
    """

    spec: ClassVar[GuardrailSpec] = GuardrailSpec(
        package="cluster_idle",
        called="the idle function",
        purpose="Stops idle nodes of the training cluster $name",
        output="IdleFunctionName",
        every=_TICK,
        timeout=timedelta(minutes=4),
        # Ten thousand instances with 33 interfaces each, page by page.
        memory_size_mib=512,
        silence=Silence(
            metric=IdleMetric.EVALUATIONS,
            trouble="the idle function has not succeeded for 10 minutes, so idle nodes may go on costing money",
            periods=2,
        ),
        watches=IDLE_WATCHES,
        keeps=StatePart.IDLE,
        absent="Idle nodes: never stopped",
    )

    @checked
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        policy: IdlePolicy | None = None,
        node_groups: Mapping[str, IdleGroup] | None = None,
        power: ClusterPower | None = None,
        hydration: DatasetHydration | None = None,
        tag_key: Annotated[str, Text("text", "ec2TagKey")] = CLUSTER_TAG,
        metric_namespace: Annotated[str, Text("text", "metricNamespace")] | None = None,
        prices: Mapping[str, Annotated[float, _PRICE]] | None = None,
        gpu_counts: Mapping[str, Annotated[int, _GPUS]] | None = None,
        **arguments: Unpack[GuardrailArguments],
    ) -> None:
        """Make the function, its tick and its alarms.

        Args:
            scope: The parent construct.
            id: The construct's id.
            policy: When instances are idle and what becomes of them. Default: - stopped 30 minutes after a warning,
                which comes after an hour of idleness; see `IdlePolicy`.
            node_groups: What owns the nodes that the power function starts and stops, by the group's name.
                Default: - no node group: instances that nothing owns are stopped one by one.
            power: The power function that owns the sizes of these node groups. Default: - none.
            hydration: What has the nodes restore data sets: while they do, and for 15 minutes after that, none of
                them is idle. Default: - nothing; nodes that restore files and run no job are idle.
            tag_key: The key of the tag on the instances it watches.
            metric_namespace: Where the nodes report, under the names and with the dimension `InstanceId` of this
                library's nodes. Jobs send heartbeats to the namespace of the cluster's jobs in any case.
                Default: - the namespace of the cluster's nodes.
            prices: What an instance of a type costs an hour, in USD, where that is known better than from the
                library's list of On-Demand prices: above 0, at most `MAX_HOURLY_USD`. Default: - that list; a type
                that is not in it is counted without a price.
            gpu_counts: How many NVIDIA GPUs an instance of a type has, where that type is newer than the library's
                list: each of them must report. Default: - that list; nodes of a type that is not in it are unknown
                and never stopped.
            **arguments: As `GuardrailArguments` says. The default of `state` is the table of `power`, if there is
                one; if the table is lost, the function warns again.

        Raises:
            ValueError: A setting is of the wrong kind, there are node groups and no power function, or
                `ClusterFunction` refuses its settings; every reason, a line each.
        """
        if power is not None:
            arguments["state"] = arguments.get("state") or power.state
        super().__init__(scope, id, **arguments)
        groups = node_groups or {}
        if groups and power is None:
            raise ValueError(
                "power is required beside node_groups: the power function owns their sizes; give cluster.power"
            )
        self.policy: IdlePolicy = (policy or IdlePolicy()).over(default_idle_policy())
        if self.policy.is_too_long_a_warning:
            raise ValueError(f"warning of policy {self.policy.long_warning_problem}")
        self.policies: Mapping[str, IdlePolicy] = {
            name: self.policy if group.policy is None else group.policy.over(self.policy)
            for name, group in groups.items()
        }
        policies = [self.policy, *self.policies.values()]
        own = {name: each.to_contract() for name, each in self.policies.items()}
        distinct = list(dict.fromkeys([self.policy.to_contract(), *own.values()]))
        signals = tuple(dict.fromkeys(signal for each in distinct for signal in each.signals))
        settings = IdleFunctionSettings(
            cluster=self._cluster_name,
            signals=signals,
            policies=tuple(PolicySettings.of(each, signals) for each in distinct),
            groups={
                name: IdleGroupSettings(
                    policy=distinct.index(own[name]), owner=group.owner_settings, release=group.released
                )
                for name, group in groups.items()
            },
            max_stops=self.policy.max_stops or IdleFunctionSettings.max_stops,
            max_unknown_share=self.policy.max_unknown_share or IdleFunctionSettings.max_unknown_share,
            tag=tag_key,
            namespace=metric_namespace or "",
            prices=prices or {},
            gpus=gpu_counts or {},
            preloads=hydration is not None and hydration.document is not None,
            topic_arn=self._alert_topic.topic_arn,
            state_table=self.state.table_name,
            stack_id=self._stack_id_end,
            power_function=power.function.function_name if power is not None and groups else "",
        )
        self._make(settings, IdlePermissions(self._cluster_name, tag_key, groups.values(), policies).grant)
        role = self._cluster_function.role
        iam.Grant.add_to_principal(
            grantee=role, actions=["sns:GetTopicAttributes"], resource_arns=[self._alert_topic.topic_arn]
        )
        if power is not None and groups:
            power.grant_idle_stop(role)
        if hydration is not None and settings.preloads:
            hydration.grant_read_progress(role)
        self.unknown_nodes_alarm: cloudwatch.Alarm = self._alarms["UnknownNodes"]
        self.breaker_alarm: cloudwatch.Alarm = self._alarms["Breaker"]
        self.stuck_nodes_alarm: cloudwatch.Alarm = self._alarms["StuckNodes"]
        self.lingering_nodes_alarm: cloudwatch.Alarm = self._alarms["LingeringNodes"]
        self.unclear_tags_alarm: cloudwatch.Alarm = self._alarms["UnclearTags"]
        self.failed_notifications_alarm: cloudwatch.Alarm = self._alarms["FailedNotifications"]
        self.reserved_idle_alarm: cloudwatch.Alarm = self._watch_reserved()

    def describe(self) -> Iterator[str]:
        """Say what becomes of idle nodes: a line for the cluster, and one for each group of which it is not true."""
        usual = self.policy.describe()
        yield f"Idle nodes: {usual}"
        for name, policy in self.policies.items():
            if policy.describe() != usual:
                yield f"  {name}: {policy.describe()}"

    def dashboard_row(self) -> DashboardRow:
        """See `Guardrail.dashboard_row`."""
        return DashboardRow(
            title="Idle nodes",
            panels=[
                LogTable(
                    title="What the idle function found last of each node",
                    log_group_name=self._cluster_function.log_group.log_group_name,
                    query=_LAST_FINDINGS,
                ),
                Panel(
                    title="Nodes by what they do",
                    unit=Unit.NODES,
                    lines=[
                        self._line("busy", IdleMetric.BUSY_NODES, "Maximum"),
                        self._line("idle", IdleMetric.IDLE_NODES, "Maximum"),
                        self._line("unknown", IdleMetric.UNKNOWN_NODES, "Maximum"),
                        self._line("warned of a stop", IdleMetric.WARNED_NODES, "Maximum"),
                        self._line("stopped", IdleMetric.STOPPED_NODES, "Sum"),
                        self._line("left for a later run", IdleMetric.DEFERRED_NODES, "Maximum"),
                    ],
                ),
                Panel(
                    title="What idle nodes cost, at On-Demand prices and without Spot",
                    unit=Unit.USD_PER_HOUR,
                    lines=[
                        self._line("idle", IdleMetric.DOLLARS_IDLE, "Maximum"),
                        self._line("idle in reservations and blocks", IdleMetric.DOLLARS_RESERVED, "Maximum"),
                        self._line("stopped", IdleMetric.DOLLARS_SAVED, "Sum"),
                    ],
                ),
            ],
        )

    def metric_idle_nodes(self, *, statistic: str = "Maximum", period: Duration | None = None) -> cloudwatch.Metric:
        """Return how many nodes are idle.

        Args:
            statistic: Over what the function reports every 5 minutes. Default: - `Maximum`.
            period: How much time a point covers. Default: - 5 minutes.
        """
        return self._metric(IdleMetric.IDLE_NODES, statistic, period)

    def metric_stopped_nodes(self, *, statistic: str = "Sum", period: Duration | None = None) -> cloudwatch.Metric:
        """Return how many nodes were stopped.

        Args:
            statistic: Over what the function reports every 5 minutes. Default: - `Sum`.
            period: How much time a point covers. Default: - 5 minutes.
        """
        return self._metric(IdleMetric.STOPPED_NODES, statistic, period)

    def metric_unknown_nodes(
        self, *, statistic: str = "Minimum", period: Duration | None = None
    ) -> cloudwatch.Metric:
        """Return of how many nodes too little is known.

        Args:
            statistic: Over what the function reports every 5 minutes. Default: - `Minimum`, what was unknown all
                the time.
            period: How much time a point covers. Default: - 5 minutes.
        """
        return self._metric(IdleMetric.UNKNOWN_NODES, statistic, period)

    def metric_stuck_nodes(self, *, statistic: str = "Minimum", period: Duration | None = None) -> cloudwatch.Metric:
        """Return how many nodes are idle and cannot be stopped from here.

        Args:
            statistic: Over what the function reports every 5 minutes. Default: - `Minimum`, what was stuck all the
                time.
            period: How much time a point covers. Default: - 5 minutes.
        """
        return self._metric(IdleMetric.STUCK_NODES, statistic, period)

    def metric_dollars_saved(self, *, statistic: str = "Sum", period: Duration | None = None) -> cloudwatch.Metric:
        """Return what the nodes cost an hour that were stopped, in USD, where the price is known.

        Args:
            statistic: Over what the function reports every 5 minutes. Default: - `Sum`.
            period: How much time a point covers. Default: - 5 minutes.
        """
        return self._metric(IdleMetric.DOLLARS_SAVED, statistic, period)

    def metric_dollars_reserved(
        self, *, statistic: str = "Maximum", period: Duration | None = None
    ) -> cloudwatch.Metric:
        """Return what the nodes cost an hour that are idle in reservations and Capacity Blocks, in USD, likewise.

        Args:
            statistic: Over what the function reports every 5 minutes. Default: - `Maximum`.
            period: How much time a point covers. Default: - 5 minutes.
        """
        return self._metric(IdleMetric.DOLLARS_RESERVED, statistic, period)

    def _watch_reserved(self) -> cloudwatch.Alarm:
        idle = cloudwatch.MathExpression(
            # Nodes of a type whose price is not known count for themselves.
            expression="IF(dollars > 0, dollars, nodes)",
            using_metrics={
                "dollars": self.metric_dollars_reserved(statistic="Minimum"),
                "nodes": self._metric(IdleMetric.RESERVED_NODES, "Minimum"),
            },
            label="USD an hour",
            period=Duration.minutes(5),
        )
        return self._watch(RESERVED_IDLE, idle)
