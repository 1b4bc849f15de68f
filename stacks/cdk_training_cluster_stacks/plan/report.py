"""The plan itself: all that is known of what a cluster costs, as values that a program can read."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, fields, is_dataclass
from datetime import date
from decimal import Decimal
from typing import Any

from cdk_training_cluster.prices import ByRegion, Price, PriceBook, Source, SpotRange
from cdk_training_cluster.prices.book import STATED
from cdk_training_cluster_stacks.live.asking import LiveAnswer
from cdk_training_cluster_stacks.live.spot_market import PlacementScore, ZonePrice
from cdk_training_cluster_stacks.plan.assumptions import Assumptions
from cdk_training_cluster_stacks.plan.guardrails import guardrail_lines
from cdk_training_cluster_stacks.plan.hardware import Hardware, hardware_of
from cdk_training_cluster_stacks.plan.lines import (
    Line,
    compute_lines,
    total,
    with_stated_costs,
)
from cdk_training_cluster_stacks.plan.notices import stand_ins, warnings
from cdk_training_cluster_stacks.plan.options import Option, RegionPrice, options, regions
from cdk_training_cluster_stacks.plan.shape import ClusterShape
from cdk_training_cluster_stacks.plan.storage import storage_lines, transfer_lines
from cdk_training_cluster_stacks.plan.work import Work, works

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

    def to_json(self) -> str:
        """Return the plan as JSON; amounts are texts, so that they stay exact."""
        document = {
            **_plain(self),
            "complete": not self.unknown,
            "known_usd": _plain(self.known),
            "total_usd": _plain(self.total),
            "contingency_usd": _plain(self.contingency),
            "total_with_contingency_usd": _plain(self.with_contingency),
            "unknown": [line.key for line in self.unknown],
        }
        return json.dumps(document, indent=2, ensure_ascii=False)


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
    lines = with_stated_costs(
        (
            *compute_lines(shape.groups, shape.region, _in_zone(book, shape, said)),
            *storage_lines(shape, book, assumptions),
            *transfer_lines(shape, book, assumptions),
            *guardrail_lines(shape, book),
        ),
        assumptions,
    )
    figures = [figure for line in lines for figure in line.figures]
    elsewhere = sorted({figure.region for figure in figures} - {shape.region})
    return Plan(
        name=shape.name,
        availability_zone=shape.availability_zone,
        region=shape.region,
        assumptions=assumptions,
        lines=lines,
        hardware=hardware_of(shape.groups, shape.file_system),
        options=tuple(options(shape.groups, shape.region, book, assumptions)),
        regions=regions(shape.groups, book, assumptions),
        works=works(shape.region, book, assumptions),
        warnings=(
            *said.refusals,
            *warnings(shape, book, assumptions.hours),
            *([stand_ins(elsewhere, shape.region)] if elsewhere else []),
        ),
        sources=tuple((source, source.age(today)) for source in _sources(figures)),
        zones=said.zones,
        scores=said.scores,
    )


def _in_zone(book: PriceBook, shape: ClusterShape, said: LiveAnswer) -> PriceBook:
    """Return a book whose Spot prices in the cluster's region are those of its zone, where AWS said them."""
    here = [each for each in said.zones if each.zone == shape.availability_zone]
    source = next((each.source for _, each in said.book.spot.items()), STATED)
    prices = [
        (
            each.instance_type,
            SpotRange(low=each.usd, high=each.usd, zones=(each.zone,), region=shape.region, source=source),
        )
        for each in here
    ]
    return book.updated(PriceBook(spot=ByRegion(prices)))


def _sources(figures: Iterable[Price | SpotRange]) -> list[Source]:
    return sorted(
        {figure.source for figure in figures} - {STATED}, key=lambda source: (source.address, str(source.as_of))
    )


def _plain(value: object) -> Any:  # noqa: ANN401 - JSON is of any type
    """Return a value as JSON has it."""
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: _plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, (Decimal, date)):
        return str(value)
    return value


def per_day(per_hour: Decimal) -> Decimal:
    """Return what something costs a day.

    Args:
        per_hour: What it costs an hour.
    """
    return per_hour * _HOURS_OF_A_DAY
