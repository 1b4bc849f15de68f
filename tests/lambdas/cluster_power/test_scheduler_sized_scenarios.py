"""The power function on a node group whose size a scheduler owns: what it sets is the most that it may have."""

from datetime import timedelta
from typing import Any

import pytest

from cluster_common.owners.kinds import BATCH_COMPUTE_ENVIRONMENT
from cluster_power.groups import Group
from power_scene import Scene


def slurm(**settings: Any) -> tuple[Scene, Any]:
    """Return a cluster with one compute node group of four nodes at most, of which jobs need some."""
    scene = Scene(counts={})
    return scene, scene.add_compute_node_group(**settings)


def test_nodes_that_no_job_needs_are_not_missing() -> None:
    scene, group = slurm(needed=1)
    [told] = scene.minute(30).values()

    assert (told["decision"], told["wanted"], told["in_service"], told["missing"]) == ("keep", 4, 1, 0)
    assert told["reason"] == (
        "slurm may have up to 4 nodes, which AWS PCS launches and terminates as jobs need them: 1 node runs"
    )
    assert (told["owner"], told["owner_arn"], told["scheduler_sized"]) == (
        "PCS compute node group pcs_1/slurm", group.arn, True,
    )  # fmt: skip
    assert scene.subjects() == []
    assert "pcs:UpdateComputeNodeGroup" not in {call.action for call in scene.calls}


def test_nodes_that_jobs_need_and_ec2_does_not_have_are_reported_in_awss_words() -> None:
    scene, group = slurm(needed=3, capacity=1)
    words = "We currently do not have sufficient p5.48xlarge capacity"
    group.errors = [{"code": "InsufficientInstanceCapacity", "message": words}]
    [told] = scene.minute(2).values()
    assert (told["decision"], told["missing"]) == ("short", 0)
    assert told["reason"].startswith("slurm: 1 of up to 4 nodes are running: EC2 has no more p5.48xlarge")
    assert told["reason"].endswith(f"AWS says: InsufficientInstanceCapacity: {words}")
    assert len(scene.subjects()) == 1

    group.errors = []
    [told] = scene.minute(2).values()
    assert told["decision"] == "keep"


def test_a_stop_sets_the_most_to_zero_and_a_start_gives_it_back() -> None:
    scene, group = slurm(needed=3)
    scene.minute(2)
    scene.order("stop")
    scene.minute(2)
    assert (group.most, group.alive) == (0, 0)

    scene.order("start")
    [told] = scene.minute(2).values()
    assert (group.least, group.most, group.alive, told["decision"]) == (0, 4, 3, "keep")


def test_no_new_nodes_are_what_jobs_have_now() -> None:
    scene, group = slurm(needed=2)
    scene.minute(2)
    scene.order("limit")
    group.needed = 4
    [told] = scene.minute(2).values()

    assert (group.most, group.alive, told["state"]) == (2, 2, "limited")


def test_a_limit_lets_no_job_of_batch_start_rather_than_fail_those_that_wait_for_more_nodes() -> None:
    group = Group(
        name="jobs", node_group="jobs", owner=BATCH_COMPUTE_ENVIRONMENT, scheduler_sized=True, desired=4, minimum=0,
        maximum=4, in_service=1, instance_types=("p5.48xlarge",),
    )  # fmt: skip
    assert group.kept == 0


@pytest.mark.parametrize("scheduler_sized", [True, False])
def test_a_deployment_that_writes_the_templates_size_again_is_made_good_within_a_tick(
    scheduler_sized: bool,
) -> None:
    scene, group = slurm(needed=3, scheduler_sized=scheduler_sized)
    scene.minute(2)
    scene.order("stop")
    scene.minute(2)

    group.deploy(4)
    scene.order()
    scene.minute()
    assert (group.least, group.most, group.alive) == (0, 0, 0)


@pytest.mark.parametrize("scheduler_sized", [True, False])
@pytest.mark.parametrize("count", [2, 6])
def test_a_deployment_that_changes_the_count_of_a_stopped_group_lets_no_node_start(
    count: int, scheduler_sized: bool
) -> None:
    """The function's settings have the new count later than the group."""
    scene, group = slurm(needed=3, scheduler_sized=scheduler_sized)
    scene.minute(2)
    scene.order("stop")
    scene.minute(2)
    for settings in (4, count):
        group.deploy(count)
        scene.counts["slurm"] = settings
        scene.order()
        scene.minute()
        assert (group.least, group.most, group.alive) == (0, 0, 0)


@pytest.mark.parametrize(("scheduler_sized", "count"), [(True, 2), (True, 6), (False, 2)])
def test_a_group_that_runs_waits_for_the_settings_of_a_deployment_that_changes_its_count(
    scheduler_sized: bool, count: int
) -> None:
    scene, group = slurm(needed=3, scheduler_sized=scheduler_sized)
    scene.minute(2)
    group.deploy(count)
    told = scene.order()["slurm"]
    assert (group.least, group.most, told["decision"]) == (0, count, "blocked")

    scene.counts["slurm"] = count
    scene.minute(2)
    assert (group.least, group.most) == (0 if scheduler_sized else count, count)


def test_a_deployment_takes_no_node_of_a_fixed_group_for_long() -> None:
    scene, group = slurm(scheduler_sized=False)
    scene.minute(2)
    assert (group.least, group.most, group.alive) == (4, 4, 4)

    group.deploy(4)
    told = scene.order()["slurm"]
    assert (group.least, group.most, told["decision"]) == (4, 4, "size")
    assert told["reason"].endswith(
        "a deployment set its maximum instance count to 0: it gets its size again. "
        "Until it is ACTIVE again, in minutes, AWS PCS refuses a deployment that changes the cluster"
    )


def test_a_fixed_group_that_lacks_nodes_says_so() -> None:
    scene, group = slurm(scheduler_sized=False)
    group.capacity = 1
    scene.minute(2)
    [told] = scene.minute(12).values()

    assert (told["decision"], told["missing"]) == ("short", 3)
    assert "AWS PCS reports no error" in told["reason"]


def test_a_size_that_an_operator_set_is_left_alone() -> None:
    scene, group = slurm(needed=3)
    scene.minute(2)
    group.desired = 1
    [told] = scene.minute(3).values()

    assert (group.most, told["decision"]) == (1, "held")


def test_a_group_that_is_being_updated_is_sized_by_a_later_run() -> None:
    scene, group = slurm(needed=3)
    scene.minute(2)
    group.status = "UPDATING"
    told = scene.order("stop")["slurm"]
    assert (told["decision"], group.most) == ("blocked", 4)

    scene.now += timedelta(minutes=1)
    group.settle()
    scene.order()
    assert group.most == 0


def test_no_single_node_of_it_is_terminated() -> None:
    scene, _ = slurm(needed=3)
    with pytest.raises(ValueError, match="belongs to a PCS compute node group"):
        scene.order("terminate", node_groups=["slurm"], instance_ids=["i-0123456789abcdef0"])
