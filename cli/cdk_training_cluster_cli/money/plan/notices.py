"""What surprises on the bill: warnings that follow from the cluster, and what a plan cannot know."""

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal

from cdk_training_cluster.prices import PriceBook
from cdk_training_cluster_cli.money.plan.options import on_demand_rate
from cdk_training_cluster_cli.money.plan.shape import ClusterShape

# `use1-az1`; the ids of Local Zones name their city: `use1-atl2-az1`.
_ZONE_OF_A_REGION = re.compile(r"[a-z0-9]+-az\d+")
_LARGE = 8


def warnings(shape: ClusterShape, book: PriceBook, hours: Decimal) -> Iterator[str]:
    """Yield what a user should know before paying.

    Args:
        shape: The cluster.
        book: The prices.
        hours: How long the run takes.
    """
    for group in shape.groups:
        name = f"node group {group.name!r}"
        capacity = group.capacity
        large = [each.name for each in group.instance_types if sum(a.count for a in each.accelerators) >= _LARGE]
        if capacity.uses_spot:
            if large:
                yield (
                    f"{name} buys {large[0]} as Spot Instances: EC2 takes them back at two minutes' notice, a job "
                    "over several nodes stops with the first, and others may not be had; write checkpoints often"
                )
            for info in group.instance_types:
                seen = book.spot.get(info.name, shape.region)
                local = [] if seen is None else [zone for zone in seen.zones if not _ZONE_OF_A_REGION.fullmatch(zone)]
                if local:
                    yield (
                        f"the Spot prices of {info.name} in {shape.region} include the Local Zone {local[0]}, which "
                        f"may set the lowest; --live asks for {shape.availability_zone}"
                    )
        if capacity.is_prioritized:
            yield (
                f"{name} uses what is reserved first: each reservation and block is billed for all that it holds, "
                "whether nodes run in it or not"
            )
        elif capacity.makes_reservation or capacity.reservation_ids:
            rate = on_demand_rate([group], shape.region, book)
            cost = "its price" if rate is None else f"${rate:,.2f} an hour, ${rate * hours:,.0f} in this run"
            yield f"{name} is in a Capacity Reservation, which is billed {cost}, whether its nodes run or not"
        elif capacity.block_ids:
            yield f"{name} is in a Capacity Block, which is paid for in full beforehand; stopping saves nothing"
        if group.warm_nodes:
            price, size = book.units.nearest("ebs-gp3", shape.region), group.warm_nodes * group.root_volume_gib
            billed = "are billed then" if price is None else f"then cost ${size * price.usd:,.2f} a month"
            yield f"{name} keeps up to {group.warm_nodes} nodes while it is stopped, whose volumes {billed}"
    yield from _data(shape, book)


def low_limits(shape: ClusterShape, book: PriceBook) -> Iterator[str]:
    """Yield which limits of node groups are below every Spot price that is known for them.

    Args:
        shape: The cluster.
        book: The prices, with the Spot prices that hold for the nodes.
    """
    for group in shape.groups:
        limit = group.capacity.max_price_text if group.capacity.uses_spot else None
        seen = [each for info in group.instance_types if (each := book.spot.get(info.name, shape.region)) is not None]
        low = min((each.low for each in seen), default=None)
        if limit is not None and low is not None and Decimal(limit) < low:
            yield (
                f"node group {group.name!r} pays at most ${limit} for a Spot Instance, and the lowest price seen is "
                f"${low:f}: it may get none"
            )


def _data(shape: ClusterShape, book: PriceBook) -> Iterator[str]:
    for bucket in shape.own_buckets:
        yield (
            f"the bucket {bucket} has to be in {shape.region}: from another region each GB is billed, and nothing is "
            "imported automatically"
        )
    if shape.has_file_system:
        yield ("the file system is kept, and billed, when the cluster is stopped and when its stack is deleted")
    price = book.units.nearest("zone-to-zone", shape.region)
    each_way = "is billed" if price is None else f"costs ${price.usd:f} a GB each way"
    yield f"everything is in {shape.availability_zone}; what goes to or from another zone {each_way}"
    if shape.own_network:
        yield "the network is yours: NAT gateways and endpoints in it are billed apart from this plan"


def stand_ins(regions: Sequence[str], region: str) -> str:
    """Say that prices of other regions stand in for those that are not known.

    Args:
        regions: The other regions.
        region: The cluster's.
    """
    return f"* prices in {' and '.join(regions)} stand in where that in {region} is not known; --price states yours"
