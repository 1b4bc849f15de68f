"""The construct that makes the power function, its schedule, its alarms and its permissions."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import ClassVar, Unpack

from aws_cdk import Aws, Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from constructs import Construct

from cdk_training_cluster.core.dashboards.rows import DashboardRow, Line, Panel, PanelKind, Unit, function_metric
from cdk_training_cluster.core.encryption import KeyUser, allow
from cdk_training_cluster.core.times import to_duration, to_time
from cdk_training_cluster.functions import TICK, Guardrail, GuardrailArguments, GuardrailSpec, Silence
from cdk_training_cluster.guardrails.power.power_group import PowerGroup
from cdk_training_cluster.guardrails.power.power_permissions import PowerPermissions, permit_execution_reads
from cdk_training_cluster.guardrails.power.power_watches import POWER_WATCHES
from cdk_training_cluster.guardrails.power.spot_fleets_panel import spot_fleets_panel
from cdk_training_cluster.nodes import Schedule
from cdk_training_cluster.validation.kinds import checked
from cluster_contract.aliases import Alias
from cluster_contract.metrics import NODE_METRICS
from cluster_contract.owners import OwnerKind, owners_of
from cluster_contract.power import PowerFunctionSettings, PowerMetric
from cluster_contract.state import StatePart

# AWS's documents spell them in two ways.
# https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-blocks-monitor.html
_BLOCK_EVENTS = (
    "Capacity Block Delivered",
    "Capacity Block Expiration Warning",
    "Capacity Block Reservation Delivered",
    "Capacity Block Reservation Expiration Warning",
)

# The desired capacity is lowered well before CloudFormation, which waits for an hour, rolls a deployment back.
_MAX_LAUNCH_GRACE = timedelta(minutes=30)


class ClusterPower(Guardrail):
    """Make the function that owns the sizes of a cluster's node groups, and all that watches it.

    Groups are created empty, so that no first deployment waits for their nodes. Each minute the function brings every
    group to the size it should have: its count, or zero while it is stopped. Later deployments that change an Auto
    Scaling group do wait, for up to an hour, until its desired capacity is in service, and are rolled back if it is
    not. So once launches have failed for `launch_grace`, the function lowers the desired capacity to the nodes that
    there are, and raises it to the group's size again every 10 minutes until all are there; missing nodes are counted
    against that size all the time. What Auto Scaling itself suspends after about a day of failed launches, the
    function resumes. It remembers what was ordered and what it did in `state`, leaves alone what an operator has
    changed, and says in plain words what EC2 cannot give and which nodes go on running, and costing, that should not.
    A tag on what owns a group's nodes says who started, stopped or limited it last. Operators and other functions
    invoke its alias `operate` with `{"action": "stop", "node_groups": ["workers"], "reason": "..."}`, or with `start`
    or `status`. With `limit` groups keep the nodes that they have, but get no more, until a start. With `terminate`
    and `"instance_ids": [...]` single nodes of a group that allows it are terminated, and its size is smaller by as
    many until a start.

    A group with a schedule is started with each of its windows and stopped at its end, after a warning to the topic;
    docs/schedules.md says who wins where an operator, the idle function or the budget orders something else.

    A group in a Capacity Block is up from the block's own start, which is read each minute, until 10 minutes before
    EC2 begins to terminate what runs in it; half an hour ahead an alert says to save checkpoints. A block that is
    extended opens again. EC2's events start a run of their own at both ends. A group has one block: name the next
    one when it is over. Nodes that run while a block is named that has not started or has ended are left alone. The
    size of a group that a Spot Fleet owns is the request's target; a stop outlives a deploy that replaces it. The
    alert topic is notified a day before the reservation that a group runs in ends, and when it has ended; of Capacity
    Blocks among other capacity, before EC2 terminates the nodes in them. A reservation that may be released is
    lowered to one instance, the least that EC2 has, while its group is stopped, and raised before the group starts:
    if EC2 then lacks instances, the function reports that, and asks for them again each minute.

    Let `schedule` depend on the groups and on their lifecycle hooks: the first run then comes when CloudFormation is
    done with them, and no node is launched that a hook does not hold.

    The function itself notifies the topic, once when it begins and once when it ends, that nodes are missing, that
    more nodes run than should, that nodes run different launch template versions, and that a Capacity Block or a
    reservation cannot be used; and once, that one of them is about to end. Beside it there are alarms, which alone
    report a size that the function did not give a group that has nodes; of those, only the one on the function's
    silence also says when it is over. It may go into ALARM once right after the first deployment, until the first run
    has reported: a function that has never reported is silent too.

    Resources: what `ClusterFunction` makes, one `AWS::Scheduler::Schedule` with its role, five more alarms, an
    `AWS::Lambda::Alias` for each kind of caller; for Capacity Blocks one `AWS::Events::Rule` with an
    `AWS::Lambda::Permission`; where no `state` is given, what `ClusterState` makes.

    Attributes:
        order_name: What commands are sent to, as the function name of an Invoke: the ARN of the function's alias
            `operate`. Through no alias it only runs as scheduled, and answers `status`.
        schedules: The schedules of the node groups that have one.

    Sources: https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_SetDesiredCapacity.html,
    https://repost.aws/knowledge-center/auto-scaling-group-not-stabilize-error,
    https://docs.aws.amazon.com/autoscaling/ec2/userguide/as-suspend-resume-processes.html,
    https://docs.aws.amazon.com/autoscaling/ec2/APIReference/API_TerminateInstanceInAutoScalingGroup.html,
    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-blocks-monitor.html,
    https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_ModifySpotFleetRequest.html and
    https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-reservations-modify.html
    """

    spec: ClassVar[GuardrailSpec] = GuardrailSpec(
        package="cluster_power",
        called="the power function",
        purpose="Owns the sizes of the node groups of the training cluster $name",
        output="PowerFunctionName",
        every=timedelta(minutes=1),
        timeout=timedelta(seconds=50),
        operators_alias=Alias.OPERATE,
        silence=Silence(
            metric=PowerMetric.SUCCESSFUL_TICKS,
            trouble="the power function has not succeeded for 15 minutes, so nodes may be missing, or run and be "
            "billed, without a message",
        ),
        watches=POWER_WATCHES,
        keeps=StatePart.POWER,
    )

    @checked
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        groups: Mapping[str, PowerGroup],
        launch_grace: Duration | None = None,
        closing_notice: Duration | None = None,
        **arguments: Unpack[GuardrailArguments],
    ) -> None:
        """Make the function, its schedule and its alarms.

        Args:
            scope: The parent construct.
            id: The construct's id.
            groups: Each node group's name, how many nodes it has while it is not stopped, and what drives its size
                beside orders.
            launch_grace: How long nodes may take to launch before their absence is a problem, and how long
                they may take to terminate; at most 30 minutes.
                Default: - 10 minutes.
            closing_notice: How long before its nodes are terminated an alert says that a Capacity Block ends.
                Default: - 30 minutes.
            **arguments: As `GuardrailArguments` says.

        Raises:
            ValueError: There is no node group, `launch_grace` is too long, or `ClusterFunction` refuses its settings.
        """
        super().__init__(scope, id, **arguments)
        if not groups:
            raise ValueError("groups must name at least one node group, got none")
        grace = launch_grace or to_duration(PowerFunctionSettings.launch_grace)
        if grace.to_seconds() > _MAX_LAUNCH_GRACE.total_seconds():
            raise ValueError(
                f"launch_grace must be at most 30 minutes, got {grace.to_human_string()}: CloudFormation waits an "
                "hour for nodes that are missing"
            )
        self.schedules: dict[str, Schedule] = {
            name: group.schedule
            for name, group in groups.items()
            if group.schedule is not None and not group.schedule.is_off
        }
        schedules = tuple(dict.fromkeys(schedule.settings for schedule in self.schedules.values()))
        places = {name: schedules.index(schedule.settings) for name, schedule in self.schedules.items()}
        settings = PowerFunctionSettings(
            cluster=self._cluster_name,
            groups={name: replace(group.settings, schedule=places.get(name)) for name, group in groups.items()},
            schedules=schedules,
            launch_grace=to_time(grace),
            closing_notice=to_time(closing_notice or to_duration(PowerFunctionSettings.closing_notice)),
            topic_arn=self._alert_topic.topic_arn,
            state_table=self.state.table_name,
            stack_id=Aws.STACK_ID,
        )
        self._make(
            settings,
            PowerPermissions(self._cluster_name, groups.values()).grant,
            longest_id_bytes=max(group.longest_id_bytes for group in groups.values()),
        )
        self.order_name: str = self.function_name
        self._has_ends = bool(settings.reservations)
        self._spot_fleets = owners_of(OwnerKind.SPOT_FLEET, settings.groups)
        blocks = sorted({group.capacity_block for group in groups.values() if group.capacity_block is not None})
        if blocks:
            allow(self, self._encryption_key, KeyUser.EVENTS)
        self.block_events: events.Rule | None = self._make_block_events(blocks) if blocks else None
        self.missing_nodes_alarm: cloudwatch.Alarm = self._alarms["MissingNodes"]
        self.surplus_nodes_alarm: cloudwatch.Alarm = self._alarms["SurplusNodes"]
        self.held_groups_alarm: cloudwatch.Alarm = self._alarms["HeldGroups"]
        self.mixed_groups_alarm: cloudwatch.Alarm = self._alarms["MixedGroups"]

    def describe(self) -> Iterator[str]:
        """Say which node groups have a schedule, and for how many hours a month it lets them run."""
        for name, schedule in self.schedules.items():
            hours = f"open about {schedule.hours_a_month:.0f} hours a month"
            yield f"Schedule of {name}: {schedule.settings}; {hours}"

    def grant_power(self, grantee: iam.IGrantable) -> iam.Grant:
        """Let a principal stop, start, limit and ask about the node groups, and terminate single nodes.

        Args:
            grantee: A role, user or function; it invokes `order_name`.
        """
        return self._cluster_function.grant_invoke(grantee, alias=Alias.OPERATE)

    def grant_start(self, grantee: iam.IGrantable) -> iam.Grant:
        """Let a runbook start the node groups, and nothing else; the function asks who started the runbook.

        Args:
            grantee: The role that the runbook runs under.

        Source: https://docs.aws.amazon.com/systems-manager/latest/APIReference/API_GetAutomationExecution.html
        """
        permit_execution_reads(self._cluster_function.role)
        return self._cluster_function.grant_invoke(grantee, alias=Alias.START)

    def grant_idle_stop(self, grantee: iam.IGrantable) -> iam.Grant:
        """Let the function that finds idle nodes stop node groups and terminate single nodes.

        Args:
            grantee: That function's role.
        """
        return self._cluster_function.grant_invoke(grantee, alias=Alias.IDLE)

    def grant_budget(self, grantee: iam.IGrantable) -> iam.Grant:
        """Let the function that watches what the cluster costs stop node groups, limit them and ask about them.

        Args:
            grantee: That function's role.
        """
        return self._cluster_function.grant_invoke(grantee, alias=Alias.BUDGET)

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
        return self._metric(PowerMetric.MISSING_NODES, statistic, period, node_group)

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
        return self._metric(PowerMetric.SURPLUS_NODES, statistic, period, node_group)

    def metric_running_nodes(
        self, *, node_group: str | None = None, statistic: str = "Average", period: Duration | None = None
    ) -> cloudwatch.Metric:
        """Return how many nodes are in service.

        Args:
            node_group: Count one node group only. Default: - the whole cluster.
            statistic: Over what the function reports each minute. Default: - `Average`.
            period: How much time a point covers. Default: - 5 minutes.
        """
        return self._metric(PowerMetric.RUNNING_NODES, statistic, period, node_group)

    def metric_held_groups(self, *, statistic: str = "Maximum", period: Duration | None = None) -> cloudwatch.Metric:
        """Return how many node groups have a size that the power function did not give them.

        Nodes that were terminated by command do not count.

        Args:
            statistic: Over what the function reports each minute. Default: - `Maximum`.
            period: How much time a point covers. Default: - 5 minutes.
        """
        return self._metric(PowerMetric.HELD_GROUPS, statistic, period)

    def metric_mixed_groups(self, *, statistic: str = "Maximum", period: Duration | None = None) -> cloudwatch.Metric:
        """Return how many node groups have nodes of different launch template versions.

        A deployment reaches nodes that are launched later only. Nodes of Spot Fleets do not say their version.

        Args:
            statistic: Over what the function reports each minute. Default: - `Maximum`.
            period: How much time a point covers. Default: - 5 minutes.
        """
        return self._metric(PowerMetric.MIXED_GROUPS, statistic, period)

    def dashboard_row(self) -> DashboardRow:
        """See `Guardrail.dashboard_row`."""
        by_group = NODE_METRICS.node_group_dimension
        missing = function_metric(self._cluster_name, PowerMetric.MISSING_NODES, "Minimum")
        panels = [
            Panel(
                title="Nodes now",
                unit=Unit.NODES,
                kind=PanelKind.NUMBER,
                lines=[
                    self._line("wanted", PowerMetric.WANTED_NODES),
                    self._line("running", PowerMetric.RUNNING_NODES),
                    self._line("missing", PowerMetric.MISSING_NODES, "Minimum"),
                    self._line("too many", PowerMetric.SURPLUS_NODES, "Minimum"),
                ],
            ),
            Panel(
                title="Running nodes by group",
                unit=Unit.NODES,
                lines=[self._line_for_each(PowerMetric.RUNNING_NODES, by_group)],
            ),
            Panel(
                title="Missing nodes by group",
                unit=Unit.NODES,
                lines=[self._line_for_each(PowerMetric.MISSING_NODES, by_group, "Minimum")],
            ),
            Panel(
                title="Time with missing nodes, added up over the time shown",
                unit=Unit.MINUTES,
                lines=[
                    Line(
                        label="minutes",
                        metrics={"missing": missing},
                        expression="RUNNING_SUM(IF(missing > 0, PERIOD(missing) / 60, 0))",
                    )
                ],
            ),
        ]
        if self._has_ends:
            ends = self._line_for_each(PowerMetric.HOURS_TO_END, by_group, "Minimum")
            panels.append(Panel(title="Time until capacity ends", unit=Unit.HOURS, lines=[ends]))
        if self._spot_fleets:
            panels.append(spot_fleets_panel(self._spot_fleets))
        return DashboardRow(title="Nodes", panels=panels)

    def _make_block_events(self, blocks: Sequence[str]) -> events.Rule:
        """Start a run right when a Capacity Block starts, and when EC2 warns that it ends.

        A missed event is made good by the next scheduled run, which reads the blocks all the same.
        """
        return events.Rule(
            self,
            "BlockEvents",
            description=f"Capacity Blocks of the training cluster {self._cluster_name} that start or end",
            event_pattern=events.EventPattern(
                source=["aws.ec2"],
                detail_type=list(_BLOCK_EVENTS),
                detail={"capacity-reservation-id": list(blocks)},
            ),
            targets=[
                targets.LambdaFunction(
                    self.function,
                    event=events.RuleTargetInput.from_object(TICK),
                    retry_attempts=0,
                    max_event_age=Duration.minutes(1),
                    dead_letter_queue=self._cluster_function.failed_events,
                )
            ],
        )
