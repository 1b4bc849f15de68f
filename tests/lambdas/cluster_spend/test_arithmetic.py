"""The arithmetic of a month: nothing is below zero, nothing is counted twice, and no second is lost."""

from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from cluster_contract.spend import SpendFunctionSettings, SpendKind
from cluster_spend.charges import Charge, Item, unit_seconds, units_now
from cluster_spend.months import Month, counted, micro_dollars, month_end, month_name, month_start, spans
from cluster_spend.prices import Prices
from spend_scene import P5, SpendScene

START = datetime(2026, 10, 1, tzinfo=UTC)
PRICES = Prices(
    settings=SpendFunctionSettings(
        cluster="pod", monthly_usd=1, prices={"p5.48xlarge": 55.04, "g5.xlarge": 1.006}, region="us-east-1"
    )
)

_seconds = st.integers(min_value=0, max_value=100 * 24 * 3600)
_moments = _seconds.map(lambda second: START + timedelta(seconds=second))
_zones = st.integers(min_value=-14 * 60, max_value=14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
_items = st.builds(
    Item,
    st.sampled_from(["", "workers", "a|b"]),
    st.sampled_from(list(SpendKind)),
    st.sampled_from(["on-demand p5.48xlarge", "on-demand g5.xlarge", "on-demand p9.large"]),
)
_units = st.decimals(min_value=0, max_value=100, places=6)
_charges = st.lists(
    st.builds(Charge, item=_items, units=_units, start=_moments, end=st.none() | _moments), max_size=6
)


def month_of(charges: list[Charge], times: list[datetime]) -> Month:
    """Count charges in one month from the first time, run by run."""
    month = Month(since=times[0], through=times[0])
    for until in times[1:]:
        month = counted(month, charges, until, PRICES, gap=timedelta(0))
    return month


@given(_charges, st.lists(_moments, min_size=2, max_size=8).map(sorted))
def test_runs_in_between_change_nothing_and_nothing_is_below_zero(
    charges: list[Charge], times: list[datetime]
) -> None:
    whole, parts = month_of(charges, [times[0], times[-1]]), month_of(charges, times)
    assert whole.unpriced == parts.unpriced
    assert all(micro >= 0 for micro in whole.spent.values())
    assert all(seconds >= 0 for seconds in whole.unpriced.values())
    # A run rounds each item to a micro-dollar.
    assert abs(whole.usd - parts.usd) <= Decimal(len(times) * len(charges)) / 1_000_000


@given(_charges, _charges, _moments, _moments)
def test_more_nodes_and_more_hours_cost_no_less_and_charges_add_up(
    some: list[Charge], others: list[Charge], first: datetime, last: datetime
) -> None:
    def seconds(charges: list[Charge], end: datetime) -> Decimal:
        return sum(unit_seconds(charges, first, end).values(), Decimal())

    later = last + timedelta(hours=1)
    assert seconds(some, last) <= seconds(some, later)
    assert seconds(some + others, last) == seconds(some, last) + seconds(others, last)
    now = [sum(units_now(each, first).values()) for each in (some + others, some, others)]
    assert now[0] == now[1] + now[2]


@given(st.decimals(min_value=0, max_value=1000, places=10), _seconds, _seconds)
def test_dollars_rise_with_seconds(usd: Decimal, one: int, other: int) -> None:
    first, last = sorted((Decimal(one), Decimal(other)))
    assert 0 <= micro_dollars(usd, first) <= micro_dollars(usd, last)


@given(_moments, _moments, _zones)
def test_time_is_cut_where_months_of_utc_end_whatever_zone_a_time_names(
    first: datetime, last: datetime, zone: timezone
) -> None:
    cut = list(spans(first, last.astimezone(zone)))
    assert [month_name(start) for start, _ in cut] == sorted({month_name(start) for start, _ in cut})
    assert all(start < end <= month_end(start) for start, end in cut)
    assert all(before[1] == after[0] == month_start(after[0]) for before, after in pairwise(cut))
    assert (cut[0][0], cut[-1][1]) == (first, last) if first < last else cut == []
    assert month_name(first.astimezone(zone)) == f"{first:%Y-%m}"


@given(_charges, _moments)
def test_a_month_comes_back_from_the_table_as_it_was(charges: list[Charge], until: datetime) -> None:
    month = counted(Month(since=START, through=START), charges, until, PRICES, gap=timedelta(minutes=3))
    assert Month.from_values(month.to_values()) == month


@given(st.lists(st.tuples(st.integers(-20, 55), st.sampled_from(["", "launch", "end"])), min_size=1, max_size=12))
def test_whatever_the_clock_does_each_second_of_each_node_is_counted_once(steps: list[tuple[int, str]]) -> None:
    scene = SpendScene(now=datetime(2026, 11, 30, 22, tzinfo=UTC))
    scene.tick(0)
    newest, lives = scene.now, list[tuple[datetime, datetime | None]]()
    for minutes, event in steps:
        scene.now = max(scene.now + timedelta(minutes=minutes), newest - timedelta(minutes=20))
        if scene.now >= newest and event == "launch":
            scene.add()
            lives.append((scene.now, None))
        elif scene.now >= newest and event == "end":
            running = [number for number, life in enumerate(lives) if life[1] is None]
            for number in running[:1]:
                scene.end(scene.ec2.nodes[f"i-{number:017x}"])
                lives[number] = (lives[number][0], scene.now)
        newest = max(newest, scene.now)
        scene.run("tick")
    seconds = sum(((end or newest) - start).total_seconds() for start, end in lives)
    months = [name for part, name in scene.dynamodb.items if name.startswith("20")]
    assert abs(sum(scene.spent(name) for name in months) - P5 * seconds / 3600) < 1e-4
