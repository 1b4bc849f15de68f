"""Spikes, trend and forecast of daily amounts: what one day can do to them, and what it cannot."""

from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from cluster_contract.daily_costs import MIN_DAYS, Trend, next_days, spike_limit, trend, used_share

_AMOUNTS = st.decimals(min_value=0, max_value=10**6, places=2)
_DAYS = st.lists(_AMOUNTS, min_size=MIN_DAYS, max_size=40)


@given(st.lists(_AMOUNTS, max_size=MIN_DAYS - 1))
def test_too_few_days_say_nothing(amounts: list[Decimal]) -> None:
    assert (spike_limit(amounts), trend(amounts), next_days(amounts, 3)) == (None, None, None)


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
