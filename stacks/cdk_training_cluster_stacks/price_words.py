"""Says in a few plain words what a cluster's nodes cost an hour."""

from collections.abc import Iterator, Sequence

from cdk_training_cluster import NodeFleet
from cluster_contract.prices import on_demand_price

_NEAREST_KNOWN = "us-east-1"


def price_lines(region: str, fleets: Sequence[NodeFleet]) -> Iterator[str]:
    """Say what the nodes of a cluster cost an hour while all of them run: the sum, and a line for each group.

    Of a group of several types the dearest counts. What is not known is said to be so, and is no part of the sum.

    Args:
        region: The cluster's region.
        fleets: The nodes of every group.
    """
    known = {fleet: _dearest(fleet, region) for fleet in fleets}
    sums = [fleet.node_group.count * price for fleet, price in known.items() if price is not None]
    unknown = [fleet.node_group.name for fleet, price in known.items() if price is None]
    total = f"${sum(sums):,.2f} an hour" if sums else "unknown"
    rest = f" and the nodes of {' and '.join(unknown)}, whose price is not known" if sums and unknown else ""
    yield f"Price at On-Demand list prices while all nodes run: {total}{rest}"
    for fleet in fleets:
        each = "; ".join(_each(info.name, region) for info in fleet.instance_types)
        yield f"  {fleet.node_group.name}: {fleet.node_group.count} x {each}"


def list_price(name: str, region: str) -> tuple[float | None, str]:
    """Return what an instance costs an hour on demand, in USD, and the region whose price that is.

    Args:
        name: Its type.
        region: Where it runs; where that region's price is not known it is us-east-1's. None: neither is.
    """
    found = ((on_demand_price(name, place), place) for place in (region, _NEAREST_KNOWN))
    return next((each for each in found if each[0] is not None), (None, region))


def _dearest(fleet: NodeFleet, region: str) -> float | None:
    prices = [list_price(info.name, region)[0] for info in fleet.instance_types]
    known = [price for price in prices if price is not None]
    return max(known) if len(known) == len(prices) else None


def _each(name: str, region: str) -> str:
    price, place = list_price(name, region)
    if price is None:
        return f"{name}, whose price is not known"
    return f"{name} at ${price:,.2f}{f' (in {place}; that in {region} is not known)' if place != region else ''}"
