"""The metrics of a run, and how they get to CloudWatch.

Rank 0 sends them once a minute with `PutMetricData`: the role of jobs may write to the one namespace, no agent has
to listen, and a container needs nothing but the role. Each exists by cluster and run; those that alarms watch
exist by cluster, too, since an alarm cannot search for runs. So a run has fourteen series at most, whatever its size,
and the slowest ranks are fields of a log line. Without a cluster, everything is one line of JSON on standard output.

https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_PutMetricData.html
"""

import json
import math
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol, TextIO

HEARTBEAT = "JobHeartbeat"
"""What says that a job is at work on an instance; the cluster's idle stop reads it."""

HEARTBEAT_SECONDS = 240.0
"""How often it is sent: the idle stop looks at periods of five minutes."""

CLUSTER, RUN, INSTANCE_ID = "Cluster", "Run", "InstanceId"


class RunMetric(Enum):
    """The metrics of a run."""

    LOSS = "Loss"
    """The loss of a step on rank 0."""

    SAMPLES_PER_SECOND = "SamplesPerSecond"
    """Samples of all ranks a second."""

    STEP_SECONDS = "StepSeconds"
    """The median time of a step."""

    MFU = "Mfu"
    """The model's FLOPs utilization, in percent."""

    GOODPUT = "Goodput"
    """The part of the last hour that was training, in percent; `ledger` defines it."""

    LOST_SECONDS = "LostSeconds"
    """The seconds since the last report that were not; their sum is what a period lost."""

    COST = "CostUsd"
    """What the run has cost so far, in USD."""

    COST_SHARE = "CostPercentOfCap"
    """The same in percent of its cap."""

    SECONDS_WITHOUT_STEP = "SecondsWithoutStep"
    """How long ago the last step was done, or the process began."""

    SLOW_RANKS = "SlowRanks"
    """How many ranks are slower than the others."""

    CHECKPOINT_FAILURES = "CheckpointFailures"
    """How many checkpoints in a row could not be written; 0 after one that is whole."""

    NON_FINITE_LOSS = "NonFiniteLoss"
    """1 where the loss is no finite number, or a checkpoint was not written because of one; 0 where neither is."""

    GPU_UTILIZATION = "GpuUtilization"
    """The average utilization of the run's GPUs in its last ten minutes of steps, in percent."""

    LOW_UTILIZATION = "LowUtilization"
    """1 where the GPUs are used too little, 0 where they are not; `utilization` says when."""


WATCHED = frozenset(
    {
        RunMetric.GOODPUT,
        RunMetric.SECONDS_WITHOUT_STEP,
        RunMetric.COST_SHARE,
        RunMetric.SLOW_RANKS,
        RunMetric.CHECKPOINT_FAILURES,
        RunMetric.NON_FINITE_LOSS,
        RunMetric.LOW_UTILIZATION,
    }
)
"""What exists by cluster alone, too, for alarms."""

# The highest dense BF16 rate of an accelerator in FLOPs a second, by what nvidia-smi calls it.
# https://www.nvidia.com/content/dam/en-zz/Solutions/Data-Center/a100/pdf/nvidia-a100-datasheet-us-nvidia-1758950-r4-web.pdf
# https://www.nvidia.com/en-us/data-center/h100/, …/h200/ and …/hgx/: half of what is said with sparsity
PEAK_FLOPS: Mapping[str, float] = {"A100": 312e12, "H100": 989.5e12, "H200": 989.5e12, "B200": 2250e12}


def peak_flops(name: str) -> float | None:
    """Return how many FLOPs a second an accelerator can do. None: it is not known.

    Args:
        name: What nvidia-smi calls it, such as `NVIDIA H100 80GB HBM3`.
    """
    return next((peak for model, peak in PEAK_FLOPS.items() if model in name), None)


@dataclass(frozen=True, kw_only=True)
class Report:
    """What is sent once a minute.

    Attributes:
        run: The run.
        at: When, in seconds since 1970.
        step: The last step that was done. None: none was.
        values: The metrics; those that are not known are left out.
        fields: What else the log line says, such as the slowest ranks.
        watched: The metrics that are sent by cluster alone, too.
    """

    run: str
    at: float
    step: int | None
    values: Mapping[RunMetric, float]
    fields: Mapping[str, object]
    watched: Collection[RunMetric] = WATCHED

    def values_by_name(self) -> Mapping[str, object]:
        """Return when it was, the step and the metrics by their names, as JSON takes them."""
        values = {metric.value: round(value, 6) for metric, value in _finite(self.values).items()}
        return {"at": round(self.at, 3), "step": self.step, **values}

    def line(self) -> str:
        """Return it as one line of JSON."""
        return json.dumps({"run": self.run, **self.values_by_name(), **self.fields})


class Sink(Protocol):
    """Where reports go."""

    def send(self, report: Report) -> None:
        """Send a report."""

    def beat(self, instance_id: str) -> None:
        """Say that a job is at work on an instance."""


class Lines:
    """Writes reports as lines of JSON."""

    def __init__(self, target: TextIO | None = None) -> None:
        self._target = target

    def send(self, report: Report) -> None:
        """Write a report."""
        target = self._target or sys.stdout
        target.write(f"{report.line()}\n")
        target.flush()

    def beat(self, instance_id: str) -> None:
        """Write nothing: no idle stop reads lines."""


class CloudWatch:
    """Sends reports to CloudWatch, and writes them as lines, which hold more."""

    def __init__(self, client: Any, *, namespace: str, cluster: str, lines: Sink) -> None:  # noqa: ANN401 - boto3 has no types of its own
        self._client = client
        self._namespace = namespace
        self._cluster = cluster
        self._lines = lines

    def send(self, report: Report) -> None:
        """Send a report."""
        self._lines.send(report)
        data = metric_data(report, self._cluster)
        if data:
            self._client.put_metric_data(Namespace=self._namespace, MetricData=data)

    def beat(self, instance_id: str) -> None:
        """Say that a job is at work on an instance."""
        beat = {"MetricName": HEARTBEAT, "Dimensions": _dimensions({INSTANCE_ID: instance_id}), "Value": 1.0}
        self._client.put_metric_data(Namespace=self._namespace, MetricData=[beat])


def metric_data(report: Report, cluster: str) -> Sequence[Mapping[str, object]]:
    """Return the `MetricData` of a report; CloudWatch refuses what is no number, and that is left out.

    Args:
        report: The report.
        cluster: The cluster's name.
    """
    of_run, of_cluster = {CLUSTER: cluster, RUN: report.run}, {CLUSTER: cluster}
    return [
        {
            "MetricName": metric.value,
            "Dimensions": _dimensions(dimensions),
            "Timestamp": report.at,
            "Value": value,
        }
        for metric, value in _finite(report.values).items()
        for dimensions in ((of_run, of_cluster) if metric in report.watched else (of_run,))
    ]


def _dimensions(values: Mapping[str, str]) -> Sequence[Mapping[str, str]]:
    return [{"Name": name, "Value": value} for name, value in values.items()]


def _finite(values: Mapping[RunMetric, float]) -> Mapping[RunMetric, float]:
    return {metric: value for metric, value in values.items() if math.isfinite(value)}
