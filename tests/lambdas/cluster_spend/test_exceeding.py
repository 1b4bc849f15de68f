"""A budget that is exceeded: who is warned, what is stopped or limited, and what an operator can do about it."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from cluster_common.errors import PartialFailureError
from cluster_contract.spend import OnExceed, SpendGroupSettings
from fake_auto_scaling import FakeGroup
from spend_scene import P5, START, SpendScene

KEEP, KEEP_UNTIL = "cdk-training-cluster:keep", "cdk-training-cluster:keep-until"
BUDGET = 100.0


def new_scene(on_exceed: OnExceed = OnExceed.STOP, **details: Any) -> SpendScene:
    """Return a cluster of two p5 nodes: the budget is spent within an hour."""
    told = {"monthly_usd": BUDGET, "thresholds": (50.0, 100.0, 200.0), "on_exceed": on_exceed, **details}
    return SpendScene(details=told)


@pytest.fixture
def scene() -> SpendScene:
    return new_scene()


def test_people_are_warned_then_nodes_are_stopped_once_and_a_start_resumes(
    scene: SpendScene, group: FakeGroup
) -> None:
    assert scene.tick(50)["acts"] == {"acted_on_usd": 0, "stops_at": None, "stops": []}
    warned = scene.tick(5)
    assert warned["acts"]["stops"] == ["workers"]
    assert scene.subjects == ["base-pod: budget reached, workers will be stopped in 30 minutes"]
    for _ in range(5):
        scene.tick()
    assert (scene.ordered, group.desired) == ([], 2)
    assert scene.tick()["acts"] == {"acted_on_usd": BUDGET, "stops_at": None, "stops": []}
    assert (scene.ordered, group.desired) == ([{"action": "stop", "node_groups": ["workers"]}], 0)
    assert scene.subjects[1:] == ["base-pod: budget reached, workers stopped"]
    scene.power.order("start", by="ana")
    for _ in range(4):
        scene.tick()
    assert (group.desired, len(scene.ordered), len(scene.sns.messages)) == (2, 1, 2)


def test_a_higher_threshold_acts_again_and_a_new_month_begins_anew(scene: SpendScene, group: FakeGroup) -> None:
    scene.tick(60)
    scene.tick(30)
    assert group.desired == 0
    scene.add(2)
    scene.power.order("start", by="ana")
    scene.tick(30)
    assert len(scene.sns.messages) == 3
    scene.now = datetime(2026, 12, 1, 0, 5, tzinfo=UTC)
    scene.tick(0)
    assert scene.run()["acts"]["acted_on_usd"] == 0


def test_the_warning_says_what_is_spent_what_happens_and_how_to_keep_it(scene: SpendScene, group: FakeGroup) -> None:
    scene.add(instance_type="p9.48xlarge", node_group="other")
    scene.details["thresholds"] = (100.0,)
    scene.tick(60)
    assert scene.sns.messages[0]["Message"].splitlines() == [
        "Cluster base-pod has cost 110.08 USD in 2026-11 (UTC), 110 % of its budget of 100 USD, and cost 110.08 USD "
        "an hour at 2026-11-10T09:00:00Z.",
        "Not counted, because their prices are not known: on-demand p9.48xlarge. State them in the budget's prices.",
        "",
        "At 2026-11-10T09:30:00Z the spend function stops these node groups:",
        "- workers: 2 nodes, 110.08 USD an hour. The Auto Scaling group workers-asg is scaled to zero; data on the "
        "nodes' disks is lost, except on nodes that return to a warm pool; their capacity goes back to EC2, so a "
        "later start may have to wait for capacity.",
        "  To keep it for 12 hours more:",
        '  aws autoscaling create-or-update-tags --region us-east-1 --tags \'[{"ResourceId":"workers-asg",'
        '"ResourceType":"auto-scaling-group","Key":"cdk-training-cluster:keep-until","Value":"2026-11-10T21:30:00Z",'
        '"PropagateAtLaunch":false}]\'',
        "",
        "To prevent every stop, raise the budget's monthly_usd above what the cluster will have cost by then, and "
        "deploy before that time.",
    ]
    scene.tick(30)
    assert scene.sns.messages[1]["Message"].splitlines()[3:] == [
        "These node groups were stopped, and stay stopped until a start command:",
        "- workers. To start it again:",
        "  training-cluster start base-pod --node-group workers --region us-east-1",
        "",
        "After a start command the spend function does not stop that node group again this month.",
    ]
    assert group.desired == 0


@pytest.mark.parametrize("where", ["owner", "node"])
def test_a_group_that_a_tag_keeps_is_warned_of_when_the_tag_ends_and_stopped(
    scene: SpendScene, group: FakeGroup, where: str
) -> None:
    scene.details["thresholds"] = (100.0,)
    tags = group.tags if where == "owner" else next(iter(scene.ec2.nodes.values())).tags
    lab = scene.deploy(1, node_group="lab")
    scene.groups["lab"] = SpendGroupSettings()
    tags[KEEP_UNTIL] = "2026-11-10T12:00Z"
    scene.tick(60)
    assert "- workers is not stopped: " in scene.sns.messages[0]["Message"]
    scene.tick(30)
    assert (group.desired, lab.desired) == (2, 0)
    scene.power.order("start", node_groups=["lab"], by="ana")
    scene.tick(60)
    assert (group.desired, lab.desired) == (2, 1)
    tags[KEEP_UNTIL] = "2026-11-10T10:00Z"
    scene.tick()
    assert scene.subjects[2:] == ["base-pod: budget reached, workers will be stopped in 30 minutes"]
    scene.tick(25)
    assert (group.desired, lab.desired) == (2, 1)
    scene.tick()
    assert (group.desired, lab.desired) == (0, 1)


def test_a_group_of_another_owner_with_the_tags_of_a_node_group_keeps_none_of_its_nodes(
    scene: SpendScene, group: FakeGroup
) -> None:
    scene.power.add(name="other", stack=None, desired=1, tags={KEEP: "true"})
    scene.tick(60)
    scene.tick(35)
    assert (group.desired, scene.power.auto_scaling.groups["other"].desired) == (0, 1)


def test_no_new_nodes_limits_at_once_with_one_message() -> None:
    scene = new_scene(OnExceed.NO_NEW_NODES)
    group, idle = scene.deploy(2), scene.deploy(1, node_group="idle")
    scene.groups["idle"] = SpendGroupSettings()
    scene.power.order("stop", node_groups=["idle"], by="ana")
    scene.tick(0)
    for _ in range(3):
        scene.tick(25)
    assert scene.ordered == [{"action": "limit", "node_groups": ["workers"]}]
    assert (group.desired, idle.desired) == (2, 0)
    assert scene.subjects == ["base-pod: budget reached, workers get no new nodes"]


def test_notify_orders_nothing_and_sends_nothing_beside_the_alarms() -> None:
    scene = new_scene(OnExceed.NOTIFY)
    scene.deploy(2)
    scene.tick(0)
    scene.tick(600)
    assert (scene.lambda_.orders, scene.sns.messages) == ([], [])


@pytest.mark.parametrize(
    ("own", "left_alone"),
    [
        (SpendGroupSettings(reservations=("cr-1",)), True),
        (SpendGroupSettings(reservations=("cr-1",), release=True), False),
        (SpendGroupSettings(), False),
    ],
)
def test_what_is_billed_all_the_same_is_left_alone_and_named(own: SpendGroupSettings, left_alone: bool) -> None:
    scene = new_scene(thresholds=(100.0,))
    scene.groups["workers"] = own
    scene.ec2.add_reservation("cr-1", 2, starts=START)
    group = scene.deploy(2, CapacityReservationId="cr-1")
    scene.tick(0)
    scene.tick(60)
    scene.tick(30)
    assert group.desired == (2 if left_alone else 0)
    named = "- workers is not stopped: its nodes use cr-1, which is billed whether or not they run."
    assert (named in scene.sns.messages[0]["Message"].splitlines()) is left_alone
    if left_alone:
        assert scene.subjects == ["base-pod: budget reached, nothing to stop"]
        assert scene.ordered == []


@pytest.mark.usefixtures("group")
def test_a_budget_that_is_raised_after_the_warning_stops_nothing_and_acts_at_its_own_amount(
    scene: SpendScene,
) -> None:
    scene.tick(60)
    scene.details["monthly_usd"] = 300.0
    scene.tick(30)
    assert scene.subjects[1:] == ["base-pod: workers will not be stopped"]
    assert scene.ordered == []
    scene.tick(90)
    assert len(scene.sns.messages) == 3
    assert scene.run()["acts"]["stops"] == ["workers"]


def test_unknown_prices_stop_nothing() -> None:
    scene = new_scene()
    scene.deploy(2, instance_type="p9.48xlarge")
    scene.add(1, instance_type="p9.48xlarge")
    for node in scene.ec2.nodes.values():
        node.instance_type = "p9.48xlarge"
    scene.tick(0)
    scene.tick(6000)
    assert (scene.lambda_.orders, scene.sns.messages) == ([], [])


@pytest.mark.parametrize(("code", "desired"), [("InternalError", 2), ("NotFound", 0)])
def test_without_a_message_nothing_is_stopped_unless_the_topic_is_deleted(
    scene: SpendScene, group: FakeGroup, code: str, desired: int
) -> None:
    scene.sns.fails = code
    for minutes in (60, 30):
        with pytest.raises(PartialFailureError, match="the notification could not be published"):
            scene.tick(minutes)
    assert group.desired == desired


@pytest.mark.parametrize(
    ("service", "operation", "code"),
    [
        ("lambda", "Invoke", "AccessDeniedException"),
        ("lambda", "Invoke", "ServiceException"),
        ("autoscaling", "DescribeAutoScalingGroups", "Throttling"),
        ("dynamodb", "PutItem", "ProvisionedThroughputExceededException"),
    ],
)
def test_what_fails_while_it_stops_is_tried_again(
    scene: SpendScene, group: FakeGroup, service: str, operation: str, code: str
) -> None:
    scene.tick(60)
    services: dict[str, Any] = {
        "lambda": scene.lambda_,
        "autoscaling": scene.power.auto_scaling,
        "dynamodb": scene.dynamodb,
    }
    services[service].fail_next(operation, code)
    with pytest.raises(PartialFailureError, match=code):
        scene.tick(30)
    scene.tick()
    assert group.desired == 0
    assert scene.run()["acts"]["acted_on_usd"] == BUDGET


class EndedError(BaseException):
    """Ends a run as Lambda does, which no code catches."""


@pytest.mark.parametrize("at_minute", [60, 90])
@pytest.mark.parametrize("on_exceed", [OnExceed.STOP, OnExceed.NO_NEW_NODES])
def test_a_run_that_ends_before_any_of_its_calls_counts_nothing_twice_and_is_made_good(
    on_exceed: OnExceed, at_minute: int
) -> None:
    number = 0
    while True:
        number += 1
        scene = new_scene(on_exceed)
        group = scene.deploy(2)
        scene.tick(0)
        if at_minute > 60:
            scene.tick(60)
        calls: list[str] = []

        def end(operation: str, calls: list[str] = calls, last: int = number) -> None:
            calls.append(operation)
            if len(calls) == last:
                raise EndedError

        scene.watch(end)
        try:
            scene.tick(at_minute - (60 if at_minute > 60 else 0))
        except EndedError:
            scene.watch(lambda _: None)
            scene.tick(1)
            scene.tick(30)
            scene.tick(5)
            running = (at_minute + 1 + (30 if on_exceed is OnExceed.NO_NEW_NODES else 0)) / 60
            assert scene.spent() >= 2 * P5 * running * 0.999
            assert scene.spent() <= 2 * P5 * (at_minute + 36) / 60 * 1.001
            assert group.desired == (0 if on_exceed is OnExceed.STOP else 2)
            assert scene.run()["acts"]["acted_on_usd"] >= BUDGET
            continue
        break
    assert number >= 4


@pytest.mark.parametrize("operation", ["", "Query", "DescribeAutoScalingGroups"])
def test_an_operator_who_starts_a_group_after_the_stop_was_ordered_is_not_overruled(
    scene: SpendScene, group: FakeGroup, operation: str
) -> None:
    scene.tick(60)
    scene.dynamodb.fail_next("PutItem", "InternalServerError", group="acts")
    with pytest.raises(PartialFailureError):
        scene.tick(30)
    assert group.desired == 0
    scene.now += timedelta(minutes=1)
    scene.power.now = scene.now
    scene.power.order("start", by="ana")
    if operation:
        # The power function answers what it could not read, and the spend function's own reading comes before.
        scene.power.fail_next(operation, "Throttling", after=operation != "Query")
        with pytest.raises(PartialFailureError, match="could not read the desired state of workers"):
            scene.tick(4)
    scene.tick(4)
    assert group.desired == 2


def test_a_group_that_is_deleted_by_hand_is_not_stopped_again_and_again(scene: SpendScene) -> None:
    lab = scene.deploy(1, node_group="lab")
    scene.groups["lab"] = SpendGroupSettings()
    for minutes in (0, 110):
        scene.tick(minutes)
    del scene.power.auto_scaling.groups[lab.name]
    for node in scene.ec2.nodes.values():
        scene.end(node)
    for _ in range(8):
        scene.tick(10)
    assert (scene.ordered, scene.run()["acts"]["stops"]) == ([], [])
