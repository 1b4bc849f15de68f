"""The power function on node groups of which a deploy replaces what owns the nodes: a stop outlives it.

CloudFormation makes the new owner first, and may have deleted the old one before any tick sees both.
"""

import json
from collections.abc import Callable
from datetime import timedelta

import pytest

from cluster_common.errors import PartialFailureError
from fake_auto_scaling import FakeGroup
from fake_spot_fleets import FakeFleet
from power_scene import STOPPED, Scene

PREFIX = "cdk-training-cluster:power-"

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


def stopped(scene: Scene) -> list[str]:
    found: list[str] = json.loads(scene.ssm.value(STOPPED))
    return found


def test_a_group_that_was_stopped_stays_stopped(scene: Scene, replace: Callable[[Scene], Owner]) -> None:
    scene.order("stop", by="ana", reason="weekend")
    scene.minute(2)
    new = replace(scene)

    kept = scene.minute(3)["workers"]

    assert (new.desired, new.alive, kept["state"], stopped(scene)) == (0, 0, "stopped", ["workers"])
    assert kept["reason"] == (
        "workers is stopped, by cluster_power: it was stopped before a deploy replaced what owns its nodes"
    )
    assert (new.tags[f"{PREFIX}state"], new.tags[f"{PREFIX}size"]) == ("stopped", "0")


def test_a_group_that_ran_runs_again(scene: Scene, replace: Callable[[Scene], Owner]) -> None:
    new = replace(scene)

    scene.minute(3)

    assert (new.desired, new.alive, new.tags[f"{PREFIX}state"], stopped(scene)) == (4, 4, "running", [])


def test_a_group_that_was_started_since_starts(scene: Scene, replace: Callable[[Scene], Owner]) -> None:
    scene.order("stop")
    scene.minute(2)
    scene.order("start")
    scene.minute(2)
    new = replace(scene)

    scene.minute(3)

    assert (new.alive, stopped(scene)) == (4, [])


def test_an_order_is_stronger(scene: Scene, replace: Callable[[Scene], Owner]) -> None:
    scene.order("stop")
    scene.minute(2)
    new = replace(scene)

    scene.order("start", by="bo", reason="monday")
    scene.minute(3)

    assert (new.alive, new.tags[f"{PREFIX}by"], stopped(scene)) == (4, "bo", [])


def test_a_stop_while_there_is_no_owner_is_no_less_a_stop(scene: Scene, replace: Callable[[Scene], Owner]) -> None:
    new = replace(scene)
    gone = (scene.auto_scaling.groups, dict(scene.auto_scaling.groups), scene.ec2.fleets, dict(scene.ec2.fleets))
    scene.auto_scaling.groups.clear()
    scene.ec2.fleets.clear()
    scene.order("stop")
    gone[0].update(gone[1])
    gone[2].update(gone[3])

    scene.minute(3)

    assert (new.desired, stopped(scene)) == (0, ["workers"])


def test_one_group_of_several_is_stopped_and_started(scene: Scene) -> None:
    scene.counts |= {"eval": 2, "extras": 1}
    for name in scene.counts:
        scene.add(name)
    scene.minute(2)

    scene.order("stop", node_groups=["eval", "workers"])
    first = stopped(scene)
    scene.order("start", node_groups=["workers"])

    assert (first, stopped(scene)) == (["eval", "workers"], ["eval"])


def test_a_group_that_comes_to_a_stopped_cluster_is_stopped_for_good(scene: Scene) -> None:
    scene.add("workers")
    scene.minute()
    scene.order("stop")
    scene.counts["eval"] = 2
    scene.add("eval")
    scene.minute(2)
    assert stopped(scene) == ["eval", "workers"]

    del scene.auto_scaling.groups["eval-asg"]
    new = scene.add("eval", name="eval-spot-asg")
    scene.minute(2)

    assert (new.desired, new.tags[f"{PREFIX}state"]) == (0, "stopped")


def test_a_group_that_left_the_clusters_file_is_forgotten(scene: Scene) -> None:
    scene.counts["eval"] = 2
    scene.add("workers")
    scene.add("eval")
    scene.minute()
    scene.order("stop", node_groups=["eval"])
    del scene.counts["eval"], scene.auto_scaling.groups["eval-asg"]
    scene.minute()
    forgotten = stopped(scene)
    scene.counts["eval"] = 2
    new = scene.add("eval")

    scene.minute(2)

    assert (forgotten, new.alive) == ([], 2)


@pytest.mark.parametrize("late", [False, True], ids=["before the next tick", "with ticks between"])
def test_what_a_change_of_tags_resets_is_in_the_history(
    scene: Scene, replace: Callable[[Scene], Owner], late: bool
) -> None:
    scene.order("stop")
    for _ in range(3):
        scene.deploy_parameter()
    if late:
        scene.minute(2)
        assert stopped(scene) == ["workers"]
    new = replace(scene)

    scene.minute(3)

    assert (new.desired, new.tags[f"{PREFIX}state"], stopped(scene)) == (0, "stopped", ["workers"])


@pytest.mark.parametrize("value", ["", "{}", "workers", "[1]", "null"])
def test_what_the_function_did_not_write_counts_for_nothing(
    scene: Scene, replace: Callable[[Scene], Owner], value: str
) -> None:
    scene.order("stop")
    scene.ssm.versions[STOPPED].append(value)
    new = replace(scene)

    scene.minute(3)

    assert (new.desired, new.tags[f"{PREFIX}state"], stopped(scene)) == (0, "stopped", ["workers"])


@pytest.mark.parametrize(
    ("order", "wrong", "right"), [("stop", "[]", ["workers"]), ("start", '["workers"]', [])], ids=["stop", "start"]
)
def test_a_tick_mends_what_an_order_could_not_write(scene: Scene, order: str, wrong: str, right: list[str]) -> None:
    group = scene.add("workers")
    scene.minute(2)
    scene.order("stop" if order == "start" else "start")
    scene.ssm.fail_next("PutParameter", "ThrottlingException")
    with pytest.raises(PartialFailureError, match="workers: could not record which node groups are stopped"):
        scene.order(order)
    assert scene.ssm.value(STOPPED) == wrong

    scene.minute(2)

    assert (stopped(scene), group.desired) == (right, 0 if order == "stop" else 4)


def test_a_tick_mends_what_two_orders_wrote_over_each_other(scene: Scene) -> None:
    scene.counts |= {"eval": 2}
    scene.add("workers")
    scene.add("eval")
    scene.minute(2)
    # The second order comes after the first has read the parameter, and is done before it writes.
    scene.ssm.before_next("PutParameter", STOPPED, lambda: scene.order("stop", node_groups=["eval"]))
    scene.order("stop", node_groups=["workers"])
    assert stopped(scene) == ["workers"]

    scene.minute()

    assert stopped(scene) == ["eval", "workers"]


@pytest.mark.parametrize("changes", [False, True], ids=["nothing to do", "another count"])
def test_a_tick_does_not_undo_an_order_that_came_in_between(scene: Scene, changes: bool) -> None:
    scene.add("workers")
    scene.minute(2)
    if changes:
        scene.counts["workers"] = 3
    scene.ssm.before_next("GetParameter", STOPPED, lambda: scene.order("stop"))
    scene.pass_time(timedelta(minutes=1))
    scene.order()
    assert stopped(scene) == ["workers"]
    new = buy_otherwise(scene)

    scene.minute(3)

    assert new.desired == 0


def test_a_tick_that_cannot_look_again_leaves_what_is_written(scene: Scene) -> None:
    scene.add("workers")
    scene.minute(2)
    scene.ssm.versions[STOPPED].append('["workers"]')
    scene.ssm.before_next(
        "GetParameter",
        STOPPED,
        lambda: scene.auto_scaling.fail_next("DescribeAutoScalingGroups", "ThrottlingException"),
    )

    with pytest.raises(PartialFailureError, match="workers: could not be read again"):
        scene.minute()
    kept = stopped(scene)
    scene.minute()

    assert (kept, stopped(scene)) == (["workers"], [])


def test_a_parameter_that_is_gone_is_made_anew(scene: Scene, replace: Callable[[Scene], Owner]) -> None:
    scene.order("stop")
    scene.minute()
    del scene.ssm.versions[STOPPED]
    with pytest.raises(PartialFailureError, match="workers: could not read which node groups are stopped"):
        scene.minute()
    new = replace(scene)

    scene.minute(2)

    assert (new.desired, stopped(scene)) == (0, ["workers"])


def test_a_group_of_which_nothing_is_known_is_stopped_until_somebody_starts_it(
    scene: Scene, replace: Callable[[Scene], Owner]
) -> None:
    del scene.ssm.versions[STOPPED]
    new = replace(scene)
    with pytest.raises(PartialFailureError, match="workers: could not read which node groups are stopped"):
        scene.minute()

    scene.minute(2)
    unsure = (new.desired, new.tags[f"{PREFIX}state"], stopped(scene))
    scene.order("start")
    scene.minute(2)

    assert (unsure, new.alive, stopped(scene)) == ((0, "stopped", ["workers"]), 4, [])


@pytest.mark.parametrize("fault", ["ThrottlingException", "AccessDeniedException"])
def test_while_it_cannot_be_read_a_new_group_waits(
    scene: Scene, replace: Callable[[Scene], Owner], fault: str
) -> None:
    scene.order("stop")
    scene.minute(2)
    new = replace(scene)
    scene.ssm.fail_next("GetParameter", fault)

    with pytest.raises(PartialFailureError, match="workers: could not read which node groups are stopped"):
        scene.minute()
    assert (new.desired, f"{PREFIX}state" in new.tags) == (0, False)
    scene.minute(2)

    assert (new.desired, new.tags[f"{PREFIX}state"]) == (0, "stopped")


@pytest.mark.parametrize("operation", ["GetParameter", "PutParameter"])
def test_an_order_is_carried_out_though_it_cannot_be_written_down(
    scene: Scene, replace: Callable[[Scene], Owner], operation: str
) -> None:
    del replace
    scene.ssm.fail_next(operation, "InternalServerError")

    with pytest.raises(PartialFailureError, match="which node groups are stopped"):
        scene.order("stop")

    assert scene.minute(2)["workers"]["alive"] == 0


class CutOffError(BaseException):
    """The end of a function's time: nothing after it is done."""


def cut_off() -> None:
    raise CutOffError


@pytest.mark.parametrize("at", ["SetDesiredCapacity", "PutParameter"])
def test_a_tick_finishes_an_order_that_was_cut_off(scene: Scene, at: str) -> None:
    scene.counts |= {"eval": 2}
    groups = [scene.add("workers"), scene.add("eval")]
    scene.minute(2)
    if at == "PutParameter":
        scene.ssm.before_next(at, STOPPED, cut_off)
    else:
        scene.auto_scaling.before_next(at, "eval-asg", cut_off)
    with pytest.raises(CutOffError):
        scene.order("stop", by="ana")

    scene.minute(2)

    assert [(group.alive, group.tags[f"{PREFIX}by"]) for group in groups] == [(0, "ana"), (0, "ana")]
    assert stopped(scene) == ["eval", "workers"]


def test_a_tick_waits_for_the_parameter_only_when_all_else_is_done(scene: Scene) -> None:
    group = scene.add("workers")
    scene.minute(2)
    scene.counts["workers"] = group.maximum = 6
    group.suspended = "User suspended at 2026-11-02T07:00:00Z"
    scene.ssm.before_next("GetParameter", STOPPED, cut_off)

    with pytest.raises(CutOffError):
        scene.minute()
    scene.ssm.before_next("GetParameter", STOPPED, cut_off)
    with pytest.raises(CutOffError):
        scene.minute()

    assert (group.desired, scene.subjects()) == (6, ["base-pod: nodes of workers are missing"])
