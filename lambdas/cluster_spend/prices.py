"""What things cost, with the source and the age of each figure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from cluster_contract.prices import on_demand_price, on_demand_type, price_document, unit_price
from cluster_contract.spend import SpendFunctionSettings

_SPOT, _BLOCK = "spot", "capacity-block"


def spot_price_name(instance_type: str, zone: str) -> str:
    """Return the name of the price of a Spot Instance."""
    return f"{_SPOT} {instance_type} {zone}"


def block_price_name(block: str) -> str:
    """Return the name of the price of an instance in a Capacity Block."""
    return f"{_BLOCK} {block}"


def spot_pools(names: Iterable[str]) -> set[tuple[str, str]]:
    """Return instance type and Availability Zone of those names that `spot_price_name` made."""
    split = (name.split(" ") for name in names)
    return {(words[1], words[2]) for words in split if words[0] == _SPOT}


@dataclass(frozen=True, kw_only=True, slots=True)
class Figure:
    """A price.

    Attributes:
        usd: US dollars an hour of an instance, or a unit.
        source: Where it is from.
        as_of: When it held, as text. Empty: the source does not say.
        estimated: Whether it is another region's, which stands in.
    """

    usd: Decimal
    source: str
    as_of: str = ""
    estimated: bool = False


@dataclass(frozen=True, kw_only=True)
class Prices:
    """Holds what is known of prices: what is stated first, then what AWS said, then the list in the contract.

    Attributes:
        settings: The function's settings.
        asked: What AWS said, by the names of the prices.
    """

    settings: SpendFunctionSettings
    asked: Mapping[str, Figure] = field(default_factory=dict)

    def stated(self, name: str) -> float | None:
        """Return the price that the settings state under its name, or under its name without the first word."""
        return self.settings.prices.get(name) or self.settings.prices.get(name.partition(" ")[2])

    def find(self, name: str) -> Figure | None:
        """Return a price by its name. None: it is not known."""
        instance_type = on_demand_type(name)
        stated = self.stated(name)
        if stated is not None:
            return Figure(usd=Decimal(str(stated)), source="stated in the budget's prices")
        if name in self.asked:
            return self.asked[name]
        return self._unit(name) if instance_type is None else self._listed(instance_type)

    def is_asked(self, name: str) -> bool:
        """Say whether the AWS Price List is to be asked for a price: of instances, and of units of other regions."""
        if self.stated(name) is not None:
            return False
        found = None if on_demand_type(name) is not None else self._unit(name)
        return found is None or found.estimated

    def known(self, names: Iterable[str]) -> dict[str, Figure]:
        """Return those prices that are known, by name."""
        return {name: figure for name in names if (figure := self.find(name)) is not None}

    def _listed(self, instance_type: str) -> Figure | None:
        usd, document = on_demand_price(instance_type, self.settings.region), price_document()
        if usd is None:
            return None
        return Figure(usd=Decimal(str(usd)), source=document["source"], as_of=document["as_of"] or "")

    def _unit(self, name: str) -> Figure | None:
        """Return the price of a unit; that of another region stands in for one that is not known, and says so."""
        found = unit_price(name, self.settings.region)
        if found is None:
            return None
        estimated = found.region != self.settings.region
        where = f", the price in {found.region}" if estimated else ""
        return Figure(usd=found.usd, source=found.source + where, as_of=found.as_of, estimated=estimated)
