"""The plan itself: all that is known of what a cluster costs, as values that a program can read."""

from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal

from cdk_training_cluster.prices import ByRegion, PriceBook, Source, SpotRange
from cdk_training_cluster.prices.book import STATED
from cdk_training_cluster_cli.core.output import json_text
from cdk_training_cluster_cli.money.plan.assumptions import Assumptions, check_price
from cdk_training_cluster_cli.money.plan.guardrails import guardrail_lines
from cdk_training_cluster_cli.money.plan.hardware import Hardware, hardware_of
from cdk_training_cluster_cli.money.plan.lines import (
    Line,
    compute_lines,
    orchestrator_lines,
    total,
    with_stated_costs,
)
from cdk_training_cluster_cli.money.plan.notices import low_limits, stand_ins, warnings
from cdk_training_cluster_cli.money.plan.options import Option, RegionPrice, options, priced_somewhere, regions
from cdk_training_cluster_cli.money.plan.shape import ClusterShape
from cdk_training_cluster_cli.money.plan.sources import sources
from cdk_training_cluster_cli.money.plan.storage import storage_lines, transfer_lines
from cdk_training_cluster_cli.money.plan.work import Work, left_out, works
from cdk_training_cluster_cli.money.prices.asking import LiveAnswer
from cdk_training_cluster_cli.money.prices.spot_market import PlacementScore, ZonePrice
from cluster_contract.prices import on_demand_type

_PERCENT = Decimal(100)
_HOURS_OF_A_DAY = 24


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a cluster costs.

    Attributes:
        name: The cluster's name.
        availability_zone: Its zone.
        region: Its region.
        assumptions: What the plan assumes.
        lines: What each part costs.
        hardware: What the cluster has.
        options: Other ways to buy the nodes.
        regions: Regions by the nodes' price.
        works: Types by what the model costs on them.
        left_out: What is not compared, and why.
        warnings: What to know before paying.
        sources: Where the prices are from, each with its age.
        zones: What Spot Instances cost in the region's zones now, where AWS was asked.
        scores: How likely EC2 calls it that a group's nodes can be had as Spot Instances, where it was asked.
    """

    name: str
    availability_zone: str
    region: str
    assumptions: Assumptions
    lines: tuple[Line, ...]
    hardware: Hardware
    options: tuple[Option, ...]
    regions: tuple[RegionPrice, ...]
    works: tuple[Work, ...]
    left_out: tuple[str, ...]
    warnings: tuple[str, ...]
    sources: tuple[tuple[Source, str], ...]
    zones: tuple[ZonePrice, ...] = ()
    scores: tuple[tuple[str, PlacementScore], ...] = ()

    @property
    def known(self) -> Decimal:
        """US dollars for the run, of all that is known."""
        return total(self.lines, self.assumptions.hours)

    @property
    def total(self) -> Decimal | None:
        """US dollars for the run, without small lines that are unknown. None: nodes or file system are unknown."""
        large = any(line.kind == "compute" or line.key == "storage.file-system" for line in self.unknown)
        return None if large else self.known

    @property
    def contingency(self) -> Decimal | None:
        """US dollars that are added to the total. None: the total is unknown."""
        return None if self.total is None else self.total * self.assumptions.contingency_percent / _PERCENT

    @property
    def with_contingency(self) -> Decimal | None:
        """The total and the contingency in US dollars. None: they are unknown."""
        return None if self.total is None or self.contingency is None else self.total + self.contingency

    @property
    def unknown(self) -> tuple[Line, ...]:
        """The lines that are in no sum."""
        return tuple(line for line in self.lines if line.per_hour is None)

    def by_kind(self) -> dict[str, Decimal | None]:
        """Return US dollars for the run by the kind of line, of what is known. None: nothing of the kind is."""
        kinds = dict.fromkeys(line.kind for line in self.lines)
        of_kind = {kind: [line for line in self.lines if line.kind == kind] for kind in kinds}
        return {
            kind: None if all(line.per_hour is None for line in lines) else total(lines, self.assumptions.hours)
            for kind, lines in of_kind.items()
        }

    def values(self) -> dict[str, object]:
        """Return the plan by names, with its sums, for programs."""
        return {
            **vars(self),
            "lines": [
                {**vars(line), "run": run, "per_day": None if run is None else per_day(run / self.assumptions.hours)}
                for line in self.lines
                for run in (line.run(self.assumptions.hours),)
            ],
            "by_kind": self.by_kind(),
            "complete": not self.unknown,
            "known_usd": self.known,
            "total_usd": self.total,
            "contingency_usd": self.contingency,
            "total_with_contingency_usd": self.with_contingency,
            "unknown": [line.key for line in self.unknown],
        }

    def to_json(self) -> str:
        """Return the plan as JSON."""
        return json_text(self.values())


def make_plan(
    shape: ClusterShape,
    book: PriceBook,
    assumptions: Assumptions,
    *,
    today: date,
    live: LiveAnswer | None = None,
) -> Plan:
    """Return what a cluster costs.

    Args:
        shape: The cluster.
        book: The prices.
        assumptions: What the plan assumes.
        today: Today, for the prices' age.
        live: What AWS said, whose prices count before the book's. Default: - AWS was not asked

    Raises:
        ValueError: A stated cost names no line.
    """
    said = LiveAnswer(book=PriceBook()) if live is None else live
    book = book.updated(said.book).with_stated(assumptions.prices, shape.region)
    zone = shape.availability_zone if shape.region in said.spot_regions else None
    for_nodes = book if zone is None else _in_zone(book, shape, said)
    lines = with_stated_costs(
        (
            *compute_lines(shape.groups, shape.region, for_nodes, assumptions, zone=zone),
            *storage_lines(shape, book, assumptions),
            *transfer_lines(shape, book, assumptions),
            *guardrail_lines(shape, book),
            *orchestrator_lines(shape, book, today=today, hours=assumptions.hours),
        ),
        assumptions,
    )
    own_nodes = {on_demand_type(item) or "" for line in lines for item in line.units}
    for name in assumptions.prices:
        check_price(name, own_nodes)
    figures = [figure for line in lines for figure in line.figures]
    elsewhere = sorted({figure.region for figure in figures} - {shape.region})
    own = {info.name for group in shape.groups for info in group.instance_types}
    # What EC2 asks for the same types says nothing of what another service does.
    sold = shape.groups if all(group.sold_by_ec2 for group in shape.groups) else ()
    compared = regions(sold, shape.region, book, assumptions) if sold else ()
    worked = works(shape.region, book, assumptions, own) if sold else ()
    unpriced_regions = sorted(priced_somewhere(sold, book) - {each.region for each in compared})
    return Plan(
        name=shape.name,
        availability_zone=shape.availability_zone,
        region=shape.region,
        assumptions=assumptions,
        lines=lines,
        hardware=hardware_of(shape.groups, shape.file_system),
        options=tuple(options(sold, shape.region, book, assumptions)) if sold else (),
        regions=compared,
        works=worked,
        left_out=(
            *(left_out(shape.region, book, own) if worked else ()),
            *(
                [f"regions left out, because the price of a type is unknown: {', '.join(unpriced_regions)}"]
                if unpriced_regions
                else []
            ),
        ),
        warnings=(
            *said.refusals,
            *warnings(shape, book, assumptions.hours),
            *low_limits(shape, for_nodes),
            *([stand_ins(elsewhere, shape.region)] if elsewhere else []),
        ),
        sources=tuple((source, source.age(today)) for source in sources(figures, shape, book, compared, worked)),
        zones=said.zones,
        scores=said.scores,
    )


def _in_zone(book: PriceBook, shape: ClusterShape, said: LiveAnswer) -> PriceBook:
    """Return a book whose Spot prices in the cluster's region are those of its zone alone, as AWS said them."""
    here = [each for each in said.zones if each.zone == shape.availability_zone]
    source = next((each.source for _, each in said.book.spot.items()), STATED)
    prices = [
        (
            each.instance_type,
            SpotRange(low=each.usd, high=each.usd, zones=(each.zone,), region=shape.region, source=source),
        )
        for each in here
    ]
    others = [each for each in book.spot.items() if each[1].region != shape.region]
    return replace(book, spot=ByRegion([*others, *prices]))


def per_day(per_hour: Decimal) -> Decimal:
    """Return what something costs a day.

    Args:
        per_hour: What it costs an hour.
    """
    return per_hour * _HOURS_OF_A_DAY
