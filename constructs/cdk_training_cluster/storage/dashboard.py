"""What a cluster's dashboard shows of its file system: what FSx reports."""

from cdk_training_cluster.core.dashboards.rows import DashboardRow, Line, Metric, Panel, Unit
from cdk_training_cluster.storage.file_system import TrainingFileSystem


def file_system_row(file_system: TrainingFileSystem) -> DashboardRow:
    """Describe the use of a file system, and how far its links with S3 are behind.

    Args:
        file_system: The file system.

    Source: https://docs.aws.amazon.com/fsx/latest/LustreGuide/fs-metrics.html
    """

    def metric(name: str, statistic: str, **dimensions: str) -> Metric:
        of = {"FileSystemId": file_system.file_system_id, **dimensions}
        return Metric(namespace="AWS/FSx", name=name, dimensions=of, statistic=statistic)

    def each_second(label: str, name: str) -> Line:
        return Line(label=label, metrics={label: metric(name, "Sum")}, expression=f"{label} / PERIOD({label})")

    panels = [
        Panel(
            title="Throughput",
            unit=Unit.BYTES_PER_SECOND,
            lines=[each_second("read", "DataReadBytes"), each_second("written", "DataWriteBytes")],
        ),
        Panel(
            title="Operations",
            unit=Unit.OPERATIONS_PER_SECOND,
            lines=[
                each_second("metadata", "MetadataOperations"),
                each_second("reads", "DataReadOperations"),
                each_second("writes", "DataWriteOperations"),
            ],
        ),
        Panel(
            title="Free on the fullest storage target",
            unit=Unit.BYTES,
            lines=[Line.of("free", metric("FreeDataStorageCapacity", "Minimum"))],
        ),
    ]
    if file_system.datasets:
        waiting = [
            Line.of(label, metric("AgeOfOldestQueuedMessage", "Maximum", Publisher=publisher))
            for label, publisher in (("from S3", "AutoImport"), ("to S3", "AutoExport"))
        ]
        panels.append(Panel(title="Age of the oldest change that waits", unit=Unit.SECONDS, lines=waiting))
    return DashboardRow(title="File system", panels=panels)
