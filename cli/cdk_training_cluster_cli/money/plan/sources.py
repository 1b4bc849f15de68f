"""Where the prices of a plan are from: those of its lines, and those that are compared with them."""

from collections.abc import Iterable, Sequence

from cdk_training_cluster.prices import Price, PriceBook, Source, SpotRange
from cdk_training_cluster.prices.book import STATED
from cdk_training_cluster_cli.money.plan.options import TRAINIUM, RegionPrice
from cdk_training_cluster_cli.money.plan.shape import ClusterShape
from cdk_training_cluster_cli.money.plan.work import Work


def sources(
    figures: Iterable[Price | SpotRange],
    shape: ClusterShape,
    book: PriceBook,
    regions: Sequence[RegionPrice],
    works: Sequence[Work],
) -> list[Source]:
    """Return the sources of all prices that a plan shows, sorted; what a user states has none.

    Args:
        figures: The prices of the lines.
        shape: The cluster.
        book: The prices.
        regions: The regions that are compared.
        works: The types that are compared.
    """
    own = {info.name for group in shape.groups for info in group.instance_types}
    takes_spot = all(group.takes_spot for group in shape.groups)
    places = {shape.region, *(each.region for each in regions)}
    types = {(name, place) for name in own for place in places}
    types |= {(name, shape.region) for name in (*TRAINIUM, *(each.instance_type for each in works))}
    used: list[Price | SpotRange | None] = [
        *figures,
        *(book.on_demand.get(*each) for each in types),
        *(book.spot.get(name, place) for name in own for place in places if takes_spot),
        book.units.nearest("zone-to-zone", shape.region),
    ]
    return sorted(
        {figure.source for figure in used if figure is not None} - {STATED},
        key=lambda source: (source.address, str(source.as_of)),
    )
