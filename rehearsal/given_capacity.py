"""The Capacity Reservations and Capacity Blocks that a cluster file names as already there."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from cdk_training_cluster_file import ClusterFile, NodeGroupSettings
from cdk_training_cluster_file.capacity import CapacityBlockSettings, ExistingReservationSettings, PrioritizedSettings
from local_aws import LocalAws

_SINCE, _FOR = timedelta(hours=1), timedelta(days=7)


@dataclass(frozen=True, kw_only=True)
class GivenCapacity:
    """A reservation or block that is there before the cluster.

    Attributes:
        id: Its id.
        is_block: Whether it is a Capacity Block.
        instance_type: Its type.
        instance_count: How many instances it has.
        instance_platform: What it is billed as. None: as AWS's images are.
        placement_group: The placement group that it was made in. None: none.
    """

    id: str
    is_block: bool
    instance_type: str
    instance_count: int
    instance_platform: str | None = None
    placement_group: str | None = None


def given_capacity(cluster: ClusterFile) -> list[GivenCapacity]:
    """Return what a cluster file names, each once, and as big as the file says or as all its users need.

    Args:
        cluster: The cluster file.
    """
    found: dict[str, GivenCapacity] = {}
    told: dict[str, int] = {}
    for group in cluster.node_groups:
        settings = group.capacity.settings
        if isinstance(settings, ExistingReservationSettings | CapacityBlockSettings) and settings.instance_count:
            told[settings.id] = settings.instance_count
        for named in _named(group):
            earlier = found.get(named.id)
            if earlier is not None:
                named = _together(earlier, named)  # noqa: PLW2901 - one that groups share
            found[named.id] = named
    return [replace(named, instance_count=told.get(named.id, named.instance_count)) for named in found.values()]


def prepare_capacity(cluster: ClusterFile, aws: LocalAws) -> None:
    """Put into the local AWS the reservations and blocks that a cluster file names; blocks have just begun.

    Args:
        cluster: The cluster file.
        aws: The local AWS; it knows the types and the zone already.
    """
    now = datetime.now(UTC)
    for given in given_capacity(cluster):
        if given.is_block:
            aws.put_capacity_block(
                given.id,
                start=now - _SINCE,
                end=now + _FOR,
                instance_type=given.instance_type,
                instance_count=given.instance_count,
                availability_zone=cluster.availability_zone,
            )
        else:
            aws.add_capacity_reservation(
                given.id,
                instance_type=given.instance_type,
                instance_count=given.instance_count,
                availability_zone=cluster.availability_zone,
                instance_platform=given.instance_platform,
                placement_group=given.placement_group,
            )


def _named(group: NodeGroupSettings) -> Iterator[GivenCapacity]:
    settings, instance_type = group.capacity.settings, group.instance_types[0]
    if isinstance(settings, CapacityBlockSettings):
        yield GivenCapacity(id=settings.id, is_block=True, instance_type=instance_type, instance_count=group.count)
    if isinstance(settings, ExistingReservationSettings):
        yield GivenCapacity(
            id=settings.id,
            is_block=False,
            instance_type=instance_type,
            instance_count=group.count,
            instance_platform=settings.instance_platform,
            placement_group=settings.placement_group,
        )
    if isinstance(settings, PrioritizedSettings):
        for is_block, ids in ((False, settings.reservations), (True, settings.capacity_blocks)):
            for named in ids or ():
                yield GivenCapacity(
                    # The ARN of one that another account shares ends with its id.
                    id=named.rpartition("/")[2],
                    is_block=is_block,
                    instance_type=instance_type,
                    instance_count=share(group, settings),
                )


def share(group: NodeGroupSettings, settings: PrioritizedSettings) -> int:
    """Return how many nodes each of several reservations and blocks holds: equal parts, one of them on demand.

    Args:
        group: The node group.
        settings: How it is bought.
    """
    ways = len(settings.reservations or ()) + len(settings.capacity_blocks or ()) + settings.on_demand
    return max(1, group.count // ways if settings.on_demand else -(-group.count // ways))


def _together(first: GivenCapacity, second: GivenCapacity) -> GivenCapacity:
    return replace(
        first,
        instance_count=first.instance_count + second.instance_count,
        instance_platform=first.instance_platform or second.instance_platform,
        placement_group=first.placement_group or second.placement_group,
    )
