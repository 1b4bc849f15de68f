"""What operators and alarms see: the summary and the metrics."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from aws_lambda_powertools.metrics import MetricUnit

from cluster_common.metrics import CLUSTER_DIMENSION, NODE_GROUP_DIMENSION, emit
from cluster_common.times import format_minutes, time_text
from cluster_contract.spend import KIND_DIMENSION, SpendFunctionSettings, SpendMetric
from cluster_spend.acts import NO_ACTS, Acts
from cluster_spend.charges import Item
from cluster_spend.months import Month, month_start
from cluster_spend.prices import Prices

_HOUR = 3600
_MICRO = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Spend:
    """What a cluster costs.

    Attributes:
        now: The time.
        month: What is counted of this month.
        units: What is billed an hour now.
        unpriced: What was billed whose price was not known, also in the month before.
        ahead: The seconds of units that are billed from now until the month's end if the cluster goes on as it is.
        prices: What is known of prices.
    """

    now: datetime
    month: Month
    units: Mapping[Item, Decimal]
    unpriced: Collection[Item]
    ahead: Mapping[Item, Decimal]
    prices: Prices

    @property
    def rates(self) -> dict[Item, Decimal]:
        """What is billed an hour now whose price is known, in USD."""
        return self._dollars(self.units)

    @property
    def usd_per_hour(self) -> Decimal:
        """What the cluster costs an hour now, as far as prices are known."""
        return sum(self.rates.values(), Decimal())

    @property
    def forecast_usd(self) -> Decimal:
        """What it will have cost at the end of the month if it goes on as it is."""
        return self.month.usd + sum(self._dollars(self.ahead).values(), Decimal()) / _HOUR

    @property
    def unknown(self) -> tuple[str, ...]:
        """The names of the prices that are not known, of what is or was billed this month or the month before."""
        names = {item.price for item in (*self.units, *self.unpriced)}
        return tuple(sorted(names - self.prices.known(names).keys()))

    def by_group(self) -> dict[str, tuple[Decimal, Decimal]]:
        """Return USD an hour and of this month by node group, the cluster's own parts under an empty name."""
        return self._by(0)

    def by_kind(self) -> dict[str, tuple[Decimal, Decimal]]:
        """Return USD an hour and of this month by kind."""
        return self._by(1)

    def _dollars(self, units: Mapping[Item, Decimal]) -> dict[Item, Decimal]:
        known = self.prices.known({item.price for item in units})
        return {item: count * known[item.price].usd for item, count in units.items() if item.price in known}

    def _by(self, part: int) -> dict[str, tuple[Decimal, Decimal]]:
        rates, months = defaultdict[str, Decimal](Decimal), defaultdict[str, Decimal](Decimal)
        for item, usd in self.rates.items():
            rates[item[part]] += usd
        for key, micro in self.month.spent.items():
            months[key[part]] += Decimal(micro) / _MICRO
        return {name: (rates[name], months[name]) for name in sorted({*rates, *months})}


def emit_metrics(settings: SpendFunctionSettings, spend: Spend, *, complete: bool) -> None:
    """Write the run's metrics for the cluster, its node groups and its kinds of charges.

    Args:
        settings: The function's settings.
        spend: What the cluster costs.
        complete: Whether nothing failed.
    """
    cluster = {CLUSTER_DIMENSION: settings.cluster}
    dollars = {
        SpendMetric.DOLLARS_PER_HOUR: spend.usd_per_hour,
        SpendMetric.MONTH_TO_DATE: spend.month.usd,
        SpendMetric.FORECAST: spend.forecast_usd,
        SpendMetric.GAP_MINUTES: Decimal(int(spend.month.gap.total_seconds() // 60)),
        SpendMetric.UNKNOWN_PRICES: Decimal(len(spend.unknown)),
        SpendMetric.SUCCESSFUL_TICKS: Decimal(int(complete)),
    }
    _emit(dollars, cluster)
    for dimension, parts in ((NODE_GROUP_DIMENSION, spend.by_group()), (KIND_DIMENSION, spend.by_kind())):
        for name, (rate, month) in parts.items():
            if name:
                values = {SpendMetric.DOLLARS_PER_HOUR: rate, SpendMetric.MONTH_TO_DATE: month}
                _emit(values, {**cluster, dimension: name})


def _emit(values: Mapping[SpendMetric, Decimal], dimensions: Mapping[str, str]) -> None:
    emit({name.value: round(float(value), 6) for name, value in values.items()}, MetricUnit.NoUnit, **dimensions)


def emit_failure(settings: SpendFunctionSettings) -> None:
    """Write that a run failed: it knows no dollars, and writes no point of them."""
    _emit({SpendMetric.SUCCESSFUL_TICKS: Decimal()}, {CLUSTER_DIMENSION: settings.cluster})


def summarize(settings: SpendFunctionSettings, action: str, spend: Spend, acts: Acts) -> dict[str, object]:
    """Return what the cluster costs, as plain JSON.

    Args:
        settings: The function's settings.
        action: What the event asked for.
        spend: What the cluster costs.
        acts: What the budget has done.
    """
    month, prices = spend.month, spend.prices
    known = prices.known({item.price for item in spend.units})
    return {
        "cluster": settings.cluster,
        "action": action,
        "usd_per_hour": _usd(spend.usd_per_hour),
        "month": month.name,
        "month_to_date_usd": _usd(month.usd),
        "counted_since": time_text(month.since),
        "counted_through": time_text(month.through),
        "forecast_usd": _usd(spend.forecast_usd),
        "budget_usd": settings.monthly_usd,
        "node_groups": {name: _pair(pair) for name, pair in spend.by_group().items() if name},
        "kinds": {name: _pair(pair) for name, pair in spend.by_kind().items()},
        "prices": {
            name: {"usd": f"{one.usd:f}", "source": one.source, "as_of": one.as_of or None}
            for name, one in sorted(known.items())
        },
        "estimated_prices": sorted(name for name, one in known.items() if one.estimated),
        "unknown_prices": list(spend.unknown),
        "acts": _acts(acts if acts.month == month.name else NO_ACTS),
        **({"gap": gap} if (gap := gap_sentence(month)) else {}),
    }


def gap_sentence(month: Month) -> str:
    """Say what may be missing in the month-to-date. Empty: nothing."""
    found = []
    if month.since > month_start(month.since):
        found.append(
            f"The spend function first ran at {time_text(month.since)}. Of the time before, it counts only the "
            "instances "
            "and Capacity Blocks that EC2 still listed."
        )
    if month.gap:
        found.append(
            f"No run of the spend function succeeded for {format_minutes(month.gap)} in which instances may have "
            "ended: "
            "instances that were launched and terminated in that time may be missing, and instances that were "
            "stopped and started in it are counted as if they had run throughout."
        )
    return " ".join(found)


def _acts(acts: Acts) -> dict[str, object]:
    """Say what the budget has done this month, and what it is about to do."""
    stop_at = None if acts.stop_at is None else time_text(acts.stop_at)
    return {"acted_on_usd": _usd(acts.usd), "stops_at": stop_at, "stops": list(acts.groups if stop_at else ())}


def _pair(pair: tuple[Decimal, Decimal]) -> dict[str, float]:
    return {"usd_per_hour": _usd(pair[0]), "month_to_date_usd": _usd(pair[1])}


def _usd(amount: Decimal) -> float:
    return round(float(amount), 4)
