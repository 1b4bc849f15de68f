"""A budget that is exceeded beside a schedule: the next window starts nothing that the budget has to stop."""

from datetime import UTC, datetime, timedelta

import pytest

from cluster_contract.schedule import ScheduleSettings
from cluster_contract.spend import OnExceed
from fake_auto_scaling import FakeGroup
from spend_scene import SpendScene


def at(day: int, hour: int, minute: int = 0) -> datetime:
    """Return a time in November 2026, whose tenth day is a Tuesday."""
    return datetime(2026, 11, day, hour, minute, tzinfo=UTC)


def new_scene(on_exceed: OnExceed = OnExceed.STOP) -> tuple[SpendScene, FakeGroup]:
    """Return a cluster of two p5 nodes on weekdays: its budget is spent within an hour."""
    scene = SpendScene(details={"monthly_usd": 100.0, "thresholds": (100.0,), "on_exceed": on_exceed})
    scene.power.schedules = (ScheduleSettings(windows=("weekdays 08:00-20:00 UTC",)),)
    scene.power.details = {"workers": {"schedule": 0}}
    group = scene.deploy(2)
    scene.tick(0)
    return scene, group


def end_day(scene: SpendScene, day: int) -> None:
    """Let the schedule stop the nodes in the evening, and the spend function run."""
    for time in (at(day, 19, 45), at(day, 20)):
        scene.power.tick_at(time)
    tick_at(scene, at(day, 20, 10))


def tick_at(scene: SpendScene, moment: datetime) -> None:
    """Let time pass, and run the spend function."""
    scene.tick((moment - scene.now) / timedelta(minutes=1))


@pytest.mark.parametrize("by_idle", [False, True])
@pytest.mark.parametrize("on_exceed", [OnExceed.STOP, OnExceed.NO_NEW_NODES])
def test_the_budget_holds_over_the_next_start_of_a_group_that_is_stopped_already(
    on_exceed: OnExceed, by_idle: bool
) -> None:
    scene, group = new_scene(on_exceed)
    if by_idle:
        scene.power.order("stop", by="cluster_idle")
        tick_at(scene, at(10, 20, 10))
    else:
        end_day(scene, 10)
    scene.tick(30)
    sent = len(scene.sns.messages)

    scene.power.tick_at(at(11, 8))
    tick_at(scene, at(11, 9))

    order = scene.power.recorded().order
    assert order is not None
    assert (group.desired, order.by, len(scene.ordered)) == (0, "cluster_spend", 1)
    assert len(scene.sns.messages) == sent == (2 if on_exceed is OnExceed.STOP else 1)
    if on_exceed is OnExceed.STOP:
        assert (
            "- workers is stopped already: from then on no window of its schedule starts it."
            in scene.sns.messages[0]["Message"].splitlines()
        )


def test_a_window_that_begins_during_the_warning_is_no_start_by_an_operator() -> None:
    scene, group = new_scene()
    scene.power.order("stop", by="cluster_idle")
    tick_at(scene, at(11, 7, 45))
    scene.power.tick_at(at(11, 8))
    assert group.desired == 2

    tick_at(scene, at(11, 8, 15))

    assert group.desired == 0


@pytest.mark.parametrize("on_exceed", [OnExceed.STOP, OnExceed.NO_NEW_NODES])
def test_a_start_by_an_operator_holds_against_the_budget_over_the_next_window(on_exceed: OnExceed) -> None:
    scene, group = new_scene(on_exceed)
    for minutes in (60, 30):
        scene.tick(minutes)
    scene.power.order("start", by="ana")
    scene.tick()
    ordered = len(scene.ordered)

    end_day(scene, 10)
    scene.power.tick_at(at(11, 8))
    for hour in (9, 10):
        tick_at(scene, at(11, hour))

    assert (group.desired, len(scene.ordered)) == (2, ordered)
