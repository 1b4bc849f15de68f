"""What can be had for a need: instance types with their prices and regions, and the ways to buy one."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from math import ceil

from cdk_training_cluster import InstanceTypeInfo
from cdk_training_cluster.instance_types import AcceleratorKind, all_instance_types
from cdk_training_cluster.nodes.images import public_image
from cdk_training_cluster.prices import PriceBook
from cdk_training_cluster_cli.core.output import usd
from cdk_training_cluster_cli.money.plan.assumptions import Assumptions

_MIB_IN_GIB = 1024
_ON_DEMAND, _SPOT, _BLOCK = "on-demand", "spot", "capacity-block"
# AWS sells Inferentia for inference: https://docs.aws.amazon.com/ec2/latest/instancetypes/ac.html
_INFERENCE_FAMILIES = ("inf1.", "inf2.")


@dataclass(frozen=True, kw_only=True)
class Offer:
    """Nodes of an instance type that meet a need.

    Attributes:
        info: What is known of the type.
        nodes: How many it takes.
        usd: What all of them cost an hour, on demand. None: the price is unknown.
        price_region: The region whose price that is.
        regions: The regions whose price is known, so that they sell the type.
    """

    info: InstanceTypeInfo
    nodes: int
    usd: Decimal | None
    price_region: str
    regions: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Way:
    """A way to buy nodes.

    Attributes:
        name: Its word in a cluster file.
        told: What is billed, and what is promised.
        takes_id: Whether it needs the id of a reservation or block that exists.
        rates: What all nodes cost an hour, at the lowest and at the highest price seen. None: unknown.
        sold: How they are sold at that price, with the region whose price it is. Without a price: why there is none.
        hours: How long the run takes.
    """

    name: str
    told: str
    sold: str
    takes_id: bool = False
    rates: tuple[Decimal, Decimal] | None = None
    hours: Decimal = Decimal(0)

    @property
    def price(self) -> str:
        """What all nodes cost an hour, as text."""
        return f"unknown: {self.sold}" if self.rates is None else f"{_range(self.rates, '$')} an hour {self.sold}"

    @property
    def price_of_run(self) -> str:
        """What they cost in the run, in USD, as text."""
        return usd(None) if self.rates is None else _range(tuple(each * self.hours for each in self.rates))


def _range(prices: Sequence[Decimal], sign: str = "") -> str:
    return " to ".join(f"{sign}{each}" for each in dict.fromkeys(map(usd, prices)))


def accelerators(info: InstanceTypeInfo) -> tuple[int, float]:
    """Return how many whole accelerators a type has, and the memory of each in GiB.

    Args:
        info: What is known of the type.
    """
    whole = [each for each in info.accelerators if each.fraction == 1]
    kinds = [each for each in whole if each.kind in (AcceleratorKind.GPU, AcceleratorKind.NEURON)]
    return sum(each.count for each in kinds), min((each.memory_mib for each in kinds), default=0) / _MIB_IN_GIB


def offers(count: int, memory_gib: float, region: str, book: PriceBook) -> Sequence[Offer]:
    """Return what trains on so many accelerators, the cheapest first and those without a known price last.

    Several nodes without the Elastic Fabric Adapter come after everything else: the network between them holds up a
    job that they share.

    Args:
        count: How many accelerators are needed together.
        memory_gib: How much memory each needs, in GiB.
        region: The region whose prices count.
        book: The prices.
    """
    found = []
    for info in all_instance_types():
        each, memory = accelerators(info)
        if info.name.startswith(_INFERENCE_FAMILIES):
            continue
        # A type that AWS publishes no image for needs one of the user's own.
        if each and memory >= memory_gib and public_image(info) is not None and _ON_DEMAND in info.usage_classes:
            found.append(offer(info, ceil(count / each), region, book))
    return sorted(found, key=_order)


def _order(one: Offer) -> tuple[object, ...]:
    slow = one.nodes > 1 and not one.info.maximum_efa_interfaces
    return slow, one.usd is None, one.usd or 0, one.nodes, one.info.name


def offer(info: InstanceTypeInfo, nodes: int, region: str, book: PriceBook) -> Offer:
    """Return nodes of a type with their price.

    Args:
        info: What is known of the type.
        nodes: How many there are.
        region: The region whose price counts.
        book: The prices.
    """
    price = book.on_demand.nearest(info.name, region)
    return Offer(
        info=info,
        nodes=nodes,
        usd=None if price is None else nodes * price.usd,
        price_region=region if price is None else price.region,
        regions=book.on_demand.regions(info.name),
    )


def ways_to_buy(chosen: Offer, hours: Decimal, region: str, book: PriceBook) -> Sequence[Way]:
    """Return the ways to buy nodes of a type, with what they cost in a run.

    Args:
        chosen: The nodes.
        hours: How long the run is.
        region: The region.
        book: The prices.
    """
    classes = chosen.info.usage_classes or (_ON_DEMAND,)
    listed = None if chosen.usd is None else (chosen.usd, chosen.usd)
    no_price, where = f"no price of {chosen.info.name} is known", chosen.price_region
    ways = []
    if _ON_DEMAND in classes:
        ways += [
            Way(
                name="on_demand",
                rates=listed,
                sold=no_price if listed is None else f"on demand ({where})",
                hours=hours,
                told="billed while nodes run; EC2 may have none at a start",
            ),
            Way(
                name="reservation",
                rates=listed,
                sold=no_price if listed is None else f"reserved, used or not ({where})",
                hours=hours,
                told="billed from deployment to deletion, used or not; held for you",
            ),
            Way(
                name="from_reservation",
                sold="your reservation is billed, used or not",
                told="a Capacity Reservation that you have",
                takes_id=True,
            ),
        ]
    if _SPOT in classes:
        spot = book.spot.nearest(chosen.info.name, region)
        ways.append(
            Way(
                name="spot",
                rates=None if spot is None else (chosen.nodes * spot.low, chosen.nodes * spot.high),
                sold="no Spot price is known" if spot is None else f"on Spot ({spot.region})",
                # As `plan` shows it: the same work takes longer with interruptions.
                hours=hours * (1 + Assumptions().interruption_percent / 100),
                told="billed while nodes run; EC2 may take each back at two minutes' notice",
            )
        )
    if _BLOCK in classes:
        ways.append(
            Way(
                name="capacity_block",
                sold="a Capacity Block is paid for when it is bought",
                told="a Capacity Block that you have bought: aws ec2 describe-capacity-block-offerings",
                takes_id=True,
            )
        )
    return ways
