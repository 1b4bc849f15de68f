"""What node groups demand of each other: groups that share a reservation share its instances and its place."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from ipaddress import ip_network

from cdk_training_cluster.capacity import Capacity
from cdk_training_cluster.instance_types import InstanceTypeInfo
from cdk_training_cluster.nodes.layouts import launch_layouts
from cdk_training_cluster.nodes.node_group import NodeGroup, Placement
from cdk_training_cluster.nodes.orchestrator_kind import OrchestratorKind
from cdk_training_cluster.nodes.rules.context import ClusterContext, NodeGroupContext, is_measured
from cdk_training_cluster.nodes.rules.idle_rules import measuring
from cdk_training_cluster.validation.checks import is_unknown
from cdk_training_cluster.validation.rule import Found, Level, Rules, Setting
from cdk_training_cluster.validation.words import Words

_USER_GUIDE = "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide"
_GPU_METRICS = "https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch-Agent-NVIDIA-GPU.html"

CLUSTER_RULES: Rules[ClusterContext] = Rules()


@CLUSTER_RULES.rule("nameOnce", "https://docs.aws.amazon.com/cdk/v2/guide/identifiers.html")
def _names_once(cluster: ClusterContext) -> Iterator[Found]:
    names = [group.name for group in cluster.groups]
    for name in dict.fromkeys(names):
        if names.count(name) > 1:
            last = len(names) - 1 - names[::-1].index(name)
            yield (
                ("node_groups", last, "name"),
                f"node_groups must have different names, got {name!r} {names.count(name)} times: rename all but one",
            )


@CLUSTER_RULES.rule("sharedCount", f"{_USER_GUIDE}/capacity-reservations-launch.html")
def _counts_together(cluster: ClusterContext) -> Iterator[Found]:
    for reserved, users in _shared(cluster.groups).items():
        counts, limits = [group.count for group in users], _limits(users)
        if not limits or any(is_unknown(number) for number in (*counts, *limits)):
            continue
        if sum(counts) > min(limits):
            yield (
                _at(cluster, users[-1], reserved),
                f"node groups {_names(users)} must have at most {min(limits)} nodes together, as many instances as "
                f"{reserved} has, got {' + '.join(map(str, counts))}: lower a count, or give one a reservation of "
                "its own",
            )


@CLUSTER_RULES.rule("sharedFacts", f"{_USER_GUIDE}/capacity-reservations-using.html")
def _same_facts(cluster: ClusterContext) -> Iterator[Found]:
    for reserved, users in _shared(cluster.groups).items():
        for setting in ("instance_count", "instance_platform", "availability_zone"):
            given = {group.name: getattr(group.capacity, setting) for group in users}
            known = {name: value for name, value in given.items() if value is not None and not is_unknown(value)}
            if len(set(known.values())) > 1:
                place = (*_at(cluster, users[-1], reserved)[:-1], setting)
                values = " and ".join(f"{value} for {name!r}" for name, value in known.items())
                yield (
                    place,
                    f"{setting} of {reserved} must be the same in each node group that uses it, got {values}: a "
                    "reservation has one; correct the others",
                )


@CLUSTER_RULES.rule("sharedUnknownCount", f"{_USER_GUIDE}/capacity-reservations-launch.html", level=Level.WARNING)
def _unknown_count(cluster: ClusterContext) -> Iterator[str]:
    for reserved, users in _shared(cluster.groups).items():
        if not _limits(users):
            yield (
                f"node groups {_names(users)} share {reserved} and its number of instances is not given: if they "
                "are fewer than the nodes together, the groups take them from each other and none is whole; give "
                "instance_count"
            )


@CLUSTER_RULES.rule("sharedPlacementGroup", f"{_USER_GUIDE}/cr-cpg.html")
def _one_placement_group(cluster: ClusterContext) -> Iterator[Found]:
    for reserved, users in _shared(cluster.groups).items():
        places = sorted({place for group in users if (place := group.capacity.placement_group) is not None})
        if not places or any(is_unknown(place) for place in places):
            continue
        places += [f"a new one for {group.name!r}" for group in users if _makes_a_place(group)]
        if len(places) > 1:
            yield (
                _at(cluster, users[-1], reserved),
                f"node groups {_names(users)} must name one placement_group for {reserved}, got "
                f"{' and '.join(places)}: a reservation is made in one; name that one, or another reservation",
            )


@CLUSTER_RULES.rule("sharedType", f"{_USER_GUIDE}/capacity-reservations-launch.html")
def _one_type(cluster: ClusterContext) -> Iterator[Found]:
    found = set()
    for reserved, users in _shared(cluster.groups).items():
        types = sorted({name for group in users for name in group.instance_types if not is_unknown(name)})
        if len(types) > 1:
            found.add(reserved)
            yield (
                _at(cluster, users[-1], reserved),
                f"node groups {_names(users)} must have one type for {reserved}, got {' and '.join(types)}: a "
                "reservation is of one type; name another for one of them",
            )
    for usage, reserved, sharers in _shared_in_turn(cluster.groups):
        # Which of its types a group in turn launches into it is not known, but it is one of those sold so.
        known = [group for group in sharers if not any(map(is_unknown, group.instance_types))]
        fitting = [_sold_as(usage, group.instance_types, cluster.infos) for group in known]
        if reserved not in found and fitting and not set.intersection(*map(set, fitting)):
            given = dict.fromkeys(" or ".join(names) for names in fitting)
            yield (
                _at(cluster, sharers[-1], reserved),
                f"node groups {_names(sharers)} must have a type in common for {reserved}, got "
                f"{' and '.join(given)}: a reservation is of one type; name another for one of them",
            )


@CLUSTER_RULES.rule(
    "sharedPrioritized",
    "https://docs.aws.amazon.com/autoscaling/ec2/userguide/use-distribution-segments.html",
    level=Level.WARNING,
)
def _in_turn_beside_others(cluster: ClusterContext) -> Iterator[str]:
    for _, reserved, users in _shared_in_turn(cluster.groups):
        counts, limits = [group.count for group in users], _limits(users)
        if limits and (any(map(is_unknown, (*counts, *limits))) or sum(counts) <= min(limits)):
            continue
        losses = [
            _loss(group, [other for other in users if other is not group])
            for group in users
            if group.capacity.is_prioritized
        ]
        yield (
            f"node groups {_names(users)} share {reserved}: {'; '.join(losses)}; give each its own, or reserve "
            "enough for all of them"
        )


def _loss(group: NodeGroup, others: Sequence[NodeGroup]) -> str:
    return (
        f"what {_names(others)} {'uses' if len(others) == 1 else 'use'} of it {group.name!r} does not get, and "
        f"{'buys On-Demand at the full price' if group.capacity.falls_back else 'waits'}"
    )


@CLUSTER_RULES.rule("idleUnmeasured", _GPU_METRICS, level=Level.WARNING)
def _unmeasured(cluster: ClusterContext) -> Iterator[str]:
    if cluster.policy is not None and cluster.policy.is_off:
        return
    for nodes in cluster.nodes:
        unmeasured = [
            info.name for info in nodes.infos if info.is_accelerated and not is_measured(nodes.group, [info])
        ]
        if unmeasured and nodes.group.idle_policy is None:
            yield (
                f"node group {nodes.group.name!r}: the accelerators of {' and '.join(unmeasured)} report no "
                "utilization: idle nodes are neither reported nor stopped; confirm with "
                f"{cluster.words.set_idle_off}{measuring(nodes)}"
            )


@CLUSTER_RULES.rule("publicSubnet", f"{_USER_GUIDE}/using-instance-addressing.html", level=Level.WARNING)
def _public_subnet(cluster: ClusterContext) -> Iterator[str]:
    if not cluster.public_subnet:
        return
    without = [nodes.group for nodes in cluster.nodes if _has_several_interfaces(nodes)]
    if without:
        yield (
            f"nodes of {_names(without)} have several network interfaces and a public subnet: EC2 gives them no "
            "public address there, so that without VPC endpoints they reach neither S3 nor Systems Manager and "
            "cannot be set up; give ClusterNetwork.from_subnet() a subnet behind a NAT gateway, such as one of "
            "vpc.private_subnets"
        )


# AWS keeps the first four addresses of a subnet and the last one.
_ADDRESSES_OF_AWS = 5


@CLUSTER_RULES.rule("addresses", "https://docs.aws.amazon.com/vpc/latest/userguide/subnet-sizing.html")
def _addresses(cluster: ClusterContext) -> Iterator[Found]:
    if cluster.node_range is None or any(is_unknown(group.count) for group in cluster.groups):
        return
    wanted = sum(nodes.group.count * _addresses_of(nodes, cluster.orchestrator) for nodes in cluster.nodes)
    free = ip_network(cluster.node_range).num_addresses - _ADDRESSES_OF_AWS
    if wanted > free:
        largest = max(range(len(cluster.nodes)), key=lambda at: cluster.groups[at].count)
        yield (
            ("node_groups", largest, "count"),
            f"the network interfaces of all nodes need {wanted} IP addresses, and the nodes' subnet "
            f"{cluster.node_range} has {free}: lower count, or give the network a larger {cluster.words.vpc_range}",
        )


def _addresses_of(nodes: NodeGroupContext, orchestrator: OrchestratorKind) -> int:
    """Return how many addresses a node takes; of several types the fewest."""
    try:
        layouts = launch_layouts(nodes.group, nodes.infos, orchestrator)
    except ValueError:  # a rule about the group's interfaces reports it
        return 0
    # An EFA-only interface has no IP address. https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa.html
    return min(
        (sum(each.interface_type != "efa-only" for each in layout.interfaces) for layout in layouts), default=0
    )


def _has_several_interfaces(nodes: NodeGroupContext) -> bool:
    return any(len(layout.interfaces) > 1 for layout in launch_layouts(nodes.group, nodes.infos))


@CLUSTER_RULES.rule("reservationOrBlock", f"{_USER_GUIDE}/capacity-blocks-launch.html")
def _reservation_or_block(cluster: ClusterContext) -> Iterator[Found]:
    groups = cluster.groups
    reservations = _users(groups, lambda capacity: capacity.reservation_ids)
    blocks = _users(groups, lambda capacity: capacity.block_ids)
    for reserved, users in reservations.items():
        others = blocks.get(reserved)
        if others:
            pair = sorted((users[0], others[0]), key=groups.index)
            given = " and ".join(_as_what(group, cluster.words, is_block=group is others[0]) for group in pair)
            yield (
                _at(cluster, pair[-1], reserved),
                f"node groups {_names(pair)} must agree on what {reserved} is, got {given}: it is either a "
                "reservation or a Capacity Block",
            )


def _shared(groups: Sequence[NodeGroup]) -> dict[str, list[NodeGroup]]:
    """Return what several groups launch into, each and all of its nodes, with these groups."""
    users: dict[str, list[NodeGroup]] = {}
    for group in groups:
        if group.capacity.capacity_reservation_id is not None:
            users.setdefault(group.capacity.capacity_reservation_id, []).append(group)
    return {reserved: those for reserved, those in users.items() if len(those) > 1}


def _shared_in_turn(groups: Sequence[NodeGroup]) -> Iterator[tuple[str, str, Sequence[NodeGroup]]]:
    """Yield the usage class of what several groups launch into, at least one only as far as it goes, it, and them."""
    by_usage = (
        ("on-demand", _users(groups, lambda capacity: capacity.reservation_ids)),
        ("capacity-block", _users(groups, lambda capacity: capacity.block_ids)),
    )
    for usage, found in by_usage:
        for reserved, users in found.items():
            if len(users) > 1 and any(group.capacity.is_prioritized for group in users):
                yield usage, reserved, users


def _sold_as(usage: str, types: Sequence[str], infos: Mapping[str, InstanceTypeInfo]) -> Sequence[str]:
    """Return the types that are sold so, or of which that is not known; all, if none is: another rule says that."""
    return [
        name
        for name in types
        if name not in infos or not infos[name].usage_classes or usage in infos[name].usage_classes
    ] or types


def _limits(users: Sequence[NodeGroup]) -> Sequence[int]:
    """Return how many instances there are, as each group says that says so."""
    return [group.capacity.instance_count for group in users if group.capacity.instance_count is not None]


def _users(
    groups: Sequence[NodeGroup], ids: Callable[[Capacity], Sequence[str]]
) -> Mapping[str, Sequence[NodeGroup]]:
    users: dict[str, list[NodeGroup]] = {}
    for group in groups:
        for reserved in ids(group.capacity):
            users.setdefault(reserved, []).append(group)
    return users


def _as_what(group: NodeGroup, words: Words, *, is_block: bool) -> str:
    if group.capacity.is_prioritized:
        return f"{'capacity_blocks' if is_block else 'reservations'} of {words.call(group.capacity.call)}"
    return words.call(group.capacity.call)


def _makes_a_place(group: NodeGroup) -> bool:
    return group.chosen_placement is Placement.CLUSTER and group.capacity.placement_group is None


def _at(cluster: ClusterContext, group: NodeGroup, reserved: str) -> Setting:
    place = next(place for place, each in enumerate(cluster.groups) if each is group)
    capacity = group.capacity
    if capacity.is_prioritized:
        setting = "reservations" if reserved in capacity.reservation_ids else "capacity_blocks"
    else:
        setting = "capacity_reservation_id"
    return ("node_groups", place, "capacity", setting)


def _names(groups: Sequence[NodeGroup]) -> str:
    return " and ".join(repr(group.name) for group in groups)
