"""The power function honours schedules: it warns, stops and starts, and leaves alone what others have ordered."""

from datetime import datetime, timedelta

import pytest

from cluster_common.errors import PartialFailureError
from cluster_common.power_records import State
from cluster_common.times import parse_time
from cluster_contract.schedule import ScheduleSettings
from fake_auto_scaling import FakeGroup
from power_scene import Scene

WEEKDAYS = ScheduleSettings(windows=("weekdays 08:00-20:00 UTC",))
SCHEDULED = {"schedule": 0}
KEPT = "base-pod: its schedule does not stop the nodes of workers"
STOP = "base-pod: its schedule stops the nodes of workers in 15 minutes"


def at(text: str) -> datetime:
    """Return a time in November 2026, whose second day is a Monday: `3 19:45`."""
    day, time = text.split()
    return parse_time(f"2026-11-{int(day):02}T{time}:00Z")


@pytest.fixture
def scene() -> Scene:
    return Scene(counts={"workers": 8}, details={"workers": SCHEDULED}, schedules=(WEEKDAYS,))


@pytest.fixture
def group(scene: Scene) -> FakeGroup:
    group = scene.add()
    scene.minute(5)
    return group


def state(scene: Scene) -> tuple[State, str]:
    order = scene.recorded().order
    assert order is not None
    return order.state, order.by


def test_nodes_are_warned_of_stopped_and_started(scene: Scene, group: FakeGroup) -> None:
    scene.tick_at(at("2 19:45"))
    assert (group.desired, scene.subjects()) == (8, [STOP])
    text = scene.sns.messages[0]["Message"]
    assert "weekdays 08:00-20:00 UTC) stops its nodes at 2026-11-02T20:00:00Z: save checkpoints." in text
    assert "To keep them until 2026-11-03T20:00:00Z, when the next window ends:" in text
    assert "training-cluster start base-pod --node-group workers" in text

    found = scene.tick_at(at("2 20:00"))["workers"]
    assert (group.desired, found["missing"], scene.subjects()) == (0, 0, [STOP])
    assert found["reason"].startswith("workers is stopped, by its schedule: its window ended at 2026-11-02T20:00:00Z")
    assert found["schedule"] == {
        "words": "weekdays 08:00-20:00 UTC",
        "now": "it is stopped by its schedule since 2026-11-02T20:00:00Z: its window ended at 2026-11-02T20:00:00Z "
        "(weekdays 08:00-20:00 UTC)",
        "next_edge": "2026-11-03T08:00:00Z",
        "then": "it starts",
    }

    writes = scene.writes()
    scene.tick_at(at("3 07:55"))
    assert writes == []

    scene.tick_at(at("3 08:00"))
    assert (group.desired, state(scene)) == (8, (State.RUNNING, "its schedule"))
    status = scene.order("status")["workers"]["schedule"]
    assert (status["next_edge"], status["then"]) == ("2026-11-03T20:00:00Z", "it is stopped")


@pytest.mark.parametrize(
    ("command", "by", "kept"),
    [
        pytest.param("stop", "an operator in request 1111", (State.STOPPED, 0), id="an operator's stop"),
        pytest.param("stop", "cluster_spend", (State.STOPPED, 0), id="the budget's stop"),
        pytest.param("limit", "cluster_spend", (State.LIMITED, 0), id="the budget's limit"),
        pytest.param("start", "an operator in request 1111", (State.RUNNING, 8), id="an operator's start"),
    ],
)
def test_a_command_while_the_schedule_has_stopped_it_holds_through_the_next_start(
    scene: Scene, group: FakeGroup, command: str, by: str, kept: tuple[State, int]
) -> None:
    scene.tick_at(at("2 19:45"))
    scene.tick_at(at("2 20:00"))

    scene.order(command, by=by)
    scene.tick_at(at("3 08:00"))

    assert (state(scene), group.desired) == ((kept[0], by), kept[1])


def test_a_stop_by_an_operator_after_the_idle_function_holds_through_the_next_start(
    scene: Scene, group: FakeGroup
) -> None:
    scene.order("stop", by="cluster_idle")
    scene.minute()
    scene.order("stop", by="an operator in request 1111")

    scene.tick_at(at("3 08:00"))

    assert group.desired == 0


@pytest.mark.parametrize("by", ["an operator in request 1111", "cluster_spend"])
@pytest.mark.parametrize("command", ["stop", "limit"])
@pytest.mark.parametrize("at_once", [False, True])
def test_a_stop_by_the_idle_function_ends_no_stop_and_no_limit_before_it(
    scene: Scene, group: FakeGroup, command: str, by: str, at_once: bool
) -> None:
    scene.order(command, by=by, reason="first")
    scene.minute(3)
    if command == "stop":
        group.desired = 1
        scene.minute(3)
    scene.order("stop", by="cluster_idle", reason="idle", node_groups=["workers"], all_or_nothing=at_once)
    assert group.desired == 0

    scene.tick_at(at("3 08:00"))

    order = scene.recorded().order
    assert order is not None
    assert (group.desired, order.by, order.limit) == (0, by, 0 if command == "limit" else None)
    assert order.reason == ("first; idle" if command == "limit" else "first")


def test_a_start_command_after_the_warning_keeps_the_nodes_over_the_end(scene: Scene, group: FakeGroup) -> None:
    scene.tick_at(at("2 19:45"))
    scene.order("start", by="an operator in request 1111")

    scene.tick_at(at("2 20:00"))
    assert group.desired == 8
    assert scene.order("status")["workers"]["schedule"]["next_edge"] == "2026-11-03T20:00:00Z"

    assert scene.subjects() == [STOP, KEPT]
    assert scene.sns.messages[1]["Message"] == (
        "Cluster base-pod\n\nworkers: its schedule does not stop its nodes at 2026-11-02T20:00:00Z. Now it runs: "
        "outside its windows, and it is running by an operator in request 1111 since 2026-11-02T19:47:00Z: no reason "
        "given. At 2026-11-03T20:00:00Z it is stopped."
    )

    scene.tick_at(at("3 19:45"))
    scene.tick_at(at("3 20:00"))
    assert (group.desired, scene.subjects()) == (0, [STOP, KEPT, STOP])


@pytest.mark.parametrize(
    ("windows", "why"),
    [
        pytest.param(
            ("weekdays 08:00-22:00 UTC",), "Now it runs: a window is open. At 2026-11-02T22:00:00Z", id="longer"
        ),
        pytest.param((), "It has no schedule now.", id="removed"),
    ],
)
def test_a_deployment_after_the_warning_that_calls_off_the_stop_is_one_message(
    scene: Scene, group: FakeGroup, windows: tuple[str, ...], why: str
) -> None:
    scene.tick_at(at("2 19:45"))
    scene.schedules = (ScheduleSettings(windows=windows),) if windows else ()
    scene.details["workers"] = SCHEDULED if windows else {}

    scene.minute(3)
    assert scene.subjects() == [STOP, KEPT]
    assert why in scene.sns.messages[1]["Message"]

    # A stop that is announced again is another message, and a stop that comes is none.
    scene.schedules, scene.details["workers"] = (WEEKDAYS,), SCHEDULED
    scene.minute()
    scene.tick_at(at("2 20:00"))
    assert (group.desired, scene.subjects()[2:]) == (0, [STOP.replace("15", "9")])


def test_nodes_that_are_added_to_a_stopped_group_outside_the_function_are_one_message(
    scene: Scene, group: FakeGroup
) -> None:
    scene.tick_at(at("6 19:45"))
    scene.tick_at(at("6 20:00"))
    group.desired = 3
    scene.minute(30)

    assert scene.subjects() == [STOP, "base-pod: nodes of workers run though its schedule has stopped it"]
    text = scene.sns.messages[1]["Message"]
    assert "workers was given 0 nodes and its desired capacity was changed to 3 outside the power function" in text
    assert text.count("training-cluster") == 2

    group.desired = 0
    scene.minute(3)
    assert scene.subjects()[2:] == ["base-pod: no nodes of workers run though its schedule has stopped it"]


def test_a_window_that_is_shorter_than_the_warning_ends_on_time(scene: Scene, group: FakeGroup) -> None:
    scene.schedules = (ScheduleSettings(windows=("weekdays 08:00-08:10 UTC",)),)
    scene.minute(30)
    scene.tick_at(at("3 08:00"))
    assert group.desired == 8

    scene.tick_at(at("3 08:10"))
    assert (group.desired, scene.subjects()[-1]) == (0, STOP.replace("15", "9"))


@pytest.mark.parametrize("minutes", range(5, 25))
def test_a_window_of_any_length_ends_on_time_whatever_the_warning(
    scene: Scene, group: FakeGroup, minutes: int
) -> None:
    scene.schedules = (ScheduleSettings(windows=(f"weekdays 08:00-08:{minutes:02} UTC",)),)
    scene.minute(30)
    scene.tick_at(at("3 08:00"))
    scene.minute(minutes - 3)
    assert (scene.now, group.desired) == (at(f"3 08:{minutes - 1:02}"), 8)

    scene.minute(1)
    assert group.desired == 0


def test_a_function_that_was_silent_warns_before_it_stops(scene: Scene, group: FakeGroup) -> None:
    scene.tick_at(at("4 22:00"))
    assert (group.desired, scene.subjects()) == (8, [STOP])

    scene.tick_at(at("4 22:15"))
    assert (group.desired, scene.subjects()) == (0, [STOP])


def test_a_limit_after_the_end_keeps_no_node_until_the_next_end(scene: Scene, group: FakeGroup) -> None:
    scene.tick_at(at("2 19:45"))
    scene.pass_time(at("2 20:00") + timedelta(seconds=20) - scene.now)
    scene.order("limit", by="cluster_spend")
    scene.minute(17)

    assert (group.desired, state(scene), scene.subjects()) == (0, (State.LIMITED, "cluster_spend"), [STOP, STOP])


def test_a_schedule_that_is_put_back_at_night_warns_of_the_stop_and_stops(scene: Scene, group: FakeGroup) -> None:
    scene.tick_at(at("2 19:45"))
    scene.tick_at(at("2 20:00"))
    details, scene.details = scene.details, {}
    scene.tick_at(at("2 21:00"))
    scene.details = details
    scene.tick_at(at("2 22:00"))
    assert (group.desired, scene.subjects()) == (8, [STOP, STOP])

    scene.tick_at(at("2 22:15"))

    assert (group.desired, scene.subjects()) == (0, [STOP, STOP])


def test_a_stop_is_announced_once_it_is_recorded(scene: Scene, group: FakeGroup) -> None:
    scene.pass_time(at("2 19:45") - scene.now)
    scene.fail_next("PutItem", "InternalServerError", owner="workers-asg")
    with pytest.raises(PartialFailureError, match="could not record that its schedule stops it"):
        scene.order()
    assert scene.subjects() == []

    scene.minute(2)
    assert scene.subjects() == [STOP]
    scene.minute(15)
    assert (group.desired, scene.subjects()) == (0, [STOP])


def test_nodes_are_stopped_though_the_topic_takes_no_warning(scene: Scene, group: FakeGroup) -> None:
    scene.sns.fails = True
    scene.pass_time(at("2 19:45") - scene.now)
    with pytest.raises(PartialFailureError):
        scene.order()
    scene.pass_time(timedelta(minutes=15))
    scene.order()

    assert group.desired == 0


def test_a_group_that_is_first_deployed_outside_its_windows_waits_for_one(scene: Scene) -> None:
    scene.now = at("2 21:00")
    group, others = scene.add(), scene.add("others")
    scene.counts["others"] = 2
    assert scene.minute(3)["workers"]["missing"] == 0
    assert (group.desired, others.desired) == (0, 2)

    scene.tick_at(at("3 08:00"))
    assert group.desired == 8


def test_a_group_without_a_schedule_runs_beside_one_that_its_schedule_has_stopped(scene: Scene) -> None:
    scene.now = at("2 21:00")
    scene.add()
    scene.minute()
    scene.counts["others"] = 2

    others = scene.add("others")
    scene.minute()

    assert others.desired == 2


def test_a_new_group_starts_beside_one_that_waits_for_its_next_window_after_an_idle_stop(
    scene: Scene, group: FakeGroup
) -> None:
    scene.order("stop", by="cluster_idle")
    scene.minute()
    scene.counts["others"], scene.details["others"] = 2, SCHEDULED

    others = scene.add("others")
    scene.minute()

    assert (group.desired, others.desired) == (0, 2)


def test_the_status_names_whose_stop_a_schedule_does_not_end(scene: Scene, group: FakeGroup) -> None:
    scene.order("stop", by="cluster_spend")

    found = scene.order("status")["workers"]["schedule"]
    assert (found["next_edge"], found["then"]) == (
        None,
        "it stays stopped until a start command: a schedule does not undo what cluster_spend has ordered",
    )
    assert group.desired == 0


def test_a_group_that_the_idle_function_stopped_in_its_window_starts_with_the_next(scene: Scene) -> None:
    scene.add()
    scene.tick_at(at("3 12:00"))
    scene.order("stop", by="cluster_idle")

    found = scene.order("status")["workers"]["schedule"]
    assert (found["next_edge"], found["then"]) == ("2026-11-04T08:00:00Z", "it starts")


def test_a_group_starts_when_its_schedule_is_removed(scene: Scene, group: FakeGroup) -> None:
    scene.tick_at(at("2 19:45"))
    scene.tick_at(at("2 20:00"))

    scene.details.clear()
    found = scene.minute()["workers"]

    assert (group.desired, found["why"]) == (8, "its schedule was removed from the cluster's file")
    assert "schedule" not in found


def test_a_command_that_comes_during_the_run_wins_over_the_schedule(scene: Scene, group: FakeGroup) -> None:
    scene.tick_at(at("2 19:45"))
    scene.pass_time(at("2 20:00") - scene.now)

    def limit(operation: str) -> None:
        if operation == "PutItem":
            scene.watch(lambda _: None)
            scene.order("limit", by="cluster_spend")

    scene.watch(limit)
    scene.order()

    assert (state(scene), group.desired) == ((State.LIMITED, "cluster_spend"), 8)
