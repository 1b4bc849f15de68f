"""The power function on node groups of which a deploy replaces what owns the nodes: a stop outlives it.

CloudFormation makes the new owner first, and may have deleted the old one before any tick sees both.
"""

from collections.abc import Callable
from datetime import timedelta

import pytest

from fake_auto_scaling import FakeGroup
from fake_spot_fleets import FakeFleet
from power_scene import Scene

Owner = FakeGroup | FakeFleet


def buy_otherwise(scene: Scene) -> FakeGroup:
    """Deploy another way to buy: a new group, and the end of the old one."""
    del scene.auto_scaling.groups["workers-asg"]
    return scene.add("workers", name="workers-spot-asg")


def change_price(scene: Scene) -> FakeFleet:
    """Deploy another price: a new request, and the end of the old one."""
    old = scene.ec2.fleets["sfr-old"]
    old.state, old.alive = "cancelled", 0
    return scene.add_fleet("workers", id="sfr-new")


@pytest.fixture
def scene() -> Scene:
    return Scene(counts={"workers": 4})


@pytest.fixture(params=["group", "fleet"])
def replace(scene: Scene, request: pytest.FixtureRequest) -> Callable[[Scene], Owner]:
    """Deploy a node group that runs, and return what replaces its owner."""
    if request.param == "fleet":
        scene.add_fleet("workers", id="sfr-old")
    else:
        scene.add("workers")
    scene.minute(3)
    return buy_otherwise if request.param == "group" else change_price


def test_a_group_that_was_stopped_stays_stopped(scene: Scene, replace: Callable[[Scene], Owner]) -> None:
    scene.order("stop", by="ana", reason="weekend")
    scene.minute(2)
    new = replace(scene)

    kept = scene.minute(3)["workers"]

    assert (new.desired, new.alive, kept["state"], scene.stopped()) == (0, 0, "stopped", ["workers"])
    assert kept["reason"] == ("workers is stopped, by ana: weekend")
    assert (scene.record(new).state, scene.record(new).size) == ("stopped", 0)


def test_a_new_owner_of_a_stopped_group_loses_the_nodes_that_an_operator_gave_it(
    scene: Scene, replace: Callable[[Scene], Owner]
) -> None:
    scene.order("stop")
    scene.minute(2)
    new = replace(scene)
    new.desired = 3

    scene.minute(3)

    assert (new.desired, scene.stopped()) == (0, ["workers"])


def test_a_group_that_ran_runs_again(scene: Scene, replace: Callable[[Scene], Owner]) -> None:
    new = replace(scene)

    scene.minute(3)

    assert (new.desired, new.alive, scene.record(new).state, scene.stopped()) == (4, 4, "running", [])


def test_a_group_that_was_started_since_starts(scene: Scene, replace: Callable[[Scene], Owner]) -> None:
    scene.order("stop")
    scene.minute(2)
    scene.order("start")
    scene.minute(2)
    new = replace(scene)

    scene.minute(3)

    assert (new.alive, scene.stopped()) == (4, [])


def test_an_order_is_stronger(scene: Scene, replace: Callable[[Scene], Owner]) -> None:
    scene.order("stop")
    scene.minute(2)
    new = replace(scene)

    scene.order("start", by="bo", reason="monday")
    scene.minute(3)

    assert (new.alive, scene.record(new).by, scene.stopped()) == (4, "bo", [])


def test_a_stop_while_there_is_no_owner_is_no_less_a_stop(scene: Scene, replace: Callable[[Scene], Owner]) -> None:
    new = replace(scene)
    gone = (scene.auto_scaling.groups, dict(scene.auto_scaling.groups), scene.ec2.fleets, dict(scene.ec2.fleets))
    scene.auto_scaling.groups.clear()
    scene.ec2.fleets.clear()
    scene.order("stop")
    gone[0].update(gone[1])
    gone[2].update(gone[3])

    scene.minute(3)

    assert (new.desired, scene.stopped()) == (0, ["workers"])


def test_a_group_that_comes_to_a_stopped_cluster_is_stopped_for_good(scene: Scene) -> None:
    scene.add("workers")
    scene.minute()
    scene.order("stop")
    scene.counts["eval"] = 2
    scene.add("eval")
    scene.minute(2)
    assert scene.stopped() == ["eval", "workers"]

    del scene.auto_scaling.groups["eval-asg"]
    new = scene.add("eval", name="eval-spot-asg")
    scene.minute(2)

    assert (new.desired, scene.record(new).state) == (0, "stopped")


def test_a_group_that_comes_back_to_the_clusters_file_is_what_was_ordered_of_it(scene: Scene) -> None:
    """DynamoDB forgets it after some time, which the fake does not."""
    scene.counts["eval"] = 2
    scene.add("workers")
    scene.add("eval")
    scene.minute()
    scene.order("stop", node_groups=["eval"])
    del scene.counts["eval"], scene.auto_scaling.groups["eval-asg"]
    scene.minute()
    scene.counts["eval"] = 2
    new = scene.add("eval")

    scene.minute(2)

    assert (scene.stopped(), new.alive) == (["eval"], 0)


def test_an_owner_that_is_gone_for_weeks_is_forgotten(scene: Scene, replace: Callable[[Scene], Owner]) -> None:
    [old] = scene.recorded().owners
    new = replace(scene)

    scene.minute(2)
    known = set(scene.recorded().owners)
    scene.pass_time(timedelta(days=14))
    scene.minute()

    assert (known, set(scene.recorded().owners)) == ({old, new.name}, {new.name})


def test_a_group_that_is_not_seen_for_a_moment_keeps_its_size(scene: Scene) -> None:
    group = scene.add("workers")
    scene.minute(2)
    group.desired = 3
    scene.minute()
    gone = dict(scene.auto_scaling.groups)
    scene.auto_scaling.groups.clear()
    scene.minute()
    scene.auto_scaling.groups.update(gone)

    assert scene.minute(2)["workers"]["decision"] == "held"
    assert group.desired == 3
