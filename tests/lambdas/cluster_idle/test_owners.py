"""Owners of nodes: what of them is not seen keeps nodes running, and what tags of theirs cannot be written."""

from typing import Any, cast

import pytest
from aws_lambda_powertools import Logger

from cluster_common.errors import PartialFailureError
from cluster_common.failures import Failures
from cluster_contract.idle import IdleScope, Policy
from cluster_idle.instance_tags import InstanceTags
from fake_service import refusal
from idle_scene import IdleScene, verdicts

IDLE = "cdk-training-cluster:idle-"
STOP_AT = f"{IDLE}stop-at"


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


def test_both_groups_of_a_node_group_are_stopped_when_all_of_their_nodes_are_idle() -> None:
    scene = IdleScene()
    scene.add_group(count=2)
    moved = scene.join("workers")
    moved.tags["aws:autoscaling:groupName"] = "old-asg"
    scene.auto_scaling.add("old-asg", cluster="base-pod", node_group="workers", desired=1)
    scene.auto_scaling.members["old-asg"] = [scene.auto_scaling.members["workers-asg"].pop()]

    assert verdicts(scene.ticks(35)) == ["stop"] * 3
    assert len(scene.lambda_.orders) == 1
    assert STOP_AT in scene.auto_scaling.groups["old-asg"].tags


def test_a_node_group_of_which_one_group_could_not_be_read_is_left_alone() -> None:
    scene = IdleScene()
    scene.add_group(count=2)
    scene.join("workers").tags["aws:autoscaling:groupName"] = "gone-asg"
    scene.auto_scaling.members["workers-asg"].pop()

    found = scene.ticks(60)

    assert verdicts(found) == ["unknown"] * 3
    assert [one["reason"].partition("is idle, but ")[2] for one in found.values()] == [
        "the Auto Scaling group gone-asg, which owns it, could not be read",
        "the Auto Scaling group gone-asg, which owns it, could not be read",
        "the Auto Scaling group gone-asg, which owns it, could not be read",
    ]


def test_node_by_node_an_unseen_one_keeps_nobody() -> None:
    scene = IdleScene(policy=Policy(scope=IdleScope.NODE))
    scene.add_group(count=2)
    scene.auto_scaling.members["workers-asg"].append("i-unseen")

    assert verdicts(scene.ticks(35)) == ["stop", "stop"]


def test_a_group_that_was_stopped_and_still_runs_is_said_to_be_stuck() -> None:
    scene = IdleScene()
    scene.add_group(count=1)
    scene.auto_scaling.groups["workers-asg"].desired = 0

    found = scene.ticks(60)

    assert verdicts(found) == ["unstoppable"]
    assert (
        "the size of the Auto Scaling group workers-asg is zero already: the power function says why"
        in next(iter(found.values()))["reason"]
    )
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


def refuse_tags_of(scene: IdleScene, operation: str, code: str, *ids: str) -> list[list[str]]:
    """Let EC2 refuse to tag some instances, and return the batches that it is asked for from now on."""
    original = getattr(scene.ec2, operation)
    batches: list[list[str]] = []

    def refuse(**parameters: Any) -> dict[str, Any]:
        batches.append(parameters["Resources"])
        if set(ids) & set(parameters["Resources"]):
            raise refusal(operation, code, "no")
        return dict(original(**parameters))

    setattr(scene.ec2, operation, refuse)
    return batches


def test_one_that_cannot_be_tagged_does_not_keep_the_others_from_being_stopped() -> None:
    """An instance that has fifty tags takes no more."""
    scene = IdleScene()
    nodes = [scene.add() for _ in range(8)]
    full = nodes[5]
    refuse_tags_of(scene, "create_tags", "TagLimitExceeded", full.id)

    for _ in range(7):
        with pytest.raises(PartialFailureError, match=f"{full.id}: its tags could not be written"):
            scene.tick()

    assert scene.stopped == {node.id for node in nodes} - {full.id}


def test_one_whose_tags_cannot_be_taken_away_does_not_keep_those_of_the_others() -> None:
    scene = IdleScene()
    nodes = [scene.add() for _ in range(4)]
    scene.tick()
    refuse_tags_of(scene, "delete_tags", "InvalidID", nodes[0].id)
    for node in nodes:
        node.load = 90

    with pytest.raises(PartialFailureError, match=f"{nodes[0].id}: its tags could not be written"):
        scene.tick()

    assert [any(key.startswith(IDLE) for key in node.tags) for node in nodes] == [True, False, False, False]


def test_one_node_whose_tags_may_not_be_written_keeps_no_other_from_being_warned_of() -> None:
    scene = IdleScene()
    denied, *others = [scene.add() for _ in range(8)]
    refuse_tags_of(scene, "create_tags", "UnauthorizedOperation", denied.id)

    with pytest.raises(PartialFailureError, match=f"{denied.id}: its tags could not be written"):
        scene.tick()

    assert scene.subjects() == ["base-pod: 7 nodes idle, stopped in 30 minutes"]
    assert all(f"{IDLE}stop-at" in node.tags for node in others)


@pytest.mark.parametrize("code", ["RequestLimitExceeded", "InternalError"])
def test_throttled_tags_are_not_asked_about_in_parts(code: str) -> None:
    scene = IdleScene()
    nodes = [scene.add() for _ in range(8)]
    batches = refuse_tags_of(scene, "create_tags", code, nodes[0].id)

    with pytest.raises(PartialFailureError):
        scene.tick()

    assert len(batches) == 1
    assert not any(key.startswith(IDLE) for node in nodes for key in node.tags)


def test_a_thousand_are_tagged_at_once() -> None:
    batches: list[int] = []

    class Ec2:
        def create_tags(self, **parameters: Any) -> None:
            batches.append(len(parameters["Resources"]))

    failures = Failures(Logger(service="test"))
    InstanceTags(lambda: cast("Any", Ec2()), failures).write(
        (
            f"i-{number}",
            {STOP_AT: "odd" if number == 7 else "2026-11-02T20:00:00Z"},
        )
        for number in range(2003)
    )

    assert batches == [1000, 1000, 2, 1]


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
def test_a_node_without_accelerators_keeps_those_it_works_with_only_if_it_is_told_to(
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
