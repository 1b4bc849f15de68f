"""On-Demand prices from the AWS Price List, asked once a day and kept in the state table."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from aws_lambda_powertools import Logger

from cluster_common.errors import AWS_ERRORS, error_text
from cluster_common.state_table import StateChangedError, StateItem, StateTable
from cluster_common.times import parse_time, time_text
from cluster_contract.price_list import ADDRESS, first_tiers, is_on_demand, on_demand_fields, products_of_regions
from cluster_spend.prices import Figure, on_demand_price_name

if TYPE_CHECKING:
    from mypy_boto3_pricing.client import PricingClient

NAME = "prices"
"""The name of the item in the state table."""

_FRESH = timedelta(days=1)
# Where AWS refuses, it is asked again after so long.
_AGAIN = timedelta(hours=1)
_KEPT = timedelta(days=90)
# Each takes a call: of a cluster with more types the others come in the next runs.
_MAX_ASKED = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class _Listed:
    """What the Price List said of an instance type.

    Attributes:
        usd: US dollars an hour. Empty: it has not one price.
        as_of: The day on which it was published. Empty: it does not say.
        asked_at: When it was asked last. None: what is kept cannot be read.
        answered: Whether it answered.
    """

    usd: str
    as_of: str
    asked_at: datetime | None
    answered: bool

    def is_due(self, now: datetime) -> bool:
        """Say whether it is to be asked again."""
        return self.asked_at is None or now - self.asked_at >= (_FRESH if self.answered else _AGAIN)

    def to_values(self) -> dict[str, Any]:
        """Return it as the state table keeps it."""
        at = "" if self.asked_at is None else time_text(self.asked_at)
        return {"usd": self.usd, "as_of": self.as_of, "asked_at": at, "answered": self.answered}


_UNREADABLE = _Listed(usd="", as_of="", asked_at=None, answered=False)


class ListedPrices:
    """Keeps the prices of the Price List. A failure is logged and fails no run: known prices stay in use."""

    def __init__(
        self,
        client: "Callable[[], PricingClient]",
        table: StateTable,
        item: StateItem,
        region: str,
        logger: Logger,
    ) -> None:
        """Read what is kept.

        Args:
            client: Makes the client of the Price List.
            table: The part of the state table that the function writes.
            item: What is kept there.
            region: The region whose prices are asked for.
            logger: Where failures are written.
        """
        self._client, self._table, self._item = client, table, item
        self._region, self._logger = region, logger
        self._listed = {name: _read(raw) for name, raw in item.values.items()}

    def figures(self, instance_types: Collection[str], now: datetime, *, refresh: bool) -> dict[str, Figure]:
        """Return the prices of instance types, by the names of the prices; what is not listed is left out.

        Args:
            instance_types: The types.
            now: The time.
            refresh: Whether AWS may be asked, and the answers be kept.
        """
        due = [name for name in sorted(instance_types) if name not in self._listed or self._listed[name].is_due(now)]
        if refresh and due:
            for name in due[:_MAX_ASKED]:
                self._listed[name] = self._ask(name, now)
            self._write(now)
        known = ((name, self._listed[name]) for name in instance_types if name in self._listed)
        return {
            on_demand_price_name(name): Figure(usd=Decimal(one.usd), source=ADDRESS, as_of=one.as_of)
            for name, one in known
            if one.usd
        }

    def _ask(self, instance_type: str, now: datetime) -> _Listed:
        try:
            found = self._prices(instance_type)
        except (*AWS_ERRORS, ValueError, KeyError, TypeError, ArithmeticError) as error:
            before = self._listed.get(instance_type)
            what = f"the AWS Price List gave no price of {instance_type}, so the price known before stays in use"
            self._logger.warning(f"{what} ({error_text(error)})")
            usd, as_of = (before.usd, before.as_of) if before else ("", "")
            return _Listed(usd=usd, as_of=as_of, asked_at=now, answered=False)
        # Where the list has several prices it is unknown which is meant.
        usd, as_of = next(iter(found.items())) if len(found) == 1 else ("", "")
        return _Listed(usd=usd, as_of=as_of, asked_at=now, answered=True)

    def _prices(self, instance_type: str) -> dict[str, str]:
        """Return each price of a type with its date."""
        fields = on_demand_fields(instance_type, self._region)
        answer = self._client().get_products(
            ServiceCode="AmazonEC2",
            FormatVersion="aws_v1",
            Filters=[{"Type": "TERM_MATCH", "Field": field, "Value": value} for field, value in fields.items()],
        )
        return {
            f"{usd:f}": "" if day is None else day.isoformat()
            for product in products_of_regions(answer["PriceList"])
            if is_on_demand(product)
            for region, usd, day in first_tiers(product)
            if region == self._region
        }

    def _write(self, now: datetime) -> None:
        values = {name: one.to_values() for name, one in self._listed.items()}
        try:
            self._item = self._table.write(NAME, values, seen=self._item, expires=now + _KEPT)
        except (StateChangedError, *AWS_ERRORS) as error:
            what = (
                "the prices from the AWS Price List could not be written to the state table; the next run asks again"
            )
            self._logger.warning(f"{what} ({error_text(error)})")


def _read(raw: Mapping[str, Any]) -> _Listed:
    """Read what `_Listed.to_values` wrote; anything else is asked for anew."""
    try:
        if not Decimal(raw["usd"] or 0).is_finite():
            return _UNREADABLE
        asked_at = parse_time(raw["asked_at"])
        return _Listed(usd=raw["usd"], as_of=raw["as_of"], asked_at=asked_at, answered=raw["answered"])
    except (ArithmeticError, KeyError, TypeError, ValueError):
        return _UNREADABLE
