"""The power function where what it recorded is gone, or was written by the cluster's earlier stack: no job ends."""

from datetime import timedelta

import pytest

from cluster_common.errors import PartialFailureError
from cluster_common.power_records import State
from cluster_contract.schedule import ScheduleSettings
from fake_auto_scaling import FakeGroup
from fake_service import STACK
from fake_spot_fleets import FakeFleet
from power_scene import PART, START, Scene

OTHER_STACK = STACK.replace("/1", "/2")


@pytest.fixture
def scene() -> Scene:
    return Scene(counts={"eval": 2, "workers": 8})


@pytest.fixture
def groups(scene: Scene) -> dict[str, FakeGroup]:
    """Workers that an operator made 12 and evaluation that an operator stopped."""
    made = {name: scene.add(name, maximum=12) for name in scene.counts}
    scene.minute(2)
    scene.order("stop", node_groups=["eval"], by="ana", reason="done")
    made["workers"].desired = 12
    scene.minute(2)
    return made


def test_groups_that_live_on_in_another_stack_keep_what_was_ordered_of_them(
    scene: Scene, groups: dict[str, FakeGroup]
) -> None:
    scene.move_to(OTHER_STACK)

    after = scene.minute(3)

    assert (groups["workers"].desired, groups["eval"].desired) == (12, 0)
    assert (after["workers"]["decision"], scene.stopped()) == ("held", ["eval"])
    assert [scene.dynamodb.values("power#base-pod", name)["stack"] for name in scene.counts] == [OTHER_STACK] * 2


def test_a_stop_that_moved_to_another_stack_outlives_the_owner_it_was_ordered_of(
    scene: Scene, groups: dict[str, FakeGroup]
) -> None:
    scene.move_to(OTHER_STACK)
    scene.minute()
    del scene.auto_scaling.groups[groups["eval"].name]
    new = scene.add("eval", name="eval-spot-asg")

    scene.minute(2)

    assert (new.desired, scene.stopped()) == (0, ["eval"])


def test_a_group_that_the_new_stack_does_not_see_yet_keeps_its_stop(
    scene: Scene, groups: dict[str, FakeGroup]
) -> None:
    scene.move_to(OTHER_STACK)
    hidden = scene.auto_scaling.groups.pop(groups["eval"].name)
    scene.minute()
    scene.auto_scaling.groups[hidden.name] = hidden

    scene.minute(2)

    assert (hidden.desired, scene.stopped()) == (0, ["eval"])


def test_a_group_of_which_the_record_is_lost_loses_no_node(scene: Scene, groups: dict[str, FakeGroup]) -> None:
    scene.dynamodb.items.clear()

    after = scene.minute(2)["workers"]

    assert (groups["workers"].desired, after["decision"], after["wanted"]) == (12, "held", 8)
    assert scene.record(groups["workers"]).size == 8


def test_a_smaller_size_that_an_operator_sets_after_that_is_held_as_well(
    scene: Scene, groups: dict[str, FakeGroup]
) -> None:
    scene.dynamodb.items.clear()
    scene.minute()
    groups["workers"].desired = 5

    assert scene.minute(2)["workers"]["decision"] == "held"
    assert groups["workers"].desired == 5


def test_a_stop_is_applied_though_the_record_is_lost(scene: Scene, groups: dict[str, FakeGroup]) -> None:
    scene.dynamodb.items.clear()

    scene.order("stop")

    assert groups["workers"].desired == 0


def fleet_of(scene: Scene, size: int) -> FakeFleet:
    """Deploy a Spot Fleet, to which an operator gives another target."""
    fleet = scene.add_fleet("extras")
    scene.minute(3)
    fleet.desired = size
    if not size:
        fleet.policy = "default"
    scene.minute(3)
    return fleet


def test_a_deploy_that_is_rolled_back_leaves_a_group_that_it_took_out_of_the_file(scene: Scene) -> None:
    fleet = fleet_of(scene, 9)
    details = scene.details.pop("extras")
    del scene.counts["extras"]
    scene.minute(2)
    assert "expires" in scene.dynamodb.values("power#base-pod", "extras")

    scene.counts["extras"], scene.details["extras"] = 4, details
    after = scene.minute(3)["extras"]

    assert (fleet.desired, after["decision"]) == (9, "held")
    assert "expires" not in scene.dynamodb.values("power#base-pod", "extras")


@pytest.mark.parametrize("size", [0, 9])
def test_a_deploy_that_is_rolled_back_leaves_a_fleet_that_it_replaced(scene: Scene, size: int) -> None:
    old = fleet_of(scene, size)
    details = scene.details["extras"]
    new = scene.add_fleet("extras", id="sfr-new")
    scene.minute(3)
    assert new.desired == 4

    scene.details["extras"] = details
    after = scene.minute(3)["extras"]

    assert (old.desired, after["decision"]) == (size, "held")


def test_a_stop_outlives_a_deploy_that_is_rolled_back(scene: Scene) -> None:
    fleet = scene.add_fleet("extras")
    scene.minute(2)
    scene.order("stop", node_groups=["extras"])
    details = scene.details.pop("extras")
    del scene.counts["extras"]
    scene.minute(2)

    scene.counts["extras"], scene.details["extras"] = 4, details
    scene.minute(2)

    assert (fleet.desired, scene.recorded("extras").order.state) == (0, State.STOPPED)  # type: ignore[union-attr]  # it is there


def test_a_tick_writes_nothing_more_of_what_is_gone(scene: Scene) -> None:
    fleet_of(scene, 4)
    scene.add_fleet("extras", id="sfr-new")
    scene.minute(5)
    del scene.details["extras"], scene.counts["extras"]
    scene.minute()
    scene.dynamodb.calls.clear()

    scene.minute(2)

    assert scene.dynamodb.writes == []


def test_a_stopped_or_limited_group_whose_record_is_lost_gets_no_nodes_before_a_start(
    scene: Scene, groups: dict[str, FakeGroup]
) -> None:
    groups["workers"].desired = 3
    scene.minute()
    scene.order("limit", node_groups=["workers"], by="bo", reason="cost")
    scene.minute()
    scene.dynamodb.items.clear()

    after = scene.minute(2)

    assert (groups["workers"].desired, groups["eval"].desired) == (3, 0)
    assert after["eval"]["why"] == (
        "its item in the state table state-table was lost, and its tag cdk-training-cluster:power says: stopped by "
        "ana since 2026-11-02T08:02:00Z: done"
    )
    scene.order("start")
    assert (groups["workers"].desired, groups["eval"].desired) == (8, 2)


def test_a_tag_that_another_wrote_neither_stops_nor_starts_a_group(
    scene: Scene, groups: dict[str, FakeGroup]
) -> None:
    for said, found in (("stopped", groups["workers"]), ("running", groups["eval"])):
        found.tags["cdk-training-cluster:power"] = said

    scene.minute(2)

    assert (groups["workers"].desired, groups["eval"].desired) == (12, 0)


@pytest.mark.parametrize("is_interrupted", [False, True])
def test_a_start_gives_a_running_group_whose_record_is_lost_its_count(
    scene: Scene, groups: dict[str, FakeGroup], is_interrupted: bool
) -> None:
    scene.dynamodb.items.clear()
    if is_interrupted:
        scene.fail_next("SetDesiredCapacity", "Throttling", owner="workers-asg")
        with pytest.raises(PartialFailureError):
            scene.order("start", by="ana")
        scene.minute()
    else:
        scene.order("start", by="ana")

    assert groups["workers"].desired == 8


def lose(scene: Scene, name: str) -> None:
    """Delete the item of a node group, as a hand or a restored backup does."""
    del scene.dynamodb.items[PART, name]


@pytest.mark.parametrize(
    ("by", "order"),
    [
        ("ana", {"action": "stop"}),
        ("bo", {"action": "limit"}),
        ("cluster_spend", {"action": "limit"}),
        ("cluster_spend", {"action": "stop"}),
    ],
)
@pytest.mark.parametrize("is_tagged", [True, False])
def test_a_running_group_whose_record_is_lost_keeps_its_nodes_though_every_other_group_is_stopped(
    scene: Scene, groups: dict[str, FakeGroup], by: str, order: dict[str, str], is_tagged: bool
) -> None:
    groups["workers"].desired = 8
    scene.order("start", by="ana")
    scene.minute(3)
    scene.order(**order, node_groups=["eval"], by=by)
    scene.minute()
    if not is_tagged:
        groups["workers"].tags.pop("cdk-training-cluster:power")
    lose(scene, "workers")
    before = len(scene.sns.messages)

    after = scene.minute(3)["workers"]

    assert (groups["workers"].desired, groups["workers"].in_service, after["state"]) == (8, 8, "limited")
    [message] = scene.sns.messages[before:]
    assert message["Subject"] == "base-pod: the record of workers was lost"
    assert "its item in the state table state-table was lost: it keeps the nodes that it has" in message["Message"]
    assert "training-cluster start base-pod" in message["Message"]
    scene.order("start", node_groups=["workers"], by="ana")
    scene.minute(2)
    assert scene.subjects()[-1] == "base-pod: the record of workers is complete again"


def test_a_new_group_that_a_deployment_fills_gets_no_nodes_while_the_others_are_stopped(scene: Scene) -> None:
    scene.add("eval"), scene.add("workers")
    scene.minute(2)
    scene.order("stop", by="ana")
    scene.minute()
    group = scene.add_compute_node_group("slurm")

    scene.minute(3)

    assert (group.most, scene.recorded("slurm").order.state) == (0, State.STOPPED)  # type: ignore[union-attr]  # it is there


def test_a_running_group_whose_record_is_lost_outside_its_windows_is_stopped_after_a_notice(scene: Scene) -> None:
    scene.schedules = (ScheduleSettings(windows=("weekdays 08:00-20:00 UTC",)),)
    scene.counts = {"workers": 8}
    scene.details["workers"] = {"schedule": 0}
    group = scene.add("workers")
    scene.minute(3)
    scene.now = START + timedelta(days=5)
    scene.order("start", by="ana")
    scene.minute(3)
    lose(scene, "workers")
    before = len(scene.sns.messages)

    scene.minute(10)

    assert (group.desired, group.in_service) == (8, 8)
    assert [one["Subject"] for one in scene.sns.messages[before:]] == [
        "base-pod: its schedule stops the nodes of workers in 15 minutes"
    ]
    scene.minute(10)
    assert (group.desired, scene.stopped()) == (0, ["workers"])
    scene.now = START + timedelta(days=7)
    scene.minute(3)
    assert group.in_service == 8
