"""What node groups demand of each other: groups that share a reservation share its instances and its place."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from cdk_training_cluster.capacity.kinds import CapacityBlock, ExistingReservation, Prioritized
from cdk_training_cluster.checks import is_unknown
from cdk_training_cluster.instance_types import InstanceTypeInfo, instance_type_info
from cdk_training_cluster.nodes.layouts import launch_layouts
from cdk_training_cluster.nodes.node_group import NodeGroup, Placement
from cdk_training_cluster.nodes.rules.rule import Level


@dataclass(frozen=True, kw_only=True)
class ClusterSituation:
    """What the rules about node groups together look at.

    Attributes:
        groups: The cluster's node groups.
        facts: Facts about types that the catalog does not have.
        public_subnet: Whether the nodes' subnet is known to be public.
    """

    groups: Sequence[NodeGroup]
    facts: Sequence[InstanceTypeInfo] = ()
    public_subnet: bool = False


@dataclass(frozen=True, kw_only=True)
class ClusterRule:
    """One thing that AWS says about node groups together.

    Attributes:
        id: The rule's name; a warning is acknowledged as `cdk-training-cluster:<id>`.
        source: Where AWS says so.
        find: Yields a sentence for each way in which the groups break the rule. What is not known before the
            deployment breaks none.
        level: What a broken rule means.
    """

    id: str
    source: str
    find: Callable[[ClusterSituation], Iterator[str]]
    level: Level = Level.ERROR


def cluster_problems(
    groups: Sequence[NodeGroup],
    rules: Sequence[ClusterRule] | None = None,
    *,
    facts: Sequence[InstanceTypeInfo] = (),
) -> list[str]:
    """Say why node groups cannot be in one cluster, a sentence each; none if they can.

    Args:
        groups: The cluster's node groups.
        rules: The rules to go by. Default: - all of them.
        facts: Facts about types that the catalog does not have. Default: - none.
    """
    situation = ClusterSituation(groups=groups, facts=facts)
    return [
        problem
        for rule in (CLUSTER_RULES if rules is None else rules)
        if rule.level is Level.ERROR
        for problem in rule.find(situation)
    ]


def cluster_warnings(
    groups: Sequence[NodeGroup],
    rules: Sequence[ClusterRule] | None = None,
    *,
    facts: Sequence[InstanceTypeInfo] = (),
    public_subnet: bool = False,
) -> Mapping[str, str]:
    """Say what of node groups that can be in one cluster will surprise: a sentence by the rule's id.

    Args:
        groups: The cluster's node groups.
        rules: The rules to go by. Default: - all of them.
        facts: Facts about types that the catalog does not have. Default: - none.
        public_subnet: Whether the nodes' subnet is known to be public. Default: - it is not.
    """
    situation = ClusterSituation(groups=groups, facts=facts, public_subnet=public_subnet)
    return {
        rule.id: " ".join(sentences)
        for rule in (CLUSTER_RULES if rules is None else rules)
        if rule.level is Level.WARNING and (sentences := list(rule.find(situation)))
    }


def _counts_together(situation: ClusterSituation) -> Iterator[str]:
    for reserved, users in _shared(situation.groups).items():
        counts, limits = [group.count for group in users], _limits(users)
        if not limits or any(is_unknown(number) for number in (*counts, *limits)):
            continue
        if sum(counts) > min(limits):
            yield (
                f"node groups {_names(users)} must have at most {min(limits)} nodes together, as many instances as "
                f"{reserved} has, got {' + '.join(map(str, counts))}: lower a count, or give one a reservation of "
                "its own"
            )


def _unknown_count(situation: ClusterSituation) -> Iterator[str]:
    for reserved, users in _shared(situation.groups).items():
        if not _limits(users):
            yield (
                f"node groups {_names(users)} share {reserved} and nobody says how many instances it has: if they "
                "are fewer than the nodes together, the groups take them from each other and none is whole; give "
                "instance_count"
            )


def _one_placement_group(situation: ClusterSituation) -> Iterator[str]:
    for reserved, users in _shared(situation.groups).items():
        places = sorted({place for group in users if (place := _named_place(group)) is not None})
        if not places or any(is_unknown(place) for place in places):
            continue
        places += [f"a new one for {group.name!r}" for group in users if _makes_a_place(group)]
        if len(places) > 1:
            yield (
                f"node groups {_names(users)} must name one placement_group for {reserved}, got "
                f"{' and '.join(places)}: a reservation is made in one; name that one, or another reservation"
            )


def _one_type(situation: ClusterSituation) -> Iterator[str]:
    told = set()
    for reserved, users in _shared(situation.groups).items():
        types = sorted({name for group in users for name in group.instance_types if not is_unknown(name)})
        if len(types) > 1:
            told.add(reserved)
            yield (
                f"node groups {_names(users)} must have one type for {reserved}, got {' and '.join(types)}: a "
                "reservation is of one type; name another for one of them"
            )
    for usage, reserved, sharers in _shared_in_turn(situation.groups):
        # Which of its types a group in turn launches into it is not known, but it is one of those sold so.
        known = [group for group in sharers if not any(map(is_unknown, group.instance_types))]
        fitting = [_sold_as(usage, group.instance_types, situation.facts) for group in known]
        if reserved not in told and fitting and not set.intersection(*map(set, fitting)):
            given = dict.fromkeys(" or ".join(names) for names in fitting)
            yield (
                f"node groups {_names(sharers)} must have a type in common for {reserved}, got "
                f"{' and '.join(given)}: a reservation is of one type; name another for one of them"
            )


def _in_turn_beside_others(situation: ClusterSituation) -> Iterator[str]:
    for _, reserved, users in _shared_in_turn(situation.groups):
        counts, limits = [group.count for group in users], _limits(users)
        if limits and (any(map(is_unknown, (*counts, *limits))) or sum(counts) <= min(limits)):
            continue
        losses = [
            _loss(group, [other for other in users if other is not group])
            for group in users
            if isinstance(group.capacity, Prioritized)
        ]
        yield (
            f"node groups {_names(users)} share {reserved}: {'; '.join(losses)}; give each its own, or reserve "
            "enough for all of them"
        )


def _loss(group: NodeGroup, others: Sequence[NodeGroup]) -> str:
    falls_back = isinstance(group.capacity, Prioritized) and group.capacity.falls_back
    return (
        f"what {_names(others)} {'uses' if len(others) == 1 else 'use'} of it {group.name!r} does not get, and "
        f"{'buys On-Demand at the full price' if falls_back else 'waits'}"
    )


def _public_subnet(situation: ClusterSituation) -> Iterator[str]:
    if not situation.public_subnet:
        return
    without = [group for group in situation.groups if _has_several_interfaces(group, situation.facts)]
    if without:
        yield (
            f"nodes of {_names(without)} have several network interfaces and a public subnet: EC2 gives them no "
            "public address there, so that without VPC endpoints they reach neither S3 nor Systems Manager and "
            "cannot be set up; give ClusterNetwork.from_subnet() a subnet behind a NAT gateway, such as one of "
            "vpc.private_subnets"
        )


def _has_several_interfaces(group: NodeGroup, facts: Sequence[InstanceTypeInfo]) -> bool:
    infos = [instance_type_info(name, facts) for name in group.instance_types]
    return any(len(layout.interfaces) > 1 for layout in launch_layouts(group, infos))


def _reservation_or_block(situation: ClusterSituation) -> Iterator[str]:
    groups = situation.groups
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


def _shared_in_turn(groups: Sequence[NodeGroup]) -> Iterator[tuple[str, str, Sequence[NodeGroup]]]:
    """Yield the usage class of what several groups launch into, at least one only as far as it goes, it, and them."""
    for usage, of in (("on-demand", _reservations), ("capacity-block", _blocks)):
        for reserved, users in _users(groups, of).items():
            if len(users) > 1 and any(isinstance(group.capacity, Prioritized) for group in users):
                yield usage, reserved, users


def _sold_as(usage: str, types: Sequence[str], facts: Sequence[InstanceTypeInfo]) -> Sequence[str]:
    """Return the types that are sold so, or of which that is not known; all, if none is: another rule says that."""
    return [name for name in types if _may_be_sold_as(usage, name, facts)] or types


def _may_be_sold_as(usage: str, name: str, facts: Sequence[InstanceTypeInfo]) -> bool:
    try:
        classes = instance_type_info(name, facts).usage_classes
    except ValueError:  # another rule says that nobody knows the type
        return True
    return not classes or usage in classes


def _limits(users: Sequence[NodeGroup]) -> Sequence[int]:
    """Return how many instances there are, as each group says that says so."""
    return [
        group.capacity.instance_count
        for group in users
        if isinstance(group.capacity, ExistingReservation | CapacityBlock)
        and group.capacity.instance_count is not None
    ]


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
    ClusterRule(
        id="sharedPrioritized",
        source="https://docs.aws.amazon.com/autoscaling/ec2/userguide/use-distribution-segments.html",
        find=_in_turn_beside_others,
        level=Level.WARNING,
    ),
    ClusterRule(
        id="publicSubnet",
        source=f"{_USER_GUIDE}/using-instance-addressing.html",
        find=_public_subnet,
        level=Level.WARNING,
    ),
    ClusterRule(id="sharedPlacementGroup", source=f"{_USER_GUIDE}/cr-cpg.html", find=_one_placement_group),
    ClusterRule(id="sharedType", source=f"{_USER_GUIDE}/capacity-reservations-launch.html", find=_one_type),
    ClusterRule(
        id="reservationOrBlock", source=f"{_USER_GUIDE}/capacity-blocks-launch.html", find=_reservation_or_block
    ),
)
