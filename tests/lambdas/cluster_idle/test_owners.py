"""Owners of nodes: what of them is not seen keeps nodes running."""

from collections.abc import Callable
from typing import Any

import pytest

from cluster_common.errors import PartialFailureError
from cluster_contract.idle import IdleScope, Policy
from fake_instances import FakeNode
from idle_scene import IdleScene, verdicts


def test_a_member_that_is_not_seen_keeps_its_group() -> None:
    scene = IdleScene()
    scene.add_group(count=2)
    scene.auto_scaling.members["workers-asg"].append("i-unseen")

    found = scene.ticks(60)

    assert verdicts(found) == ["unknown", "unknown"]
    assert next(iter(found.values()))["reason"].endswith(
        "is idle, but the Auto Scaling group workers-asg has nodes that DescribeInstances did not return, such as "
        "i-unseen"
    )
    assert scene.lambda_.orders == []


@pytest.mark.parametrize("has_seen_nodes", [False, True])
def test_a_group_that_a_deploy_replaces_keeps_the_other_one_with_nodes_that_are_not_seen(
    has_seen_nodes: bool,
) -> None:
    """The power function stops all groups of a node group at once."""
    scene = IdleScene()
    scene.add_group(count=2)
    scene.auto_scaling.add("old-asg", cluster="base-pod", node_group="workers", desired=int(has_seen_nodes))
    scene.auto_scaling.members["old-asg"] = ["i-unseen"]
    if has_seen_nodes:
        moved = scene.join("workers")
        moved.tags["aws:autoscaling:groupName"] = "old-asg"
        scene.auto_scaling.members["old-asg"].append(scene.auto_scaling.members["workers-asg"].pop())

    found = scene.ticks(60)

    assert set(verdicts(found)) == {"unknown"}
    assert all(
        "the Auto Scaling group old-asg has nodes that DescribeInstances did not return" in one["reason"]
        for one in found.values()
    )
    assert scene.lambda_.orders == []


def test_a_group_of_another_owner_with_the_tags_of_a_node_group_keeps_none_of_its_nodes() -> None:
    scene = IdleScene()
    scene.add_group(count=2)
    scene.auto_scaling.add("other", cluster="base-pod", node_group="workers", stack=None, desired=1)
    scene.auto_scaling.members["other"] = ["i-unseen"]
    scene.auto_scaling.groups["other"].tags["cdk-training-cluster:keep"] = "true"

    assert verdicts(scene.ticks(35)) == ["stop"] * 2
    assert "cdk-training-cluster:idle-note" not in scene.auto_scaling.groups["other"].tags


def test_both_groups_of_a_node_group_are_stopped_when_all_of_their_nodes_are_idle() -> None:
    scene = IdleScene()
    scene.add_group(count=2)
    moved = scene.join("workers")
    moved.tags["aws:autoscaling:groupName"] = "old-asg"
    scene.auto_scaling.add("old-asg", cluster="base-pod", node_group="workers", desired=1)
    scene.auto_scaling.members["old-asg"] = [scene.auto_scaling.members["workers-asg"].pop()]

    assert verdicts(scene.ticks(35)) == ["stop"] * 3
    assert len(scene.lambda_.orders) == 1
    assert "cdk-training-cluster:idle-note" in scene.auto_scaling.groups["old-asg"].tags


def test_a_node_group_of_which_one_group_is_not_found_is_left_alone() -> None:
    scene = IdleScene()
    scene.add_group(count=2)
    scene.join("workers").tags["aws:autoscaling:groupName"] = "gone-asg"
    scene.auto_scaling.members["workers-asg"].pop()

    found = scene.ticks(60)

    assert verdicts(found) == ["unknown"] * 3
    assert [one["reason"].partition("is idle, but ")[2] for one in found.values()] == [
        "the Auto Scaling group gone-asg, which owns nodes of workers, does not exist, is of another stack or does "
        "not have the tag cdk-training-cluster:cluster = base-pod"
    ] * 3


def test_node_by_node_an_unseen_one_keeps_no_other() -> None:
    scene = IdleScene(policy=Policy(scope=IdleScope.NODE))
    scene.add_group(count=2)
    scene.auto_scaling.members["workers-asg"].append("i-unseen")

    assert verdicts(scene.ticks(35)) == ["stop", "stop"]


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda *_: None, "the size 0 and has not terminated it yet: see its activity history"),
        (
            lambda scene, _: setattr(scene.auto_scaling.groups["workers-asg"], "terminating_suspended", "User"),
            "the size 0 and its process Terminate suspended: resume it",
        ),
        (
            lambda scene, node: scene.auto_scaling.protected.add(node.id),
            "the size 0 and does not terminate it: it is protected from scale-in",
        ),
    ],
)
def test_a_node_that_runs_though_its_group_is_at_zero_is_stuck_and_the_reason_says_why(
    change: Callable[[IdleScene, FakeNode], object], why: str
) -> None:
    scene = IdleScene()
    (node,) = scene.add_group(count=1)
    scene.auto_scaling.groups["workers-asg"].desired = 0
    change(scene, node)

    found = scene.ticks(60)

    assert verdicts(found) == ["unstoppable"]
    assert found[node.id]["reason"].endswith(f"is idle, and the Auto Scaling group workers-asg has {why}")
    assert scene.lambda_.orders == []


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, "reserved"),
        # Stopping the group lowers its reservation.
        ({"release": True}, "warn"),
        # One node that goes does not.
        ({"release": True, "policy": Policy(scope=IdleScope.NODE)}, "reserved"),
    ],
)
def test_a_reserved_node_is_stopped_where_that_saves(settings: dict[str, Any], expected: str) -> None:
    scene = IdleScene()
    scene.add_group(count=2, raw={"CapacityReservationId": "cr-1"}, **settings)

    assert verdicts(scene.tick()) == [expected, expected]


def test_a_group_with_a_node_of_another_service_is_left_alone() -> None:
    scene = IdleScene()
    *_, managed = scene.add_group(count=3)
    managed.raw = {"Operator": {"Managed": True, "Principal": "eks.amazonaws.com"}}

    found = scene.ticks(60)

    assert verdicts(found) == ["unknown", "unknown", "managed"]
    assert scene.lambda_.orders == []


def test_a_group_that_is_stopped_already_does_not_keep_the_one_in_its_place() -> None:
    scene = IdleScene()
    scene.add_group(count=2)
    scene.join("workers").tags["aws:autoscaling:groupName"] = "old-asg"
    scene.auto_scaling.add("old-asg", cluster="base-pod", node_group="workers", desired=0)
    scene.auto_scaling.members["old-asg"] = [scene.auto_scaling.members["workers-asg"].pop()]

    assert verdicts(scene.ticks(35)) == ["stop", "stop", "unstoppable"]
    assert [order["node_groups"] for order in scene.lambda_.orders] == [["workers"]]


@pytest.mark.parametrize("node_group", [None, "", "workers"])
def test_a_fleets_node_that_lost_its_tag_keeps_the_fleet(node_group: str | None) -> None:
    scene = IdleScene()
    _, busy = scene.add_fleet()
    busy.load = 90
    if node_group is None:
        del busy.tags["cdk-training-cluster:node-group"]
    else:
        busy.tags["cdk-training-cluster:node-group"] = node_group

    assert verdicts(scene.ticks(60)) == ["busy", "busy"]
    assert scene.lambda_.orders == []


@pytest.mark.parametrize(("tags", "expected"), [({}, "stop"), ({"cdk-training-cluster:keep": "true"}, "keep")])
def test_a_node_without_accelerators_keeps_those_it_works_with_only_if_it_is_tagged(
    tags: dict[str, str], expected: str
) -> None:
    scene = IdleScene()
    dev = {"cdk-training-cluster:node-group": "dev"}
    for _ in range(2):
        scene.add(tags=dict(dev))
    head = scene.add(load=None, instance_type="m7i.large", tags=dev | tags)

    assert verdicts(scene.ticks(35)) == [expected, expected, "keep"]
    assert head.state == "running"


def test_a_spot_fleet_whose_nodes_cannot_be_read_keeps_its_own_nodes_only() -> None:
    scene = IdleScene()
    scene.add_fleet("extras")
    scene.add_fleet("more")
    scene.ticks(30)
    scene.ec2.fail_next("DescribeSpotFleetInstances", "RequestLimitExceeded", group="sfr-extras")

    with pytest.raises(PartialFailureError, match="the Spot Fleet request of extras: could not be read"):
        scene.tick()
    assert [order["node_groups"] for order in scene.lambda_.orders] == [["more"]]
    assert verdicts(scene.tick()) == ["stop", "stop"]
    assert [order["node_groups"] for order in scene.lambda_.orders] == [["more"], ["extras"]]
