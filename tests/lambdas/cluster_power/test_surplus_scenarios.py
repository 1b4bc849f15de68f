"""The power function where nodes live on that should not."""

import pytest

from cluster_common.errors import PartialFailureError
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
    assert draining["reason"] == "workers: 3 nodes still run and 0 should (3 InService): they are going away"
    assert (stuck["decision"], stuck["alive"], stuck["surplus"], stuck["problem"]) == ("surplus", 3, 3, "surplus")
    assert stuck["reason"] == (
        "workers: 3 nodes still run and are billed where 0 should (3 InService). 3 are protected from scale-in: "
        "take the protection away (aws autoscaling set-instance-protection --no-protected-from-scale-in)."
    )


def test_nodes_too_many_are_told_once_when_it_begins_and_once_when_it_ends(scene: Scene) -> None:
    group = scene.add(hooked=True)
    scene.minute(2)
    scene.order("stop", by="ana", reason="weekend")

    scene.minute(20)
    began = list(scene.sns.messages)
    group.hooked = False
    scene.minute(3)

    assert len(began) == 1
    assert "8 nodes still run and are billed where 0 should (8 Terminating:Wait)." in began[0]["Message"]
    assert scene.subjects() == [
        "base-pod: too many nodes of workers run",
        "base-pod: no longer too many nodes of workers run",
    ]
    assert scene.sns.messages[1]["Message"] == (
        "Cluster base-pod\n\nNo more nodes run than should: workers is stopped, by ana: weekend."
    )


def test_a_node_in_standby_is_one_too_many_beside_its_replacement(scene: Scene) -> None:
    group = scene.add()
    scene.minute(2)
    group.others = ["Standby"]

    assert scene.minute()["workers"]["decision"] == "pending"
    assert scene.minute(10)["workers"]["reason"] == (
        "workers: 9 nodes still run and are billed where 8 should (8 InService, 1 Standby). 1 is in Standby, where "
        "Auto Scaling leaves it alone: put it back in service, or terminate it."
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
        "Scaling group workers-asg is suspended (for debugging): resume it."
    )


def test_another_stop_gives_the_nodes_time_to_go_again(scene: Scene) -> None:
    group = scene.add()
    scene.minute(2)
    group.others = ["Standby"]
    scene.minute(12)
    group.hooked = True

    scene.order("stop", by="ana", reason="weekend")

    assert scene.minute(9)["workers"]["decision"] == "pending"
    assert scene.minute()["workers"]["decision"] == "surplus"
    assert scene.subjects() == ["base-pod: too many nodes of workers run"]


def test_nodes_that_are_missing_and_nodes_that_stay_are_told_apart(scene: Scene) -> None:
    group = scene.add(capacity=7)
    scene.minute(2)
    group.others = ["Standby", "Terminating:Wait"]
    group.hooked = True
    both = scene.minute(11)["workers"]
    group.capacity = 8
    less = scene.minute(10)["workers"]
    group.others = []
    scene.minute()

    assert (both["decision"], both["problem"], both["missing"], both["surplus"]) == ("short", "no-capacity", 1, 1)
    assert "InsufficientInstanceCapacity" in both["reason"]
    assert "9 nodes still run and are billed where 8 should" in both["reason"]
    assert (less["decision"], less["problem"], less["missing"], less["surplus"]) == ("surplus", "surplus", 0, 2)
    assert scene.subjects() == [
        "base-pod: nodes of workers are missing",
        "base-pod: too many nodes of workers run",
        "base-pod: no nodes of workers are missing any more",
        "base-pod: no longer too many nodes of workers run",
    ]


def test_since_when_too_many_run_is_remembered_by_ticks_and_not_by_questions(scene: Scene) -> None:
    group = scene.add()
    scene.minute(2)
    group.others = ["Standby"]
    scene.auto_scaling.calls.clear()

    asked = scene.order("status")["workers"]
    assert (asked["decision"], scene.auto_scaling.writes) == ("pending", [])

    scene.minute()
    assert group.tags["cdk-training-cluster:power-surplus-since"] == "2026-11-02T08:03:00Z"
    group.others = []
    scene.minute()
    assert group.tags["cdk-training-cluster:power-surplus-since"] == "none"


def test_a_stop_that_is_not_allowed_counts_the_nodes_that_go_on_running(scene: Scene) -> None:
    group = scene.add()
    scene.minute(2)
    group.minimum = 2

    blocked = scene.order("stop", by="ana", reason="weekend")["workers"]

    assert (blocked["decision"], blocked["surplus"]) == ("blocked", 8)


@pytest.mark.parametrize("node_group", ["workers", "old"])
def test_nodes_of_a_group_that_is_being_deleted_are_not_noted(scene: Scene, node_group: str) -> None:
    group = scene.add(node_group, others=["Standby"], deleting=True)

    scene.minute(12)

    assert group.tags.keys() == {"cdk-training-cluster:cluster", "cdk-training-cluster:node-group"}
    assert scene.subjects() == []


def test_a_surplus_that_could_not_be_remembered_fails_the_tick_and_is_noted_by_the_next(scene: Scene) -> None:
    group = scene.add()
    scene.minute(2)
    group.others = ["Standby"]
    scene.auto_scaling.fail_next("CreateOrUpdateTags", "Throttling")

    with pytest.raises(PartialFailureError) as caught:
        scene.minute()

    assert str(caught.value) == (
        "workers: could not remember since when too many nodes run (Throttling: no). Everything else was done."
    )
    scene.minute()
    assert group.tags["cdk-training-cluster:power-surplus-since"] == "2026-11-02T08:04:00Z"


def test_nodes_of_a_group_that_left_the_clusters_file_are_told_of_once(scene: Scene) -> None:
    scene.counts["eval"] = 2
    scene.add()
    left = scene.add("eval", protected=2)
    scene.minute(2)
    del scene.counts["eval"]
    # CloudFormation could not delete it.
    deploying = scene.minute(10)["eval"]
    assert (deploying["decision"], deploying["surplus"], scene.subjects()) == ("unconfigured", 0, [])

    told = scene.minute(30)["eval"]

    assert (told["decision"], told["alive"], told["surplus"], told["problem"]) == (
        "unconfigured",
        2,
        2,
        "left-behind",
    )
    [message] = scene.sns.messages
    assert message["Subject"] == "base-pod: nodes of eval run that the cluster has no more"
    assert message["Message"] == (
        "Cluster base-pod\n\neval: 2 nodes still run and are billed (2 InService), and eval is not in the cluster's "
        "file. Either a deploy that takes the Auto Scaling group eval-asg away is still under way, or CloudFormation "
        "could not delete it, or somebody made it beside the cluster: look at the stack's events, and delete it if "
        "nobody needs its nodes. 2 are protected from scale-in: take the protection away (aws autoscaling "
        "set-instance-protection --no-protected-from-scale-in)."
    )
    left.desired, left.protected = 0, 0
    scene.minute(3)
    assert scene.subjects()[1:] == ["base-pod: no nodes of eval are left behind any more"]
    assert scene.sns.messages[1]["Message"] == (
        "Cluster base-pod\n\nNo nodes are left behind any more: eval is not in the cluster's file, and none of its "
        "nodes runs."
    )
    assert left.tags["cdk-training-cluster:power-left-since"] == "none"


def test_a_group_that_comes_back_to_the_clusters_file_is_left_behind_no_more(scene: Scene) -> None:
    scene.counts["eval"] = 2
    left = scene.add("eval")
    scene.add()
    scene.minute(2)
    del scene.counts["eval"]
    scene.minute(12)
    scene.counts["eval"] = 2

    scene.minute()

    assert left.alive == 2
    assert scene.subjects() == [
        "base-pod: nodes of eval run that the cluster has no more",
        "base-pod: no nodes of eval are left behind any more",
    ]
    assert scene.sns.messages[1]["Message"] == (
        "Cluster base-pod\n\nNo nodes are left behind any more: eval has all of its 2 nodes."
    )


def test_a_group_with_nodes_too_many_has_its_time_to_go_when_it_leaves_the_file(scene: Scene) -> None:
    scene.counts["eval"] = 2
    scene.add("eval", protected=2)
    scene.add()
    scene.minute(2)
    scene.order("stop", node_groups=["eval"])
    scene.minute(30)
    assert scene.subjects() == ["base-pod: too many nodes of eval run"]
    del scene.counts["eval"]

    scene.minute(10)
    in_time = scene.subjects()[1:]
    scene.minute(2)

    assert (in_time, scene.subjects()[1:]) == ([], ["base-pod: nodes of eval run that the cluster has no more"])


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

    assert (new.desired, new.tags["cdk-training-cluster:power-state"]) == (0, "stopped")


def test_what_a_deploy_replaces_in_time_is_nothing_to_tell(scene: Scene) -> None:
    old = scene.add()
    scene.minute(2)
    scene.add_fleet("workers", id="sfr-workers")

    scene.minute(8)
    del scene.auto_scaling.groups[old.name]
    scene.minute(10)

    assert scene.subjects() == []


def test_nodes_that_are_bought_otherwise_by_now_are_left_behind_too(scene: Scene) -> None:
    old = scene.add()
    scene.minute(2)
    scene.add_fleet("workers", id="sfr-workers")

    scene.minute(15)

    [message] = scene.sns.messages
    assert (
        "workers: 8 nodes still run and are billed (8 InService), and workers has other nodes in the"
        in (message["Message"])
    )
    assert old.desired == 8
