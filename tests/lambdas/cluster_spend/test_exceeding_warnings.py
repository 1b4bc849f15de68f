"""A warning that nodes will be stopped: what becomes of it when the budget, the month or the node group changes."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from cluster_common.errors import PartialFailureError
from cluster_contract.spend import OnExceed
from fake_auto_scaling import FakeGroup
from spend_scene import PART, SpendScene

WARNED = "base-pod: budget reached, workers will be stopped in 30 minutes"
STOPPED = "base-pod: budget reached, workers stopped"
CALLED_OFF = "base-pod: workers will not be stopped"


def new_scene(**details: Any) -> SpendScene:
    """Return a cluster whose two p5 nodes spend the budget within an hour."""
    return SpendScene(details={"monthly_usd": 100.0, "thresholds": (100.0,), "on_exceed": OnExceed.STOP, **details})


@pytest.fixture
def scene() -> SpendScene:
    return new_scene()


@pytest.mark.usefixtures("group")
@pytest.mark.parametrize(
    ("changes", "subjects"),
    [
        ({55: {"monthly_usd": 50.0}}, [WARNED, STOPPED]),
        ({55: {"monthly_usd": 300.0}, 60: {"monthly_usd": 100.0}}, [WARNED, CALLED_OFF, WARNED, STOPPED]),
        ({55: {"on_exceed": OnExceed.NOTIFY}}, [WARNED, CALLED_OFF]),
        (
            {55: {"on_exceed": OnExceed.NO_NEW_NODES}, 60: {"on_exceed": OnExceed.STOP}},
            [WARNED, CALLED_OFF, "base-pod: budget reached, workers get no new nodes", WARNED, STOPPED],
        ),
    ],
    ids=["lowered", "raised and back", "notify", "limited and back"],
)
def test_a_warning_stands_while_the_changed_budget_is_exceeded_and_stops(
    scene: SpendScene, changes: dict[int, dict[str, Any]], subjects: list[str]
) -> None:
    for minute in range(55, 120, 5):
        scene.tick(55 if minute == 55 else 5)
        scene.details |= changes.get(minute, {})
    assert scene.subjects == subjects


@pytest.mark.parametrize(
    ("before", "change"),
    [
        ({"on_exceed": OnExceed.NO_NEW_NODES}, {"on_exceed": OnExceed.STOP}),
        ({}, {"monthly_usd": 80.0}),
    ],
)
def test_another_budget_acts_anew_also_after_an_act_and_a_start(
    before: dict[str, Any], change: dict[str, Any]
) -> None:
    scene = new_scene(**before)
    group = scene.deploy(2)
    for minutes in (0, 60, 30):
        scene.tick(minutes)
    scene.power.order("start", by="ana")
    scene.details |= change
    scene.tick()
    scene.tick(30)
    assert (scene.subjects[-2:], group.desired) == ([WARNED, STOPPED], 0)


@pytest.mark.parametrize("fails", [False, True])
def test_when_a_month_ends_its_warning_is_called_off_and_its_message_is_sent(fails: bool) -> None:
    scene = new_scene()
    scene.now = datetime(2026, 11, 30, 22, 25 if fails else 50, tzinfo=UTC)
    group = scene.deploy(2)
    scene.tick(0)
    scene.tick(60)
    scene.sns.fails = fails
    for _ in range(8):
        try:
            scene.tick()
        except PartialFailureError:
            assert fails
    scene.sns.fails = False
    scene.tick()
    assert (scene.subjects, group.desired) == ([WARNED, STOPPED if fails else CALLED_OFF], 0 if fails else 2)
    told = "Cluster base-pod reached 100 USD in 2026-11 (UTC)." if fails else "2026-11 has ended since the warning"
    assert told in scene.sns.messages[-1]["Message"]


def test_an_old_warning_is_renewed_before_it_stops(scene: SpendScene, group: FakeGroup) -> None:
    scene.tick(60)
    scene.tick(71)
    assert (scene.subjects, group.desired) == ([WARNED, WARNED], 2)
    scene.tick(30)
    assert (scene.subjects[2:], group.desired) == ([STOPPED], 0)


@pytest.mark.parametrize(("by_operator", "desired"), [(True, 3), (False, 0)])
def test_a_start_during_the_warning_is_honoured_and_a_size_that_a_deploy_changes_is_none(
    scene: SpendScene, group: FakeGroup, by_operator: bool, desired: int
) -> None:
    scene.tick(60)
    scene.power.counts["workers"] = group.maximum = 3
    scene.power.now = scene.now = scene.now + timedelta(minutes=20)
    if by_operator:
        scene.power.order("stop", by="ana")
        scene.power.order("start", by="ana")
    scene.power.order()
    assert group.desired == 3
    scene.tick(10)
    assert group.desired == desired


def test_a_lost_count_loses_no_act_and_a_lost_act_is_warned_of_anew(scene: SpendScene, group: FakeGroup) -> None:
    for minutes in (60, 30):
        scene.tick(minutes)
    scene.power.order("start", by="ana")
    scene.add(2)
    del scene.dynamodb.items[PART, "2026-11"]
    scene.tick()
    scene.tick(60)
    assert group.desired == 2
    scene.dynamodb.change(PART, "acts", groups="workers")
    scene.tick()
    assert scene.subjects == [WARNED, STOPPED, WARNED]
