"""The price book: what an instance, a GB or an alarm costs, where that is written, and when it was.

Amounts are `Decimal`: AWS writes prices with up to ten decimal places ($0.0000133334 a GB-second), which
micro-dollars cannot hold and floats do not sum exactly. What is not in the book is unknown, never zero.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from decimal import Decimal
from importlib import resources
from typing import Any, Generic, TypeVar

from cdk_training_cluster.prices.units import UNITS
from cluster_contract import prices as contract

NEAREST_KNOWN = "us-east-1"
"""The region whose price stands in where that of a region is not known; whoever shows it says so."""

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


class _ByRegion(Generic[_Figure]):
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

    on_demand: _ByRegion[Price] = field(default_factory=_ByRegion)
    spot: _ByRegion[SpotRange] = field(default_factory=_ByRegion)
    units: _ByRegion[Price] = field(default_factory=_ByRegion)

    def updated(self, newer: "PriceBook") -> "PriceBook":
        """Return a book with another's figures in place of its own where both have one.

        Args:
            newer: The book whose figures count.
        """
        return PriceBook(
            on_demand=_ByRegion([*self.on_demand.items(), *newer.on_demand.items()]),
            spot=_ByRegion([*self.spot.items(), *newer.spot.items()]),
            units=_ByRegion([*self.units.items(), *newer.units.items()]),
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
        return self.updated(PriceBook(on_demand=_ByRegion(types), units=_ByRegion(units)))


def committed_prices() -> PriceBook:
    """Return the snapshot that comes with this library: for planning, where nothing newer is known."""
    path = resources.files(__package__).joinpath("snapshot.json")
    snapshot = json.loads(path.read_text(encoding="utf-8"), parse_float=Decimal)
    return book_of({**snapshot, "on_demand": contract.on_demand_document(parse_float=Decimal)})


def book_of(document: Mapping[str, Any]) -> PriceBook:
    """Return the book that a document holds.

    Args:
        document: `on_demand`, `spot` and `units`, each with the sources that it names.
    """
    on_demand, spot, units = (document.get(key, {}) for key in ("on_demand", "spot", "units"))
    return PriceBook(
        on_demand=_ByRegion(
            (name, Price(usd=_decimal(usd), unit="instance-hour", region=region, source=_source(on_demand)))
            for name, regions in on_demand.get("on_demand", {}).items()
            for region, usd in regions.items()
        ),
        spot=_ByRegion(
            (name, _spot_range(region, entry, _source(spot)))
            for name, regions in spot.get("types", {}).items()
            for region, entry in regions.items()
        ),
        units=_ByRegion(
            (name, Price(usd=_decimal(each["usd"]), unit=UNITS[name].unit, region=region, source=_source(each)))
            for name, regions in units.items()
            for region, each in regions.items()
        ),
    )


def document_of(book: PriceBook) -> dict[str, Any]:
    """Return what `book_of` reads; all On-Demand prices have one source, and so have all Spot prices.

    Args:
        book: The book.
    """
    on_demand: dict[str, Any] = {}
    spot: dict[str, Any] = {}
    units: dict[str, Any] = {}
    for name, price in book.on_demand.items():
        on_demand.setdefault(name, {})[price.region] = price.usd
    for name, each in book.spot.items():
        spot.setdefault(name, {})[each.region] = [each.low, each.high, "|".join(each.zones)]
    for name, price in book.units.items():
        units.setdefault(name, {})[price.region] = {"usd": price.usd, **_source_document(price.source)}
    dated = next((price.source for _, price in book.on_demand.items()), None)
    seen = next((each.source for _, each in book.spot.items()), None)
    return {
        "on_demand": {**_source_document(dated), "on_demand": on_demand},
        "spot": {**_source_document(seen), "types": spot},
        "units": units,
    }


def _spot_range(region: str, entry: list[Any], source: Source) -> SpotRange:
    low, high, zones = entry
    return SpotRange(
        low=_decimal(low), high=_decimal(high), zones=tuple(zones.split("|")), region=region, source=source
    )


def _decimal(value: object) -> Decimal:
    amount = Decimal(str(value))
    if not amount.is_finite() or amount < 0:
        raise ValueError(f"a price must be a number of at least 0, got {value}")
    return amount


def _source(document: Mapping[str, Any]) -> Source:
    as_of = document.get("as_of")
    return Source(
        address=document.get("source", ""),
        as_of=None if as_of is None else date.fromisoformat(as_of),
        note=document.get("note", ""),
    )


def _source_document(source: Source | None) -> dict[str, Any]:
    if source is None:
        return {}
    as_of = None if source.as_of is None else source.as_of.isoformat()
    return {"source": source.address, "as_of": as_of, **({"note": source.note} if source.note else {})}
