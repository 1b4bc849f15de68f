"""The construct that reports missing checkpoints: its function, its tick, its alarms and its permissions."""

from collections.abc import Iterator
from datetime import timedelta
from typing import ClassVar, Unpack

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_iam as iam
from constructs import Construct

from cdk_training_cluster.core.dashboards.rows import DashboardRow, Panel, PanelKind, Threshold, Unit
from cdk_training_cluster.functions import (
    ClusterPermissions,
    FunctionArguments,
    Guardrail,
    GuardrailSpec,
    Silence,
    Watch,
)
from cdk_training_cluster.storage import CheckpointStore, ExportedCheckpoints
from cdk_training_cluster.validation.bounds import ClusterName
from cdk_training_cluster.validation.checks import milliseconds
from cdk_training_cluster.validation.kinds import checked
from cluster_contract.checkpoints import CheckpointFunctionSettings, CheckpointMetric
from cluster_contract.tags import CLUSTER_TAG

# A bucket's name, the one id in the settings that is known at deployment only.
_LONGEST_NAME = 63
_MAX_EXPORT_SECONDS = 15 * 60


class CheckpointWatch(Guardrail):
    """Make the function that looks for new checkpoints, and alarms where accelerators work on without one.

    Every five minutes it lists the store, finds the newest complete checkpoint, and reads how busy the cluster's
    busiest accelerator was in each five minutes since. Only time in which one worked counts: neither stopped nor
    starting nor idle nodes raise the alarm, and what was not measured is no work. It knows one newest checkpoint: of
    several jobs that write to one store, one that saves hides another that does not. A second alarm says that FSx is
    late with its exports.

    Resources: what `ClusterFunction` makes, one `AWS::Scheduler::Schedule` with its role, and two
    `AWS::CloudWatch::Alarm`s, for missing checkpoints and for the function's silence; for an exported directory one
    more.

    Attributes:
        checkpoints: Where the checkpoints are kept.
        missing_alarm: Goes into ALARM when accelerators have worked too long without a new checkpoint.
        export_alarm: Goes into ALARM when FSx is late with its exports. None: nothing is exported.

    Sources: https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjectsV2.html and
    https://docs.aws.amazon.com/fsx/latest/LustreGuide/fs-metrics.html
    """

    spec: ClassVar[GuardrailSpec] = GuardrailSpec(
        package="cluster_checkpoints",
        called="the checkpoint function",
        purpose="Reports how long accelerators of the training cluster $name have worked without a new checkpoint",
        output="CheckpointFunctionName",
        every=CheckpointFunctionSettings.tick,
        timeout=timedelta(minutes=4),
        silence=Silence(
            metric=CheckpointMetric.SUCCESSFUL_TICKS,
            trouble="the checkpoint function has not succeeded for 15 minutes, so accelerators may work without new "
            "checkpoints and without a message",
        ),
    )

    @checked
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        cluster_name: ClusterName,
        checkpoints: CheckpointStore,
        **arguments: Unpack[FunctionArguments],
    ) -> None:
        """Make the function, its tick and its alarms.

        Args:
            scope: The parent construct.
            id: The construct's id.
            cluster_name: The cluster whose nodes report the use of their accelerators under this dimension.
            checkpoints: Where the checkpoints are kept, and how long accelerators may work without a new one.
            **arguments: As `FunctionArguments` says.

        Raises:
            ValueError: A setting is of the wrong kind, or `ClusterFunction` refuses its settings.
        """
        super().__init__(scope, id, cluster_name=cluster_name, **arguments)
        self.checkpoints = checkpoints
        known = milliseconds(checkpoints.max_work_without_checkpoint)
        if known is None:
            raise ValueError(
                "max_work_without_checkpoint must be known when the template is made, got a token: write the minutes"
            )
        self._max_minutes = minutes = int(known // 60_000)
        settings = CheckpointFunctionSettings(
            cluster=cluster_name,
            place=checkpoints.place,
            max_work=timedelta(minutes=minutes),
            topic_arn=self._alert_topic.topic_arn,
        )
        self._make(settings, self._grant, longest_id_bytes=_LONGEST_NAME)
        self.missing_alarm: cloudwatch.Alarm = self._watch(_missing(minutes))
        self.export_alarm: cloudwatch.Alarm | None = None
        if isinstance(checkpoints, ExportedCheckpoints):
            self.export_alarm = self._watch(_LATE_EXPORT, checkpoints.metric_oldest_waiting_export())

    def describe(self) -> Iterator[str]:
        """See `Guardrail.describe`."""
        minutes = self.checkpoints.max_work_without_checkpoint.to_minutes()
        where = self.checkpoints.place.directory or "a directory bucket of S3 Express One Zone"
        yield f"Checkpoints: in {where}; an alarm after {minutes:g} minutes of work without a new one"

    def dashboard_row(self) -> DashboardRow:
        """See `Guardrail.dashboard_row`."""
        limit = Threshold(value=self._max_minutes, label="alarm")
        return DashboardRow(
            title="Checkpoints",
            panels=[
                Panel(
                    title="Age of the newest complete checkpoint",
                    unit=Unit.MINUTES,
                    kind=PanelKind.NUMBER,
                    lines=[self._line("minutes", CheckpointMetric.AGE, "Minimum")],
                ),
                Panel(
                    title="Work since then, lost by a failure",
                    unit=Unit.MINUTES,
                    lines=[self._line("minutes of work", CheckpointMetric.WORK_WITHOUT_CHECKPOINT, "Maximum")],
                    thresholds=[limit],
                ),
                Panel(
                    title="Complete checkpoints",
                    unit=Unit.COUNT,
                    lines=[self._line("checkpoints", CheckpointMetric.CHECKPOINTS, "Maximum")],
                ),
            ],
        )

    def metric_work_without_checkpoint(
        self, *, statistic: str = "Maximum", period: Duration | None = None
    ) -> cloudwatch.Metric:
        """Return for how many minutes accelerators have worked since the newest complete checkpoint.

        It is 0 while no accelerator works.

        Args:
            statistic: Over what the function reports every 5 minutes. Default: - `Maximum`.
            period: How much time a point covers. Default: - 5 minutes.
        """
        return self._metric(CheckpointMetric.WORK_WITHOUT_CHECKPOINT, statistic, period)

    def metric_checkpoint_age(
        self, *, statistic: str = "Maximum", period: Duration | None = None
    ) -> cloudwatch.Metric:
        """Return how old the newest complete checkpoint is, in minutes.

        Args:
            statistic: Over what the function reports every 5 minutes. Default: - `Maximum`.
            period: How much time a point covers. Default: - 5 minutes.
        """
        return self._metric(CheckpointMetric.AGE, statistic, period)

    def _grant(self, role: iam.Role) -> None:
        permissions = ClusterPermissions(
            role, cluster_name=self._cluster_name, tag_key=CLUSTER_TAG, own_tags=CLUSTER_TAG
        )
        permissions.read(["cloudwatch:GetMetricData"])
        self.checkpoints.grant_list(role)


def _missing(minutes: int) -> Watch:
    return Watch(
        id="NoCheckpoint",
        metric=CheckpointMetric.WORK_WITHOUT_CHECKPOINT,
        statistic="Maximum",
        periods=1,
        threshold=minutes,
        trouble=f"accelerators have worked for {minutes} minutes since the newest complete checkpoint, and a failure "
        "would lose that work",
        remedy="Run `training-cluster status $name`, which names the newest complete checkpoint, and find out why "
        "the job writes no newer one: a checkpoint is complete with a file .metadata or .complete in its directory. "
        "If checkpoints should come less often, raise max_work_without_checkpoint "
        "(max_minutes_without_checkpoint in a cluster file)",
    )


_LATE_EXPORT = Watch(
    id="LateExport",
    metric="AgeOfOldestQueuedMessage",
    threshold=_MAX_EXPORT_SECONDS,
    trouble=f"for 15 minutes a file has waited more than {_MAX_EXPORT_SECONDS // 60} minutes for its export from the "
    "file system to S3, so the newest checkpoints are not in the bucket",
    remedy="See the state of the file system's data repository associations in the FSx console: one that is "
    "MISCONFIGURED names the cause, such as a bucket policy or a key that FSx may not use. If all are AVAILABLE, "
    "jobs write more than FSx exports: delete no checkpoint from the file system until the metric is 0",
)
