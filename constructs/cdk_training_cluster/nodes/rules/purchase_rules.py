"""What AWS says about reservations, Capacity Blocks, Spot and warm pools, and what they exclude."""

import re
from collections.abc import Iterator

from cdk_training_cluster.capacity import OnIdle
from cdk_training_cluster.nodes.layouts import wants_efa
from cdk_training_cluster.nodes.node_group import Placement
from cdk_training_cluster.nodes.rules.context import NodeGroupContext
from cdk_training_cluster.validation.checks import is_unknown
from cdk_training_cluster.validation.rule import Found, Level, Rules

_MOST_IN_A_BLOCK = 64
_MOST_IN_A_RESERVATION = 1000

# us-west-2a and the Local Zone us-west-2-lax-1a are of us-west-2.
_REGION_OF_A_ZONE = re.compile(r"[a-z]{2,}(?:-[a-z]+)+-\d+")

# What AWS's Deep Learning images are billed as.
_PUBLIC_IMAGE_PLATFORM = "Linux/UNIX"


_USER_GUIDE = "https://docs.aws.amazon.com/AWSEC2/latest/UserGuide"
_WARM_POOLS = "https://docs.aws.amazon.com/autoscaling/ec2/userguide/ec2-auto-scaling-warm-pools.html"

PURCHASE_RULES: Rules[NodeGroupContext] = Rules()


@PURCHASE_RULES.rule(
    "blockPlacement", f"{_USER_GUIDE}/ec2-capacity-blocks.html#capacity-blocks-considerations", "placement"
)
def _no_block_in_a_placement_group(context: NodeGroupContext) -> Iterator[str]:
    capacity, words = context.group.capacity, context.words
    if capacity.block_ids and context.group.chosen_placement is Placement.CLUSTER:
        yield (
            f"placement must be left out, or {words.value(Placement.NONE)}, for {context.call} with a Capacity "
            f"Block, got {words.value(Placement.CLUSTER)}: blocks do not support placement groups, and EC2 puts "
            "their instances close together by itself"
        )


@PURCHASE_RULES.rule(
    "placementStrategy", f"{_USER_GUIDE}/placement-strategies.html#placement-groups-cluster", "placement"
)
def _placement_strategy(context: NodeGroupContext) -> Iterator[str]:
    if context.group.chosen_placement is Placement.NONE:
        return
    for info in context.infos:
        if not info.allows_placement(Placement.CLUSTER.value):
            yield (
                f"{info.name} cannot be launched into a cluster placement group: set placement to "
                f"{context.words.value(Placement.NONE)}, or choose another type"
            )


@PURCHASE_RULES.rule("reservationOutsidePlacementGroup", f"{_USER_GUIDE}/cr-cpg.html", level=Level.WARNING)
def _reservation_outside_the_placement_group(context: NodeGroupContext) -> Iterator[str]:
    capacity = context.group.capacity
    outside = capacity.reservation_ids and not capacity.block_ids and capacity.placement_group is None
    if outside and context.group.chosen_placement is Placement.CLUSTER:
        yield (
            "the nodes go into a placement group that the reservation was not made in: EC2 may find too little of "
            "the reserved capacity close together, or launch a part of the nodes; leave placement out, or reserve "
            "inside a placement group and name it"
        )


@PURCHASE_RULES.rule(
    "severalTypesInPlacementGroup",
    f"{_USER_GUIDE}/placement-strategies.html#placement-groups-cluster",
    level=Level.WARNING,
)
def _several_types_in_a_placement_group(context: NodeGroupContext) -> Iterator[str]:
    if context.group.chosen_placement is Placement.CLUSTER and len(context.infos) > 1:
        yield (
            "several instance types in one cluster placement group make it likelier that EC2 has too little "
            f"capacity: name one type, or set placement to {context.words.value(Placement.NONE)}"
        )


@PURCHASE_RULES.rule(
    "noPlacementGroup",
    f"{_USER_GUIDE}/placement-strategies.html#placement-groups-cluster",
    level=Level.WARNING,
)
def _apart(context: NodeGroupContext) -> Iterator[str]:
    group = context.group
    alone = context.orchestrator.traits.is_hyperpod or group.gpu_sharing is not None
    # A reservation in a placement group decides the placement of the nodes that use it.
    is_chosen = group.placement is Placement.NONE and group.capacity.keeps_together
    if alone or not is_chosen or group.capacity.placement_group is not None:
        return
    placeable = [info for info in context.infos if info.allows_placement(Placement.CLUSTER.value)]
    together = [info.name for info in placeable if wants_efa(group, info)]
    if together and (is_unknown(group.count) or group.count > 1):
        yield (
            f"placement is {context.words.value(Placement.NONE)} for {' and '.join(together)} with Elastic Fabric "
            "Adapters: EC2 may place the nodes far apart, with less bandwidth and more latency between them; leave "
            "placement out unless they work alone"
        )


@PURCHASE_RULES.rule("blockSize", f"{_USER_GUIDE}/capacity-blocks-how.html", "count")
def _block_size(context: NodeGroupContext) -> Iterator[Found]:
    capacity, count = context.group.capacity, context.group.count
    if capacity.block_id is None:
        return
    given = capacity.instance_count
    for info in context.infos:
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


@PURCHASE_RULES.rule("reservedCount", f"{_USER_GUIDE}/capacity-reservations-launch.html", "count")
def _count_fits_what_is_reserved(context: NodeGroupContext) -> Iterator[str]:
    capacity, count = context.group.capacity, context.group.count
    if capacity.instance_count is None:
        return
    if is_unknown(count) or is_unknown(capacity.instance_count):
        return
    if count > capacity.instance_count:
        yield (
            f"count must be at most {capacity.instance_count}, as many instances as "
            f"{capacity.capacity_reservation_id} has, got {count}: lower count, or correct instance_count"
        )


@PURCHASE_RULES.rule(
    "reservationSize",
    "https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_CreateCapacityReservation.html",
    "count",
)
def _reservation_size(context: NodeGroupContext) -> Iterator[str]:
    group = context.group
    if not group.capacity.makes_reservation or is_unknown(group.count):
        return
    if group.count > _MOST_IN_A_RESERVATION:
        yield (
            f"count must be at most {_MOST_IN_A_RESERVATION} for {context.call}, got {group.count}: make a second "
            "node group"
        )


@PURCHASE_RULES.rule(
    "release",
    "https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_CreateCapacityReservation.html",
    "capacity",
    "on_idle",
)
def _something_to_release(context: NodeGroupContext) -> Iterator[str]:
    group = context.group
    if group.capacity.releases and group.count == 1:
        yield (
            f"on_idle must be {context.words.value(OnIdle.KEEP)} for a node group of 1 node: a reservation "
            "cannot be lowered below 1 instance; leave on_idle out"
        )


@PURCHASE_RULES.rule("zone", f"{_USER_GUIDE}/capacity-reservations-launch.html", "capacity", "availability_zone")
def _zone(context: NodeGroupContext) -> Iterator[str]:
    capacity, zone = context.group.capacity, context.availability_zone
    reserved = capacity.availability_zone
    if reserved is None or zone is None or is_unknown(reserved) or is_unknown(zone):
        return
    if reserved != zone:
        yield (
            f"{context.words.part('availability_zone', capacity.call)} must be the cluster's, {zone}, got "
            f"{reserved}: what is reserved in a zone cannot be used in another; make the cluster there, or "
            "reserve here"
        )


@PURCHASE_RULES.rule("reservedRegion", f"{_USER_GUIDE}/capacity-reservation-sharing.html")
def _region(context: NodeGroupContext) -> Iterator[Found]:
    capacity, zone = context.group.capacity, context.availability_zone
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
                f"{context.words.part(setting, capacity.call)} must be in the cluster's region, {home[0]}, "
                f"got {one}: what is reserved in a region cannot be used in another; leave it out, or make the "
                "cluster there",
            )


@PURCHASE_RULES.rule("platform", f"{_USER_GUIDE}/capacity-reservations-launch.html", "capacity", "instance_platform")
def _platform(context: NodeGroupContext) -> Iterator[str]:
    capacity = context.group.capacity
    if context.group.machine_image is not None:
        return
    platform = capacity.instance_platform
    if platform not in (None, _PUBLIC_IMAGE_PLATFORM) and not is_unknown(platform):
        yield (
            f"instance_platform must be {_PUBLIC_IMAGE_PLATFORM!r} for AWS's Deep Learning images, got {platform!r}: "
            f"an instance is launched into a reservation of its own platform only; give {context.words.image} of "
            "that platform, or leave instance_platform out"
        )


@PURCHASE_RULES.rule("prioritizedBlocks", f"{_USER_GUIDE}/cr-groups-lifecycle.html", level=Level.WARNING)
def _blocks_before_on_demand(context: NodeGroupContext) -> Iterator[str]:
    capacity, words = context.group.capacity, context.words
    if capacity.capacity_blocks and capacity.falls_back:
        yield (
            "EC2 terminates the nodes of a Capacity Block before its end, without the notice and the orderly end "
            f"that {words.call('Capacity.capacity_block()')} gives, and On-Demand Instances at full price take their "
            f"place until the group is stopped: set on_demand to {words.value(False)}, or keep the block in a node "
            "group of its own"
        )


@PURCHASE_RULES.rule("releaseWarmPool", _WARM_POOLS, level=Level.WARNING)
def _release_beside_a_warm_pool(context: NodeGroupContext) -> Iterator[str]:
    group = context.group
    if group.capacity.releases and group.warm_pool is not None:
        yield (
            "while the group is stopped its reservation is lowered, and its warm pool can start or renew no node in "
            "what is left: leave warm_pool out, or keep the reservation"
        )


@PURCHASE_RULES.rule(
    "spotFleet",
    "https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_RequestSpotFleet.html",
    level=Level.WARNING,
)
def _spot_fleet(context: NodeGroupContext) -> Iterator[str]:
    if context.group.capacity.owned_by_spot_fleet:
        yield (
            "AWS strongly discourages Spot Fleet, a legacy API with no planned investment, and several network "
            f"cards through it are not proven: {context.words.call('Capacity.spot()')} buys the same instances "
            "with an Auto Scaling group"
        )


@PURCHASE_RULES.rule("warmPool", f"{_WARM_POOLS}#warm-pools-limitations", "warm_pool")
def _warm_pool_is_allowed(context: NodeGroupContext) -> Iterator[str]:
    group = context.group
    if group.warm_pool is not None and not group.capacity.allows_warm_pool:
        yield (
            f"warm_pool must be left out with {context.call}: Auto Scaling keeps no warm pool of Spot "
            "Instances, Capacity Blocks or distribution segments"
        )


@PURCHASE_RULES.rule("warmPoolSize", _WARM_POOLS, "warm_pool", "size")
def _warm_pool_size(context: NodeGroupContext) -> Iterator[str]:
    group = context.group
    if group.warm_pool is None or is_unknown(group.warm_pool.size) or is_unknown(group.count):
        return
    if group.warm_pool.size > group.count:
        yield (
            f"{context.words.part('size', 'warm_pool')} must be at most the group's count, {group.count}, got "
            f"{group.warm_pool.size}: no more nodes are ever needed"
        )


@PURCHASE_RULES.rule("warmPoolRoot", f"{_WARM_POOLS}#warm-pools-limitations", "warm_pool")
def _warm_pool_root(context: NodeGroupContext) -> Iterator[str]:
    if context.group.warm_pool is None:
        return
    for info in context.infos:
        if "ebs" not in info.supported_root_device_types:
            yield f"warm_pool must be left out for {info.name}: a node without an EBS root volume cannot be stopped"
