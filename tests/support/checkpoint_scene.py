"""Stores of checkpoints, and the function that looks at one with fakes of S3 and CloudWatch."""

import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from aws_cdk import Stack
from aws_lambda_powertools import Logger

from cdk_training_cluster import ClusterNetwork, ExportedCheckpoints, TrainingFileSystem
from cluster_checkpoints.checkpoints import CheckpointRun
from cluster_common.clients import Clients
from cluster_contract.checkpoints import CheckpointFunctionSettings, CheckpointPlace
from fake_service import FakePaginator, FakeService
from synthesis import ZONE

# The construct sets it; the function's metrics are nowhere without it.
os.environ.setdefault("POWERTOOLS_METRICS_NAMESPACE", "CdkTrainingCluster/Functions")

NOW = datetime(2026, 11, 24, 12, 2, tzinfo=UTC)
BUCKET = "runs"
_PERIOD = timedelta(minutes=5)


def file_system(stack: Stack) -> TrainingFileSystem:
    """Make a file system in a network of its own."""
    return TrainingFileSystem(stack, "Files", network=ClusterNetwork(stack, "FilesNetwork", availability_zone=ZONE))


def exported_checkpoints(stack: Stack, prefix: str = "") -> ExportedCheckpoints:
    """Make a store whose directory is exported."""
    return ExportedCheckpoints(stack, "Checkpoints", file_system=file_system(stack), prefix=prefix)


class FakeBucket(FakeService):
    """S3: it lists objects, two a page."""

    def __init__(self) -> None:
        super().__init__("s3")
        self.objects: dict[str, datetime] = {}

    def get_paginator(self, _operation: str) -> FakePaginator:
        """Return the paginator of ListObjectsV2."""
        return FakePaginator(self._pages)

    def _pages(self, **request: Any) -> Iterator[dict[str, Any]]:
        arn = f"arn:aws:s3:::{request['Bucket']}"
        self.record("ListObjectsV2", request, arn=arn, context={"s3:prefix": request["Prefix"]})
        keys = sorted(key for key in self.objects if key.startswith(request["Prefix"]))
        for start in range(0, max(len(keys), 1), 2):
            page = [{"Key": key, "Size": 10, "LastModified": self.objects[key]} for key in keys[start : start + 2]]
            yield {"Contents": page} if page else {}


class FakeUtilization(FakeService):
    """CloudWatch: what the busiest accelerator of the cluster did."""

    def __init__(self) -> None:
        super().__init__("cloudwatch")
        self.percent: Callable[[datetime], float | None] = lambda _: None
        self.status = "Complete"

    def get_paginator(self, _operation: str) -> FakePaginator:
        """Return the paginator of GetMetricData."""
        return FakePaginator(self._pages)

    def _pages(self, **request: Any) -> Iterator[dict[str, Any]]:
        self.record("GetMetricData", request, context={"aws:RequestedRegion": "us-east-1"})
        starts = []
        start = request["StartTime"]
        while start < request["EndTime"]:
            starts.append(start)
            start += _PERIOD
        points = [(start, value) for start in starts if (value := self.percent(start)) is not None]
        for query in request["MetricDataQueries"]:
            (dimension,) = query["MetricStat"]["Metric"]["Dimensions"]
            measured = query["MetricStat"]["Metric"]["MetricName"] == "nvidia_smi_utilization_gpu"
            of_it = points if measured and dimension == {"Name": "Cluster", "Value": "pod"} else []
            yield {
                "MetricDataResults": [
                    {
                        "Id": query["Id"],
                        "Timestamps": [when for when, _ in of_it],
                        "Values": [value for _, value in of_it],
                        "StatusCode": self.status,
                    }
                ]
            }


class CheckpointScene:
    """The function with its bucket and the nodes' metrics."""

    def __init__(self) -> None:
        self.bucket, self.cloudwatch = FakeBucket(), FakeUtilization()

    def save(self, name: str, minutes_ago: int, marker: str = ".metadata") -> None:
        """Write a checkpoint of two files."""
        written = NOW - timedelta(minutes=minutes_ago)
        self.bucket.objects |= {f"runs/{name}/w.pt": written, f"runs/{name}/{marker}": written}

    def run(self, now: datetime = NOW) -> dict[str, Any]:
        """Run the function once."""
        settings = CheckpointFunctionSettings(
            cluster="pod",
            place=CheckpointPlace(bucket=BUCKET, prefix="runs/", directory="/fsx/checkpoints"),
            max_work=timedelta(minutes=60),
        )
        aws = cast(Any, Clients)(s3=lambda: self.bucket, cloudwatch=lambda: self.cloudwatch)
        return CheckpointRun(settings, aws, Logger(service="test"), now=now).run()
