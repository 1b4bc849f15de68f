"""How far the data sets are: as the progress that people read, and as metrics."""

from collections.abc import Mapping
from datetime import datetime

from aws_lambda_powertools.metrics import MetricUnit

from cluster_common.metrics import CLUSTER_DIMENSION, emit, emit_counts
from cluster_contract.hydration import (
    DATASET_DIMENSION,
    DatasetProgress,
    HydrationAction,
    HydrationMetric,
    HydrationProgress,
    HydrationStep,
)
from cluster_contract.texts import printable
from cluster_hydration.records import DatasetState

# The parameter holds eight of them.
_MAX_REASON = 160


def progress(states: Mapping[str, DatasetState], now: datetime) -> HydrationProgress:
    """Return how far the data sets are.

    Args:
        states: Their states, by their directories on the nodes.
        now: The time.
    """
    return HydrationProgress(time=now, datasets={name: _progress(state) for name, state in states.items()})


def _progress(state: DatasetState) -> DatasetProgress:
    total, rate = state.found, state.bytes_per_second
    left = max(total.bytes - total.restored_bytes, 0)
    return DatasetProgress(
        step=state.step,
        since=state.since,
        files=total.files,
        bytes=total.bytes,
        counted=total.counted,
        restored_files=total.restored_files,
        restored_bytes=total.restored_bytes,
        failed_files=total.failed_files,
        nodes=len({one.instance for one in state.commands if one.action is HydrationAction.RESTORE}),
        bytes_per_second=rate,
        seconds_left=round(left / rate) if rate and total.counted else None,
        reason=printable(state.reason, _MAX_REASON) if state.reason else None,
    )


def emit_progress(cluster: str, found: HydrationProgress) -> None:
    """Write the metrics of the data sets that are being hydrated.

    Args:
        cluster: The cluster's name.
        found: How far they are.
    """
    for name, one in found.datasets.items():
        if one.step not in (HydrationStep.RESTORING, HydrationStep.FINISHING, HydrationStep.DONE):
            continue
        names = {CLUSTER_DIMENSION: cluster, DATASET_DIMENSION: name}
        emit({HydrationMetric.FILES: one.restored_files}, MetricUnit.Count, **names)
        emit({HydrationMetric.BYTES: one.restored_bytes}, MetricUnit.Bytes, **names)
        if one.percent is not None:
            emit({HydrationMetric.PERCENT: one.percent}, MetricUnit.Percent, **names)
        if one.bytes_per_second is not None:
            emit({HydrationMetric.BYTES_PER_SECOND: one.bytes_per_second}, MetricUnit.BytesPerSecond, **names)
        if one.seconds_left is not None:
            emit({HydrationMetric.SECONDS_LEFT: one.seconds_left}, MetricUnit.Seconds, **names)


def emit_run(cluster: str, states: Mapping[str, DatasetState], *, succeeded: bool) -> None:
    """Write the metrics of the run.

    Args:
        cluster: The cluster's name.
        states: The states of the data sets.
        succeeded: Whether all of its work was done.
    """
    failed = sum(state.step is HydrationStep.FAILED for state in states.values())
    counts: dict[str, int] = {HydrationMetric.FAILED_DATASETS: failed}
    if succeeded:
        counts[HydrationMetric.SUCCESSFUL_TICKS] = 1
    emit_counts(counts, **{CLUSTER_DIMENSION: cluster})
