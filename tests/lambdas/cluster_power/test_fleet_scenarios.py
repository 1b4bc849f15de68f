"""The power function on a node group that a Spot Fleet owns."""

import pytest

from cluster_common.errors import PartialFailureError
from fake_spot_fleets import FakeFleet
from power_scene import Scene


@pytest.fixture
def scene() -> Scene:
    return Scene(counts={})


@pytest.fixture
def fleet(scene: Scene) -> FakeFleet:
    return scene.add_fleet("extras")


def test_after_the_deploy_the_target_is_the_count_of_the_file(scene: Scene, fleet: FakeFleet) -> None:
    writes = scene.writes()
    started = scene.order()["extras"]
    running = scene.minute(2)["extras"]

    assert writes == ["PutItem", "ModifySpotFleetRequest", "PutItem", "CreateTags"]
    assert (started["decision"], started["spot_fleet"], started["auto_scaling_group"]) == ("size", "sfr-extras", None)
    assert (running["decision"], running["desired"], running["in_service"]) == ("keep", 4, 4)
    assert (fleet.target, fleet.policy) == (4, "noTermination")
    assert fleet.tags["cdk-training-cluster:power"].startswith("running by cluster_power since 2026-11-02T08:00:00Z")
    assert scene.record(fleet).size == 4


def test_fleets_are_sized_though_what_was_left_behind_cannot_be_read(scene: Scene, fleet: FakeFleet) -> None:
    scene.auto_scaling.fail_next("DescribeAutoScalingGroups", "Throttling")

    with pytest.raises(PartialFailureError, match=r"^what a deployment left behind: its nodes could not be read"):
        scene.minute()

    scene.minute()
    assert fleet.target == 4


def test_a_stop_lets_the_nodes_go_and_a_start_brings_them_back(scene: Scene, fleet: FakeFleet) -> None:
    scene.minute(3)

    scene.order("stop", by="ana", reason="weekend")
    stopped = scene.minute(2)["extras"]
    assert (stopped["decision"], stopped["alive"], fleet.target, fleet.policy) == ("keep", 0, 0, "default")
    scene.order("start", by="bo", reason="monday")

    assert scene.minute(2)["extras"]["in_service"] == 4
    assert (fleet.target, fleet.policy) == (4, "noTermination")


def test_a_deploy_that_resets_the_target_is_no_operators_change(scene: Scene, fleet: FakeFleet) -> None:
    scene.minute(3)
    fleet.deploy()

    again = scene.minute()["extras"]

    assert (again["decision"], again["reason"]) == (
        "size",
        "extras was given 4 nodes and a deployment set its target to 0: it gets its size again, and 4 nodes "
        "kept running",
    )
    assert scene.minute(2)["extras"]["decision"] == "keep"
    assert (fleet.target, fleet.alive) == (4, 4)
    assert scene.sns.messages == []


def test_an_operator_who_lets_all_nodes_go_is_not_fought(scene: Scene, fleet: FakeFleet) -> None:
    scene.minute(3)
    fleet.target, fleet.policy = 0, "default"

    held = scene.minute(5)["extras"]

    assert (held["decision"], held["problem"], fleet.desired, fleet.alive) == ("held", "emptied", 0, 0)
    assert scene.order("start")["extras"]["desired"] == 4


def test_a_deploy_on_a_stopped_fleet_wakes_nothing(scene: Scene, fleet: FakeFleet) -> None:
    scene.minute(3)
    scene.order("stop", by="ana", reason="weekend")
    scene.minute(2)
    fleet.deploy()

    assert scene.minute(2)["extras"]["decision"] == "keep"
    assert (fleet.target, fleet.alive) == (0, 0)


def test_a_deploy_in_the_middle_of_a_stop_keeps_no_node_alive(scene: Scene, fleet: FakeFleet) -> None:
    scene.minute(3)
    scene.order("stop", by="ana", reason="weekend")
    fleet.deploy()
    fleet.state = "active"

    going = scene.minute()["extras"]
    scene.minute(2)

    assert (going["decision"], going["reason"]) == (
        "size",
        "extras should have 0 nodes and 4 nodes run: the surplus is terminated",
    )
    assert (fleet.target, fleet.alive) == (0, 0)


def test_a_target_that_an_operator_sets_is_left_alone(scene: Scene, fleet: FakeFleet) -> None:
    scene.minute(3)
    fleet.desired = 2

    held = scene.minute(3)["extras"]

    assert (held["decision"], held["desired"], held["wanted"]) == ("held", 2, 4)
    assert (fleet.target, fleet.alive) == (2, 4)  # The nodes stay: only a stop or a lower count lets them go.


def test_a_target_that_an_operator_raises_on_a_stopped_fleet_is_left_alone(scene: Scene, fleet: FakeFleet) -> None:
    scene.minute()
    scene.order("stop")
    scene.minute(3)
    fleet.desired = 2

    assert scene.minute(3)["extras"]["decision"] == "held"
    assert fleet.alive == 2


def test_a_lower_count_lets_the_excess_go_and_then_keeps_the_rest(scene: Scene, fleet: FakeFleet) -> None:
    scene.minute(3)
    scene.counts["extras"] = 2

    scene.minute()
    assert fleet.modification == (2, "default")
    kept = scene.minute()["extras"]
    scene.minute(2)

    assert (kept["decision"], kept["reason"]) == (
        "size",
        "extras has its 2 nodes: from now on none of them is terminated when its target is lowered",
    )
    assert (fleet.target, fleet.alive, fleet.policy) == (2, 2, "noTermination")


@pytest.mark.parametrize("state", ["modifying", "submitted"])
def test_a_fleet_that_is_being_modified_waits_for_the_next_tick(scene: Scene, fleet: FakeFleet, state: str) -> None:
    fleet.state = state

    waiting = scene.order()["extras"]

    assert (waiting["decision"], waiting["missing"]) == ("blocked", 4)
    assert waiting["reason"] == (
        "extras should have 4 nodes and the Spot Fleet request sfr-extras is being modified: the next run tries again"
    )
    assert scene.minute(2)["extras"]["in_service"] == 4


def test_a_fleet_that_still_shows_its_old_target_is_not_taken_for_an_operators(
    scene: Scene, fleet: FakeFleet
) -> None:
    """While EC2 modifies a request it shows the old target."""
    scene.minute(3)
    scene.counts["extras"] = 2
    scene.order()

    told = scene.order()["extras"]

    assert (fleet.target, told["desired"], told["decision"]) == (4, 4, "pending")


def test_a_fleet_that_takes_no_target_waits_and_is_no_failure(scene: Scene, fleet: FakeFleet) -> None:
    scene.ec2.fail_next("ModifySpotFleetRequest", "FleetNotInModifiableState")

    assert scene.order()["extras"]["reason"] == (
        "extras is busy with another scaling activity: the next run tries again"
    )
    assert scene.minute(2)["extras"]["in_service"] == fleet.alive == 4


def test_a_node_beyond_the_target_is_told_of_and_nothing_is_killed(scene: Scene, fleet: FakeFleet) -> None:
    scene.minute(3)
    fleet.alive = 5

    assert scene.minute()["extras"]["decision"] == "pending"
    surplus = scene.minute(10)["extras"]

    assert (surplus["decision"], surplus["surplus"], surplus["problem"], fleet.alive) == ("surplus", 1, "surplus", 5)
    assert surplus["reason"] == (
        "extras: 5 nodes still run and are billed where 4 should (5 InService). No reason is reported: look at "
        "the history of the Spot Fleet request sfr-extras, and at the nodes."
    )


@pytest.mark.parametrize("state", ["cancelled_running", "cancelled_terminating"])
def test_a_fleet_that_is_cancelled_is_left_alone(scene: Scene, fleet: FakeFleet, state: str) -> None:
    scene.minute(2)
    fleet.state = state
    scene.ec2.calls.clear()

    assert scene.minute()["extras"]["decision"] == "deleting"
    assert scene.order("stop")["extras"]["decision"] == "deleting"
    assert scene.ec2.writes == []


@pytest.mark.parametrize("gone", ["cancelled", "failed", "deleted"])
def test_a_fleet_that_is_gone_misses_all_its_nodes(scene: Scene, fleet: FakeFleet, gone: str) -> None:
    scene.minute(2)
    fleet.state = gone
    if gone == "deleted":
        scene.ec2.fleets.clear()

    absent = scene.minute()["extras"]

    assert (absent["decision"], absent["missing"], absent["problem"]) == ("absent", 4, None)
    assert absent["reason"] == (
        "extras is in the cluster's file and has no Spot Fleet request sfr-extras that launches nodes: a "
        "deployment is under way, or the request was cancelled"
    )


@pytest.mark.parametrize("operation", ["DescribeSpotFleetRequests", "DescribeSpotFleetInstances"])
@pytest.mark.parametrize("code", ["UnauthorizedOperation", "RequestLimitExceeded"])
def test_a_fleet_that_cannot_be_read_keeps_no_group_waiting(operation: str, code: str) -> None:
    scene = Scene(counts={"workers": 8})
    group = scene.add()
    fleet = scene.add_fleet()
    scene.minute(3)
    group.desired = 0
    scene.order("start", node_groups=["workers"], by="ana", reason="back")
    group.desired = 0
    scene.change_record(group, size=None)
    scene.ec2.fail_next(operation, code)

    with pytest.raises(PartialFailureError) as caught:
        scene.order()

    assert str(caught.value) == (
        f"extras: its nodes could not be read, so its size stays, and the next run reads them again ({code}: no). "
        "Everything else was done."
    )
    assert (group.desired, fleet.target) == (8, 4)


def test_a_new_group_waits_while_another_cannot_be_read(scene: Scene, fleet: FakeFleet) -> None:
    """The other may run; if all are stopped, a new one is stopped too."""
    scene.minute(2)
    scene.order("stop", node_groups=["extras"])
    scene.counts["workers"] = 8
    group = scene.add()
    scene.ec2.fail_next("DescribeSpotFleetRequests", "RequestLimitExceeded")
    with pytest.raises(PartialFailureError):
        scene.order()
    assert (group.desired, scene.stopped()) == (0, ["extras"])

    scene.order()

    assert (group.desired, scene.record(group).state, fleet.desired) == (0, "stopped", 0)


def test_a_crash_after_the_target_was_set_is_mended(scene: Scene, fleet: FakeFleet) -> None:
    scene.order()
    scene.change_record(fleet, size=None)

    scene.minute(2)

    assert (fleet.target, scene.record(fleet).size) == (4, 4)
    assert scene.minute()["extras"]["decision"] == "keep"


def test_an_auto_scaling_group_of_a_node_group_that_is_a_fleet_now_is_left_alone() -> None:
    scene = Scene(counts={"workers": 8})
    scene.add()
    old = scene.add("extras", name="old-asg", desired=3, in_service=3)
    fleet = scene.add_fleet("extras")

    scene.minute(3)

    assert old.desired == 3
    assert scene.record(old).size is None
    assert fleet.alive == 4
