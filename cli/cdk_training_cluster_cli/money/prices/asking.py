"""Asks AWS all that a plan wants to know, many regions at a time."""

from collections.abc import Callable, Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from cdk_training_cluster.prices import UNITS, ByRegion, PriceBook
from cdk_training_cluster_cli.core.session import refusal
from cdk_training_cluster_cli.money.prices.price_list import on_demand_prices, unit_prices
from cdk_training_cluster_cli.money.prices.spot_market import (
    MAX_REGIONS,
    PlacementScore,
    ZonePrice,
    placement_scores,
    spot_market,
)
from cluster_contract.price_list import REGION
from cluster_contract.prices import on_demand_type

if TYPE_CHECKING:
    import boto3
    from mypy_boto3_ec2 import EC2Client
    from mypy_boto3_pricing import PricingClient

_AT_A_TIME = 8
_Answer = TypeVar("_Answer")
Advance = Callable[[str, int, int], None]
"""Called with what is asked for, how many answers have come, and how many there are to be."""


@dataclass(frozen=True, kw_only=True)
class LiveAnswer:
    """What AWS said.

    Attributes:
        book: The prices.
        zones: What Spot Instances cost in the zones of the cluster's region.
        spot_regions: The regions whose Spot prices EC2 said.
        scores: How likely EC2 calls it that each group's nodes can be had as Spot Instances, by group.
        refusals: What AWS did not answer, a sentence each.
    """

    book: PriceBook
    zones: tuple[ZonePrice, ...] = ()
    spot_regions: tuple[str, ...] = ()
    scores: tuple[tuple[str, PlacementScore], ...] = ()
    refusals: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Nodes:
    """Nodes that are bought together.

    Attributes:
        group: The node group's name.
        instance_types: Their types.
        count: How many there are.
    """

    group: str
    instance_types: tuple[str, ...]
    count: int


@dataclass(kw_only=True)
class _Questions:
    """Asks AWS several questions at once, and keeps what was refused."""

    advance: Advance
    refusals: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    several: list[str] = field(default_factory=list)

    def all(self, action: str, questions: Sequence[tuple[str, Callable[[], _Answer]]]) -> list[_Answer]:
        """Return the answers in the order of the questions, without those that were refused."""
        answers = []
        with ThreadPoolExecutor(max_workers=_AT_A_TIME) as pool:
            asked = [(place, pool.submit(question)) for place, question in questions]
            for done, (place, future) in enumerate(asked, 1):
                reason = refusal(future.exception())
                if reason is None:
                    answers.append(future.result())
                else:
                    self.refusals.setdefault((action, reason), []).append(place)
                self.advance(action, done, len(asked))
        return answers

    def told(self) -> tuple[str, ...]:
        """Return a sentence for each reason."""
        several = (
            f"the AWS Price List has more than one price of {', '.join(self.several)}: it is unknown which holds"
        )
        return ((several,) if self.several else ()) + tuple(
            f"{action} was not answered for {', '.join(dict.fromkeys(places))} ({reason}): what it says is unknown, "
            "or older"
            for (action, reason), places in self.refusals.items()
        )


def ask(
    session: "boto3.Session",
    region: str,
    groups: Sequence[Nodes],
    known: PriceBook,
    *,
    units: Collection[str],
    now: datetime,
    advance: Advance,
) -> LiveAnswer:
    """Ask AWS for prices, and for Spot Instances in every region that sells all types.

    What AWS refuses is left out and told; the rest goes on.

    Args:
        session: The user's credentials.
        region: The cluster's region.
        groups: The cluster's nodes.
        known: The prices known so far: they say where types are sold, if the Price List does not answer.
        units: What else is priced in that region, by the names of `UNITS` or of On-Demand prices.
        now: The time.
        advance: Called as answers come.
    """
    questions = _Questions(advance=advance)
    types = tuple(dict.fromkeys(name for group in groups for name in group.instance_types))
    book = _price_list(questions, session.client("pricing", region_name=REGION), types, units, region)
    sold = known.updated(book).on_demand
    regions = sorted(set.intersection(*(set(sold.regions(name)) for name in types)) | {region})
    clients = {each: session.client("ec2", region_name=each) for each in regions}
    markets = questions.all(
        "ec2:DescribeSpotPriceHistory",
        [(each, partial(spot_market, clients[each], each, types, now)) for each in regions],
    )
    # Of many zones EC2 names the best alone, so that the cluster's region is asked for by itself.
    others = [each for each in regions if each != region]
    parts = [[region], *(others[at : at + MAX_REGIONS] for at in range(0, len(others), MAX_REGIONS))]
    scores = questions.all(
        "ec2:GetSpotPlacementScores",
        [(group.group, partial(_scores, clients[region], part, group)) for group in groups for part in parts],
    )
    return LiveAnswer(
        book=PriceBook(
            on_demand=book.on_demand,
            units=book.units,
            spot=ByRegion(entry for market in markets for entry in market.ranges.items()),
        ),
        zones=tuple(zone for market in markets if market.region == region for zone in market.zones),
        spot_regions=tuple(market.region for market in markets),
        scores=tuple(sorted((one for part in scores for one in part), key=_likeliest)),
        refusals=questions.told(),
    )


def _price_list(
    questions: _Questions, client: "PricingClient", types: Sequence[str], units: Collection[str], region: str
) -> PriceBook:
    others = (name for item in sorted(units) if (name := on_demand_type(item)) is not None)
    on_demand = [(name, partial(on_demand_prices, client, [name])) for name in dict.fromkeys([*types, *others])]
    of_units = [(item, partial(unit_prices, client, item, region)) for item in sorted(units) if item in UNITS]
    found = questions.all("pricing:GetProducts", [*on_demand, *of_units])
    questions.several += [f"{name} in {place}" for each in found for name, place in each.several]
    prices = [(name, price) for each in found for name, price in each.prices.items()]
    return PriceBook(
        on_demand=ByRegion((name, price) for name, price in prices if name not in UNITS),
        units=ByRegion((name, price) for name, price in prices if name in UNITS),
    )


def _scores(client: "EC2Client", regions: Sequence[str], nodes: Nodes) -> list[tuple[str, PlacementScore]]:
    return [(nodes.group, score) for score in placement_scores(client, regions, nodes.instance_types, nodes.count)]


def _likeliest(scored: tuple[str, PlacementScore]) -> tuple[str, int, str, str]:
    group, score = scored
    return group, -score.score, score.region, score.zone_id
