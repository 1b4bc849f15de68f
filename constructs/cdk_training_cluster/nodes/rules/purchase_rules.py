"""What AWS says about reservations, Capacity Blocks, Spot and warm pools, and what they exclude."""

import re
from collections.abc import Iterator

from cdk_training_cluster.capacity import OnIdle
from cdk_training_cluster.checks import is_unknown
from cdk_training_cluster.nodes.node_group import Placement
from cdk_training_cluster.nodes.rules.rule import Level, NodeGroupRule, Situation
from cdk_training_cluster.validation.rule import Found, Rule

_MOST_IN_A_BLOCK = 64
_MOST_IN_A_RESERVATION = 1000

# us-west-2a and the Local Zone us-west-2-lax-1a are of us-west-2.
_REGION_OF_A_ZONE = re.compile(r"[a-z]{2,}(?:-[a-z]+)+-\d+")

# What AWS's Deep Learning images are billed as.
_PUBLIC_IMAGE_PLATFORM = "Linux/UNIX"


def _no_block_in_a_placement_group(situation: Situation) -> Iterator[str]:
    capacity, words = situation.group.capacity, situation.words
    if capacity.block_ids and situation.group.chosen_placement is Placement.CLUSTER:
        yield (
            f"placement must be left out, or {words.value(Placement.NONE)}, for {situation.call} with a Capacity "
            f"Block, got {words.value(Placement.CLUSTER)}: blocks do not support placement groups, and EC2 puts "
            "their instances close together by itself"
        )


def _placement_strategy(situation: Situation) -> Iterator[str]:
    if situation.group.chosen_placement is Placement.NONE:
        return
    for info in situation.infos:
        if not info.allows_placement(Placement.CLUSTER.value):
            yield (
                f"{info.name} cannot be launched into a cluster placement group: set placement to "
                f"{situation.words.value(Placement.NONE)}, or choose another type"
            )


def _reservation_outside_the_placement_group(situation: Situation) -> Iterator[str]:
    capacity = situation.group.capacity
    outside = capacity.reservation_ids and not capacity.block_ids and capacity.placement_group is None
    if outside and situation.group.chosen_placement is Placement.CLUSTER:
        yield (
            "the nodes go into a placement group that the reservation was not made in: EC2 may find too little of "
            "the reserved capacity close together, or launch a part of the nodes; leave placement out, or reserve "
            "inside a placement group and name it"
        )


def _several_types_in_a_placement_group(situation: Situation) -> Iterator[str]:
    if situation.group.chosen_placement is Placement.CLUSTER and len(situation.infos) > 1:
        yield (
            "several instance types in one cluster placement group make it likelier that EC2 has too little "
            f"capacity: name one type, or set placement to {situation.words.value(Placement.NONE)}"
        )


def _block_size(situation: Situation) -> Iterator[Found]:
    capacity, count = situation.group.capacity, situation.group.count
    if capacity.block_id is None:
        return
    given = capacity.instance_count
    for info in situation.infos:
        sizes = info.ultraserver_sizes
        most = max(sizes, default=_MOST_IN_A_BLOCK)
        if given is not None and not is_unknown(given):
            # The count is checked against it by a rule of its own.
            if sizes and given not in sizes:
                yield (
                    ("capacity", "instance_count"),
                    f"instance_count must be {' or '.join(map(str, sizes))} for a Capacity Block of {info.name}, "
                    f"which is sold as a whole UltraServer, got {given}",
                )
            elif given > most:
                yield (
                    ("capacity", "instance_count"),
                    f"instance_count must be at most {most}, as many as a Capacity Block can have, got {given}",
                )
        elif not is_unknown(count) and count > most:
            yield (
                f"count must be at most {most}, as many as a Capacity Block of {info.name} can have, got {count}: "
                "make a node group for each block"
            )


def _count_fits_what_is_reserved(situation: Situation) -> Iterator[str]:
    capacity, count = situation.group.capacity, situation.group.count
    if capacity.instance_count is None:
        return
    if is_unknown(count) or is_unknown(capacity.instance_count):
        return
    if count > capacity.instance_count:
        yield (
            f"count must be at most {capacity.instance_count}, as many instances as "
            f"{capacity.capacity_reservation_id} has, got {count}: lower count, or correct instance_count"
        )


def _reservation_size(situation: Situation) -> Iterator[str]:
    group = situation.group
    if not group.capacity.makes_reservation or is_unknown(group.count):
        return
    if group.count > _MOST_IN_A_RESERVATION:
        yield (
            f"count must be at most {_MOST_IN_A_RESERVATION} for {situation.call}, got {group.count}: make a second "
            "node group"
        )


def _something_to_release(situation: Situation) -> Iterator[str]:
    group = situation.group
    if group.capacity.releases and group.count == 1:
        yield (
            f"on_idle must be {situation.words.value(OnIdle.KEEP)} for a node group of 1 node: a reservation "
            "cannot be lowered below 1 instance; leave on_idle out"
        )


def _zone(situation: Situation) -> Iterator[str]:
    capacity, zone = situation.group.capacity, situation.availability_zone
    reserved = capacity.availability_zone
    if reserved is None or zone is None or is_unknown(reserved) or is_unknown(zone):
        return
    if reserved != zone:
        yield (
            f"{situation.words.part('availability_zone', capacity.call)} must be the cluster's, {zone}, got "
            f"{reserved}: what is reserved in a zone cannot be used in another; make the cluster there, or "
            "reserve here"
        )


def _region(situation: Situation) -> Iterator[Found]:
    capacity, zone = situation.group.capacity, situation.availability_zone
    if zone is None:
        return
    # What CDK puts in the place of a zone that it has not looked up yet has no region either.
    home = _REGION_OF_A_ZONE.match(zone)
    if home is None or is_unknown(zone):
        return
    for setting, given in (("reservations", capacity.reservations), ("capacity_blocks", capacity.capacity_blocks)):
        for one in given:
            if not one.startswith("arn:") or is_unknown(one) or one.split(":")[3] == home[0]:
                continue
            yield (
                ("capacity", setting),
                f"{situation.words.part(setting, capacity.call)} must be in the cluster's region, {home[0]}, "
                f"got {one}: what is reserved in a region cannot be used in another; leave it out, or make the "
                "cluster there",
            )


def _platform(situation: Situation) -> Iterator[str]:
    capacity = situation.group.capacity
    if situation.group.machine_image is not None:
        return
    platform = capacity.instance_platform
    if platform not in (None, _PUBLIC_IMAGE_PLATFORM) and not is_unknown(platform):
        yield (
            f"instance_platform must be {_PUBLIC_IMAGE_PLATFORM!r} for AWS's Deep Learning images, got {platform!r}: "
            f"an instance is launched into a reservation of its own platform only; give {situation.words.image} of "
            "that platform, or leave instance_platform out"
        )


def _blocks_before_on_demand(situation: Situation) -> Iterator[str]:
    capacity, words = situation.group.capacity, situation.words
    if capacity.capacity_blocks and capacity.falls_back:
        yield (
            "EC2 terminates the nodes of a Capacity Block before its end, without the notice and the orderly end "
            f"that {words.call('Capacity.capacity_block()')} gives, and On-Demand Instances at full price take their "
            f"place until the group is stopped: set on_demand to {words.value(False)}, or keep the block in a node "
            "group of its own"
        )


def _release_beside_a_warm_pool(situation: Situation) -> Iterator[str]:
    group = situation.group
    if group.capacity.releases and group.warm_pool is not None:
        yield (
            "while the group is stopped its reservation is lowered, and its warm pool can start or renew no node in "
            "what is left: leave warm_pool out, or keep the reservation"
        )


def _spot_fleet(situation: Situation) -> Iterator[str]:
    if situation.group.capacity.owned_by_spot_fleet:
        yield (
            "AWS strongly discourages Spot Fleet, a legacy API with no planned investment, and several network "
            f"cards through it are not proven: {situation.words.call('Capacity.spot()')} buys the same instances "
            "with an Auto Scaling group"
        )


def _warm_pool_is_allowed(situation: Situation) -> Iterator[str]:
    group = situation.group
    if group.warm_pool is not None and not group.capacity.allows_warm_pool:
        yield (
            f"warm_pool must be left out with {situation.call}: Auto Scaling keeps no warm pool of Spot "
            "Instances, Capacity Blocks or distribution segments"
        )


def _warm_pool_size(situation: Situation) -> Iterator[str]:
    group = situation.group
    if group.warm_pool is None or is_unknown(group.warm_pool.size) or is_unknown(group.count):
        return
    if group.warm_pool.size > group.count:
        yield (
            f"{situation.words.part('size', 'warm_pool')} must be at most the group's count, {group.count}, got "
            f"{group.warm_pool.size}: no more nodes are ever needed"
        )


def _warm_pool_root(situation: Situation) -> Iterator[str]:
    if situation.group.warm_pool is None:
        return
    for info in situation.infos:
        if "ebs" not in info.supported_root_device_types:
            yield f"warm_pool must be left out for {info.name}: a node without an EBS root volume cannot be stopped"


_USER_GUIDE = "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide"
_WARM_POOLS = "https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-warm-pools.html"

PURCHASE_RULES: tuple[NodeGroupRule, ...] = (
    Rule(
        id="blockPlacement",
        setting=("placement",),
        source=f"{_USER_GUIDE}/ec2-capacity-blocks.html#capacity-blocks-considerations",
        find=_no_block_in_a_placement_group,
    ),
    Rule(
        id="placementStrategy",
        setting=("placement",),
        source=f"{_USER_GUIDE}/placement-strategies.html#placement-groups-cluster",
        find=_placement_strategy,
    ),
    Rule(
        id="reservationOutsidePlacementGroup",
        source=f"{_USER_GUIDE}/cr-cpg.html",
        find=_reservation_outside_the_placement_group,
        level=Level.WARNING,
    ),
    Rule(
        id="severalTypesInPlacementGroup",
        source=f"{_USER_GUIDE}/placement-strategies.html#placement-groups-cluster",
        find=_several_types_in_a_placement_group,
        level=Level.WARNING,
    ),
    Rule(id="blockSize", setting=("count",), source=f"{_USER_GUIDE}/capacity-blocks-how.html", find=_block_size),
    Rule(
        id="reservedCount",
        setting=("count",),
        source=f"{_USER_GUIDE}/capacity-reservations-launch.html",
        find=_count_fits_what_is_reserved,
    ),
    Rule(
        id="reservationSize",
        setting=("count",),
        source="https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_CreateCapacityReservation.html",
        find=_reservation_size,
    ),
    Rule(
        id="release",
        setting=("capacity", "on_idle"),
        source="https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_CreateCapacityReservation.html",
        find=_something_to_release,
    ),
    Rule(
        id="zone",
        setting=("capacity", "availability_zone"),
        source=f"{_USER_GUIDE}/capacity-reservations-launch.html",
        find=_zone,
    ),
    Rule(id="reservedRegion", source=f"{_USER_GUIDE}/capacity-reservation-sharing.html", find=_region),
    Rule(
        id="platform",
        setting=("capacity", "instance_platform"),
        source=f"{_USER_GUIDE}/capacity-reservations-launch.html",
        find=_platform,
    ),
    Rule(
        id="prioritizedBlocks",
        source=f"{_USER_GUIDE}/cr-groups-lifecycle.html",
        find=_blocks_before_on_demand,
        level=Level.WARNING,
    ),
    Rule(
        id="releaseWarmPool",
        source=_WARM_POOLS,
        find=_release_beside_a_warm_pool,
        level=Level.WARNING,
    ),
    Rule(
        id="spotFleet",
        source="https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_RequestSpotFleet.html",
        find=_spot_fleet,
        level=Level.WARNING,
    ),
    Rule(
        id="warmPool",
        setting=("warm_pool",),
        source=f"{_WARM_POOLS}#warm-pools-limitations",
        find=_warm_pool_is_allowed,
    ),
    Rule(id="warmPoolSize", setting=("warm_pool", "size"), source=_WARM_POOLS, find=_warm_pool_size),
    Rule(
        id="warmPoolRoot",
        setting=("warm_pool",),
        source=f"{_WARM_POOLS}#warm-pools-limitations",
        find=_warm_pool_root,
    ),
)
