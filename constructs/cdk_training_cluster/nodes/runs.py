"""What a cluster shows and alarms of its training runs: what rank 0 of each reports once a minute.

The name of a run is not known at synthesis. A dashboard searches for runs; an alarm cannot, and watches what all runs
of a cluster report under its name alone. Only jobs that use `cluster_job.Run` report anything.

https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/search-expression-syntax.html
https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarm-data-queries.html

Rank 0 reports once a minute, so that a period of five minutes has a point though one report is lost. Where a run ends
its points end: they are taken for not breaching, so that its alarm is over. Gaps between two processes of a run hide
nothing, since CloudWatch looks further back than the periods that an alarm has, and takes the points that are there.

https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarms-and-missing-data.html
"""

from collections.abc import Sequence
from dataclasses import dataclass

from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_sns as sns
from constructs import Construct

from cdk_training_cluster.core.dashboards.rows import DashboardRow, LineForEach, Panel, Threshold, Unit
from cdk_training_cluster.core.runbooks import runbook
from cluster_contract.metrics import NODE_METRICS, job_namespace
from cluster_contract.runs import RUN_DIMENSION, RunMetric

_LEAST_GOODPUT = 80.0
_LONGEST_WITHOUT_STEP = 1800.0
_ALL = 100.0
_SHOWN = 50


@dataclass(frozen=True, kw_only=True)
class _Watch:
    """An alarm on what runs report.

    Attributes:
        id: Its id.
        metric: What it watches.
        statistic: The worst run's: there may be several.
        threshold: From where on it goes off.
        below: Whether it goes off below the threshold, not at it and above.
        periods: For how many periods of five minutes.
        trouble: What is wrong, in one sentence.
        remedy: What to do.
    """

    id: str
    metric: RunMetric
    statistic: str
    threshold: float
    below: bool = False
    periods: int = 1
    trouble: str
    remedy: str


_WATCHES: Sequence[_Watch] = (
    _Watch(
        id="RunWithoutStep",
        metric=RunMetric.SECONDS_WITHOUT_STEP,
        statistic="Maximum",
        threshold=_LONGEST_WITHOUT_STEP,
        trouble=f"a training run has done no step for {_LONGEST_WITHOUT_STEP / 60:.0f} minutes",
        remedy="If its log names a file of stacks, it shows where each thread waits. If it sets up or evaluates for "
        "that long on purpose, there is nothing to do.",
    ),
    _Watch(
        id="RunGoodputLow",
        metric=RunMetric.GOODPUT,
        statistic="Minimum",
        threshold=_LEAST_GOODPUT,
        below=True,
        periods=3,
        trouble=f"less than {_LEAST_GOODPUT:.0f} % of the last hour of a training run was training",
        remedy="LostSeconds says when the rest was lost: between two processes of the run, in steps that were done "
        "again, or in steps that took more than twice as long as usual.",
    ),
    _Watch(
        id="RunSlowRanks",
        metric=RunMetric.SLOW_RANKS,
        statistic="Maximum",
        threshold=1,
        periods=3,
        trouble="ranks of a training run have been slower than the others, which wait for them, for 15 minutes",
        remedy="The runs there name the slowest ranks and the likely cause. Run `cluster-node verify` on a node that "
        "stays slow, and replace it.",
    ),
    _Watch(
        id="RunUtilizationLow",
        metric=RunMetric.LOW_UTILIZATION,
        statistic="Maximum",
        threshold=1,
        periods=3,
        trouble="a training run has used its GPUs too little for 15 minutes, while its steps went on",
        remedy="The runs there name the measure and, where something measured says so, the likely cause: data, "
        "temperature, network or one rank.",
    ),
    _Watch(
        id="RunCheckpointFailures",
        metric=RunMetric.CHECKPOINT_FAILURES,
        statistic="Maximum",
        threshold=1,
        trouble="a checkpoint of a training run could not be written",
        remedy="The job's log says why: often the directory is full, or shared memory is. The job goes on and tries "
        "again; a failure before that loses the steps since the newest whole checkpoint.",
    ),
    _Watch(
        id="RunLossNotFinite",
        metric=RunMetric.NON_FINITE_LOSS,
        statistic="Maximum",
        threshold=1,
        trouble="the loss of a training run is no finite number, such as NaN",
        remedy="The job goes on and writes no checkpoint until it is one. Stop the job, find the cause, and start it "
        "again from its newest checkpoint, or from an older one with run.restore(state, step=...).",
    ),
    _Watch(
        id="RunCostCap",
        metric=RunMetric.COST_SHARE,
        statistic="Maximum",
        threshold=_ALL,
        trouble="a training run has cost as much as its cost_cap_usd allows",
        remedy="Nothing stops it: end the job, or raise its cap. The amount is nodes, hours and the price of a node.",
    ),
)


def make_run_alarms(scope: Construct, cluster_name: str, topic: sns.ITopic) -> None:
    """Make the alarms on what training runs report.

    Args:
        scope: The cluster.
        cluster_name: Its name.
        topic: What they notify.
    """
    operator = cloudwatch.ComparisonOperator
    for watch in _WATCHES:
        address = runbook("run", watch.id.removeprefix("Run"))
        metric = cloudwatch.Metric(
            namespace=job_namespace(cluster_name),
            metric_name=watch.metric,
            dimensions_map={NODE_METRICS.cluster_dimension: cluster_name},
            statistic=watch.statistic,
        )
        alarm = metric.create_alarm(
            scope,
            watch.id,
            alarm_description=f"{cluster_name}: {watch.trouble}. Look in the runs of `training-cluster status "
            f"{cluster_name}` for which one it is. {watch.remedy} Runbook: {address}",
            threshold=watch.threshold,
            evaluation_periods=watch.periods,
            comparison_operator=(
                operator.LESS_THAN_THRESHOLD if watch.below else operator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD
            ),
            # A cluster on which no run reports has no trouble with one.
            treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
        )
        alarm.add_alarm_action(actions.SnsAction(topic))


def run_row(cluster_name: str) -> DashboardRow:
    """Describe what a cluster's dashboard shows of its training runs.

    Args:
        cluster_name: The cluster's name.
    """

    def line(metric: RunMetric, *, statistic: str = "Average", lowest: int | None = None) -> LineForEach:
        return LineForEach(
            metric=metric,
            cluster_name=cluster_name,
            by=(RUN_DIMENSION,),
            statistic=statistic,
            namespace=job_namespace(cluster_name),
            lowest=lowest,
        )

    def panel(title: str, unit: Unit, metric: RunMetric, *, statistic: str = "Average") -> Panel:
        return Panel(title=title, unit=unit, lines=[line(metric, statistic=statistic)])

    return DashboardRow(
        title="Training runs",
        panels=[
            Panel(
                title=f"Goodput of the last hour, the {_SHOWN} lowest",
                unit=Unit.PERCENT,
                lines=[line(RunMetric.GOODPUT, lowest=_SHOWN)],
                thresholds=[Threshold(value=_LEAST_GOODPUT, label="alarm")],
                maximum=_ALL,
            ),
            panel("Lost in a period", Unit.SECONDS, RunMetric.LOST_SECONDS, statistic="Sum"),
            panel("A step", Unit.SECONDS, RunMetric.STEP_SECONDS),
            panel("Samples a second", Unit.COUNT, RunMetric.SAMPLES_PER_SECOND),
            panel("Loss", Unit.COUNT, RunMetric.LOSS),
            panel("Use of accelerators in steps", Unit.PERCENT, RunMetric.GPU_UTILIZATION),
            panel("Model FLOPs utilization", Unit.PERCENT, RunMetric.MFU),
            panel("Slow ranks", Unit.COUNT, RunMetric.SLOW_RANKS, statistic="Maximum"),
            panel("Cost so far", Unit.USD, RunMetric.COST, statistic="Maximum"),
        ],
    )
