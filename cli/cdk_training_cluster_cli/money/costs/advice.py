"""What would have cost less: each piece of advice with its figure and what that rests on."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from statistics import median

from cdk_training_cluster import InstanceTypeInfo
from cdk_training_cluster.instance_types import all_instance_types
from cdk_training_cluster.prices import PriceBook
from cdk_training_cluster_cli.core.output import usd
from cdk_training_cluster_cli.money.costs.usage import GroupUse, Usage
from cdk_training_cluster_cli.money.plan.work import peak_tflops
from cluster_contract.bill import UNUSED, Bill
from cluster_contract.daily_costs import MIN_DAYS, used_share

_PERCENT = Decimal(100)
_HOURS_OF_A_DAY = 24
# So many percent of a GPU's time is what a driver and a monitor take; the idle stop's own limit.
_UNUSED_PERCENT = 5
# Fewer hours with data say nothing of a group.
_MIN_HOURS = 24
# How much of its memory a smaller GPU may have in use.
_FULL = Decimal("0.9")
# A type whose hours cost less than this share of the On-Demand price is not On-Demand alone: a plan, a Reserved
# Instance or a Capacity Block covers some, and the bill does not say which.
_WHOLE = Decimal("0.98")


@dataclass(frozen=True, kw_only=True)
class GroupNodes:
    """A node group as its cluster file has it.

    Attributes:
        name: Its name.
        info: Its first type.
        efa: Whether they have Elastic Fabric Adapters.
        on_demand: Whether each is bought On-Demand, in no reservation.
    """

    name: str
    info: InstanceTypeInfo
    efa: bool
    on_demand: bool


def advice(
    bill: Bill, usage: Usage | None, groups: Sequence[GroupNodes], region: str, book: PriceBook
) -> Iterator[str]:
    """Yield what would have cost less.

    Args:
        bill: What the cluster was billed.
        usage: What its nodes did. None: unknown.
        groups: Its node groups.
        region: Its region.
        book: The prices of other types.
    """
    yield from _reservations(bill, usage)
    yield from _savings_plan(bill, region, book)
    for use in usage.groups if usage is not None else ():
        group = next(each for each in groups if each.name == use.group)
        if use.hours < _MIN_HOURS or use.maximum_percent is None:
            continue
        if use.maximum_percent < _UNUSED_PERCENT:
            yield (
                f"node group {group.name!r} never used its accelerators: at most {use.maximum_percent:.0f} % in "
                f"{use.hours} hours with data (CloudWatch); stop it, or take it out of the cluster file"
            )
        elif group.on_demand:
            yield from _smaller(group, use, region, book)


def _reservations(bill: Bill, usage: Usage | None) -> Iterator[str]:
    for item, amount in bill.by_item().items():
        if item.endswith(UNUSED) and amount > 0:
            yield (
                f"{usd(amount)} {bill.currency} went to reserved {item.removesuffix(UNUSED)} in which no node ran "
                "(billed as UnusedBox): lower or end the reservation while the cluster is stopped"
            )
    if usage is not None and usage.reserved_usd > 0:
        yield (
            f"nodes worth ${usd(usage.reserved_usd)} ran idle in reservations or Capacity Blocks (the idle stop's "
            "figure, at On-Demand prices): what is reserved is larger than the work"
        )


def _savings_plan(bill: Bill, region: str, book: PriceBook) -> Iterator[str]:
    """Find the commitment that the median day would have used; by the day, since the bill is."""
    amounts, whole = bill.by_item(), _whole_price(bill, region, book)
    full = {item for item, at_least in whole.items() if amounts[item] >= at_least}
    days = list(bill.by_day(full.__contains__).values())
    if len(days) < MIN_DAYS or (middle := median(days)) <= 0:
        return
    share = used_share(days, middle)
    discount = f"more than {(1 - share) * _PERCENT:.0f} % off" if share < 1 else "any discount"
    yield (
        f"a Savings Plan for the {usd(middle / _HOURS_OF_A_DAY)} {bill.currency} an hour that On-Demand nodes cost "
        f"on the median day would have been used to {share * _PERCENT:.0f} %, and would have paid at {discount}: "
        "compare your offer (from billed days; unused hours of a day raise that)"
    )


def _whole_price(bill: Bill, region: str, book: PriceBook) -> dict[str, Decimal]:
    """Return what the hours of each type cost at least if no discount, plan or block has paid a part of them."""
    found: dict[str, Decimal] = {}
    for charge in bill.charges:
        if charge.hours and (price := book.on_demand.get(charge.item, region)) is not None:
            found[charge.item] = found.get(charge.item, Decimal(0)) + charge.hours * price.usd * _WHOLE
    return found


def _smaller(group: GroupNodes, use: GroupUse, region: str, book: PriceBook) -> Iterator[str]:
    """Find the cheapest type whose GPUs hold what was in memory, and whose peak is what the busiest GPU used."""
    own, price = peak_tflops(group.info), book.on_demand.get(group.info.name, region)
    if own is None or price is None or use.memory_mib is None or use.maximum_percent is None:
        return
    needed = own[0] * use.maximum_percent / _PERCENT
    found = [
        (cheaper.usd, info.name)
        for info in all_instance_types()
        if (cheaper := book.on_demand.get(info.name, region)) is not None
        and cheaper.usd < price.usd
        and (peak := peak_tflops(info)) is not None
        and peak[0] >= needed
        and _holds(info, group, use.memory_mib)
    ]
    if found:
        cost, name = min(found)
        yield (
            f"node group {group.name!r} used at most {use.memory_mib / 1024:.0f} GiB of a GPU's memory and "
            f"{use.maximum_percent:.0f} % of the busiest GPU in {use.hours} hours (CloudWatch): try "
            f"{name}, which is ${price.usd - cost:,.2f} an hour cheaper a node On-Demand"
        )


def _holds(info: InstanceTypeInfo, group: GroupNodes, memory_mib: Decimal) -> bool:
    return (
        info.nvidia_gpu_count >= group.info.nvidia_gpu_count
        and info.architectures == group.info.architectures
        and (info.supports_efa or not group.efa)
        and all(each.memory_mib * _FULL >= memory_mib for each in info.accelerators)
    )
