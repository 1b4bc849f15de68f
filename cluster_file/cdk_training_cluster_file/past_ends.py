"""Reservations whose end is past, which EC2 no longer makes. Synthesis reads no clock; the commands do.

A file cannot show whether its cluster is deployed. Commands that cannot know it warn: all other changes of a deployed
cluster stay possible after a reservation has ended. Commands that see in AWS that there is no cluster yet refuse.
"""

import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from cdk_training_cluster_file.fields import UNTIL_CANCELLED
from cdk_training_cluster_file.model import ClusterFile
from cdk_training_cluster_file.problems import Location, printable
from cdk_training_cluster_file.reading import with_places


def refuse_past_ends(path: Path, cluster: ClusterFile, now: datetime) -> None:
    """Refuse a file of a cluster that is not deployed yet, if a reservation in it has ended.

    Args:
        path: The file.
        cluster: What the file says.
        now: The time.

    Raises:
        ClusterFileError: A reservation has ended.
    """
    past = [
        (
            where,
            f"must be in the future, got {end}: EC2 makes no reservation that has ended; give a later end, or "
            f"{UNTIL_CANCELLED}",
        )
        for where, end in _past(cluster, now)
    ]
    if past:
        raise with_places(path, past)


def warn_of_past_ends(path: Path, cluster: ClusterFile, now: datetime) -> None:
    """Write a warning to standard error for each reservation of a file that has ended.

    Args:
        path: The file.
        cluster: What the file says.
        now: The time.
    """
    past = [
        (
            where,
            f"{end} is in the past: EC2 makes no new reservation with this end. A deployed cluster takes all other "
            "changes; leave this end as it is. To reserve again, give the node group another name and a later end",
        )
        for where, end in _past(cluster, now)
    ]
    for line in str(with_places(path, past)).splitlines() if past else ():
        sys.stderr.write(f"warning: {printable(line)}\n")


def has_past_end(cluster: ClusterFile, now: datetime) -> bool:
    """Tell whether a reservation that the cluster makes has ended.

    Args:
        cluster: What the file says.
        now: The time.
    """
    return any(_past(cluster, now))


def _past(cluster: ClusterFile, now: datetime) -> Iterator[tuple[Location, str]]:
    for at, group in enumerate(cluster.node_groups):
        end = group.capacity.to_capacity().end_time
        if end is not None and end <= now:
            yield ("node_groups", at, "capacity", "reservation", "end"), f"{end:%Y-%m-%d %H:%M} UTC"
