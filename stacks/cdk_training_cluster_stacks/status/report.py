"""What is known of a cluster's data at a moment: its data sets and its last checkpoint, from AWS."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from cdk_training_cluster_stacks.checkpoints.refusals import plain_refusals
from cdk_training_cluster_stacks.checkpoints.source import Source, parsed, s3_client
from cluster_contract.checkpoints import Checkpoint, CheckpointPlace, newest_complete, place_parameter
from cluster_contract.hydration import DatasetProgress, HydrationStep, parse_progress, progress_parameter

if TYPE_CHECKING:
    import boto3

OVER = frozenset({HydrationStep.DONE, HydrationStep.FAILED})
"""The steps at which nothing changes any more by itself."""


@dataclass(frozen=True, kw_only=True)
class Status:
    """What is known of a cluster's data.

    Attributes:
        cluster: The cluster's name.
        region: Its region.
        time: When AWS was asked.
        hydrates: Whether a function that hydrates data sets is deployed.
        written: When that function wrote how far it is. None: it has not yet.
        datasets: How far the data sets are, by their directories on the nodes.
        place: Where checkpoints lie. Empty: none are kept.
        newest: The checkpoint that was written last, if there is one.
        complete: The complete checkpoint that was written last, if there is one.
    """

    cluster: str
    region: str
    time: datetime
    hydrates: bool
    written: datetime | None
    datasets: Mapping[str, DatasetProgress]
    place: str = ""
    newest: Checkpoint | None = None
    complete: Checkpoint | None = None

    @property
    def over(self) -> bool:
        """Whether nothing is left to wait for: every data set is done or has failed."""
        return not self.hydrates or (
            self.written is not None and all(each.step in OVER for each in self.datasets.values())
        )

    @property
    def failed(self) -> bool:
        """Whether a data set cannot go on."""
        return any(each.step is HydrationStep.FAILED for each in self.datasets.values())

    def values(self) -> Mapping[str, object]:
        """Return what a program reads."""
        return {
            "cluster": self.cluster,
            "region": self.region,
            "time": self.time.isoformat(),
            "hydration": None
            if not self.hydrates
            else {
                "written": None if self.written is None else self.written.isoformat(),
                "datasets": {path: self._dataset(each) for path, each in self.datasets.items()},
            },
            "checkpoints": None
            if not self.place
            else {
                "place": self.place,
                "newest": self._checkpoint(self.newest),
                "newest_complete": self._checkpoint(self.complete),
            },
        }

    def _dataset(self, progress: DatasetProgress) -> Mapping[str, object]:
        since = progress.since.isoformat()
        return {**vars(progress), "step": progress.step.value, "since": since, "percent": progress.percent}

    def _checkpoint(self, checkpoint: Checkpoint | None) -> Mapping[str, object] | None:
        if checkpoint is None:
            return None
        age = (self.time - checkpoint.written).total_seconds()
        return {
            **vars(checkpoint),
            "newest": checkpoint.newest.isoformat(),
            "completed": checkpoint.completed and checkpoint.completed.isoformat(),
            "complete": checkpoint.complete,
            "age_seconds": int(age),
        }


def ask_status(session: "boto3.Session", cluster: str, region: str, now: datetime) -> Status:
    """Ask AWS what is known of a cluster's data.

    Args:
        session: The user's credentials.
        cluster: The cluster's name.
        region: Its region.
        now: The time.

    Raises:
        ValueError: AWS refuses, or a parameter does not hold what the deployment writes.
    """
    hydration, place = progress_parameter(cluster), place_parameter(cluster)
    with plain_refusals(f"the parameters {hydration} and {place}"):
        found = session.client("ssm", region_name=region).get_parameters(Names=[hydration, place])["Parameters"]
    texts = {each["Name"]: each["Value"] for each in found}
    progress = parsed(hydration, texts[hydration], parse_progress) if hydration in texts else None
    checkpoints: list[Checkpoint] = []
    url = ""
    if place in texts:
        source = Source(client=s3_client(session, region), place=parsed(place, texts[place], CheckpointPlace.parse))
        url, checkpoints = source.url, source.found()
    return Status(
        cluster=cluster,
        region=region,
        time=now,
        hydrates=hydration in texts,
        written=None if progress is None else progress.time,
        datasets={} if progress is None else progress.datasets,
        place=url,
        newest=checkpoints[0] if checkpoints else None,
        complete=newest_complete(checkpoints),
    )
