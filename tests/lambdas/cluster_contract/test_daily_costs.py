"""Spikes, trend and forecast of daily amounts: what one day can do to them, and what it cannot."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_contract.daily_costs import (
    LEVEL_DAYS,
    MIN_DAYS,
    Trend,
    levels,
    next_days,
    spike_days,
    spike_limit,
    trend,
    used_share,
)

_AMOUNTS = st.decimals(min_value=0, max_value=10**6, places=2)
_DAYS = st.lists(_AMOUNTS, min_size=MIN_DAYS, max_size=40)


@given(st.lists(_AMOUNTS, max_size=MIN_DAYS - 1))
def test_too_few_days_say_nothing(amounts: list[Decimal]) -> None:
    assert (spike_limit(amounts), trend(amounts), next_days(amounts, 3)) == (None, None, None)
    assert (levels(amounts), spike_days(amounts)) == ((), ())


@given(_DAYS, st.randoms(use_true_random=False), st.integers(2, 1000))
def test_the_limit_knows_neither_the_order_of_the_days_nor_the_currency(
    amounts: list[Decimal], random: object, factor: int
) -> None:
    limit, moved = spike_limit(amounts), list(amounts)
    random.shuffle(moved)  # type: ignore[attr-defined]
    assert limit is not None
    assert limit >= sorted(amounts)[len(amounts) // 2 - 1]
    assert abs((spike_limit(moved) or 0) - limit) < Decimal("1e-9")
    assert abs((spike_limit([amount * factor for amount in amounts]) or 0) - limit * factor) < Decimal("1e-6")


@given(_AMOUNTS, st.integers(MIN_DAYS, 40), st.integers(2, 10**6))
def test_one_day_among_alike_ones_is_a_spike_however_large_it_is(amount: Decimal, days: int, factor: int) -> None:
    spike = (amount + 1) * factor
    limit = spike_limit([*[amount] * (days - 1), spike])
    assert limit is not None
    assert amount <= limit < spike


@given(st.lists(_AMOUNTS, min_size=MIN_DAYS, max_size=30, unique=True), st.integers(1, 10**6))
def test_a_spike_does_not_drag_the_limit(amounts: list[Decimal], more: int) -> None:
    spike = sum(amounts, Decimal(1))
    assert spike_limit([*amounts, spike]) == spike_limit([*amounts, spike + more])


@given(_AMOUNTS, st.decimals(min_value=1, max_value=100, places=2), st.integers(9, 40), st.data())
def test_the_trend_of_a_line_is_the_line_whatever_one_day_is(
    start: Decimal, per_day: Decimal, days: int, data: st.DataObject
) -> None:
    amounts = [start + per_day * day for day in range(days)]
    amounts[data.draw(st.integers(0, days - 1))] = data.draw(_AMOUNTS)
    found = trend(amounts)
    assert found is not None
    assert (found.clear, found.per_day) == (True, per_day)


@given(_AMOUNTS, st.integers(MIN_DAYS, 40), st.integers(0, 31), st.lists(_AMOUNTS, max_size=40))
def test_alike_days_go_on_whatever_was_before(amount: Decimal, days: int, left: int, before: list[Decimal]) -> None:
    assert not (trend([amount] * days) or Trend(per_day=Decimal(1), clear=True)).clear
    assert abs((next_days([*before, *[amount] * days], left) or 0) - amount * left) < Decimal("1e-9")


@given(st.permutations([0, 1000]))
def test_one_step_is_no_trend_of_zero(levels: list[int]) -> None:
    found = trend([*[Decimal(levels[0])] * 20, *[Decimal(levels[1])] * 10])
    assert found is not None
    assert not found.clear


@given(_DAYS, st.integers(0, 31))
def test_what_comes_is_never_below_zero_and_grows_with_the_days(amounts: list[Decimal], days: int) -> None:
    fewer, more = next_days(amounts, days), next_days(amounts, days + 1)
    assert fewer is not None
    assert more is not None
    assert 0 <= fewer <= more


@given(_DAYS, st.decimals(min_value=1, max_value=10**6, places=2))
def test_a_larger_commitment_is_used_less(amounts: list[Decimal], commitment: Decimal) -> None:
    assert 0 <= used_share(amounts, commitment * 2) <= used_share(amounts, commitment) <= 1


_DAY = 5_303
# The amounts; where levels begin; which days are spikes; the limit of the last level. Worked out by hand: days that
# are alike, but for one that is left out, have the deviation 0, so that the limit is a tenth above them.
_SERIES: dict[str, tuple[list[int], list[int], list[int], str]] = {
    "alike": ([_DAY] * 30, [0], [], "5833.3"),
    "a step up is a level": ([_DAY] * 24 + [10_573] * 6, [0, 24], [], "11630.3"),
    "a step down is a level": ([10_573] * 24 + [_DAY] * 6, [0, 24], [], "5833.3"),
    "two days are spikes": ([_DAY] * 20 + [10_573] * 2 + [_DAY] * 8, [0], [20, 21], "6100.14"),
    "three days are a level": ([_DAY] * 20 + [10_573] * 3 + [_DAY] * 7, [0, 20, 23], [], "5833.3"),
    "a spike of a new level": ([_DAY] * 20 + [10_573] * 9 + [30_000], [0, 20], [29], "11630.3"),
    "a spike before a new level": ([_DAY] * 9 + [8_000] + [_DAY] * 10 + [10_573] * 10, [0, 20], [9], "11630.3"),
    "a large spike hides no small one": (
        [_DAY] * 10 + [7_954] + [_DAY] * 10 + [100_000] + [_DAY] * 8,
        [0],
        [10, 21],
        "5833.3",
    ),
    "weekdays only": (([100] * 5 + [0] * 2) * 4, [0], [], "213.73"),
    "two days of seven": (([100] * 2 + [0] * 5) * 4, [0], [], "113.72"),
    "a ramp": ([100 * day for day in range(1, 31)], [0], [], "5441.83"),
}


@pytest.mark.parametrize(("amounts", "starts", "spikes", "limit"), _SERIES.values(), ids=_SERIES)
def test_a_step_is_a_level_and_a_day_is_a_spike(
    amounts: list[int], starts: list[int], spikes: list[int], limit: str
) -> None:
    series = [Decimal(amount) for amount in amounts]
    found = levels(series)
    assert ([level.start for level in found], list(spike_days(series))) == (starts, spikes)
    assert abs(found[-1].limit - Decimal(limit)) < Decimal("0.01")


@given(_DAYS)
def test_levels_follow_each_other_and_have_three_days_at_least(amounts: list[Decimal]) -> None:
    found = levels(amounts)
    assert [0, *(level.end for level in found)] == [*(level.start for level in found), len(amounts)]
    assert all(level.end - level.start >= LEVEL_DAYS for level in found)
    assert all(amounts[day] > next(each.limit for each in found if day < each.end) for day in spike_days(amounts))
