"""When the last checkpoint was written."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from cdk_training_cluster_cli.core.sizes import size_text
from cdk_training_cluster_cli.data.checkpoints.source import Source, parsed, s3_client
from cdk_training_cluster_cli.observe.ages import span
from cdk_training_cluster_cli.observe.deployed import Deployed
from cdk_training_cluster_cli.observe.status.hydration import parameter
from cdk_training_cluster_cli.observe.status.part import Item, Moment, Part
from cluster_contract.checkpoints import Checkpoint, CheckpointPlace, newest_complete, place_parameter

_MOST_OBJECTS = 100_000  # in 100 requests


@dataclass(frozen=True, kw_only=True)
class LastCheckpoints:
    """The checkpoints that were written last.

    Attributes:
        place: Where checkpoints lie.
        now: When S3 was asked.
        newest: The one that was written last, if there is one.
        complete: The complete one that was written last, if there is one.
    """

    place: str
    now: datetime
    newest: Checkpoint | None = None
    complete: Checkpoint | None = None


def last_checkpoints(source: Source, now: datetime) -> LastCheckpoints:
    """Return the checkpoints that were written last.

    Args:
        source: Where checkpoints lie.
        now: The time.

    Raises:
        ValueError: AWS does not list the bucket, or it takes too long: who may write there can write many objects.
    """
    found = source.found(most=_MOST_OBJECTS)
    return LastCheckpoints(
        place=source.url, now=now, newest=found[0] if found else None, complete=newest_complete(found)
    )


class Checkpoints(Part[LastCheckpoints]):
    """What S3 lists where the cluster's parameter says that its checkpoints lie."""

    key = "checkpoints"
    title = "Checkpoints"

    def ask(self, cluster: Deployed) -> LastCheckpoints | None:
        """Ask Systems Manager for the place, and S3 for what is there."""
        text = parameter(cluster, name := place_parameter(cluster.name))
        if text is None:
            return None
        place = parsed(name, text, CheckpointPlace.parse)
        source = Source(client=s3_client(cluster.target.session, cluster.target.region), place=place)
        return last_checkpoints(source, cluster.now)

    def values(self, answer: LastCheckpoints) -> Any:  # noqa: ANN401 - as for Part
        """Return where they lie, and both of them."""
        return {
            "place": answer.place,
            "newest": _values(answer.newest, answer.now),
            "newest_complete": _values(answer.complete, answer.now),
        }

    def lines(self, answer: LastCheckpoints, moment: Moment) -> Iterator[Item]:
        """Yield a sentence on the last ones."""
        newest, complete = answer.newest, answer.complete
        if newest is None:
            yield f"No checkpoint is in {answer.place} yet."
        elif complete is None:
            yield f"No complete checkpoint is in {answer.place}: the newest, {_of(newest, moment)}, has no marker."
        else:
            said = (
                f"The last complete checkpoint is {_of(complete, moment)}, {size_text(complete.bytes)}, in "
                f"{answer.place}."
            )
            newer = f" A newer one, {_of(newest, moment)}, is not complete."
            yield said if newest == complete else f"{said}{newer}"


def _of(checkpoint: Checkpoint, moment: Moment) -> str:
    return f"{checkpoint.name}, written {span(moment.now - checkpoint.written)} ago"


def _values(checkpoint: Checkpoint | None, now: datetime) -> Mapping[str, object] | None:
    if checkpoint is None:
        return None
    return {
        **vars(checkpoint),
        "newest": checkpoint.newest.isoformat(),
        "completed": checkpoint.completed and checkpoint.completed.isoformat(),
        "complete": checkpoint.complete,
        "age_seconds": int((now - checkpoint.written).total_seconds()),
    }
