"""Stops that happen at once or not at all, of Spot Fleets and of node groups with two owners."""

import pytest

from cluster_common.errors import PartialFailureError
from fake_auto_scaling import FakeGroup
from fake_spot_fleets import FakeFleet
from immediate_stop_scene import STOP_NOW, stop_now, stopped
from power_scene import Scene
from termination_scene import run_group


@pytest.fixture
def scene() -> Scene:
    return Scene()


@pytest.fixture
def fleet() -> tuple[Scene, FakeFleet]:
    """A Spot Fleet of 4 nodes that runs."""
    scene = Scene(counts={})
    fleet = scene.add_fleet("extras")
    scene.minute(4)
    return scene, fleet


def test_a_fleet_is_stopped_once_it_took_the_new_target(fleet: tuple[Scene, FakeFleet]) -> None:
    scene, request = fleet
    scene.ec2.calls.clear()

    told = stop_now(scene, "extras")

    assert scene.ec2.writes == ["ModifySpotFleetRequest"]
    assert (told["taken_back"], told["desired"], request.state) == (False, 0, "modifying")
    assert (scene.record(request).state, stopped(scene)) == ("stopped", ["extras"])
    assert scene.minute(10)["extras"]["decision"] == "keep"
    assert (request.target, request.alive) == (0, 0)


def test_a_fleet_that_takes_no_target_runs_on_and_is_no_failure(fleet: tuple[Scene, FakeFleet]) -> None:
    scene, request = fleet
    before = scene.recorded("extras")
    scene.ec2.fail_next("ModifySpotFleetRequest", "FleetNotInModifiableState")

    told = stop_now(scene, "extras")

    assert (told["taken_back"], told["desired"], told["reason"]) == (
        True,
        4,
        "extras is busy with another scaling activity. The stop was not applied",
    )
    scene.minute(10)
    assert (request.target, request.alive, scene.recorded("extras"), stopped(scene)) == (4, 4, before, [])


def test_a_fleet_that_is_being_modified_runs_on(fleet: tuple[Scene, FakeFleet]) -> None:
    scene, request = fleet
    request.state = "modifying"
    scene.ec2.calls.clear()

    told = stop_now(scene, "extras")

    assert told["reason"] == ("extras: the Spot Fleet request sfr-extras is being modified. The stop was not applied")
    assert (told["taken_back"], told["decision"], scene.ec2.writes) == (True, "blocked", [])
    scene.minute(10)
    assert (request.target, request.alive, stopped(scene)) == (4, 4, [])


def test_a_fleet_that_an_operator_modifies_while_it_looks_is_not_modified_twice(
    fleet: tuple[Scene, FakeFleet],
) -> None:
    scene, request = fleet

    def modify() -> None:
        request.state, request.modification = "modifying", (3, "noTermination")

    def once_it_was_read() -> None:
        scene.ec2.before_next("DescribeSpotFleetRequests", "sfr-extras", modify)

    scene.ec2.before_next("DescribeSpotFleetInstances", "sfr-extras", once_it_was_read)

    assert stop_now(scene, "extras")["reason"] == (
        "extras changed while the function looked. The stop was not applied"
    )
    scene.minute(10)
    assert (request.target, scene.record(request).state, stopped(scene)) == (3, "running", [])


def add_twin(scene: Scene, size: int) -> FakeGroup:
    """Deploy a successor beside a group that runs."""
    twin = scene.add(name="workers-asg-2")
    scene.minute()
    twin.desired = twin.in_service = size
    return twin


def test_both_owners_are_stopped(scene: Scene) -> None:
    group, twin = run_group(scene), add_twin(scene, 0)

    stop_now(scene)

    assert (group.desired, scene.record(group).state, twin.desired, scene.record(twin).state) == (
        0,
        "stopped",
        0,
        "stopped",
    )
    scene.minute()
    del scene.auto_scaling.groups["workers-asg"]
    scene.minute(10)
    assert (twin.desired, stopped(scene)) == (0, ["workers"])


@pytest.mark.parametrize("name", ["workers-asg", "workers-asg-2"])
def test_neither_owner_is_touched_if_one_takes_no_stop(scene: Scene, name: str) -> None:
    groups = [run_group(scene), add_twin(scene, 4)]
    before = scene.recorded()
    scene.auto_scaling.groups[name].minimum = 2

    told = stop_now(scene)

    assert (told["taken_back"], told["reason"]) == (
        True,
        "workers should have 0 nodes and the minimum size of its group is 2: set that to 0. The stop was not applied",
    )
    scene.auto_scaling.groups[name].minimum = 0
    scene.minute(10)
    assert [group.in_service for group in groups] == [8, 4]
    assert (scene.recorded(), stopped(scene)) == (before, [])


def test_an_empty_successor_starts_if_the_nodes_beside_it_could_not_be_stopped(scene: Scene) -> None:
    group, twin = run_group(scene), add_twin(scene, 0)
    before = scene.recorded()
    scene.auto_scaling.fail_next("SetDesiredCapacity", "ScalingActivityInProgress", group="workers-asg")

    assert stop_now(scene)["taken_back"]

    assert scene.recorded() == before
    scene.minute(10)
    assert (group.in_service, twin.in_service) == (8, 0)
    del scene.auto_scaling.groups["workers-asg"]
    scene.minute(2)
    assert (twin.in_service, stopped(scene)) == (8, [])


def test_an_owner_that_is_at_zero_stays_so_and_one_that_could_not_be_stopped_runs_on(scene: Scene) -> None:
    """The node group is recorded as running, as long as one of its owners has nodes that were not stopped."""
    group, twin = run_group(scene), add_twin(scene, 4)
    scene.auto_scaling.fail_next("SetDesiredCapacity", "Throttling", group="workers-asg-2")

    with pytest.raises(PartialFailureError, match="workers: could not be stopped"):
        scene.order("stop", **STOP_NOW)

    scene.minute(10)
    assert (group.in_service, twin.in_service, stopped(scene)) == (0, 4, [])


def test_an_owner_that_is_being_deleted_keeps_the_other_from_nothing(scene: Scene) -> None:
    group, twin = run_group(scene), add_twin(scene, 8)
    group.deleting = True

    stop_now(scene)

    assert (group.desired, twin.desired, stopped(scene)) == (8, 0, ["workers"])
