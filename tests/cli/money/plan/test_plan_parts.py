"""What a plan says of each way to buy, of other options, and of what surprises on a bill."""

import json
from dataclasses import replace
from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from cdk_training_cluster import Capacity, OnIdle, instance_type_info
from cdk_training_cluster.capacity import UNTIL_CANCELLED
from cdk_training_cluster.prices import ByRegion, PriceBook, Source, SpotRange, committed_prices
from cdk_training_cluster.storage.file_system_settings import FileSystemSettings
from cdk_training_cluster_cli.money.plan import Assumptions, ClusterShape, GroupShape, Plan, make_plan
from cdk_training_cluster_cli.money.plan.guardrails import guardrail_lines
from cdk_training_cluster_cli.money.plan.tables import tables
from cdk_training_cluster_cli.money.prices.asking import LiveAnswer
from cdk_training_cluster_cli.money.prices.spot_market import PlacementScore, ZonePrice

_ZONES = tuple(zip("abc", (0, 1, 2), strict=True))
_ID, _OTHER = "cr-0a1b2c3d", "cr-1a1b2c3d"


def group(
    name: str = "workers",
    *,
    types: str = "p5.48xlarge",
    count: int = 8,
    capacity: Capacity | None = None,
    warm: int = 0,
) -> GroupShape:
    return GroupShape(
        name=name,
        instance_types=tuple(map(instance_type_info, types.split())),
        count=count,
        capacity=capacity or Capacity.on_demand(),
        warm_nodes=warm,
    )


def plan(*groups: GroupShape, region: str = "us-east-1", buckets: tuple[str, ...] = (), **assumed: object) -> Plan:
    shape = ClusterShape(
        name="pod",
        availability_zone=f"{region}b",
        region=region,
        groups=groups,
        file_system=FileSystemSettings(storage_capacity_gib=9600, throughput_mbps_per_tib=1000),
        own_buckets=buckets,
    )
    assumptions = Assumptions(hours=Decimal(100), **assumed)  # type: ignore[arg-type]
    return make_plan(shape, committed_prices(), assumptions, today=date(2026, 11, 22))


_BOUGHT = {
    "on demand": (group(), "440.32", "8 x $55.04"),
    "a new reservation": (
        group(capacity=Capacity.reservation(end=UNTIL_CANCELLED, on_idle=OnIdle.KEEP)),
        "440.32",
        "8 x $55.04",
    ),
    "the dearest of several types": (group(types="g5.xlarge p5.48xlarge", count=1), "55.04", "1 x $55.04"),
    "Spot, at the region's highest": (
        group(types="p4de.24xlarge", capacity=Capacity.spot()),
        "79.7872",
        "8 x $9.9734; Spot was $8.6505 to $9.9734 in us-east-1; 10 % longer for interruptions, assumed",
    ),
    "Spot with a limit": (
        group(types="p4de.24xlarge", capacity=Capacity.spot(max_price=9)),
        "72",
        "8 x $9; Spot was $8.6505 to $9.9734 in us-east-1; 10 % longer for interruptions, assumed",
    ),
    "a fleet": (
        group(types="g5.48xlarge", count=2, capacity=Capacity.spot_fleet()),
        "14.0154",
        "2 x $7.0077; Spot was $4.5408 to $7.0077 in us-east-1; 10 % longer for interruptions, assumed",
    ),
    "a block": (
        group(capacity=Capacity.capacity_block(_ID)),
        None,
        "a block is paid for when it is bought, see https://aws.amazon.com/ec2/capacityblocks/pricing/; state what "
        "it cost: --cost compute.workers=USD",
    ),
    "several in turn": (
        group(capacity=Capacity.prioritized(reservations=[_ID], capacity_blocks=[_OTHER])),
        "440.32",
        "8 x $55.04; nodes in a Capacity Block are counted at that price too, but are paid for beforehand",
    ),
    "no Spot price": (
        group(types="p5.4xlarge", capacity=Capacity.spot()),
        None,
        "the Spot price of p5.4xlarge in us-east-1 is unknown; ask with --live, or state --cost compute.workers=USD",
    ),
    "a Spot price of some types": (
        group(types="p5.4xlarge p4de.24xlarge", capacity=Capacity.spot()),
        "79.7872",
        "8 x $9.9734; Spot was $8.6505 to $9.9734 in us-east-1, without p5.4xlarge, whose Spot price is unknown; "
        "10 % longer for interruptions, assumed",
    ),
    "no price": (
        group(types="p5e.48xlarge"),
        None,
        "the On-Demand price of p5e.48xlarge in us-east-1 is unknown: --price p5e.48xlarge=USD states one",
    ),
}


@pytest.mark.parametrize(("of", "per_hour", "basis"), _BOUGHT.values(), ids=_BOUGHT)
def test_what_a_group_costs_follows_from_how_it_is_bought(of: GroupShape, per_hour: str | None, basis: str) -> None:
    line = plan(of).lines[0]
    assert (line.per_hour, line.basis) == (None if per_hour is None else Decimal(per_hour), basis)


@pytest.mark.parametrize("capacity", [Capacity.spot(), Capacity.capacity_block(_ID)], ids=["Spot", "a block"])
def test_a_stated_on_demand_price_is_none_of_spot_and_of_a_block(capacity: Capacity) -> None:
    of = group(capacity=capacity)
    stated = plan(of, prices={"p5.48xlarge": Decimal("31.464")})
    assert stated.lines == plan(of).lines


def test_without_nodes_or_file_system_there_is_no_total() -> None:
    found = plan(group(capacity=Capacity.capacity_block(_ID)))
    assert found.known > 0
    assert (found.total, found.contingency, found.with_contingency) == (None, None, None)
    document = json.loads(found.to_json())
    assert document["complete"] is False
    assert document["known_usd"] == str(found.known)
    assert (document["total_usd"], document["total_with_contingency_usd"]) == (None, None)


def test_another_region_s_price_stands_in_for_units_with_a_warning_and_never_for_nodes() -> None:
    found = plan(group(), region="eu-west-1")
    assert found.lines[0].per_hour is None
    assert found.lines[0].basis == (
        "the On-Demand price of p5.48xlarge in eu-west-1 is unknown: --price p5.48xlarge=USD states one"
    )
    assert found.warnings[-1] == (
        "* prices in us-east-1 stand in where that in eu-west-1 is not known; --price states yours"
    )


_WARNINGS = {
    "Spot on p5": (
        [group(capacity=Capacity.spot())],
        "node group 'workers' buys p5.48xlarge as Spot Instances: EC2 takes them back at two minutes' notice, a job "
        "over several nodes stops with the first, and others may not be had; write checkpoints often",
    ),
    "a Local Zone": (
        [group(capacity=Capacity.spot())],
        "the Spot prices of p5.48xlarge in us-east-1 include the Local Zone use1-atl2-az1, which may set the lowest; "
        "--live asks for us-east-1b",
    ),
    "an idle reservation": (
        [group(capacity=Capacity.from_reservation(_ID))],
        "node group 'workers' is in a Capacity Reservation, which is billed $440.32 an hour, $44,032 in this run, "
        "whether its nodes run or not",
    ),
    "what is reserved first": (
        [group(capacity=Capacity.prioritized(reservations=[_ID], capacity_blocks=[_OTHER]))],
        "node group 'workers' uses what is reserved first: each reservation and block is billed for all that it "
        "holds, whether nodes run in it or not",
    ),
    "a block": (
        [group(capacity=Capacity.capacity_block(_ID))],
        "node group 'workers' is in a Capacity Block, which is paid for in full beforehand; stopping saves nothing",
    ),
    "a warm pool": (
        [group(warm=2)],
        "node group 'workers' keeps up to 2 nodes while it is stopped, whose volumes then cost $32.00 a month",
    ),
    "data elsewhere": (
        [group()],
        "the bucket corpus has to be in us-east-1: from another region each GB is billed, and nothing is imported "
        "automatically",
    ),
    "another zone": (
        [group()],
        "everything is in us-east-1b; what goes to or from another zone costs $0.01 a GB each way",
    ),
    "a file system that stays": (
        [group()],
        "the file system is kept, and billed, when the cluster is stopped and when its stack is deleted",
    ),
}


@pytest.mark.parametrize(("of", "warning"), _WARNINGS.values(), ids=_WARNINGS)
def test_what_surprises_on_a_bill_is_told(of: list[GroupShape], warning: str) -> None:
    assert warning in plan(*of, buckets=("corpus",)).warnings


def test_an_on_demand_cluster_is_not_warned_of_spot_reservations_or_blocks() -> None:
    told = " ".join(plan(group()).warnings)
    assert all(word not in told for word in ("Spot", "Reservation", "Block", "volumes", "bucket"))


# 64 H100 of 80 GiB, and 2 A10G of 22,888 MiB.
_MEMORY = 8 * 8 * 80 + Decimal(2 * 22_888) / 1024


def test_a_live_spot_price_of_the_zone_counts_for_its_nodes_and_the_region_s_for_comparisons() -> None:
    zones = [
        ZonePrice(
            instance_type="p4de.24xlarge", zone=f"us-east-1{at}", usd=Decimal(8 + more), zone_id=f"use1-az{more}"
        )
        for at, more in _ZONES
    ]
    source = Source(address="https://example.com", as_of=date(2026, 11, 22))
    spot = SpotRange(low=Decimal(8), high=Decimal(10), zones=("a", "b", "c"), region="us-east-1", source=source)
    live = LiveAnswer(
        book=PriceBook(spot=ByRegion([("p4de.24xlarge", spot)])),
        zones=tuple(zones),
        spot_regions=("us-east-1",),
        scores=tuple(
            ("workers", PlacementScore(region=f"us-{place}", zone_id=zone, score=score))
            for place, zone, score in (
                ("west-2", "usw2-az1", 9),
                ("east-1", "use1-az0", 5),
                ("east-1", "use1-az1", 3),
            )
        ),
        refusals=("no",),
    )
    shape = ClusterShape(
        name="pod",
        availability_zone="us-east-1b",
        region="us-east-1",
        groups=(group(types="p4de.24xlarge", count=2, capacity=Capacity.spot()),),
    )
    found = make_plan(shape, committed_prices(), Assumptions(hours=Decimal(10)), today=date(2026, 11, 22), live=live)
    assert (found.lines[0].run(Decimal(10)), found.lines[0].basis) == (
        Decimal(198),
        "2 x $9; Spot was $9 in us-east-1b; 10 % longer for interruptions, assumed",
    )
    elsewhere = replace(live, zones=tuple(each for each in zones if each.zone != "us-east-1b"))
    none = make_plan(shape, committed_prices(), Assumptions(), today=date(2026, 11, 22), live=elsewhere)
    assert (none.lines[0].per_hour, none.lines[0].basis) == (
        None,
        "EC2 has no Spot price of p4de.24xlarge in us-east-1b; state --cost compute.workers=USD",
    )
    assert found.options[1].low == 2 * 8 * 11
    assert found.options[1].high == 2 * 10 * 11
    assert found.warnings[0] == "no"
    (shown,) = [table for table in tables(found) if table.title.startswith("Spot Instances now")]
    assert [row[:2] for row in shown.rows] == [
        ("us-east-1a", "use1-az0"),
        ("us-east-1b (yours)", "use1-az1"),
        ("us-east-1c", "use1-az2"),
    ]
    (scored,) = [table for table in tables(found) if table.title.startswith("Spot placement scores")]
    assert [row[2] for row in scored.rows] == ["usw2-az1", "use1-az0", "use1-az1 (yours)"]
    assert (source, "of today") in found.sources


def test_a_first_look_shows_the_cluster_s_own_region_however_dear_it_is() -> None:
    found = plan(group(types="p4d.24xlarge"), region="ap-northeast-1")
    assert [each.region for each in found.regions].index("ap-northeast-1") > 2
    (shown,) = [table for table in tables(found, brief=True) if table.title.startswith("Regions")]
    assert [row[0] for row in shown.rows][3:] == ["ap-northeast-1"]


def test_hardware_is_counted_a_node_and_together() -> None:
    hardware = plan(group(), group("prep", types="g5.xlarge", count=2)).hardware
    assert (hardware.accelerator_count, hardware.memory_gib) == (66, _MEMORY)
    assert hardware.efa_gbps == 8 * 3_200
    assert hardware.file_system_gb_per_second == Decimal("9.375")
    assert hardware.file_system_gb_per_second_per_accelerator == Decimal("9.375") / 66


def test_the_options_stand_side_by_side() -> None:
    found = plan(group(), savings_plan_percent=Decimal(40), interruption_percent=Decimal(25))
    told: list[tuple[object, ...]] = [(each.name, each.hours, each.low, each.high) for each in found.options]
    assert told == [
        ("On-Demand", 100, 44_032, 44_032),
        ("Spot", 125, Decimal("10239.7"), 55_040),
        ("Capacity Reservation", 100, 44_032, 44_032),
        ("Savings Plan", 100, Decimal("26419.2"), Decimal("26419.2")),
        ("Capacity Block", 100, None, None),
        ("21 x trn1.32xlarge", 100, 45_150, 45_150),
        ("trn2.48xlarge", 100, None, None),
    ]
    notes = {each.name: each.note for each in found.options}
    assert "$231,432 " not in notes["Savings Plan"]
    assert notes["Savings Plan"].endswith("$2,314,322, which pays from 5,256 hours of use")
    assert plan(group()).options[3].low is None


def test_an_orchestrator_is_offered_what_it_takes_and_its_jobs_may_need_less() -> None:
    found = plan(replace(group(), takes_spot=False, runs_for_jobs=True))
    assert "Spot" not in [each.name for each in found.options]
    assert {each.spot_low for each in found.regions} == {None}
    (regions,) = [table for table in tables(found) if table.title.startswith("Regions")]
    assert regions.headings == ("Region", "On-Demand")
    assert set(found.sources) < set(plan(group()).sources), "no source of Spot prices"
    assert found.lines[0].basis == "8 x $55.04; at most: its nodes run only while jobs need them"


def test_a_limit_below_every_spot_price_is_told() -> None:
    found = plan(group(types="p4de.24xlarge", capacity=Capacity.spot(max_price=1)))
    assert (
        "node group 'workers' pays at most $1 for a Spot Instance, and the lowest price seen is $8.6505: it may get "
        "none" in found.warnings
    )


def test_the_sources_of_what_is_compared_are_named() -> None:
    found = plan(group(capacity=Capacity.capacity_block(_ID)))
    assert any("skypilot" in source.address for source, _ in found.sources)


def test_the_sums_by_kind_are_the_sum() -> None:
    found = plan(group())
    assert list(found.by_kind()) == ["compute", "storage", "transfer", "guardrails"]
    assert sum((usd or 0 for usd in found.by_kind().values()), Decimal(0)) == found.known
    line = json.loads(found.to_json())["lines"][0]
    assert (Decimal(line["run"]), Decimal(line["per_day"])) == (Decimal(44_032), Decimal("10567.68"))


def test_regions_are_sorted_by_price_and_have_every_type() -> None:
    found = plan(group(), group("prep", types="g5.xlarge")).regions
    assert [each.region for each in found] == ["us-east-1", "us-east-2", "us-west-2", "ap-northeast-1"]
    amounts = [each.on_demand for each in found if each.on_demand is not None]
    assert amounts == sorted(amounts)
    assert len(amounts) == len(found)


def test_types_are_compared_by_what_a_model_costs_on_them() -> None:
    found = plan(group(), parameters=Decimal("70e9"), tokens=Decimal("1.4e12"), utilization_percent=Decimal(50)).works
    p5 = next(each for each in found if each.instance_type == "p5.48xlarge")
    # 6 x 70e9 x 1.4e12 FLOPs at half of 8 x 989.5 TFLOPS.
    assert p5.peak_tflops == Decimal("7916")
    assert p5.node_hours is not None
    assert round(p5.node_hours) == round(6 * 70e9 * 1.4e12 / (0.5 * 7916e12) / 3600)
    assert p5.usd == p5.node_hours * Decimal("55.04")
    amounts = [each.usd for each in found if each.usd is not None]
    assert amounts == sorted(amounts)
    assert len(amounts) == len(found)
    assert all(each.source is not None and each.source.startswith("https://") for each in found)
    assert "g5.48xlarge" not in {each.instance_type for each in found}  # no vendor's figure is known here
    assert plan(group()).works == ()
    unknown = plan(group(types="g5.48xlarge"), parameters=Decimal("70e9"), tokens=Decimal("1.4e12"))
    assert (unknown.works[-1].instance_type, unknown.works[-1].usd) == ("g5.48xlarge", None)
    assert any("because their peak is unknown: " in each for each in unknown.left_out)


def test_the_cluster_s_region_is_compared_though_its_price_is_unknown() -> None:
    found = plan(group(types="p5.48xlarge g6e.24xlarge"))
    assert [(each.region, each.on_demand) for each in found.regions][-1] == ("us-east-1", None)
    assert found.left_out[-1].startswith("regions left out, because the price of a type is unknown: ")


@pytest.mark.parametrize(
    ("settings", "what", "basis"),
    [
        (
            {"deployment_type": "SCRATCH_1"},
            "FSx for Lustre, SCRATCH_1, 1,200 GiB at 200 MB/s/TiB",
            "no price is known: --price fsx-scratch-1=USD states one",
        ),
        (
            {
                "deployment_type": "PERSISTENT_1",
                "storage_type": "HDD",
                "throughput_mbps_per_tib": 12,
                "drive_cache_type": "READ",
            },
            "FSx for Lustre, PERSISTENT_1 HDD, 6,000 GiB at 12 MB/s/TiB",
            "no price is known: --price fsx-persistent-1-hdd-12-read=USD states one",
        ),
        (
            {"storage_type": "INTELLIGENT_TIERING"},
            "FSx for Lustre, PERSISTENT_2 INTELLIGENT_TIERING, 4,000 MB/s",
            "no price is known: --price fsx-intelligent-tiering-mbps=USD states one",
        ),
        ({"metadata_iops": 12000}, "FSx for Lustre, 1,200 GiB at 250 MB/s/TiB", "fsx-metadata-iops=USD states one"),
    ],
)
def test_a_file_system_without_a_known_price_is_named(settings: dict[str, Any], what: str, basis: str) -> None:
    shape = ClusterShape(
        name="pod",
        availability_zone="us-east-1b",
        region="us-east-1",
        groups=(),
        file_system=FileSystemSettings(**settings),
    )
    made = make_plan(shape, committed_prices(), Assumptions(), today=date(2026, 11, 22))
    (line,) = (line for line in made.lines if line.key == "storage.file-system")
    assert (line.what, line.per_hour) == (what, None)
    assert line.basis.endswith(basis)


@pytest.mark.parametrize(("types", "series"), [("p5.48xlarge", 312), ("trn1.32xlarge", 195), ("g5.xlarge", 36)])
def test_samples_of_prometheus_are_billed_by_what_a_node_has(types: str, series: int) -> None:
    zone = "us-east-1b"
    shape = ClusterShape(
        name="pod", availability_zone=zone, region=zone[:-1], groups=(group(types=types),), prometheus_seconds=30
    )
    [line] = [each for each in guardrail_lines(shape, committed_prices()) if each.key == "guardrails.prometheus"]
    assert line.what == f"{8 * series} series of Prometheus, a sample every 30 s"
    assert line.per_hour == 8 * series * 120 * Decimal("0.00000009")
