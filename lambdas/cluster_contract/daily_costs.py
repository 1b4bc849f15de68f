"""What a series of daily amounts says: levels, spikes, trend, and what comes. Medians, so that no day drags them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import combinations, groupby, pairwise
from math import sqrt
from statistics import median

MIN_DAYS = 7
"""Fewer days have neither spikes nor a trend."""

LEVEL_DAYS = 3
"""So many days in a row are a level of their own, and no spikes."""

# The modified z-score of Iglewicz and Hoaglin: 3.5 deviations, each 1.4826 median absolute deviations, or, where more
# than half of the days are alike, 1.2533 mean ones. https://www.itl.nist.gov/div898/handbook/eda/section3/eda35h.htm
_DEVIATIONS = Decimal("3.5")
_OF_MEDIAN_DEVIATION = Decimal("1.4826")
_OF_MEAN_DEVIATION = Decimal("1.2533")
# A mean is moved by the very days that are looked for: one in so many, and at least one, is left out of it.
_ONE_OF = 20
# So many days of a level are nearer to it than to the one beside it; a rhythm of the week has no levels.
_NEARLY_ALL = Decimal("0.9")
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


@dataclass(frozen=True, kw_only=True)
class Level:
    """Days in a row of which the median is another than that of the days before.

    Attributes:
        start: The position of its first day.
        end: The position after its last.
        amount: The median of its days.
        limit: The amount above which one of its days is a spike.
    """

    start: int
    end: int
    amount: Decimal
    limit: Decimal


def levels(amounts: Sequence[Decimal]) -> tuple[Level, ...]:
    """Return the levels of daily amounts, one after the other. Empty: there are too few days.

    The days are cut in two where both parts are nearest to their own medians, or where days above the limit begin or
    end that are too many to be spikes, and again as long as the medians differ as much as a spike from its days.

    Args:
        amounts: The amounts, a day each.
    """
    if len(amounts) < MIN_DAYS:
        return ()
    bounds = [0, *_cuts(amounts, 0), len(amounts)]
    return tuple(
        Level(start=start, end=end, amount=median(amounts[start:end]), limit=_limit(amounts[start:end]))
        for start, end in pairwise(bounds)
    )


def spike_days(amounts: Sequence[Decimal]) -> tuple[int, ...]:
    """Return the positions of the days that cost more than the limit of their level.

    Args:
        amounts: The amounts, a day each.
    """
    return tuple(
        level.start + day
        for level in levels(amounts)
        for run in _runs(amounts[level.start : level.end])
        if len(run) < LEVEL_DAYS
        for day in run
    )


def spike_limit(amounts: Sequence[Decimal]) -> Decimal | None:
    """Return the amount above which a day of one level is a spike. None: there are too few days.

    Args:
        amounts: The amounts, a day each.
    """
    return _limit(amounts) if len(amounts) >= MIN_DAYS else None


def _limit(amounts: Sequence[Decimal]) -> Decimal:
    middle = median(amounts)
    deviation = _deviation([abs(amount - middle) for amount in amounts])
    return middle + max(_DEVIATIONS * deviation, _LEAST_EXCESS * abs(middle))


def _deviation(distances: Sequence[Decimal]) -> Decimal:
    usual = _OF_MEDIAN_DEVIATION * median(distances)
    if usual:
        return usual
    kept = sorted(distances)[: -max(1, len(distances) // _ONE_OF)]
    return _OF_MEAN_DEVIATION * sum(kept, Decimal(0)) / len(kept)


def _cuts(amounts: Sequence[Decimal], start: int) -> Iterator[int]:
    """Yield where levels begin, but for the first."""
    place = _step(amounts) or _edge(amounts)
    if place is not None:
        yield from _cuts(amounts[:place], start)
        yield start + place
        yield from _cuts(amounts[place:], start + place)


def _step(amounts: Sequence[Decimal]) -> int | None:
    """Return where the days go from one level to another: nearly all of them are nearest to that of their part."""
    places = range(LEVEL_DAYS, len(amounts) - LEVEL_DAYS + 1)
    if not places:
        return None
    place = min(places, key=lambda each: sum(_distances(amounts, each)))
    medians = median(amounts[:place]), median(amounts[place:])
    least = max(_DEVIATIONS * _deviation(_distances(amounts, place)), _LEAST_EXCESS * min(map(abs, medians)))
    if abs(medians[0] - medians[1]) <= least:
        return None
    before, after = medians
    nearest = sum(abs(amount - before) < abs(amount - after) for amount in amounts[:place])
    further = sum(abs(amount - after) < abs(amount - before) for amount in amounts[place:])
    if nearest < _NEARLY_ALL * place or further < _NEARLY_ALL * (len(amounts) - place):
        return None
    return place


def _edge(amounts: Sequence[Decimal]) -> int | None:
    """Return where a level within others begins or ends."""
    for run in _runs(amounts):
        if len(run) >= LEVEL_DAYS:
            for place in (run.start, run.stop):
                if LEVEL_DAYS <= place <= len(amounts) - LEVEL_DAYS:
                    return place
    return None


def _runs(amounts: Sequence[Decimal]) -> Iterator[range]:
    """Yield the days above the limit that follow each other."""
    limit, start = _limit(amounts), 0
    for above, days in groupby(amounts, key=lambda amount: amount > limit):
        end = start + len(list(days))
        if above:
            yield range(start, end)
        start = end


def _distances(amounts: Sequence[Decimal], place: int) -> list[Decimal]:
    """Return how far each day is from the median of its part."""
    return [
        abs(amount - middle)
        for part in (amounts[:place], amounts[place:])
        for middle in (median(part),)
        for amount in part
    ]


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
