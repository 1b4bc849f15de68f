"""The power function where nodes live on that should not."""

import re
from datetime import timedelta

import pytest

from cdk_training_cluster.guardrails.health.health_policy import GRACE
from cluster_power.windows import MARGIN
from power_scene import Scene


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_a_stopped_group_whose_nodes_stay_is_not_called_stopped(scene: Scene) -> None:
    scene.add(protected=3)
    scene.minute(2)
    scene.order("stop", by="ana", reason="weekend")

    draining = scene.minute()["workers"]
    stuck = scene.minute(10)["workers"]

    assert (draining["decision"], draining["alive"], draining["surplus"]) == ("pending", 3, 3)
    assert draining["reason"] == (
        "workers: 3 nodes still run where 0 should (3 InService): Auto Scaling is terminating 3 nodes"
    )
    assert (stuck["decision"], stuck["alive"], stuck["surplus"], stuck["problem"]) == ("surplus", 3, 3, "surplus")
    assert re.fullmatch(
        r"workers: 3 nodes still run and are billed where 0 should \(3 InService\)\. Scale-in protection keeps 3 "
        r"nodes: remove it \(aws autoscaling set-instance-protection --region us-east-1 --auto-scaling-group-name "
        r"workers-asg --instance-ids( i-\w+){3} --no-protected-from-scale-in\)\.",
        stuck["reason"],
    )


def test_nodes_too_many_are_told_once_when_it_begins_and_once_when_it_ends(scene: Scene) -> None:
    group = scene.add(hooked=True)
    scene.minute(2)
    scene.order("stop", by="ana", reason="weekend")

    scene.minute(10)
    assert scene.subjects() == []
    scene.minute(10)
    began = list(scene.sns.messages)
    group.hooked = False
    scene.minute(3)

    assert "8 nodes still run and are billed where 0 should (8 Terminating:Wait)." in began[0]["Message"]
    assert scene.subjects() == [
        "base-pod: too many nodes of workers run",
        "base-pod: workers has the right number of nodes again",
    ]
    assert scene.sns.messages[1]["Message"] == (
        "Cluster base-pod\n\nThe number of nodes is right again: workers is stopped, by ana: weekend."
    )


@pytest.mark.parametrize("command", ["stop", "replace"])
def test_the_grace_of_jobs_on_nodes_that_go_is_no_problem(scene: Scene, command: str) -> None:
    """`HealthPolicy` takes no longer grace, nor does EC2 begin earlier to terminate the nodes of a Capacity Block."""
    assert timedelta(minutes=GRACE.maximum) < MARGIN
    group = scene.add(hooked=True)
    scene.minute(30)
    if command == "stop":
        scene.order("stop", by="ana", reason="weekend")
    else:
        group.others = ["Terminating:Wait"]
    scene.minute(GRACE.maximum)
    group.hooked = False
    scene.minute(3)

    assert scene.subjects() == []


def test_a_node_that_goes_beside_its_replacement_is_not_told(scene: Scene) -> None:
    group = scene.add()
    scene.minute(30)
    for _ in range(2):
        group.others = ["Terminating"]
        scene.minute(9)
        group.others = []
        scene.minute()

    assert scene.subjects() == []


def test_a_node_in_standby_is_one_too_many_beside_its_replacement(scene: Scene) -> None:
    group = scene.add()
    scene.minute(2)
    group.others = ["Standby"]

    assert scene.minute()["workers"]["decision"] == "pending"
    assert scene.minute(10)["workers"]["reason"] == (
        "workers: 9 nodes still run and are billed where 8 should (8 InService, 1 Standby). Auto Scaling does not "
        "terminate 1 node in Standby: terminate each, or return it to service, which raises the desired capacity."
    )


def test_a_held_group_compares_with_the_size_that_its_operator_chose(scene: Scene) -> None:
    group = scene.add()
    scene.minute(2)
    group.desired, group.terminating_suspended = 5, "for debugging"

    first = scene.minute()["workers"]
    last = scene.minute(10)["workers"]

    assert (first["decision"], first["surplus"], first["problem"]) == ("held", 3, None)
    assert (last["decision"], last["surplus"], last["problem"]) == ("held", 3, "surplus")
    assert last["reason"].endswith(
        "workers: 8 nodes still run and are billed where 5 should (8 InService). The process Terminate of the Auto "
        "Scaling group workers-asg is suspended (for debugging): resume it (aws autoscaling resume-processes "
        "--region us-east-1 --auto-scaling-group-name workers-asg --scaling-processes Terminate)."
    )


def test_a_stop_that_is_not_allowed_counts_the_nodes_that_go_on_running(scene: Scene) -> None:
    group = scene.add()
    scene.minute(2)
    group.minimum = 2

    blocked = scene.order("stop", by="ana", reason="weekend")["workers"]

    assert (blocked["decision"], blocked["surplus"]) == ("blocked", 8)


@pytest.mark.parametrize("node_group", ["workers", "old"])
def test_nodes_of_a_group_that_is_being_deleted_are_not_noted(scene: Scene, node_group: str) -> None:
    group = scene.add(node_group, others=["Standby"], deleting=True)
    before = dict(group.tags)

    scene.minute(12)

    assert group.tags == before
    assert (scene.subjects(), scene.dynamodb.items) == ([], {})


def test_nodes_of_a_group_that_left_the_clusters_file_are_counted_with_the_reason(scene: Scene) -> None:
    scene.counts["eval"] = 2
    scene.add()
    left = scene.add("eval", protected=2)
    scene.minute(2)
    del scene.counts["eval"]  # CloudFormation could not delete it.

    told = scene.minute(3)["eval"]

    assert (told["decision"], told["alive"], told["surplus"], told["problem"], left.desired) == (
        "unconfigured",
        2,
        2,
        "left-behind",
        2,
    )
    assert told["reason"].startswith(
        "eval: 2 nodes still run and are billed (2 InService), and eval is not in the cluster's file. Either a "
        "deployment that removes the Auto Scaling group eval-asg is under way, or CloudFormation could not "
        "delete it, "
        "or it was created outside the stack: look at the stack's events, and delete it if its nodes are not "
        "needed. Scale-in protection keeps 2 nodes: remove it "
    )
    assert scene.subjects() == []
    scene.minute(10)
    left.desired, left.protected = 0, 0
    gone = scene.minute(3)["eval"]
    assert (gone["reason"], gone["surplus"]) == (
        "eval is not in the cluster's file, and none of its nodes runs",
        0,
    )
    assert scene.subjects() == [
        "base-pod: nodes of eval run outside the cluster's file",
        "base-pod: no nodes of eval run outside the cluster's file any more",
    ]


def test_what_was_left_behind_keeps_no_cluster_awake(scene: Scene) -> None:
    scene.counts["eval"] = 2
    scene.add("eval")
    scene.add()
    scene.minute(2)
    del scene.counts["eval"]
    scene.order("stop")
    scene.minute(2)
    scene.counts["new"] = 3
    new = scene.add("new")

    scene.minute(2)

    assert (new.desired, scene.record(new).state) == (0, "stopped")


def test_nodes_that_are_bought_otherwise_by_now_are_counted_too(scene: Scene) -> None:
    old = scene.add()
    scene.minute(2)
    scene.add_fleet("workers", id="sfr-workers")

    scene.minute(3)

    assert (old.desired, scene.sns.messages) == (8, [])
    left = scene.order("status")["workers"]
    assert "workers has other nodes in the cluster's file" in left["reason"]
