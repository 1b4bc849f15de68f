"""What node groups demand of each other: groups that share a reservation share its instances and its place."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from aws_cdk import Token

from cdk_training_cluster.capacity.kinds import CapacityBlock, ExistingReservation, Prioritized
from cdk_training_cluster.nodes.node_group import NodeGroup, Placement
from cdk_training_cluster.nodes.rules.rule import Level


@dataclass(frozen=True, kw_only=True)
class ClusterRule:
    """One thing that AWS says about node groups together.

    Attributes:
        id: The rule's name.
        source: Where AWS says so.
        find: Yields a sentence for each way in which the groups break the rule.
        level: What a broken rule means.
    """

    id: str
    source: str
    find: Callable[[Sequence[NodeGroup]], Iterator[str]]
    level: Level = Level.ERROR


def cluster_problems(groups: Sequence[NodeGroup], rules: Sequence[ClusterRule] | None = None) -> list[str]:
    """Say why node groups cannot be in one cluster, a sentence each; none if they can.

    Args:
        groups: The cluster's node groups.
        rules: The rules to go by. Default: - all of them.
    """
    return [
        problem
        for rule in (CLUSTER_RULES if rules is None else rules)
        if rule.level is Level.ERROR
        for problem in rule.find(groups)
    ]


def cluster_warnings(groups: Sequence[NodeGroup], rules: Sequence[ClusterRule] | None = None) -> Mapping[str, str]:
    """Say what of node groups that can be in one cluster will surprise: a sentence by the rule's id.

    Args:
        groups: The cluster's node groups.
        rules: The rules to go by. Default: - all of them.
    """
    return {
        rule.id: " ".join(sentences)
        for rule in (CLUSTER_RULES if rules is None else rules)
        if rule.level is Level.WARNING and (sentences := list(rule.find(groups)))
    }


def _counts_together(groups: Sequence[NodeGroup]) -> Iterator[str]:
    for reserved, users in _shared(groups).items():
        counts = [group.count for group in users]
        limits = [
            group.capacity.instance_count
            for group in users
            if isinstance(group.capacity, ExistingReservation | CapacityBlock)
            and group.capacity.instance_count is not None
        ]
        if not limits or any(Token.is_unresolved(number) for number in (*counts, *limits)):
            continue
        if sum(counts) > min(limits):
            yield (
                f"node groups {_names(users)} must have at most {min(limits)} nodes together, as many instances as "
                f"{reserved} has, got {' + '.join(map(str, counts))}"
            )


def _unknown_count(groups: Sequence[NodeGroup]) -> Iterator[str]:
    for reserved, users in _shared(groups).items():
        known = [group for group in users if getattr(group.capacity, "instance_count", None) is not None]
        if not known:
            yield (
                f"node groups {_names(users)} share {reserved} and nobody says how many instances it has: if they "
                "are fewer than the nodes together, the groups take them from each other and none is whole; give "
                "instance_count"
            )


def _one_placement_group(groups: Sequence[NodeGroup]) -> Iterator[str]:
    for reserved, users in _shared(groups).items():
        places = sorted({place for group in users if (place := _named_place(group)) is not None})
        if not places or any(Token.is_unresolved(place) for place in places):
            continue
        places += [f"a new one for {group.name!r}" for group in users if _makes_a_place(group)]
        if len(places) > 1:
            yield (
                f"node groups {_names(users)} must name one placement_group for {reserved}, got "
                f"{' and '.join(places)}: a reservation is made in one"
            )


def _one_type(groups: Sequence[NodeGroup]) -> Iterator[str]:
    for reserved, users in _shared(groups).items():
        types = sorted({name for group in users for name in group.instance_types if not Token.is_unresolved(name)})
        if len(types) > 1:
            yield (
                f"node groups {_names(users)} must have one type for {reserved}, got {' and '.join(types)}: a "
                "reservation is of one type"
            )


def _reservation_or_block(groups: Sequence[NodeGroup]) -> Iterator[str]:
    reservations, blocks = _users(groups, _reservations), _users(groups, _blocks)
    for reserved, users in reservations.items():
        others = blocks.get(reserved)
        if others:
            pair = sorted((users[0], others[0]), key=groups.index)
            given = " and ".join(_as_what(group, is_block=group is others[0]) for group in pair)
            yield (
                f"node groups {_names(pair)} must agree on what {reserved} is, got {given}: it is either a "
                "reservation or a Capacity Block"
            )


def _shared(groups: Sequence[NodeGroup]) -> dict[str, list[NodeGroup]]:
    """Return what several groups launch into, each and all of its nodes, with these groups."""
    users: dict[str, list[NodeGroup]] = {}
    for group in groups:
        if isinstance(group.capacity, ExistingReservation | CapacityBlock):
            users.setdefault(group.capacity.capacity_reservation_id, []).append(group)
    return {reserved: those for reserved, those in users.items() if len(those) > 1}


def _users(
    groups: Sequence[NodeGroup], of: Callable[[NodeGroup], Sequence[str]]
) -> Mapping[str, Sequence[NodeGroup]]:
    users: dict[str, list[NodeGroup]] = {}
    for group in groups:
        for reserved in of(group):
            users.setdefault(reserved.rpartition("/")[2], []).append(group)  # an ARN ends with the id
    return users


def _reservations(group: NodeGroup) -> Sequence[str]:
    capacity = group.capacity
    if isinstance(capacity, ExistingReservation):
        return (capacity.capacity_reservation_id,)
    return capacity.reservations if isinstance(capacity, Prioritized) else ()


def _blocks(group: NodeGroup) -> Sequence[str]:
    capacity = group.capacity
    if isinstance(capacity, CapacityBlock):
        return (capacity.capacity_reservation_id,)
    return capacity.capacity_blocks if isinstance(capacity, Prioritized) else ()


def _as_what(group: NodeGroup, *, is_block: bool) -> str:
    if isinstance(group.capacity, Prioritized):
        return f"{'capacity_blocks' if is_block else 'reservations'} of {group.capacity.call}"
    return group.capacity.call


def _named_place(group: NodeGroup) -> str | None:
    capacity = group.capacity
    return capacity.placement_group if isinstance(capacity, ExistingReservation) else None


def _makes_a_place(group: NodeGroup) -> bool:
    return group.chosen_placement is Placement.CLUSTER and _named_place(group) is None


def _names(groups: Sequence[NodeGroup]) -> str:
    return " and ".join(repr(group.name) for group in groups)


_USER_GUIDE = "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide"

CLUSTER_RULES = (
    ClusterRule(id="sharedCount", source=f"{_USER_GUIDE}/capacity-reservations-launch.html", find=_counts_together),
    ClusterRule(
        id="sharedUnknownCount",
        source=f"{_USER_GUIDE}/capacity-reservations-launch.html",
        find=_unknown_count,
        level=Level.WARNING,
    ),
    ClusterRule(id="sharedPlacementGroup", source=f"{_USER_GUIDE}/cr-cpg.html", find=_one_placement_group),
    ClusterRule(id="sharedType", source=f"{_USER_GUIDE}/capacity-reservations-launch.html", find=_one_type),
    ClusterRule(
        id="reservationOrBlock", source=f"{_USER_GUIDE}/capacity-blocks-launch.html", find=_reservation_or_block
    ),
)
