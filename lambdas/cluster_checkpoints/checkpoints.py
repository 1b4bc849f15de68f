"""One run: list the checkpoints, read the accelerators' use, report both."""

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from aws_lambda_powertools import Logger

from cluster_checkpoints.work import work_since
from cluster_common.clients import Clients
from cluster_common.errors import PartialFailureError
from cluster_common.metrics import CLUSTER_DIMENSION, emit_counts
from cluster_contract.checkpoints import (
    Checkpoint,
    CheckpointFunctionSettings,
    CheckpointMetric,
    checkpoints,
    newest_complete,
    stored_files,
)
from cluster_contract.idle import PERIOD
from cluster_contract.metrics import NODE_METRICS, node_namespace
from cluster_contract.times import TIME_FORMAT

if TYPE_CHECKING:
    from mypy_boto3_cloudwatch.type_defs import MetricDataQueryTypeDef

# The one status that makes points evidence.
# https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_MetricDataResult.html
_COMPLETE = "Complete"
_METRICS = (
    NODE_METRICS.gpu_utilization,
    NODE_METRICS.neuron_core_utilization,
    NODE_METRICS.accelerator_utilization,
)
_MINUTE = timedelta(minutes=1)
# So far back work is counted, besides the time after which the alarm goes off: what has pauses takes longer.
PAUSES = timedelta(days=1)


class CheckpointRun:
    """Reports how long accelerators have worked since the newest complete checkpoint."""

    def __init__(self, settings: CheckpointFunctionSettings, aws: Clients, logger: Logger, *, now: datetime) -> None:
        """Know what to do.

        Args:
            settings: The settings.
            aws: The clients.
            logger: Where the newest checkpoint is logged.
            now: The time, in UTC.
        """
        self._settings = settings
        self._aws = aws
        self._logger = logger
        self._now = now

    def run(self) -> dict[str, object]:
        """Report, and return what was found.

        Raises:
            ClientError: AWS refuses.
            PartialFailureError: CloudWatch returned no complete data for the accelerators' use.
        """
        settings, found = self._settings, self._list()
        newest = newest_complete(found)
        work = work_since(
            None if newest is None else newest.completed, self._read_points(), now=self._now, below=settings.below
        )
        counts: dict[str, int] = {
            CheckpointMetric.SUCCESSFUL_TICKS: 1,
            CheckpointMetric.WORK_WITHOUT_CHECKPOINT: work.at_risk,
            CheckpointMetric.CHECKPOINTS: sum(one.complete for one in found),
        }
        if newest is not None:
            counts[CheckpointMetric.AGE] = max(0, (self._now - newest.written) // _MINUTE)
        emit_counts(counts, **{CLUSTER_DIMENSION: settings.cluster})
        report: dict[str, object] = {
            "cluster": settings.cluster,
            "newest_checkpoint": None if newest is None else _described(newest),
            "complete_checkpoints": counts[CheckpointMetric.CHECKPOINTS],
            "accelerators_work": work.goes_on,
            "minutes_of_work_without_checkpoint": work.minutes,
        }
        found_one = "found the newest complete checkpoint" if newest else "found no complete checkpoint"
        self._logger.info(found_one, extra=report)
        return report

    def _list(self) -> list[Checkpoint]:
        place = self._settings.place
        pages = self._aws.s3().get_paginator("list_objects_v2").paginate(Bucket=place.bucket, Prefix=place.prefix)
        return checkpoints(stored_files((one for page in pages for one in page.get("Contents", [])), place.prefix))

    def _read_points(self) -> list[tuple[datetime, float]]:
        """Read how busy the cluster's busiest accelerator was in each period."""
        queries = [self._query(f"q{number}", metric) for number, metric in enumerate(_METRICS)]
        points: list[tuple[datetime, float]] = []
        statuses = dict.fromkeys((query["Id"] for query in queries), "no result")
        pages = (
            self._aws.cloudwatch()
            .get_paginator("get_metric_data")
            .paginate(
                MetricDataQueries=queries,
                # CloudWatch's periods begin at whole ones.
                StartTime=_period_of(self._now) - self._settings.max_work - PAUSES,
                EndTime=self._now,
                ScanBy="TimestampDescending",
            )
        )
        for page in pages:
            for result in page["MetricDataResults"]:
                points += zip(result.get("Timestamps", []), result.get("Values", []), strict=True)
                statuses[result.get("Id", "")] = result.get("StatusCode", "")
        partial = [f"{query} ({status})" for query, status in statuses.items() if status != _COMPLETE]
        if partial:
            raise PartialFailureError(
                [f"CloudWatch returned no complete data for the accelerators' utilization: {', '.join(partial)}"]
            )
        return points

    def _query(self, id: str, metric: str) -> "MetricDataQueryTypeDef":
        return {
            "Id": id,
            "MetricStat": {
                "Metric": {
                    "Namespace": node_namespace(self._settings.cluster),
                    "MetricName": metric,
                    "Dimensions": [{"Name": NODE_METRICS.cluster_dimension, "Value": self._settings.cluster}],
                },
                "Period": int(PERIOD.total_seconds()),
                "Stat": "Maximum",
            },
        }


def _period_of(moment: datetime) -> datetime:
    seconds = PERIOD.total_seconds()
    return datetime.fromtimestamp(moment.timestamp() // seconds * seconds, UTC)


def _described(checkpoint: Checkpoint) -> dict[str, object]:
    return {
        "name": checkpoint.name,
        "files": checkpoint.files,
        "bytes": checkpoint.bytes,
        "written": checkpoint.written.strftime(TIME_FORMAT),
    }
