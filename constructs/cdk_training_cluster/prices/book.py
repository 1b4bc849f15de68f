"""The price book: what an instance, a GB or an alarm costs, where that is written, and when it was.

Amounts are `Decimal`: AWS writes prices with up to ten decimal places ($0.0000133334 a GB-second), which
micro-dollars cannot hold and floats do not sum exactly. What is not in the book is unknown, never zero.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from importlib import resources
from typing import Any, Generic, TypeVar

from cdk_training_cluster.prices.units import UNITS
from cluster_contract import prices as contract
from cluster_contract.prices import NEAREST_KNOWN

_Figure = TypeVar("_Figure", "Price", "SpotRange")


@dataclass(frozen=True, kw_only=True)
class Source:
    """Where figures are from.

    Attributes:
        address: The address that they were read at.
        as_of: The day on which they held. None: the source gives none.
        note: What else is known of them.
    """

    address: str
    as_of: date | None = None
    note: str = ""

    def age(self, today: date) -> str:
        """Say how old the figures are.

        Args:
            today: Today.
        """
        if self.as_of is None:
            return "of unknown age"
        days = (today - self.as_of).days
        return "of today" if days <= 0 else f"{days} day{'' if days == 1 else 's'} old"


STATED = Source(address="stated by the user")
"""The source of a price that the user of a plan gives."""


@dataclass(frozen=True, kw_only=True)
class Price:
    """What a unit costs in a region.

    Attributes:
        usd: US dollars.
        unit: What they buy, such as `instance-hour`.
        region: The region whose price it is.
        source: Where it is from.
    """

    usd: Decimal
    unit: str
    region: str
    source: Source


@dataclass(frozen=True, kw_only=True)
class SpotRange:
    """What a Spot Instance costs an hour in the zones of a region.

    Attributes:
        low: The lowest price in US dollars; a Local Zone among `zones` may be what sets it.
        high: The highest price.
        zones: The ids of the zones.
        region: The region.
        source: Where it is from.
    """

    low: Decimal
    high: Decimal
    zones: tuple[str, ...]
    region: str
    source: Source


class ByRegion(Generic[_Figure]):
    """Figures by name and region."""

    def __init__(self, figures: Iterable[tuple[str, _Figure]] = ()) -> None:
        self._figures: dict[str, dict[str, _Figure]] = {}
        for name, figure in figures:
            self._figures.setdefault(name, {})[figure.region] = figure

    def get(self, name: str, region: str) -> _Figure | None:
        """Return a region's figure. None: it is unknown."""
        return self._figures.get(name, {}).get(region)

    def nearest(self, name: str, region: str) -> _Figure | None:
        """Return a region's figure, or the one that stands in for it: its `region` says which it is."""
        known = self._figures.get(name, {})
        stand_ins = (known[each] for each in sorted(known))
        return known.get(region) or known.get(NEAREST_KNOWN) or next(stand_ins, None)

    def regions(self, name: str) -> tuple[str, ...]:
        """Return the regions with a figure of that name, sorted."""
        return tuple(sorted(self._figures.get(name, {})))

    def updated(self, newer: "ByRegion[_Figure]") -> "ByRegion[_Figure]":
        """Return these figures with others in place of their like, but for those that are older by their dates."""
        figures: list[tuple[str, _Figure]] = list(self.items())
        figures += [each for each in newer.items() if not self._is_older(*each)]
        return ByRegion(figures)

    def _is_older(self, name: str, figure: _Figure) -> bool:
        known = self.get(name, figure.region)
        before, after = None if known is None else known.source.as_of, figure.source.as_of
        return before is not None and after is not None and after < before

    def items(self) -> tuple[tuple[str, _Figure], ...]:
        """Return every figure with its name, sorted by name and region."""
        return tuple(
            (name, figures[region]) for name, figures in sorted(self._figures.items()) for region in sorted(figures)
        )


@dataclass(frozen=True, kw_only=True)
class PriceBook:
    """Holds what is known of AWS's prices.

    Attributes:
        on_demand: What an On-Demand Linux instance costs an hour, by type and region.
        spot: What a Spot Instance costs an hour, by type and region.
        units: What else is billed, by the names of `UNITS` and region.
    """

    on_demand: ByRegion[Price] = field(default_factory=ByRegion)
    spot: ByRegion[SpotRange] = field(default_factory=ByRegion)
    units: ByRegion[Price] = field(default_factory=ByRegion)

    def updated(self, newer: "PriceBook") -> "PriceBook":
        """Return a book with another's figures in place of its own, but for those that are older by their dates.

        Args:
            newer: The book whose figures count.
        """
        return PriceBook(
            on_demand=self.on_demand.updated(newer.on_demand),
            spot=self.spot.updated(newer.spot),
            units=self.units.updated(newer.units),
        )

    def with_stated(self, prices: Mapping[str, Decimal], region: str) -> "PriceBook":
        """Return a book with prices that its user states, of instance types or of the names of `UNITS`.

        Args:
            prices: US dollars an hour of an instance, or a unit.
            region: The region they hold in.
        """
        stated = [(name, Price(usd=usd, unit="", region=region, source=STATED)) for name, usd in prices.items()]
        units = [(name, replace(price, unit=UNITS[name].unit)) for name, price in stated if name in UNITS]
        types = [(name, replace(price, unit="instance-hour")) for name, price in stated if name not in UNITS]
        return self.updated(PriceBook(on_demand=ByRegion(types), units=ByRegion(units)))


def committed_prices() -> PriceBook:
    """Return the snapshot that comes with this library: for planning, where nothing newer is known."""
    document = json.loads(resources.files(__package__).joinpath("snapshot.json").read_text(encoding="utf-8"))
    carried = contract.price_document(parse_float=Decimal)
    on_demand = {**carried, "prices": carried["on_demand"]}
    return book_of({**document, "on_demand": [on_demand], "units": carried["units"]})


def book_of(document: Mapping[str, Any]) -> PriceBook:
    """Return the book that a document holds.

    Args:
        document: `on_demand`, `spot` and `units`: each a list of figures that share a source, as `source`, `as_of`,
            `note` and `prices` by name and region.

    Raises:
        ValueError: A price is no number, or below zero.
    """
    return PriceBook(
        on_demand=ByRegion(
            (name, Price(usd=_decimal(usd), unit="instance-hour", region=region, source=source))
            for name, region, usd, source in _entries(document, "on_demand")
        ),
        spot=ByRegion(
            (
                name,
                SpotRange(
                    low=_decimal(low),
                    high=_decimal(high),
                    zones=tuple(zones.split("|")),
                    region=region,
                    source=source,
                ),
            )
            for name, region, (low, high, zones), source in _entries(document, "spot")
        ),
        units=ByRegion(
            (name, Price(usd=_decimal(usd), unit=UNITS[name].unit, region=region, source=source))
            for name, region, usd, source in _entries(document, "units")
            if name in UNITS
        ),
    )


def document_of(book: PriceBook) -> dict[str, Any]:
    """Return what `book_of` reads; amounts are texts, so that they stay exact.

    Args:
        book: The book.
    """
    return {
        "on_demand": _groups(book.on_demand, lambda price: f"{price.usd:f}"),
        "spot": _groups(book.spot, lambda each: [f"{each.low:f}", f"{each.high:f}", "|".join(each.zones)]),
        "units": _groups(book.units, lambda price: f"{price.usd:f}"),
    }


def _entries(document: Mapping[str, Any], section: str) -> Iterator[tuple[str, str, Any, Source]]:
    for group in document.get(section, ()):
        as_of = group.get("as_of")
        source = Source(
            address=group["source"],
            as_of=None if as_of is None else date.fromisoformat(as_of),
            note=group.get("note", ""),
        )
        for name, regions in group["prices"].items():
            for region, figure in regions.items():
                yield name, region, figure, source


def _groups(figures: ByRegion[_Figure], told: Callable[[_Figure], object]) -> list[dict[str, Any]]:
    groups: dict[Source, dict[str, dict[str, object]]] = {}
    for name, figure in figures.items():
        groups.setdefault(figure.source, {}).setdefault(name, {})[figure.region] = told(figure)
    return [
        {
            "source": source.address,
            "as_of": None if source.as_of is None else source.as_of.isoformat(),
            **({"note": source.note} if source.note else {}),
            "prices": prices,
        }
        for source, prices in groups.items()
    ]


def _decimal(value: object) -> Decimal:
    amount = Decimal(str(value))
    if not amount.is_finite() or amount < 0:
        raise ValueError(f"a price must be a number of at least 0, got {value}")
    return amount
