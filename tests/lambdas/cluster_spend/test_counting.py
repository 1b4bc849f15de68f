"""What is counted: every second of everything that is billed, once, at its price."""

from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from cluster_common.errors import PartialFailureError
from cluster_common.state_table import StateTable
from cluster_contract.spend import SpendGroupSettings
from cluster_spend.ledger import Ledger
from cluster_spend.months import LastRun, Month
from fake_dynamodb import TABLE, FakeDynamoDb
from fake_service import ACCOUNT
from spend_scene import G5, P5, PART, START, SpendScene

HOUR = timedelta(hours=1)
OTHER = "999999999999"


def test_running_nodes_are_counted_by_the_second_from_their_launch() -> None:
    scene = SpendScene()
    scene.add(2, age=HOUR)
    scene.add(age=timedelta(minutes=1), node_group="lab", instance_type="g5.xlarge")
    told = scene.tick(0)
    assert told["usd_per_hour"] == pytest.approx(2 * P5 + G5)
    assert scene.spent() == pytest.approx(2 * P5 + G5 / 60, abs=1e-5)
    told = scene.tick()
    assert told["month_to_date_usd"] == pytest.approx(2 * P5 * 65 / 60 + G5 * 6 / 60, abs=1e-4)
    assert told["node_groups"]["workers"] == {
        "usd_per_hour": pytest.approx(2 * P5),
        "month_to_date_usd": pytest.approx(2 * P5 * 65 / 60, abs=1e-4),
    }
    assert told["kinds"] == {
        "on-demand": {"usd_per_hour": pytest.approx(111.086), "month_to_date_usd": told["month_to_date_usd"]}
    }
    assert "No run of the spend function succeeded" not in told["gap"]


def test_a_pending_node_is_not_billed_until_a_run_sees_it_running() -> None:
    scene = SpendScene()
    (node,) = scene.add()
    node.state = "pending"
    scene.tick(0)
    assert scene.tick()["month_to_date_usd"] == 0
    node.state = "running"
    scene.tick()
    assert scene.spent() == pytest.approx(P5 * 5 / 60, abs=1e-5)


@pytest.mark.parametrize(
    ("state", "told", "minutes"), [("terminated", True, 2), ("terminated", False, 5), ("stopped", True, 2)]
)
def test_a_node_that_ends_is_counted_until_then_or_until_it_is_seen_and_no_longer(
    state: str, told: bool, minutes: int
) -> None:
    scene = SpendScene()
    (node,) = scene.add()
    scene.tick(0)
    scene.now += timedelta(minutes=2)
    scene.end(node, state, told=told)
    assert scene.tick(3)["usd_per_hour"] == 0
    for _ in range(3):
        scene.tick()
    assert scene.spent() == pytest.approx(P5 * minutes / 60, abs=1e-5)


def test_a_spot_node_whose_end_is_unknown_is_not_counted_again_in_the_next_month() -> None:
    scene = SpendScene(now=datetime(2026, 11, 30, 23, 50, tzinfo=UTC))
    (node,) = scene.add_spot()
    scene.tick(0)
    scene.end(node, told=False)
    scene.tick()
    scene.tick(10)
    assert scene.spent() == pytest.approx(12.5 * 5 / 60, abs=1e-5)
    assert scene.month("2026-12")["spent"] == {}
    assert "gap" not in scene.run()


def test_root_volumes_are_billed_while_nodes_are_stopped() -> None:
    scene = SpendScene(groups={"workers": SpendGroupSettings(volume_gib=730)})
    (node,) = scene.add()
    scene.tick(0)
    scene.end(node, "stopped")
    told = scene.tick(60)
    assert told["kinds"]["volumes"] == {"usd_per_hour": 0.08, "month_to_date_usd": 0.08}
    scene.end(node)
    assert scene.tick(60)["month_to_date_usd"] == 0.08


def test_a_block_is_forecast_until_its_end() -> None:
    scene = SpendScene(
        groups={"workers": SpendGroupSettings(reservations=("cr-1",))}, details={"prices": {"cr-1": 30.0}}
    )
    scene.ec2.add_reservation("cr-1", 8, starts=START, ends=START + 24 * HOUR, is_block=True)
    scene.tick(0)
    told = scene.tick(60)
    assert (told["usd_per_hour"], told["forecast_usd"]) == (8 * 30, 8 * 30 * 24)


@pytest.mark.parametrize("used", [0, 2])
@pytest.mark.parametrize("block", [False, True])
def test_a_reservation_and_a_block_are_billed_whole_and_their_nodes_not_again(used: int, block: bool) -> None:
    scene = SpendScene(
        groups={"workers": SpendGroupSettings(reservations=("cr-1",))}, details={"prices": {"cr-1": 30.0}}
    )
    scene.ec2.add_reservation("cr-1", 4, starts=START, is_block=block)
    of_block: dict[str, Any] = {"InstanceLifecycle": "capacity-block", "CapacityBlockId": "cb-1"} if block else {}
    scene.add(used, CapacityReservationId="cr-1", **of_block)
    scene.tick(0)
    told = scene.tick(60)
    kind, usd = ("capacity-block", 30) if block else ("reservation", P5)
    assert told["kinds"] == {
        kind: {"usd_per_hour": pytest.approx(4 * usd), "month_to_date_usd": pytest.approx(4 * usd)}
    }
    assert told["node_groups"].keys() == {"workers"}


def test_a_reservation_is_billed_until_it_ends_and_once_for_several_groups() -> None:
    both = SpendGroupSettings(reservations=("cr-1", "cr-gone"))
    scene = SpendScene(groups={"workers": both, "lab": both})
    held = scene.ec2.add_reservation("cr-1", 1, starts=START, ends=START + timedelta(minutes=70))
    scene.tick(0)
    told = scene.tick(60)
    assert (told["usd_per_hour"], told["node_groups"]) == (P5, {})
    held.state = "expired"
    told = scene.tick(60)
    assert told["usd_per_hour"] == 0
    assert told["month_to_date_usd"] == pytest.approx(P5 * 70 / 60, abs=1e-4)


@pytest.mark.parametrize(
    ("change", "nodes", "counted", "rate"),
    [
        ({"state": "cancelled"}, 0, 4, 0),
        ({"state": "cancelled"}, 2, 4, 2),
        ({"state": "cancelled", "ends": START + 2 * HOUR}, 0, 4, 0),
        ({"state": "cancelling"}, 0, 4, 4),
        ({"bought": 1}, 0, 4, 1),
        ({"bought": 8}, 0, 4, 8),
        ({"state": "expired", "ends": START + HOUR / 2}, 2, 4 / 2 + 2 / 2, 2),
    ],
)
def test_a_reservation_that_changes_is_counted_as_it_was_seen_last_until_the_change_is_seen(
    change: dict[str, Any], nodes: int, counted: float, rate: float
) -> None:
    scene = SpendScene(groups={"workers": SpendGroupSettings(reservations=("cr-1",))})
    held = scene.ec2.add_reservation("cr-1", 4, starts=START)
    scene.add(nodes, CapacityReservationId="cr-1")
    scene.tick(0)
    for name, value in change.items():
        setattr(held, name, value)
    assert scene.tick(60)["usd_per_hour"] == pytest.approx(rate * P5)
    assert scene.spent() == pytest.approx(counted * P5, abs=1e-5)
    scene.tick(65)
    assert scene.spent() == pytest.approx((counted + rate * 65 / 60) * P5, abs=1e-5)


def test_nodes_are_billed_before_their_reservation_begins_and_forecast_after_it_ends() -> None:
    scene = SpendScene(groups={"workers": SpendGroupSettings(reservations=("cr-1",))})
    scene.add(2, age=100 * HOUR, CapacityReservationId="cr-1")
    scene.ec2.add_reservation("cr-1", 8, starts=START - HOUR, ends=START + HOUR)
    told = scene.tick(0)
    assert told["month_to_date_usd"] == pytest.approx(2 * 100 * P5)
    left = (datetime(2026, 12, 1, tzinfo=UTC) - START) / HOUR
    assert told["forecast_usd"] == pytest.approx((2 * 100 + 8 + 2 * (left - 1)) * P5, abs=0.01)


@pytest.mark.parametrize(
    ("owner", "payer", "block", "rates"),
    [
        (OTHER, None, False, {"on-demand": 1}),
        (OTHER, ACCOUNT, False, {"on-demand": 1, "reservation": 3}),
        (ACCOUNT, OTHER, False, {"on-demand": 1}),
        (ACCOUNT, ACCOUNT, False, {"reservation": 4}),
        (OTHER, None, True, {"capacity-block": 0}),
    ],
)
def test_of_a_shared_reservation_what_this_account_pays_is_counted(
    owner: str, payer: str | None, block: bool, rates: dict[str, float]
) -> None:
    scene = SpendScene(groups={"workers": SpendGroupSettings(reservations=("cr-1",))})
    scene.ec2.add_reservation("cr-1", 4, starts=START, owner=owner, payer=payer, others=1, is_block=block)
    of_block: dict[str, Any] = {"InstanceLifecycle": "capacity-block", "CapacityBlockId": "cb-1"} if block else {}
    scene.add(CapacityReservationId="cr-1", **of_block)
    scene.tick(0)
    told = scene.tick()
    assert {kind: one["usd_per_hour"] for kind, one in told["kinds"].items()} == pytest.approx(
        {kind: count * P5 for kind, count in rates.items()}
    )
    assert told["unknown_prices"] == []


@pytest.mark.parametrize("state", ["scheduled", "payment-pending", "cancelled", "failed"])
def test_a_reservation_that_holds_nothing_is_not_billed(state: str) -> None:
    scene = SpendScene(groups={"workers": SpendGroupSettings(reservations=("cr-1",))})
    scene.ec2.add_reservation("cr-1", 4, state=state, starts=START)
    scene.tick(0)
    assert (scene.tick()["month_to_date_usd"], scene.tick()["usd_per_hour"]) == (0, 0)


def test_what_the_orchestrator_bills_for_each_node_is_counted_while_the_node_runs() -> None:
    groups = {"workers": SpendGroupSettings(orchestrator={"aws-pcs-node": 1}), "lab": SpendGroupSettings()}
    scene = SpendScene(groups=groups, details={"prices": {"aws-pcs-node": 0.25}})
    node, _ = scene.add(2)
    scene.add(node_group="lab")
    scene.tick(0)
    told = scene.tick(60)
    assert told["kinds"]["orchestrator"] == {"usd_per_hour": 0.5, "month_to_date_usd": 0.5}
    assert told["node_groups"]["workers"]["usd_per_hour"] == pytest.approx(2 * (P5 + 0.25))
    assert told["node_groups"]["lab"]["usd_per_hour"] == pytest.approx(P5)
    scene.end(node)
    assert scene.tick(60)["kinds"]["orchestrator"] == {"usd_per_hour": 0.25, "month_to_date_usd": 0.75}


def test_the_fixed_parts_are_counted_from_the_first_run_on() -> None:
    fixed = {"file-system": {"fsx-persistent-2-250": 2.0}, "network": {"nat-gateway": 1}, "guardrails": {}}
    scene = SpendScene(details={"fixed": fixed})
    assert scene.tick(0)["month_to_date_usd"] == 0
    told = scene.tick(60)
    assert told["kinds"] == {
        "file-system": {"usd_per_hour": 0.42, "month_to_date_usd": 0.42},
        "network": {"usd_per_hour": 0.045, "month_to_date_usd": 0.045},
    }
    assert told["prices"]["fsx-persistent-2-250"]["source"].endswith(", the price in us-west-2")
    assert told["estimated_prices"] == ["fsx-persistent-2-250"]


def test_a_fixed_part_with_a_start_is_counted_from_its_start_on() -> None:
    units = {"eks-control-plane": 1, "eks-extended-support": 1}
    starts = {"eks-extended-support": datetime(2026, 12, 2, tzinfo=UTC)}
    details = {"fixed": {"orchestrator": units}, "starts": starts}
    scene = SpendScene(details=details, now=datetime(2026, 12, 1, 22, 59, 59, tzinfo=UTC))
    told = scene.tick(0)
    assert told["usd_per_hour"] == pytest.approx(0.1)
    # Until the month's end: 721 hours and a second of the control plane, 720 of its extended support.
    assert told["forecast_usd"] == pytest.approx(0.1 * 721 + 0.5 * 720, abs=0.01)
    assert scene.tick(60)["usd_per_hour"] == pytest.approx(0.1)
    assert scene.spent("2026-12") == pytest.approx(0.1, abs=1e-5)
    scene.now += timedelta(seconds=1)
    assert scene.tick(0)["usd_per_hour"] == pytest.approx(0.6)
    assert scene.spent("2026-12") == pytest.approx(0.1 + 0.1 / 3600, abs=1e-5)
    scene.tick(60)
    assert scene.spent("2026-12") == pytest.approx(0.7 + 0.1 / 3600, abs=1e-5)


def test_a_tick_over_the_end_of_a_month_is_split_at_midnight_utc() -> None:
    scene = SpendScene(now=datetime(2026, 12, 31, 23, 57, tzinfo=UTC))
    scene.add()
    scene.tick(0)
    told = scene.tick()
    assert scene.spent("2026-12") == pytest.approx(P5 * 3 / 60, abs=1e-5)
    assert scene.spent("2027-01") == pytest.approx(P5 * 2 / 60, abs=1e-5)
    assert (told["month"], told["month_to_date_usd"]) == ("2027-01", pytest.approx(P5 * 2 / 60, abs=1e-4))


@pytest.mark.parametrize(
    ("change", "counted"),
    [
        ("ends", 20),
        ("ends and loses its tags", 20),
        ("ends and is listed no more", 0),
        ("stops and starts", 40),
        ("stops, starts and ends", 30),
        ("loses its tags", 0),
        ("is listed twice", 40),
    ],
)
def test_what_a_node_does_while_no_run_succeeds_is_counted_as_far_as_ec2_tells_and_the_gap_is_told(
    change: str, counted: int
) -> None:
    scene = SpendScene()
    (node,) = scene.add()
    scene.tick(0)
    scene.now += timedelta(minutes=20)
    if "start" in change:
        node.launched = scene.now
        scene.now += timedelta(minutes=10)
    if "ends" in change:
        scene.end(node)
    if "tags" in change:
        node.tags = {}
    if "no more" in change:
        scene.ec2.nodes.clear()
    if "twice" in change:
        scene.ec2.nodes["again"] = node
    scene.now = START + timedelta(minutes=40)
    told = scene.run("tick")
    assert scene.spent() == pytest.approx(P5 * counted / 60, abs=1e-5)
    assert told["node_groups"].keys() == ({"workers"} if counted else set())
    assert "No run of the spend function succeeded for 30 minutes in which instances may have ended" in told["gap"]


def test_a_first_run_counts_no_node_whose_end_is_unknown_and_names_what_is_missing() -> None:
    scene = SpendScene()
    (node,) = scene.add(age=24 * HOUR)
    scene.end(node, "stopped", told=False)
    told = scene.tick(0)
    assert told["month_to_date_usd"] == 0
    assert told["gap"].startswith("The spend function first ran at 2026-11-10T08:00:00Z. Of the time before, it")


def test_a_clock_that_goes_back_and_a_second_tick_count_nothing_twice() -> None:
    scene = SpendScene()
    scene.add()
    scene.tick(0)
    scene.tick(60)
    for minutes in (0, -30, 10):
        scene.tick(minutes)
    assert scene.spent() == pytest.approx(P5)
    scene.tick(20)
    assert scene.spent() == pytest.approx(P5)
    scene.tick(60)
    assert scene.spent() == pytest.approx(2 * P5)


def test_status_changes_nothing() -> None:
    scene = SpendScene()
    scene.add(age=HOUR)
    assert (scene.run()["usd_per_hour"], scene.dynamodb.items) == (P5, {})


@pytest.mark.parametrize(
    ("operation", "code"),
    [
        ("DescribeInstances", "RequestLimitExceeded"),
        ("DescribeInstances", "UnauthorizedOperation"),
        ("DescribeCapacityReservations", "RequestLimitExceeded"),
        ("Query", "ProvisionedThroughputExceededException"),
        ("Query", "AccessDeniedException"),
        ("PutItem", "InternalServerError"),
        ("PutItem", "ResourceNotFoundException"),
    ],
)
def test_a_run_that_cannot_read_or_write_counts_nothing_and_the_next_one_counts_it(operation: str, code: str) -> None:
    scene = SpendScene(groups={"workers": SpendGroupSettings(reservations=("cr-1",))})
    scene.ec2.add_reservation("cr-1", 1, starts=START)
    scene.add()
    scene.tick(0)
    service: Any = scene.dynamodb if operation in ("Query", "PutItem") else scene.ec2
    service.fail_next(operation, code)
    with pytest.raises(PartialFailureError, match=code):
        scene.tick(30)
    scene.tick(30)
    assert scene.spent() == pytest.approx(2 * P5)


def test_another_run_that_has_counted_meanwhile_is_not_overwritten() -> None:
    scene = SpendScene()
    scene.add()
    scene.tick(0)
    scene.tick(5)
    scene.now += timedelta(minutes=5)
    scene.dynamodb.before_next("PutItem", "2026-11", lambda: scene.run("tick"))
    scene.run("tick")
    assert scene.spent() == pytest.approx(P5 / 6, abs=1e-5)


@pytest.mark.parametrize("through", ["tomorrow", "2026-11-30T00:00:00Z"])
def test_an_item_that_something_else_wrote_stops_the_count_and_says_what_to_do(through: str) -> None:
    scene = SpendScene()
    scene.tick(0)
    scene.dynamodb.change("spend#base-pod", "2026-11", through=through)
    with pytest.raises(
        PartialFailureError,
        match=r"the item 2026-11 of the state table .* delete it with `aws dynamodb delete-item .*`",
    ):
        scene.tick()


def test_calls_a_tick_are_one_for_200_instances_and_a_constant() -> None:
    scene = SpendScene(groups={"workers": SpendGroupSettings(reservations=("cr-1",))})
    scene.ec2.add_reservation("cr-1", 1)
    scene.add_spot()
    scene.add(1999)
    scene.tick(0)
    before = len(scene.calls)
    scene.tick()
    assert len(scene.calls) - before <= 2000 / 200 + 4


def test_the_month_of_20000_nodes_fits_into_its_item() -> None:
    ids = [f"i-{number * 0x1F3D5B79A:017x}" for number in range(30_000)]
    last = LastRun(running=dict.fromkeys(ids[:20_000], "n" * 128), ended=frozenset(ids[20_000:]))
    month = Month(since=START, through=START, last=last)
    ledger = Ledger(StateTable(cast("Any", FakeDynamoDb()), TABLE, PART), "us-east-1")

    ledger.write(month)
    ledger.read(START)

    assert ledger.last == last
