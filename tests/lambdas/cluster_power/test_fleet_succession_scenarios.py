"""The power function on a Spot Fleet request that CloudFormation has replaced: what was ordered stays ordered."""

from datetime import timedelta

import pytest

from cluster_common.errors import PartialFailureError
from fake_spot_fleets import FakeFleet
from power_scene import Scene

PREFIX = "cdk-training-cluster:power-"


@pytest.fixture
def scene() -> Scene:
    return Scene(counts={"extras": 4})


@pytest.fixture
def old(scene: Scene) -> FakeFleet:
    """The request in which the group runs."""
    fleet = scene.add_fleet("extras", id="sfr-old")
    scene.minute(3)
    return fleet


def replace(scene: Scene, old: FakeFleet, state: str = "cancelled", **settings: object) -> FakeFleet:
    """Deploy another price: a new request, and the end of the old one."""
    fleet = scene.add_fleet("extras", id="sfr-new", **settings)
    old.state, old.alive = state, 0
    return fleet


@pytest.mark.parametrize("state", ["active", "cancelled_running", "cancelled_terminating", "cancelled"])
def test_a_group_that_was_stopped_stays_stopped_when_its_request_is_replaced(
    scene: Scene, old: FakeFleet, state: str
) -> None:
    scene.order("stop", by="ana", reason="weekend")
    scene.minute(2)
    new = replace(scene, old, state)

    stopped = scene.minute(3)["extras"]

    assert (new.target, new.alive, stopped["state"]) == (0, 0, "stopped")
    assert stopped["reason"] == "extras is stopped, by ana: weekend"
    assert (new.tags[f"{PREFIX}state"], new.tags[f"{PREFIX}by"], new.tags[f"{PREFIX}size"]) == ("stopped", "ana", "0")


def test_a_group_that_ran_runs_on_when_its_request_is_replaced(scene: Scene, old: FakeFleet) -> None:
    new = replace(scene, old, "cancelled_terminating")

    scene.minute(3)

    assert (new.target, new.alive, new.tags[f"{PREFIX}state"]) == (4, 4, "running")


def test_what_the_newest_request_says_counts(scene: Scene, old: FakeFleet) -> None:
    scene.order("stop", by="ana", reason="weekend")
    scene.minute(2)
    middle = replace(scene, old)
    scene.minute(2)
    scene.order("start", by="bo", reason="monday")
    scene.minute(2)
    new = scene.add_fleet("extras", id="sfr-newest")
    middle.state = "cancelled"

    running = scene.minute(3)["extras"]

    assert (running["by"], running["why"], new.alive) == ("bo", "monday", 4)


@pytest.mark.parametrize(
    "tag",
    [
        {"cdk-training-cluster:cluster": "other-pod"},
        {"cdk-training-cluster:node-group": "others"},
        {f"{PREFIX}state": "none"},
    ],
)
def test_what_is_no_predecessor_hands_on_nothing(scene: Scene, old: FakeFleet, tag: dict[str, str]) -> None:
    scene.order("stop")
    scene.minute(2)
    old.tags |= tag
    new = replace(scene, old)

    scene.minute(3)

    assert new.alive == 4


def test_a_request_that_has_a_state_asks_for_no_predecessor(scene: Scene, old: FakeFleet) -> None:
    replace(scene, old)
    scene.minute(2)
    scene.ec2.requests.clear()

    scene.minute(3)

    asked = [parameters for operation, parameters in scene.ec2.requests if operation == "DescribeSpotFleetRequests"]
    assert asked == [{"SpotFleetRequestIds": ["sfr-new"]}] * len(asked)


def test_a_predecessor_that_cannot_be_read_starts_nothing(scene: Scene, old: FakeFleet) -> None:
    scene.order("stop", by="ana", reason="weekend")
    scene.minute(2)
    new = replace(scene, old)
    scene.ec2.fail_next("DescribeSpotFleetRequests", "RequestLimitExceeded", group="sfr-old")

    with pytest.raises(PartialFailureError, match="extras: could not be read"):
        scene.minute()
    assert (new.target, f"{PREFIX}state" in new.tags) == (0, False)
    scene.minute(2)

    assert new.tags[f"{PREFIX}state"] == "stopped"


def test_an_order_is_stronger_than_a_predecessor(scene: Scene, old: FakeFleet) -> None:
    scene.order("stop")
    scene.minute(2)
    new = replace(scene, old)

    scene.order("start", by="bo", reason="monday")
    scene.minute(3)

    assert (new.alive, new.tags[f"{PREFIX}by"]) == (4, "bo")


def test_a_new_node_group_of_a_stopped_cluster_stays_down_beside_a_replaced_request(
    scene: Scene, old: FakeFleet
) -> None:
    scene.order("stop", by="ana", reason="weekend")
    scene.minute(2)
    replace(scene, old)
    scene.counts["eval"] = 2
    group = scene.add("eval")

    scene.minute(3)

    assert group.desired == 0


def test_a_first_request_starts(scene: Scene) -> None:
    fleet = scene.add_fleet("extras", created=scene.now + timedelta(minutes=1))

    scene.minute(3)

    assert fleet.alive == 4
