"""Prices from the AWS Price List, asked once a day and kept in the state table."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from aws_lambda_powertools import Logger

from cluster_common.errors import AWS_ERRORS, error_text
from cluster_common.state_table import StateChangedError, StateItem, StateTable
from cluster_common.times import parse_time, time_text
from cluster_contract.listings import Listing, listing_of
from cluster_contract.price_list import ADDRESS
from cluster_contract.prices import on_demand_type
from cluster_spend.prices import Figure

if TYPE_CHECKING:
    from mypy_boto3_pricing.client import PricingClient

NAME = "prices"
"""The name of the item in the state table."""

_FRESH = timedelta(days=1)
# Where AWS refuses, it is asked again after so long.
_AGAIN = timedelta(hours=1)
_KEPT = timedelta(days=90)
# Each takes a call: of a cluster with more of them the others come in the next runs.
_MAX_ASKED = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class _Listed:
    """What the Price List said of an instance type or a unit.

    Attributes:
        usd: US dollars an hour, or a unit. Empty: it has not one price.
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

    def figures(self, names: Collection[str], now: datetime, *, refresh: bool) -> dict[str, Figure]:
        """Return prices by their names; what is not listed is left out.

        Args:
            names: The names of prices.
            now: The time.
            refresh: Whether AWS may be asked, and the answers be kept.
        """
        listings = {_key(name): listing for name in names if (listing := listing_of(name)) is not None}
        due = [key for key in sorted(listings) if key not in self._listed or self._listed[key].is_due(now)]
        if refresh and due:
            for key in due[:_MAX_ASKED]:
                self._listed[key] = self._ask(key, listings[key], now)
            self._write(now)
        known = ((name, self._listed[_key(name)]) for name in names if _key(name) in self._listed)
        return {name: Figure(usd=Decimal(one.usd), source=ADDRESS, as_of=one.as_of) for name, one in known if one.usd}

    def _ask(self, key: str, listing: Listing, now: datetime) -> _Listed:
        try:
            found = self._prices(listing)
        except (*AWS_ERRORS, ValueError, KeyError, TypeError, ArithmeticError) as error:
            before = self._listed.get(key)
            what = f"the AWS Price List gave no price of {key}, so the price known before stays in use"
            self._logger.warning(f"{what} ({error_text(error)})")
            usd, as_of = (before.usd, before.as_of) if before else ("", "")
            return _Listed(usd=usd, as_of=as_of, asked_at=now, answered=False)
        # Where the list has several prices it is unknown which is meant.
        usd, as_of = next(iter(found.items())) if len(found) == 1 else ("", "")
        return _Listed(usd=usd, as_of=as_of, asked_at=now, answered=True)

    def _prices(self, listing: Listing) -> dict[str, str]:
        """Return each price of an item with its date."""
        answer = self._client().get_products(**listing.request(self._region))
        return {
            f"{usd:f}": "" if day is None else day.isoformat()
            for region, usd, day in listing.prices(answer["PriceList"])
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


def _key(name: str) -> str:
    """Return what a price is kept under: instance types under their own names."""
    return on_demand_type(name) or name


def _read(raw: Mapping[str, Any]) -> _Listed:
    """Read what `_Listed.to_values` wrote; anything else is asked for anew."""
    try:
        if not Decimal(raw["usd"] or 0).is_finite():
            return _UNREADABLE
        asked_at = parse_time(raw["asked_at"])
        return _Listed(usd=raw["usd"], as_of=raw["as_of"], asked_at=asked_at, answered=raw["answered"])
    except (ArithmeticError, KeyError, TypeError, ValueError):
        return _UNREADABLE
