"""The arithmetic of a plan, whatever the cluster: never negative, monotone, additive."""

from datetime import date
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from cdk_training_cluster import Capacity, instance_type_info
from cdk_training_cluster.prices import committed_prices
from cdk_training_cluster.storage.file_system_settings import FileSystemSettings
from cdk_training_cluster_cli.money.plan import Assumptions, ClusterShape, GroupShape, Plan, make_plan

_BOOK = committed_prices()
_TODAY = date(2026, 11, 22)
_TYPES = ("p4de.24xlarge", "p5.48xlarge", "p5e.48xlarge", "g5.xlarge", "trn1.32xlarge")
_WAYS = (
    Capacity.on_demand(),
    Capacity.spot(),
    Capacity.spot(max_price=9.5),
    Capacity.from_reservation("cr-0a1b2c3d"),
    Capacity.capacity_block("cr-0a1b2c3d"),
    Capacity.prioritized(reservations=["cr-0a1b2c3d"], capacity_blocks=["cr-1a1b2c3d"]),
)
_HOURS = st.decimals("0.01", "87600", places=2)


@st.composite
def groups(draw: st.DrawFn) -> tuple[GroupShape, ...]:
    return tuple(
        GroupShape(
            name=f"group-{number}",
            instance_types=(instance_type_info(draw(st.sampled_from(_TYPES))),),
            count=draw(st.integers(1, 500)),
            capacity=draw(st.sampled_from(_WAYS)),
            root_volume_gib=draw(st.integers(8, 16384)),
        )
        for number in range(draw(st.integers(1, 4)))
    )


def shape(of: tuple[GroupShape, ...], region: str = "us-east-1") -> ClusterShape:
    return ClusterShape(
        name="pod",
        availability_zone=f"{region}a",
        region=region,
        groups=of,
        file_system=FileSystemSettings(storage_capacity_gib=4800, throughput_mbps_per_tib=250),
        nat_gateways=1,
        alarm_metrics=19,
    )


def plan(of: tuple[GroupShape, ...], hours: Decimal) -> Plan:
    return make_plan(shape(of), _BOOK, Assumptions(hours=hours), today=_TODAY)


def compute(found: Plan) -> Decimal:
    runs = [line.run(found.assumptions.hours) for line in found.lines if line.kind == "compute"]
    return sum((run for run in runs if run is not None), Decimal(0))


@given(groups(), _HOURS)
def test_nothing_is_negative_and_what_is_unknown_is_in_no_sum(of: tuple[GroupShape, ...], hours: Decimal) -> None:
    found = plan(of, hours)
    runs = [line.run(hours) for line in found.lines]
    assert all(run is None or run >= 0 for run in runs)
    assert found.known == sum((run for run in runs if run is not None), Decimal(0))
    assert {line.key for line in found.unknown} == {
        line.key for line, run in zip(found.lines, runs, strict=True) if run is None
    }
    for option in found.options:
        assert (option.low is None) == (option.high is None)
        assert option.low is None or option.high is None or 0 <= option.low <= option.high


@given(groups(), _HOURS, _HOURS)
def test_more_hours_never_cost_less(of: tuple[GroupShape, ...], hours: Decimal, more: Decimal) -> None:
    assert plan(of, hours).known <= plan(of, min(hours + more, Decimal(87_600))).known


@given(groups(), _HOURS, st.integers(1, 100))
def test_more_nodes_never_cost_less(of: tuple[GroupShape, ...], hours: Decimal, more: int) -> None:
    first = of[0]
    larger = GroupShape(
        name=first.name,
        instance_types=first.instance_types,
        count=first.count + more,
        capacity=first.capacity,
        root_volume_gib=first.root_volume_gib,
    )
    assert plan(of, hours).known <= plan((larger, *of[1:]), hours).known


@given(groups(), _HOURS)
def test_groups_cost_together_what_they_cost_apart(of: tuple[GroupShape, ...], hours: Decimal) -> None:
    assert compute(plan(of, hours)) == sum((compute(plan((group,), hours)) for group in of), Decimal(0))


@given(groups())
def test_hardware_is_the_sum_of_its_groups(of: tuple[GroupShape, ...]) -> None:
    found = plan(of, Decimal(1)).hardware
    assert found.accelerator_count == sum(each.accelerator_count for each in found.groups)
    assert found.memory_gib == sum((each.memory_gib for each in found.groups), Decimal(0))
