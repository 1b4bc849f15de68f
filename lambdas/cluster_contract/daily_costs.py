"""What a series of daily amounts says: its spikes, its trend, and what comes. Medians, so that no day drags them."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import combinations
from math import sqrt
from statistics import median

MIN_DAYS = 7
"""Fewer days have neither spikes nor a trend."""

# The modified z-score of Iglewicz and Hoaglin: 3.5 deviations, each 1.4826 median absolute deviations, or, where more
# than half of the days are alike, 1.2533 mean ones. https://www.itl.nist.gov/div898/handbook/eda/section3/eda35h.htm
_DEVIATIONS = Decimal("3.5")
_OF_MEDIAN_DEVIATION = Decimal("1.4826")
_OF_MEAN_DEVIATION = Decimal("1.2533")
# Less than this share above the median is no spike, however alike the other days are.
_LEAST_EXCESS = Decimal("0.1")
# How sure the Mann-Kendall test is of a trend: 95 %. https://vsp.pnnl.gov/help/vsample/design_trend_mann_kendall.htm
_SURE = 1.96


@dataclass(frozen=True, kw_only=True)
class Trend:
    """How daily amounts change.

    Attributes:
        per_day: By how much each day is above the day before: the median of the slopes between any two days
            (Theil-Sen).
        start: The amount of the first day, on that line.
        clear: Whether the days rise or fall so often that chance would do it once in twenty times at most.
    """

    per_day: Decimal
    start: Decimal
    clear: bool


def spike_limit(amounts: Sequence[Decimal]) -> Decimal | None:
    """Return the amount above which a day is a spike. None: there are too few days.

    Args:
        amounts: The amounts, a day each.
    """
    if len(amounts) < MIN_DAYS:
        return None
    middle = median(amounts)
    distances = [abs(amount - middle) for amount in amounts]
    deviation = _OF_MEDIAN_DEVIATION * median(distances)
    if not deviation:
        deviation = _OF_MEAN_DEVIATION * sum(distances) / len(distances)
    return middle + max(_DEVIATIONS * deviation, _LEAST_EXCESS * abs(middle))


def trend(amounts: Sequence[Decimal]) -> Trend | None:
    """Return how the amounts change. None: there are too few days.

    Args:
        amounts: The amounts, a day each.
    """
    if len(amounts) < MIN_DAYS:
        return None
    pairs = [(later - earlier, at - since) for (since, earlier), (at, later) in combinations(enumerate(amounts), 2)]
    per_day = median(difference / days for difference, days in pairs)
    start = median(amount - per_day * day for day, amount in enumerate(amounts))
    rises = sum((difference > 0) - (difference < 0) for difference, _ in pairs)
    count = len(amounts)
    spread = sqrt(count * (count - 1) * (2 * count + 5) / 18)
    return Trend(per_day=per_day, start=start, clear=(abs(rises) - 1) / spread > _SURE)


def next_days(amounts: Sequence[Decimal], days: int) -> Decimal | None:
    """Return what the next days cost if the days go on as they did. None: there are too few days.

    With a clear trend they go on along its line; without one each costs the mean, in which a spike counts no more
    than the limit.

    Args:
        amounts: The amounts so far, a day each.
        days: How many days there are to come.
    """
    limit, line = spike_limit(amounts), trend(amounts)
    if limit is None or line is None:
        return None
    if not line.clear:
        return sum((min(amount, limit) for amount in amounts), Decimal(0)) / len(amounts) * days
    first = len(amounts)
    return sum(
        (max(Decimal(0), line.start + line.per_day * day) for day in range(first, first + days)), start=Decimal(0)
    )


def used_share(amounts: Sequence[Decimal], commitment: Decimal) -> Decimal:
    """Return which share of a daily commitment the days would have used.

    Args:
        amounts: What each day cost without it; at least one day.
        commitment: What is committed a day, above 0, at the same prices.
    """
    return sum((min(amount, commitment) for amount in amounts), Decimal(0)) / (commitment * len(amounts))
