"""What every guardrail of a cluster is: a function that runs on a schedule, with its alarms and permissions."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar, NotRequired, TypedDict, Unpack

from aws_cdk import Aws, Duration, Fn
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_scheduler as scheduler
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from cdk_training_cluster.core.dashboards.rows import DashboardRow, Line, LineForEach, function_metric
from cdk_training_cluster.core.state import ClusterState
from cdk_training_cluster.core.times import to_duration
from cdk_training_cluster.functions.cluster_function import ClusterFunction
from cdk_training_cluster.functions.tick import make_tick
from cdk_training_cluster.validation.bounds import ClusterName
from cluster_contract.codec import encode, variables
from cluster_contract.metrics import FUNCTION_NAMESPACE
from cluster_contract.state import StatePart


@dataclass(frozen=True, kw_only=True)
class Watch:
    """An alarm on something that a guardrail's function counts.

    Attributes:
        id: The alarm's id.
        metric: The name of what is counted.
        trouble: What is wrong, as a sentence without its full stop.
        remedy: What to do, likewise. `$function` stands for what operators invoke, `$name` for the cluster's name.
        records: The condition on the records of the function's log that name what is counted, as CloudWatch Logs
            Insights takes it, such as `verdict = 'unknown'`. Default: - none names it.
        statistic: Over what the function reports in 5 minutes. Default: - `Minimum`, what was so all the time.
        periods: For how many periods of 5 minutes. Default: - 3.
        datapoints: In how many of these periods. Default: - in all of them.
        threshold: The least of it that counts. Default: - 1.
        sporadic: Whether it is counted only when it happens, so that no data is as it should be. Default: - it is
            counted in every run.
    """

    id: str
    metric: str
    trouble: str
    remedy: str
    records: str = ""
    statistic: str = "Minimum"
    periods: int = 3
    datapoints: int | None = None
    threshold: float = 1
    sporadic: bool = False


@dataclass(frozen=True, kw_only=True)
class Silence:
    """The alarm on a function that has not once succeeded for a while.

    Attributes:
        metric: The name of what the function counts when it succeeds.
        trouble: What is wrong then, as a sentence without its full stop.
        periods: For how many periods of 5 minutes. Default: - 3.
    """

    metric: str
    trouble: str
    periods: int = 3


@dataclass(frozen=True, kw_only=True)
class GuardrailSpec:
    """The description that a guardrail is made from.

    Attributes:
        package: The function's package among the library's Lambda sources, such as `cluster_idle`.
        called: What alarms call the function, such as `the power function`.
        purpose: What the function does, as the console shows it. `$name` stands for the cluster's name.
        output: The name of the stack output that says how operators invoke it.
        every: The time between two ticks.
        timeout: How long one tick may take.
        silence: The alarm on its silence.
        watches: The alarms on what it counts. Default: - none.
        keeps: The part of a cluster's state that it keeps, alone. Default: - it keeps no state.
        absent: What the overview says where a cluster has none. Default: - nothing.
        operators_alias: The alias that operators invoke it through. Default: - none: they invoke the function itself.
        memory_size_mib: The function's memory, in MiB. Default: - 256.
        max_event_age: How long an event that cannot run yet is kept. Default: - a minute.
        retries: How often an event is tried again of which the function fails. Default: - never: the next tick does
            the work again.
    """

    package: str
    called: str
    purpose: str
    output: str
    every: timedelta
    timeout: timedelta
    silence: Silence
    watches: Sequence[Watch] = ()
    keeps: StatePart | None = None
    absent: str = ""
    operators_alias: str | None = None
    memory_size_mib: int = 256
    max_event_age: timedelta | None = None
    retries: int = 0


class FunctionArguments(TypedDict):
    """The keyword arguments that the constructs of all guardrails take.

    Attributes:
        alert_topic: The topic that gets the messages of the function and of its alarms. Its policy must let
            CloudWatch publish; if it is encrypted, so must its key.
        powertools_layer: A layer with Powertools for Python 3.14 on arm64. Default: - AWS's public one.
        encryption_key: The key of the function's data, as for `ClusterFunction`. Default: - keys that AWS owns.
    """

    alert_topic: sns.ITopic
    powertools_layer: NotRequired[lambda_.ILayerVersion | None]
    encryption_key: NotRequired[kms.IKey | None]


class GuardrailArguments(FunctionArguments):
    """The keyword arguments of the guardrails of one cluster that keep state, beside those of `FunctionArguments`.

    Attributes:
        cluster_name: The cluster's name: the value of the tag `cdk-training-cluster:cluster` on its resources, and of
            the dimension `Cluster` of its metrics.
        state: The table in which the function keeps its part of the state; another stack's outlives this one.
            Default: - a table is made, and kept.
    """

    cluster_name: ClusterName
    state: NotRequired[ClusterState | None]


class Guardrail(Construct):
    """A function that runs for a cluster on a schedule, with its alarms, made from one description.

    A guardrail says what it is in `spec`, hands what all of them take to this class, checks its settings, and calls
    `_make`.

    Resources: what `ClusterFunction` makes, one `AWS::Scheduler::Schedule` with its role, one
    `AWS::CloudWatch::Alarm` for each watch of the description and one for the function's silence, an alias if
    operators have one, and where it keeps state and is given none, what `ClusterState` makes.

    Attributes:
        state: Where the function keeps what has to outlive a run; a guardrail whose description keeps none has none.
        function: The function.
        function_name: What operators invoke, as the function name of an Invoke.
        log_group: Where the function logs.
        failed_events: The queue of events that the function could not handle.
        schedule: What calls the function.
        error_alarm: Goes off when the function fails.
        silence_alarm: Goes off when the function has not succeeded for a while, and says when that is over.
    """

    spec: ClassVar[GuardrailSpec]

    state: ClusterState
    function: lambda_.IFunction

    def __init__(self, scope: Construct, id: str, **arguments: Unpack[GuardrailArguments]) -> None:
        """Take what all guardrails take.

        Args:
            scope: The parent construct.
            id: The construct's id.
            **arguments: As `GuardrailArguments` says.
        """
        super().__init__(scope, id)
        self._cluster_name = arguments["cluster_name"]
        self._alert_topic = arguments["alert_topic"]
        self._powertools_layer = arguments.get("powertools_layer")
        self._encryption_key = arguments.get("encryption_key")
        if self.spec.keeps is not None:
            self.state = arguments.get("state") or ClusterState(self, "State", encryption_key=self._encryption_key)

    def describe(self) -> Iterator[str]:
        """Say in a few lines what it does; the overview of a cluster file shows them."""
        yield from ()

    def dashboard_row(self) -> DashboardRow | None:
        """Describe what the cluster's dashboard shows of it. None: nothing beside its alarms."""
        return None

    def add_backup_topic(self, topic: sns.ITopic) -> None:
        """Let the function publish to another topic what the alert topic does not take.

        Args:
            topic: The topic.
        """
        self._cluster_function.add_backup_topic(topic)

    @property
    def _stack_id_end(self) -> str:
        """The end of the stack's id: `/` and its UUID, which has fewer bytes than the id."""
        return f"/{Fn.select(2, Fn.split('/', Aws.STACK_ID))}"

    def _line(self, label: str, metric: str, statistic: str = "Average") -> Line:
        return Line.of(label, function_metric(self._cluster_name, metric, statistic))

    def _line_for_each(self, metric: str, dimension: str, statistic: str = "Average") -> LineForEach:
        """Return a line of what the function reports for each node group, or by another dimension."""
        return LineForEach(
            metric=metric,
            cluster_name=self._cluster_name,
            by=(dimension,),
            statistic=statistic,
            namespace=FUNCTION_NAMESPACE,
        )

    def _make(self, settings: object, permit: Callable[[iam.Role], None], *, longest_id_bytes: int = 40) -> None:
        """Make the function, its tick and its alarms.

        Args:
            settings: The function's settings: a dataclass of the contract.
            permit: Gives the function's role what its code calls, beside messages to the topic and its state.
            longest_id_bytes: As for `ClusterFunction`.

        Raises:
            ValueError: `ClusterFunction` refuses the settings, or another function of the cluster keeps the same part
                of the state.
        """
        spec = self.spec
        self._cluster_function = ClusterFunction(
            self,
            "Function",
            package=spec.package,
            called=spec.called,
            description=spec.purpose.replace("$name", self._cluster_name),
            cluster_name=self._cluster_name,
            settings=encode(settings),
            environment=variables(settings),
            longest_id_bytes=longest_id_bytes,
            alert_topic=self._alert_topic,
            # Shorter than the time between two ticks, so that they do not overlap.
            timeout=to_duration(spec.timeout),
            max_event_age=None if spec.max_event_age is None else to_duration(spec.max_event_age),
            retries=spec.retries,
            memory_size_mib=spec.memory_size_mib,
            powertools_layer=self._powertools_layer,
            encryption_key=self._encryption_key,
        )
        self.function = self._cluster_function.function
        self.log_group: logs.LogGroup = self._cluster_function.log_group
        self.failed_events: sqs.Queue = self._cluster_function.failed_events
        alias = spec.operators_alias
        self.function_name: str = (
            self.function.function_name if alias is None else self._cluster_function.alias(alias).ref
        )
        self.error_alarm: cloudwatch.Alarm = self._cluster_function.error_alarm
        role = self._cluster_function.role
        permit(role)
        self._alert_topic.grant_publish(role)
        if spec.keeps is not None:
            self.state.grant_read_write(role, spec.keeps, self._cluster_name)
        self.schedule: scheduler.CfnSchedule = make_tick(
            self, self._cluster_function, cluster_name=self._cluster_name, every=to_duration(spec.every)
        )
        self._alarms = {watch.id: self._watch(watch) for watch in spec.watches}
        self.silence_alarm: cloudwatch.Alarm = self._watch_silence(spec.silence)

    def _metric(
        self, name: str, statistic: str, period: Duration | None = None, node_group: str | None = None
    ) -> cloudwatch.Metric:
        return self._cluster_function.metric(name, statistic=statistic, period=period, node_group=node_group)

    def _watch(self, watch: Watch, metric: cloudwatch.IMetric | None = None) -> cloudwatch.Alarm:
        """Make an alarm that goes into ALARM where there is any of what is counted for some periods on end.

        Silence says nothing of what is counted: then the alarm has no data, and the one on silence goes into ALARM.
        What is counted only when it happens stays in ALARM until its last point is out of the alarm's evaluation
        range, and is then OK. The alarm does not notify of the end: a new alarm goes from no state to OK with its
        first points, and would report the end of a problem that never was.

        Sources: https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarm-evaluation.html and
        https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarms-and-missing-data.html
        """
        missing = cloudwatch.TreatMissingData
        find = f"Logs Insights lists the records with `filter {watch.records}`. " if watch.records else ""
        alarm = cloudwatch.Alarm(
            self,
            watch.id,
            metric=metric or self._metric(watch.metric, watch.statistic),
            alarm_description=self._cluster_function.alarm_description(
                watch.id, watch.trouble, find + self._filled(watch.remedy)
            ),
            threshold=watch.threshold,
            comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
            evaluation_periods=watch.periods,
            datapoints_to_alarm=watch.datapoints or watch.periods,
            treat_missing_data=missing.NOT_BREACHING if watch.sporadic else missing.MISSING,
        )
        alarm.add_alarm_action(self._cluster_function.notification)
        return alarm

    def _filled(self, remedy: str) -> str:
        return remedy.replace("$function", self.function_name).replace("$name", self._cluster_name)

    def _watch_silence(self, silence: Silence) -> cloudwatch.Alarm:
        """Make the alarm on silence, reports nothing included.

        It may go into ALARM once right after the first deployment, until the function has reported, and notifies when
        it is over.
        """
        alarm = cloudwatch.Alarm(
            self,
            "Silence",
            metric=self._metric(silence.metric, "Sum"),
            alarm_description=self._cluster_function.alarm_description(
                "Silence",
                silence.trouble,
                "Correct what its last error names. If there is none, see that its schedule is enabled and that its "
                "reserved concurrency is above 0",
            ),
            threshold=1,
            comparison_operator=cloudwatch.ComparisonOperator.LESS_THAN_THRESHOLD,
            evaluation_periods=silence.periods,
            datapoints_to_alarm=silence.periods,
            treat_missing_data=cloudwatch.TreatMissingData.BREACHING,
        )
        alarm.add_ok_action(self._cluster_function.notification)
        alarm.add_alarm_action(self._cluster_function.notification)
        return alarm
