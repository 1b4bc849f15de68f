"""A limited node group keeps the nodes that it has, and gets no more until a start."""

from datetime import timedelta

import pytest

from cluster_common.errors import PartialFailureError
from cluster_common.power_records import Order, State
from fake_auto_scaling import FakeGroup
from power_scene import Scene

POWER_TAG = "cdk-training-cluster:power"


@pytest.fixture
def scene() -> Scene:
    return Scene(counts={"workers": 8})


@pytest.fixture
def group(scene: Scene) -> FakeGroup:
    group = scene.add(maximum=16)
    scene.minute(3)
    return group


def limit(scene: Scene, group: FakeGroup) -> None:
    """Limit the group, and see that no size was sent for it."""
    calls, size = len(scene.auto_scaling.calls), group.desired
    scene.order("limit", by="cluster_spend", reason="the budget is spent")
    sent = [call.action for call in scene.auto_scaling.calls[calls:]]
    assert "autoscaling:SetDesiredCapacity" not in sent
    assert group.desired == size


def order_of(scene: Scene) -> Order:
    order = scene.recorded().order
    assert order is not None
    return order


@pytest.mark.parametrize(
    ("size", "decision"),
    [
        pytest.param(8, "keep", id="complete"),
        pytest.param(5, "keep", id="lowered by an operator"),
        pytest.param(0, "keep", id="empty"),
        pytest.param(12, "held", id="raised by an operator"),
    ],
)
def test_a_limited_group_keeps_its_size_until_a_start(
    scene: Scene, group: FakeGroup, size: int, decision: str
) -> None:
    group.desired = size
    scene.minute(3)

    limit(scene, group)
    found = scene.minute(3)["workers"]

    assert (order_of(scene).limit, group.desired) == (size, size)
    assert (found["state"], found["by"], found["decision"]) == ("limited", "cluster_spend", decision)
    scene.order("start")
    assert (group.desired, order_of(scene).state) == (8, State.RUNNING)


def test_status_and_the_tag_say_who_limited_a_group_and_how_it_ends(scene: Scene, group: FakeGroup) -> None:
    limit(scene, group)
    scene.minute()

    assert scene.order("status")["workers"]["reason"] == (
        "workers is limited to its 8 nodes by cluster_spend: the budget is spent; a start command ends the limit"
    )
    assert group.tags[POWER_TAG] == (
        "limited to 8 nodes until a start by cluster_spend since 2026-11-02T08:03:00Z: the budget is spent"
    )


def test_a_group_that_lacks_nodes_is_limited_to_what_it_was_lowered_to(scene: Scene, group: FakeGroup) -> None:
    group.capacity = group.in_service = 5
    scene.minute(15)
    assert group.desired == 5

    limit(scene, group)
    group.capacity = 16
    scene.minute(30)

    assert (group.desired, scene.order("status")["workers"]["missing"]) == (5, 0)


def test_a_count_below_the_limit_holds_and_one_above_does_not(scene: Scene, group: FakeGroup) -> None:
    limit(scene, group)
    for count, size in ((4, 4), (10, 8)):
        scene.counts["workers"] = count
        scene.minute(2)
        assert group.desired == size


def test_a_stopped_group_stays_stopped_and_a_limited_one_can_be_stopped(scene: Scene, group: FakeGroup) -> None:
    limit(scene, group)
    scene.order("stop", by="ana", reason="done", all_or_nothing=True)
    scene.pass_time(timedelta(minutes=5))

    limit(scene, group)

    assert (scene.stopped(), group.desired) == (["workers"], 0)
    scene.order("start")
    assert group.desired == 8


def test_an_owner_that_replaces_a_limited_one_gets_as_many_nodes(scene: Scene, group: FakeGroup) -> None:
    group.desired = 6
    scene.minute(2)
    new = scene.add(name="workers-new-asg", maximum=16)

    limit(scene, group)
    scene.minute(2)
    assert (group.desired, new.desired) == (6, 0)
    del scene.auto_scaling.groups[group.name]
    scene.minute(2)

    assert new.desired == 6


def test_a_fleet_whose_target_a_deploy_has_just_reset_keeps_its_nodes(scene: Scene) -> None:
    fleet = scene.add_fleet("extras")
    scene.minute(3)
    fleet.deploy()

    scene.order("limit", node_groups=["extras"])
    scene.minute(3)

    assert (fleet.desired, fleet.alive) == (4, 4)


def test_a_group_that_cannot_be_read_is_not_limited(scene: Scene, group: FakeGroup) -> None:
    scene.fail_next("DescribeAutoScalingGroups", "Throttling")

    with pytest.raises(PartialFailureError, match="workers: its nodes could not be read"):
        scene.order("limit")
    scene.minute(2)

    assert (group.desired, order_of(scene).state) == (8, State.RUNNING)


@pytest.mark.usefixtures("group")
def test_a_limit_that_cannot_be_recorded_says_so(scene: Scene) -> None:
    scene.fail_next("PutItem", "ProvisionedThroughputExceededException")

    with pytest.raises(
        PartialFailureError, match="limited could not be recorded: nothing was changed, send the command again"
    ):
        scene.order("limit")
