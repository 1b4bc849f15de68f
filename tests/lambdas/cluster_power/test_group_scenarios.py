"""The power function at work on a cluster in memory."""

import json
import re

import pytest

from cluster_common.errors import PartialFailureError
from cluster_power.state_store import UnreadableStateError
from fake_service import STACK
from power_scene import Scene


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_groups_are_found_page_by_page() -> None:
    names = [f"group-{number}" for number in range(5)]
    scene = Scene(counts=dict.fromkeys(names, 1))
    for name in names:
        scene.add(name)

    assert list(scene.order()) == names


def test_the_first_tick_records_before_it_sizes_and_again_after(scene: Scene) -> None:
    group, writes = scene.add(), scene.writes()

    summary = scene.order()

    assert writes == ["PutItem", "SetDesiredCapacity", "PutItem", "CreateOrUpdateTags"]
    assert scene.dynamodb.values("power#base-pod", "workers") == {
        "part": "power#base-pod",
        "name": "workers",
        "version": 2,
        "stack": STACK,
        "state": "running",
        "by": "cluster_power",
        "reason": "first start after the deployment",
        "since": "2026-11-02T08:00:00Z",
        "owners": {"workers-asg": {"size": 8, "since": "2026-11-02T08:00:00Z"}},
    }
    assert group.tags["cdk-training-cluster:power"] == (
        "running by cluster_power since 2026-11-02T08:00:00Z: first start after the deployment"
    )
    assert summary["workers"] == {
        "node_group": "workers",
        "auto_scaling_group": "workers-asg",
        "owner": "Auto Scaling group workers-asg",
        "state": "running",
        "by": "cluster_power",
        "why": "first start after the deployment",
        "since": "2026-11-02T08:00:00Z",
        "ordered_at": "2026-11-02T08:00:00Z",
        "wanted": 8,
        "desired": 8,
        "in_service": 0,
        "alive": 0,
        "missing": 8,
        "surplus": 0,
        "decision": "size",
        "reason": "workers should have 8 nodes (running, by cluster_power: first start after the deployment)",
        "problem": None,
    }


def test_a_tick_on_a_cluster_that_is_as_it_should_be_only_reads(scene: Scene) -> None:
    scene.add()
    scene.minute(2)
    scene.auto_scaling.calls.clear()

    scene.minute()

    assert [call.action for call in scene.auto_scaling.calls] == ["autoscaling:DescribeAutoScalingGroups"]


def test_a_deploy_that_changes_the_count_changes_the_size_once_the_group_takes_it(scene: Scene) -> None:
    group = scene.add(maximum=8)
    scene.minute(2)

    scene.counts["workers"] = 12
    blocked = scene.minute()["workers"]
    group.maximum = 12
    scene.minute(2)

    assert (blocked["decision"], blocked["desired"], blocked["missing"]) == ("blocked", 8, 4)
    assert (group.desired, group.in_service) == (12, 12)


def test_a_size_that_an_operator_sets_stays_until_the_count_changes(scene: Scene) -> None:
    group = scene.add()
    scene.minute(2)

    group.desired = 5
    held = scene.minute(3)["workers"]
    assert (held["decision"], held["desired"], held["wanted"]) == ("held", 5, 8)

    scene.counts["workers"] = 6
    assert scene.minute()["workers"]["desired"] == 6


def test_a_stop_is_recorded_first_then_applied(scene: Scene) -> None:
    scene.add()
    scene.minute(2)
    writes = scene.writes()

    stopped = scene.order("stop", by="ana", reason="weekend")["workers"]

    assert writes == ["PutItem", "SetDesiredCapacity", "PutItem"]
    assert (stopped["state"], stopped["desired"], stopped["by"], stopped["why"]) == (
        "stopped",
        0,
        "ana",
        "weekend",
    )


def test_who_stopped_it_first_and_why_stays_when_another_stops_it_again(scene: Scene) -> None:
    scene.add()
    scene.order("stop", by="ana", reason="weekend")

    again = scene.order("stop", by="bo", reason="no idea")["workers"]

    assert (again["by"], again["why"], again["decision"]) == ("ana", "weekend", "keep")


def test_an_order_for_one_group_leaves_the_others_alone() -> None:
    scene = Scene(counts={"eval": 2, "workers": 8})
    scene.add("eval")
    scene.add("workers")
    scene.minute(2)
    scene.auto_scaling.groups["eval-asg"].desired = 1

    summary = scene.order("stop", node_groups=["workers"])

    assert list(summary) == ["workers"]
    assert scene.auto_scaling.groups["eval-asg"].desired == 1


def test_a_stopped_cluster_stays_stopped_through_a_deploy_that_adds_a_group(scene: Scene) -> None:
    scene.add()
    scene.minute(2)
    scene.order("stop", by="ana", reason="weekend")

    scene.counts = {"extra": 2, "workers": 4}
    scene.add("extra")
    summary = scene.minute(2)

    assert {name: (one["state"], one["desired"]) for name, one in summary.items()} == {
        "extra": ("stopped", 0),
        "workers": ("stopped", 0),
    }
    assert summary["extra"]["reason"] == (
        "extra is stopped, by cluster_power: the cluster was stopped when this node group was added"
    )


@pytest.mark.parametrize("action", ["limit", "stop"])
def test_a_group_that_is_added_gets_no_node_while_the_budget_holds_another_one(scene: Scene, action: str) -> None:
    scene.counts = {"workers": 2, "mixed": 2}
    for name in scene.counts:
        scene.add(name)
    scene.minute(2)
    scene.order(action, node_groups=["workers"], by="cluster_spend", reason="110 USD spent, the budget is 100 USD")
    scene.counts = {**scene.counts, "extra": 4}
    extra = scene.add("extra")
    assert scene.minute(2)["extra"]["reason"] == (
        "extra is limited to its 0 nodes by cluster_power: the budget was reached when this node group was added: "
        "110 USD spent, the budget is 100 USD; a start command ends the limit"
    )
    scene.order("start", node_groups=["workers"], by="ana")
    scene.counts = {**scene.counts, "more": 4}
    more = scene.add("more")
    scene.minute(2)
    assert (extra.desired, more.desired) == (0, 4)


def test_a_start_that_does_not_fit_yet_is_carried_out_when_it_does(scene: Scene) -> None:
    group = scene.add(maximum=4)

    assert scene.order("start", by="bo")["workers"]["decision"] == "blocked"
    group.maximum = 8

    assert scene.minute()["workers"]["desired"] == 8


def test_status_changes_nothing_and_says_what_a_tick_would_do(scene: Scene) -> None:
    scene.add()

    status = scene.order("status")["workers"]

    assert scene.auto_scaling.writes == []
    assert (status["decision"], status["state"], status["reason"]) == (
        "size",
        None,
        "workers should have 8 nodes (not seen before)",
    )


def test_the_cooldown_does_not_keep_an_order_waiting(scene: Scene) -> None:
    scene.add()
    scene.order()

    [sized] = [one for one in scene.auto_scaling.requests if one[0] == "SetDesiredCapacity"]

    assert sized[1]["HonorCooldown"] is False


def test_unreadable_activities_are_no_verdict_and_fail_the_tick(scene: Scene) -> None:
    group = scene.add(capacity=3)
    scene.minute(2)
    scene.auto_scaling.fail_next("DescribeScalingActivities", "AccessDenied", message="not you")

    with pytest.raises(PartialFailureError) as caught:
        scene.order()

    assert str(caught.value) == (
        "workers: the scaling activities could not be read, and the next run tries again (AccessDenied: not you). "
        "Everything else was done."
    )
    assert scene.record(group).told == ("problem/no-capacity",)
    assert len(scene.sns.messages) == 1


def test_nothing_is_done_when_the_groups_cannot_be_read(scene: Scene) -> None:
    scene.add()
    scene.auto_scaling.fail_next("DescribeAutoScalingGroups", "Throttling")

    with pytest.raises(Exception, match="Throttling"):
        scene.order()

    assert scene.auto_scaling.writes == []


@pytest.mark.parametrize("operation", ["SetDesiredCapacity", "PutItem"])
@pytest.mark.parametrize("code", ["ResourceContention", "Throttling", "AccessDenied", "InternalFailure"])
def test_what_fails_for_one_group_is_raised_after_the_others_and_made_good_later(operation: str, code: str) -> None:
    scene = Scene(counts={"eval": 2, "workers": 8})
    for name in ("eval", "workers"):
        scene.add(name)
    scene.fail_next(operation, code, owner="eval-asg")

    with pytest.raises(PartialFailureError) as caught:
        scene.order()

    what = {
        "SetDesiredCapacity": "could not be sized to 2",
        "PutItem": "the state running could not be recorded: nothing was changed, send the command again",
    }
    assert str(caught.value) == f"eval: {what[operation]} ({code}: no). Everything else was done."
    assert scene.auto_scaling.groups["workers-asg"].desired == 8
    assert {name: one["desired"] for name, one in scene.minute().items()} == {"eval": 2, "workers": 8}


def test_a_group_that_is_being_deleted_is_left_alone(scene: Scene) -> None:
    group = scene.add(deleting=True)

    assert scene.order()["workers"]["decision"] == "deleting"
    assert scene.order("stop")["workers"]["decision"] == "deleting"
    assert (group.desired, scene.auto_scaling.writes) == (0, [])


def test_a_group_of_another_cluster_is_never_seen(scene: Scene) -> None:
    scene.add()
    foreign = scene.auto_scaling.add("other", cluster="other-pod", node_group="workers")
    before = dict(foreign.tags)

    scene.minute(3)
    scene.order("stop")

    assert foreign.tags == before


@pytest.mark.parametrize("stack", [None, STACK.replace("/1", "/2")], ids=["no stack", "another stack"])
def test_a_group_of_another_owner_with_the_tags_of_a_node_group_is_never_seen(
    scene: Scene, stack: str | None
) -> None:
    group = scene.add()
    foreign = scene.add(name="other", stack=stack, desired=3, in_service=3)
    before = dict(foreign.tags)

    scene.minute(3)
    running = group.desired
    scene.order("stop")
    scene.minute(2)

    assert (running, group.desired, foreign.desired, foreign.tags) == (8, 0, 3, before)


def test_an_item_that_cannot_be_read_stops_everything_but_an_order(scene: Scene) -> None:
    group = scene.add()
    scene.minute(2)
    scene.dynamodb.change("power#base-pod", "workers", state="stoped")

    with pytest.raises(PartialFailureError) as caught:
        scene.minute()
    assert str(caught.value) == (
        "workers: the item workers of the state table state-table does not hold what the power function writes "
        "(order.state must be one of running, limited, stopped, got 'stoped'): start or stop the node group, which "
        "writes it anew. Everything else was done."
    )
    assert group.desired == 8

    assert scene.order("stop")["workers"]["desired"] == 0
    assert scene.minute(2)["workers"]["decision"] == "keep"


UNREADABLE = (
    "the state table state-table could not be read (AccessDeniedException: no): nothing was changed; the next run "
    "reads it again, and a refused command has to be sent again"
)


@pytest.mark.parametrize("action", ["stop", "start", "limit"])
def test_while_the_table_cannot_be_read_commands_are_refused(scene: Scene, action: str) -> None:
    group = scene.add()
    scene.order("stop")
    scene.dynamodb.fail_next("Query", "AccessDeniedException")

    with pytest.raises(UnreadableStateError) as caught:
        scene.order(action)

    assert (str(caught.value), group.desired) == (UNREADABLE, 0)


def test_while_the_table_cannot_be_read_the_running_nodes_are_still_reported(
    scene: Scene, capsys: pytest.CaptureFixture[str]
) -> None:
    group = scene.add()
    scene.minute(2)
    capsys.readouterr()
    scene.dynamodb.fail_next("Query", "AccessDeniedException")

    with pytest.raises(PartialFailureError, match=rf"^base-pod: {re.escape(UNREADABLE)}"):
        scene.order()

    metrics = [json.loads(line) for line in capsys.readouterr().out.splitlines() if '"_aws"' in line]
    assert [(one["NodeGroup"], one["RunningNodes"], "MissingNodes" in one) for one in metrics] == [
        ("workers", [8.0], False)
    ]
    scene.dynamodb.fail_next("Query", "AccessDeniedException")
    status = scene.order("status")["workers"]
    assert (status["in_service"], status["decision"], status["state"]) == (8, "unseen", None)
    assert status["reason"] == (
        "workers keeps its desired capacity of 8: the state table could not be read, and the next run reads it again"
    )
    assert (scene.failures, group.desired) == ([f"base-pod: {UNREADABLE}"], 8)


def test_a_cluster_that_is_deployed_anew_starts_though_its_predecessor_was_stopped(scene: Scene) -> None:
    scene.add()
    scene.minute()
    scene.order("stop", by="ana", reason="the month is over")
    scene.stack = STACK.replace("/1", "/2")
    scene.auto_scaling.groups.clear()
    group = scene.add(name="workers-asg-2")

    first = scene.minute(2)["workers"]

    assert (group.desired, first["why"]) == (8, "first start after the deployment")
    assert scene.recorded().owners.keys() == {"workers-asg-2"}


def test_a_note_that_cannot_be_written_keeps_nothing_waiting(scene: Scene) -> None:
    scene.add()
    scene.auto_scaling.fail_next("CreateOrUpdateTags", "LimitExceeded")

    assert scene.order()["workers"]["desired"] == 8


def test_a_start_of_a_group_of_which_the_idle_function_has_warned_says_that_it_is_not_kept() -> None:
    scene = Scene()
    group = scene.add()
    scene.minute(3)
    group.tags["cdk-training-cluster:idle-note"] = "idle since 07:00 - terminated at 08:30 unless it works"

    found = scene.order("start", by="ana")["workers"]

    assert (found["decision"], group.desired) == ("keep", 8)
    assert found["reason"] == (
        "workers has all of its 8 nodes. The idle function has warned of them, and a start does not keep them: idle "
        "since 07:00 - terminated at 08:30 unless it works"
    )
