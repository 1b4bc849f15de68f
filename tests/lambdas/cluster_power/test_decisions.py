from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from cluster_common.owners.groups import Activity
from cluster_common.power_records import Order, Record, State
from cluster_contract.power import PowerFunctionSettings
from cluster_power.callers import Action
from cluster_power.commands import Command
from cluster_power.context import Context
from cluster_power.decisions import decide
from cluster_power.desired_state import new_orders
from cluster_power.groups import Group
from cluster_power.verdicts import Decision, Verdict
from power_scene import plain

NOW = datetime(2026, 11, 2, 8, 0, tzinfo=UTC)
LONG_AGO = NOW - timedelta(hours=3)
SETTINGS = PowerFunctionSettings(cluster="base-pod", groups=plain(workers=8), launch_grace=timedelta(minutes=10))
CONTEXT = Context(settings=SETTINGS, now=NOW)
RUNNING = Record(state=State.RUNNING, size=8, by="cluster_power", reason="first start", since=LONG_AGO)
STOPPED = Record(state=State.STOPPED, size=0, by="ana", reason="weekend", since=LONG_AGO)
TICK = Command(action=Action.TICK, node_groups=("workers",), by="", reason="")


def group(**settings: Any) -> Group:
    whole: dict[str, Any] = {
        "name": "asg",
        "node_group": "workers",
        "desired": 8,
        "minimum": 0,
        "maximum": 8,
        "in_service": 8,
        "record": RUNNING,
    }
    return Group(**(whole | settings))


def order_of(state: State) -> Order:
    limit = 0 if state is State.LIMITED else None
    return Order(state=state, by="ana", reason="weekend", since=LONG_AGO, limit=limit)


def decide_one(*groups: Group, settings: PowerFunctionSettings = SETTINGS) -> Decision:
    [decision] = decide(groups, Context(settings=settings, now=NOW))
    return decision


@pytest.mark.parametrize(
    ("found", "verdict", "wanted", "missing", "reason"),
    [
        pytest.param(group(), Verdict.KEEP, 8, 0, "workers has all of its 8 nodes", id="complete"),
        pytest.param(
            group(desired=0, in_service=0, record=replace(RUNNING, size=None)),
            Verdict.SIZE,
            8,
            8,
            "workers should have 8 nodes (running, by cluster_power: first start)",
            id="ordered and not sized yet",
        ),
        pytest.param(
            group(desired=4, in_service=4, record=replace(RUNNING, size=4)),
            Verdict.SIZE,
            8,
            4,
            "workers should have 8 nodes, 4 before (running, by cluster_power: first start)",
            id="count raised in the file",
        ),
        pytest.param(
            group(desired=16, in_service=16, maximum=16, record=replace(RUNNING, size=16)),
            Verdict.SIZE,
            8,
            0,
            "workers should have 8 nodes, 16 before (running, by cluster_power: first start)",
            id="count lowered in the file",
        ),
        pytest.param(
            group(desired=5, in_service=5),
            Verdict.HELD,
            8,
            0,
            "workers was given 8 nodes and its desired capacity was changed to 5 outside the power function: "
            "left alone until a start or stop command, or until its count in the cluster's file changes",
            id="an operator lowered it",
        ),
        pytest.param(
            group(desired=2, in_service=1, record=STOPPED),
            Verdict.HELD,
            0,
            1,
            "workers was given 0 nodes and its desired capacity was changed to 2 outside the power function: "
            "left alone until a start or stop command, or until its count in the cluster's file changes",
            id="an operator raised a stopped one",
        ),
        pytest.param(
            group(desired=0, in_service=0, record=STOPPED),
            Verdict.KEEP,
            0,
            0,
            "workers is stopped, by ana: weekend",
            id="stopped",
        ),
        pytest.param(
            group(desired=0, in_service=3, record=replace(STOPPED, since=NOW - timedelta(minutes=9))),
            Verdict.PENDING,
            0,
            0,
            "workers: 3 nodes still run where 0 should (3 InService): Auto Scaling is terminating 3 nodes",
            id="stopped and still terminating",
        ),
        pytest.param(
            group(desired=0, in_service=0, out_of_service=("Terminating",), record=STOPPED),
            Verdict.SURPLUS,
            0,
            0,
            "workers: 1 node still runs and is billed where 0 should (1 Terminating). No reason is reported: "
            "look at the activity history of the Auto Scaling group asg, and at the nodes.",
            id="stopped and a node stays",
        ),
        pytest.param(
            group(in_service=7, out_of_service=("Standby", "Pending"), activities=None, record=RUNNING),
            Verdict.SURPLUS,
            8,
            1,
            "workers: 9 nodes still run and are billed where 8 should (7 InService, 1 Pending, 1 Standby). "
            "Auto Scaling does not terminate 1 node in Standby: terminate each, or return it to service, which "
            "raises the desired capacity.",
            id="one too many is known though the activities are not",
        ),
        pytest.param(
            group(desired=4, in_service=4, maximum=4, record=replace(RUNNING, size=4)),
            Verdict.BLOCKED,
            8,
            4,
            "workers should have 8 nodes and the maximum size of its group is 4: a deployment is under way, or the "
            "maximum was lowered",
            id="the deploy has not raised the maximum yet",
        ),
        pytest.param(
            group(minimum=2, record=replace(STOPPED, size=None)),
            Verdict.BLOCKED,
            0,
            0,
            "workers should have 0 nodes and the minimum size of its group is 2: set that to 0",
            id="an operator raised the minimum",
        ),
        pytest.param(
            group(deleting=True, desired=0), Verdict.DELETING, 8, 0, "workers is being deleted", id="deleting"
        ),
        pytest.param(
            group(node_group="old", desired=3),
            Verdict.UNCONFIGURED,
            3,
            0,
            "old: 8 nodes still run and are billed (8 InService), and old is not in the cluster's file. Either a "
            "deployment that removes the Auto Scaling group asg is under way, or CloudFormation could not delete it, "
            "or it was created outside the stack: look at the stack's events, and delete it if its nodes are "
            "not needed.",
            id="removed from the file",
        ),
        pytest.param(
            group(in_service=6, record=replace(RUNNING, since=NOW - timedelta(minutes=9))),
            Verdict.PENDING,
            8,
            2,
            "workers: 6 of 8 nodes: the others are launching",
            id="launching",
        ),
        pytest.param(
            group(in_service=6, activities=None),
            Verdict.UNSEEN,
            8,
            2,
            "workers: 6 of 8 nodes: Auto Scaling returned no activities that say why",
            id="activities unreadable",
        ),
    ],
)
def test_a_tick_decides(found: Group, verdict: Verdict, wanted: int, missing: int, reason: str) -> None:
    decision = next(one for one in decide([found], CONTEXT) if one.group)

    assert (decision.verdict, decision.wanted, decision.missing) == (verdict, wanted, missing)
    assert decision.reason == reason


def test_one_node_is_a_node_and_not_nodes() -> None:
    settings = replace(SETTINGS, groups=plain(workers=1))
    record = replace(RUNNING, size=1)

    assert decide_one(group(desired=1, in_service=1, record=record), settings=settings).reason == (
        "workers has all of its 1 node"
    )


def test_a_group_that_the_file_knows_and_aws_does_not_have_is_missing_with_all_its_nodes() -> None:
    decision = decide_one()

    assert decision.verdict is Verdict.ABSENT
    assert decision.missing == 8
    assert decision.reason == (
        "workers is in the cluster's file and has no group: a deployment is under way, or failed"
    )


def test_an_absent_group_of_a_stopped_cluster_misses_nothing() -> None:
    settings = replace(SETTINGS, groups=plain(extra=2, workers=8))
    context = Context(settings=settings, now=NOW, orders={"workers": order_of(State.STOPPED)})
    decisions = decide([group(desired=0, in_service=0, record=STOPPED)], context)

    assert [(one.node_group, one.verdict, one.missing) for one in decisions] == [
        ("extra", Verdict.ABSENT, 0),
        ("workers", Verdict.KEEP, 0),
    ]


def test_two_groups_of_one_name_are_not_both_started() -> None:
    new = replace(RUNNING, size=None)
    decisions = decide([group(name="a", desired=0, record=new), group(name="b", desired=0, record=new)], CONTEXT)

    assert {one.verdict for one in decisions} == {Verdict.BLOCKED}
    assert decisions[0].reason == (
        "workers has more than one Auto Scaling group, and the power function sizes none of them: wait for the "
        "deployment that replaces one, or delete the one that is not in the cluster's stack"
    )


def test_two_groups_of_one_name_are_both_stopped() -> None:
    stop = replace(STOPPED, size=None)
    decisions = decide([group(name="a", record=stop), group(name="b", record=stop)], CONTEXT)

    assert {one.verdict for one in decisions} == {Verdict.SIZE}


def test_a_group_that_replaces_one_in_deletion_is_sized() -> None:
    decisions = decide(
        [group(name="a", deleting=True), group(name="b", desired=0, record=replace(RUNNING, size=None))],
        CONTEXT,
    )

    assert [one.verdict for one in decisions] == [Verdict.DELETING, Verdict.SIZE]


def test_a_node_that_is_replaced_is_pending_for_the_grace_and_no_problem() -> None:
    terminated = Activity(launch=False, started=NOW - timedelta(minutes=3), failed=False, finished=True, message="")

    assert decide_one(group(in_service=7, activities=(terminated,))).verdict is Verdict.PENDING


def orders(
    found: Group, command: Command, settings: PowerFunctionSettings = SETTINGS, **states: State
) -> dict[str, Order]:
    """Return what is recorded of a group, and of others whose states are known."""
    own = {found.node_group: found.record.state} if found.record.state else {}
    known = {name: order_of(state) for name, state in {**own, **states}.items()}
    return new_orders([found], Context(settings=settings, now=NOW, orders=known), command)


def command(action: Action) -> Command:
    return Command(action=action, node_groups=("workers",), by="bo", reason="cost")


NEW = Record()


def test_new_groups_are_adopted_as_running() -> None:
    adopted = Order(state=State.RUNNING, by="cluster_power", reason="first start after the deployment", since=NOW)

    assert orders(group(desired=0, record=NEW), TICK) == {"workers": adopted}


@pytest.mark.parametrize(
    ("states", "adopted"),
    [
        ({"extra": State.STOPPED}, State.STOPPED),
        ({"extra": State.STOPPED, "more": State.RUNNING}, State.RUNNING),
        ({"extra": State.STOPPED, "more": State.LIMITED}, State.LIMITED),
        # It is not in the file any more, and no order reaches it.
        ({"extra": State.STOPPED, "old": State.RUNNING}, State.STOPPED),
        ({"old": State.STOPPED}, State.RUNNING),
    ],
)
def test_a_new_group_gets_nodes_only_if_another_one_runs(states: dict[str, State], adopted: State) -> None:
    settings = replace(SETTINGS, groups=plain(extra=2, more=2, workers=8))

    assert orders(group(desired=0, in_service=0, record=NEW), TICK, settings, **states)["workers"].state is adopted


@pytest.mark.parametrize(
    "found",
    [group(record=NEW, deleting=True), group(record=NEW, node_group="old"), group()],
    ids=["deleting", "unconfigured", "known"],
)
def test_what_is_not_new_is_not_adopted(found: Group) -> None:
    assert orders(found, TICK) == {}


@pytest.mark.parametrize(
    "found",
    [
        pytest.param(group(), id="running"),
        pytest.param(group(desired=3), id="held by an operator"),
        pytest.param(group(record=NEW), id="never seen"),
        pytest.param(group(desired=2, record=STOPPED), id="stopped and raised by an operator"),
        pytest.param(group(record=replace(STOPPED, size=None)), id="a stop that was interrupted"),
        pytest.param(group(deleting=True), id="in deletion, so that its successor is stopped"),
    ],
)
def test_a_stop_applies_whatever_there_is(found: Group) -> None:
    stop = Order(state=State.STOPPED, by="bo", reason="cost", since=NOW)

    assert orders(found, command(Action.STOP)) == {"workers": stop}


@pytest.mark.parametrize(
    ("action", "found"),
    [
        (Action.STOP, group(desired=0, in_service=0, record=STOPPED)),
        (Action.START, group()),
        (Action.STATUS, group(record=NEW)),
        (Action.TERMINATE, group()),
    ],
    ids=["stop of a stopped group", "start of a running group", "status", "terminate"],
)
def test_an_order_that_changes_nothing_records_nothing(action: Action, found: Group) -> None:
    assert orders(found, command(action)) == {}
