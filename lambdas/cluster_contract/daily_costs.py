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
        clear: Whether the days rise or fall so often that chance would do it once in twenty times at most, and that
            median is above or below 0: after one step between two levels it may be 0.
    """

    per_day: Decimal
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
    rises = sum((difference > 0) - (difference < 0) for difference, _ in pairs)
    count = len(amounts)
    spread = sqrt(count * (count - 1) * (2 * count + 5) / 18)
    return Trend(per_day=per_day, clear=per_day != 0 and (abs(rises) - 1) / spread > _SURE)


def next_days(amounts: Sequence[Decimal], days: int) -> Decimal | None:
    """Return what the next days cost if they go on as the last seven did. None: there are too few days.

    Each costs the mean of these seven, in which a spike counts no more than their limit. Earlier days do not count,
    since a cluster that was started or stopped meanwhile has another level.

    Args:
        amounts: The amounts so far, a day each.
        days: How many days there are to come.
    """
    last = amounts[-MIN_DAYS:]
    limit = spike_limit(last)
    if limit is None:
        return None
    return sum((min(amount, limit) for amount in last), Decimal(0)) / len(last) * days


def used_share(amounts: Sequence[Decimal], commitment: Decimal) -> Decimal:
    """Return which share of a daily commitment the days would have used.

    Args:
        amounts: What each day cost without it; at least one day.
        commitment: What is committed a day, above 0, at the same prices.
    """
    return sum((min(amount, commitment) for amount in amounts), Decimal(0)) / (commitment * len(amounts))
