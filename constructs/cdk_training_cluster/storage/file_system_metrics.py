"""The metrics that FSx publishes about a file system.

https://docs.aws.amazon.com/fsx/latest/LustreGuide/fs-metrics.html
"""

from collections.abc import Mapping
from typing import Literal

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch


class FileSystemMetrics:
    """Gives a file system its metrics, under AWS's names."""

    file_system_id: str

    def metric(
        self,
        metric_name: str,
        *,
        statistic: str = "Average",
        period: Duration | None = None,
        dimensions: Mapping[str, str] | None = None,
    ) -> cloudwatch.Metric:
        """Return a metric of the file system by AWS's name, such as `DiskThroughputUtilization`.

        Args:
            metric_name: AWS's name.
            statistic: What of a period's points is shown. Default: - `Average`.
            period: How much time a point covers. Default: - 5 minutes.
            dimensions: Dimensions beside `FileSystemId`, such as `{"Publisher": "AutoExport"}`. Default: - none.
        """
        return cloudwatch.Metric(
            namespace="AWS/FSx",
            metric_name=metric_name,
            dimensions_map={"FileSystemId": self.file_system_id, **(dimensions or {})},
            statistic=statistic,
            period=period or Duration.minutes(5),
        )

    def metric_data_read_bytes(self, *, period: Duration | None = None) -> cloudwatch.Metric:
        """Return the bytes that clients read in a period.

        Args:
            period: How much time a point covers. Default: - 5 minutes.
        """
        return self.metric("DataReadBytes", statistic="Sum", period=period)

    def metric_data_write_bytes(self, *, period: Duration | None = None) -> cloudwatch.Metric:
        """Return the bytes that clients write in a period.

        Args:
            period: How much time a point covers. Default: - 5 minutes.
        """
        return self.metric("DataWriteBytes", statistic="Sum", period=period)

    def metric_data_read_operations(self, *, period: Duration | None = None) -> cloudwatch.Metric:
        """Return the read operations of a period.

        Args:
            period: How much time a point covers. Default: - 5 minutes.
        """
        return self.metric("DataReadOperations", statistic="Sum", period=period)

    def metric_data_write_operations(self, *, period: Duration | None = None) -> cloudwatch.Metric:
        """Return the write operations of a period.

        Args:
            period: How much time a point covers. Default: - 5 minutes.
        """
        return self.metric("DataWriteOperations", statistic="Sum", period=period)

    def metric_metadata_operations(self, *, period: Duration | None = None) -> cloudwatch.Metric:
        """Return the metadata operations of a period.

        Args:
            period: How much time a point covers. Default: - 5 minutes.
        """
        return self.metric("MetadataOperations", statistic="Sum", period=period)

    def metric_free_data_storage_capacity(self, *, period: Duration | None = None) -> cloudwatch.Metric:
        """Return the bytes that are free on all storage targets together.

        FSx writes a point for each target and minute, and the statistic adds them up: over five minutes it is five
        times the free space.

        Args:
            period: How much time a point covers. Default: - a minute.
        """
        return self.metric("FreeDataStorageCapacity", statistic="Sum", period=period or Duration.minutes(1))

    def metric_age_of_oldest_queued_message(
        self, publisher: Literal["AutoImport", "AutoExport"], *, period: Duration | None = None
    ) -> cloudwatch.Metric:
        """Return how many seconds the oldest change waits to be imported from S3, or exported to it.

        Args:
            publisher: Which way: `AutoImport` or `AutoExport`.
            period: How much time a point covers. Default: - 5 minutes.
        """
        return self.metric(
            "AgeOfOldestQueuedMessage", statistic="Maximum", period=period, dimensions={"Publisher": publisher}
        )
