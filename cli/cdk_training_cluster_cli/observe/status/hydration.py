"""How far the data sets are."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from cdk_training_cluster_cli.core.aws_errors import plain_refusals
from cdk_training_cluster_cli.core.sizes import size_text
from cdk_training_cluster_cli.data.checkpoints.source import parsed
from cdk_training_cluster_cli.observe.ages import span
from cdk_training_cluster_cli.observe.deployed import Deployed
from cdk_training_cluster_cli.observe.status.part import Bar, Item, Moment, Part
from cluster_contract.hydration import (
    DatasetProgress,
    HydrationProgress,
    HydrationStep,
    parse_progress,
    progress_parameter,
)

_OVER = frozenset({HydrationStep.DONE, HydrationStep.FAILED})
# The hydration function runs every minute, and writes as long as something changes.
_SILENT = timedelta(minutes=10)

_STEPS = {
    HydrationStep.LINKING: "FSx links the bucket",
    HydrationStep.IMPORTING: "FSx imports names and sizes",
    HydrationStep.WAITING: "waits for a node that runs",
    HydrationStep.RESTORING: "contents are restored",
    HydrationStep.FINISHING: "a node checks that all files have their contents",
    HydrationStep.DONE: "all files have their contents",
    HydrationStep.FAILED: "has failed",
}


@dataclass(frozen=True, kw_only=True)
class Hydrated:
    """What the hydration function has written.

    Attributes:
        progress: How far the data sets are. None: the function has not written yet.
    """

    progress: HydrationProgress | None


class Hydration(Part[Hydrated]):
    """What the hydration function wrote into its SSM parameter."""

    key = "hydration"
    title = "Data sets"

    def ask(self, cluster: Deployed) -> Hydrated | None:
        """Ask Systems Manager for the parameter."""
        text = parameter(cluster, name := progress_parameter(cluster.name))
        return None if text is None else Hydrated(progress=parsed(name, text, parse_progress))

    def values(self, answer: Hydrated) -> Any:  # noqa: ANN401 - as for Part
        """Return when it was written, and each data set's fields."""
        progress = answer.progress
        return {
            "written": None if progress is None else progress.time.isoformat(),
            "datasets": {} if progress is None else {path: _values(one) for path, one in progress.datasets.items()},
        }

    def lines(self, answer: Hydrated, moment: Moment) -> Iterator[Item]:
        """Yield how far each data set is."""
        progress = answer.progress
        if progress is None:
            yield "The hydration function has not reported its progress yet: it runs every minute."
            return
        for path, one in sorted(progress.datasets.items()):
            yield Bar(name=path, percent=one.percent, text=_text(one))
        if self.waits(answer) and moment.now - progress.time > _SILENT:
            yield (
                f"The hydration function last reported its progress {span(moment.now - progress.time)} ago: see its "
                "alarms and its log."
            )

    def waits(self, answer: Hydrated) -> bool:
        """Say whether a data set is neither done nor has failed."""
        progress = answer.progress
        return progress is None or any(one.step not in _OVER for one in progress.datasets.values())

    def has_failed(self, answer: Hydrated) -> bool:
        """Say whether a data set cannot go on."""
        progress = answer.progress
        return progress is not None and any(one.step is HydrationStep.FAILED for one in progress.datasets.values())


def parameter(cluster: Deployed, name: str) -> str | None:
    """Return the value of an SSM parameter. None: there is none.

    Args:
        cluster: The cluster.
        name: The parameter's name.

    Raises:
        ValueError: AWS refuses.
    """
    with plain_refusals(f"the parameter {name}"):
        found = cluster.client("ssm").get_parameters(Names=[name])["Parameters"]
    return str(found[0]["Value"]) if found else None


def _values(progress: DatasetProgress) -> dict[str, object]:
    since = progress.since.isoformat()
    return {**vars(progress), "step": progress.step.value, "since": since, "percent": progress.percent}


def _text(progress: DatasetProgress) -> str:
    """Return how far a data set is."""
    parts = [_STEPS[progress.step]]
    if progress.reason:
        parts = [f"{_STEPS[progress.step]}: {progress.reason}"]
    percent = progress.percent
    if percent is not None and progress.step not in _OVER:
        parts.append(f"{percent:.1f} %")
    if progress.files:
        total = f"{progress.files:,}{'' if progress.counted else ' or more'} files"
        parts.append(f"{progress.restored_files:,} of {total} ({size_text(progress.restored_bytes)})")
    if progress.step is HydrationStep.RESTORING and progress.bytes_per_second:
        parts.append(f"{size_text(progress.bytes_per_second)}/s from {progress.nodes} nodes")
    if progress.step is HydrationStep.RESTORING and progress.seconds_left is not None:
        parts.append(f"{span(timedelta(seconds=progress.seconds_left))} left")
    if progress.failed_files:
        parts.append(f"{progress.failed_files:,} files failed")
    return ", ".join(parts)
