"""The power function where a group changes while it looks or acts."""

from datetime import timedelta
from typing import TYPE_CHECKING, Any, cast

import pytest
from aws_lambda_powertools import Logger
from botocore.exceptions import ConnectionClosedError

from cluster_common.errors import PartialFailureError
from cluster_common.owners.groups import OwnedGroup
from cluster_common.owners.node_owner import Owners
from cluster_common.state_table import StateChangedError, StateTable
from cluster_power.state_store import StateStore
from fake_dynamodb import TABLE
from fake_service import STACK
from power_scene import PART, Scene
from termination_scene import LambdaEndedError, end_run

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.client import DynamoDBClient


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_a_busy_group_waits_for_the_next_tick_and_is_no_failure(scene: Scene) -> None:
    scene.add()
    scene.auto_scaling.fail_next("SetDesiredCapacity", "ScalingActivityInProgress")

    busy = scene.order()["workers"]

    assert (busy["decision"], busy["desired"]) == ("blocked", 0)
    assert busy["reason"] == "workers is busy with another scaling activity: the next run tries again"
    assert scene.minute()["workers"]["desired"] == 8


def test_a_group_that_vanishes_while_it_is_sized_is_absent_at_the_next_tick(scene: Scene) -> None:
    scene.add()
    scene.auto_scaling.fail_next("SetDesiredCapacity", "ValidationError", message="AutoScalingGroup name not found")
    with pytest.raises(PartialFailureError, match="AutoScalingGroup name not found"):
        scene.order()

    scene.auto_scaling.groups.clear()

    assert scene.minute()["workers"]["decision"] == "absent"


def test_a_stop_that_comes_while_a_tick_looks_wins(scene: Scene) -> None:
    """The tick looks again right before it acts; what changed meanwhile is left to the next one."""
    group = scene.add()
    scene.auto_scaling.before_next(
        "DescribeAutoScalingGroups", "workers-asg", lambda: scene.order("stop", by="ana", reason="weekend")
    )

    late = scene.order()["workers"]

    assert late["reason"] == "workers changed during the run: the next run decides"
    assert (group.desired, scene.record(group).state, scene.record(group).size) == (0, "stopped", 0)


@pytest.mark.parametrize("moment", ["SetDesiredCapacity", "PutItem"])
def test_a_stop_that_comes_while_a_tick_sizes_a_group_is_applied_at_the_next(scene: Scene, moment: str) -> None:
    group = scene.add()
    scene.minute(2)
    scene.counts["workers"] = 6
    service, name = (scene.dynamodb, "workers") if moment == "PutItem" else (scene.auto_scaling, "workers-asg")
    service.before_next(moment, name, lambda: scene.order("stop", by="ana", reason="weekend"))

    late = scene.order()["workers"]
    scene.minute()

    assert late["reason"] == "workers was given another command at the same moment: the next run decides"
    assert (group.desired, scene.record(group).state) == (0, "stopped")


@pytest.mark.parametrize("first", ["stop", "start"])
def test_of_two_orders_at_the_same_moment_the_one_that_is_recorded_last_holds(scene: Scene, first: str) -> None:
    group = scene.add()
    scene.minute(2)
    last = "start" if first == "stop" else "stop"
    if last == "start":
        scene.order("stop", by="eve", reason="before")
        scene.minute()
    scene.dynamodb.before_next("PutItem", "workers", lambda: scene.order(first, by="ana", reason="first"))

    scene.order(last, by="bo", reason="last")

    told = scene.minute(2)["workers"]
    assert (told["by"], group.desired) == ("bo", 8 if last == "start" else 0)


def test_two_stops_of_different_groups_at_the_same_moment_are_both_applied() -> None:
    scene = Scene(counts={"eval": 2, "workers": 8})
    groups = [scene.add("eval"), scene.add("workers")]
    scene.minute(2)
    scene.dynamodb.before_next("PutItem", "eval", lambda: scene.order("stop", node_groups=["workers"]))

    scene.order("stop", node_groups=["eval"])
    scene.minute()

    assert ([group.desired for group in groups], scene.stopped()) == ([0, 0], ["eval", "workers"])


def test_a_write_whose_answer_is_lost_is_no_other_order(scene: Scene) -> None:
    """Botocore sends it again, and DynamoDB refuses that: the version is the next one already."""
    group = scene.add()
    scene.minute(2)
    put = scene.dynamodb.put_item

    def put_twice(**parameters: Any) -> dict[str, Any]:
        put(**parameters)
        return put(**parameters)

    scene.dynamodb.put_item = put_twice  # type: ignore[method-assign]  # as a retry does

    assert scene.order("stop")["workers"]["decision"] == "size"
    assert (group.desired, scene.stopped()) == (0, ["workers"])


@pytest.mark.parametrize("all_or_nothing", [False, True])
def test_a_stop_that_reads_an_old_size_of_zero_is_applied_all_the_same(scene: Scene, all_or_nothing: bool) -> None:
    group = scene.add()
    before = scene.auto_scaling.describe_all()
    scene.order()
    scene.now += timedelta(seconds=5)
    scene.auto_scaling.old = [before] * 9

    if all_or_nothing:
        scene.order("stop", all_or_nothing=True, by="ana", reason="weekend")
    else:
        scene.order("stop", by="ana", reason="weekend")

    scene.auto_scaling.old.clear()
    scene.minute()
    assert (group.desired, scene.record(group).size) == (0, 0)


@pytest.mark.parametrize("readable", [True, False])
def test_a_stop_whose_record_has_no_answer_is_not_called_undone(scene: Scene, readable: bool) -> None:
    group = scene.add()
    scene.minute(2)
    put = scene.dynamodb.put_item

    def lose_answer(**parameters: Any) -> dict[str, Any]:
        put(**parameters)
        scene.dynamodb.put_item = put  # type: ignore[method-assign]  # the next one is answered
        if not readable:
            scene.dynamodb.fail_next("GetItem", "InternalServerError", group="workers")
        raise ConnectionClosedError(endpoint_url="https://dynamodb.us-east-1.amazonaws.com")

    scene.dynamodb.put_item = lose_answer  # type: ignore[method-assign]  # as a network does

    if readable:
        scene.order("stop")
        assert group.desired == 0
    else:
        with pytest.raises(
            PartialFailureError, match="it may have been recorded, and is then applied within a minute"
        ):
            scene.order("stop")
    scene.minute()
    assert group.desired == 0


def test_a_stop_while_a_tick_lowers_a_group_that_lacks_nodes_is_a_stop(scene: Scene) -> None:
    """The tick lowers the group after the stop has brought it to 0: the next tick brings it there again."""
    group = scene.add(capacity=3)
    scene.minute(10)
    assert group.desired == 8

    def stop() -> None:
        scene.now += timedelta(seconds=1)
        scene.order("stop", by="ana", reason="weekend")

    scene.auto_scaling.before_next("SetDesiredCapacity", "workers-asg", stop)
    late = scene.minute(3)["workers"]
    scene.minute(2)

    assert (group.desired, scene.record(group).size, late["state"]) == (0, 0, "stopped")


def test_a_size_that_has_to_be_set_again_is_not_recorded_by_a_run_that_set_it_before(scene: Scene) -> None:
    """A stop sets 0, a tick that looked before it sets 6 and gives way, and then the stop records what it set."""
    group = scene.add()
    scene.minute(2)
    scene.auto_scaling.before_next("SetDesiredCapacity", "workers-asg", end_run)
    with pytest.raises(LambdaEndedError):
        scene.order("stop", by="ana", reason="weekend")
    owned = OwnedGroup(name=group.name, node_group="workers", desired=8, minimum=0, maximum=8, in_service=8)
    table = StateTable(cast("DynamoDBClient", scene.dynamodb), TABLE, PART)
    stop, tick = (StateStore(Owners([]), table, STACK, Logger(service="test")) for _ in range(2))
    stop.read()
    [stopped] = stop.load([owned])
    tick.read()
    tick.forget_size(tick.load([owned])[0])

    with pytest.raises(StateChangedError, match="workers was given another command at the same moment"):
        stop.save(stopped, size=0, since=scene.now)

    scene.minute()
    assert group.desired == 0


def test_a_desired_capacity_from_before_the_function_set_it_is_not_an_operators(scene: Scene) -> None:
    group = scene.add()
    scene.order()
    group.desired = 0

    early = scene.order()["workers"]

    assert (early["decision"], early["missing"]) == ("pending", 8)
    assert early["reason"] == (
        "workers was sized less than a minute ago, and its Auto Scaling group may show an older desired capacity"
    )
    assert scene.record(group).desired is None
    scene.order("start")
    assert group.desired == 8


def test_a_limit_right_after_a_start_is_for_the_nodes_that_are_about_to_come(scene: Scene) -> None:
    group = scene.add()
    scene.order()
    group.desired = 0

    scene.order("limit")
    group.desired = 8

    assert (scene.minute(2)["workers"]["decision"], group.desired) == ("keep", 8)


def test_a_command_while_an_alert_is_recorded_fails_nothing(scene: Scene) -> None:
    group = scene.add(capacity=3)
    scene.minute(2)
    group.failure = "no"
    scene.dynamodb.before_next("PutItem", "workers", lambda: scene.order("stop"))

    scene.minute()

    assert scene.minute(2)["workers"]["decision"] == "keep"


def test_a_note_that_was_not_written_is_written_at_the_next_run(scene: Scene) -> None:
    group = scene.add()
    scene.minute()
    scene.order("stop", by="ana", reason="weekend")
    scene.fail_next("CreateOrUpdateTags", "LimitExceeded")
    scene.minute()
    assert group.tags["cdk-training-cluster:power"].startswith("running")

    scene.minute()

    assert group.tags["cdk-training-cluster:power"].endswith(": weekend")
