"""Repairs from the first fault to the end, with the power function beside them."""

import dataclasses

import pytest

from cluster_contract.health import ReportedCheck, ReportKind
from fake_auto_scaling import FakeGroup
from health_scene import FAILED, LOST, PASSED, REBOOT, REPLACE, HealthScene, ids, shown


def test_a_node_is_drained_rebooted_verified_and_returned(scene: HealthScene, group: FakeGroup) -> None:
    node, calls = ids(group)[0], scene.watch_repairs()

    assert scene.fault(node)[node]["outcome"] == "cordon"
    assert shown(group) == (7, 7, 1)
    assert scene.both(3)[node]["outcome"] == "wait"
    assert scene.drained(node)[node]["outcome"] == "reboot"
    assert scene.both(3)[node]["outcome"] == "wait"
    assert scene.verified(node)[node]["outcome"] == "return"
    assert scene.both(1)[node]["outcome"] == "returned"

    assert scene.both(12) == {}
    assert shown(group) == (8, 8, 0)
    assert calls == ["EnterStandby", "RebootInstances", "ExitStandby"]
    assert scene.subjects() == [
        f"base-pod: {node} of workers is broken and is being repaired",
        f"base-pod: {node} of workers is repaired",
    ]
    first = scene.sns.messages[0]["Message"]
    assert "reports what a reboot clears (Xid 95: Uncontained memory error)" in first
    assert f"aws ec2 create-tags --region us-east-1 --resources {node}" in first


def test_a_node_that_only_another_one_helps_is_replaced_and_its_place_is_given_back(
    scene: HealthScene, group: FakeGroup
) -> None:
    node, calls = ids(group)[0], scene.watch_repairs()
    scene.fault(node, REPLACE, serials=("s-1",))
    assert scene.drained(node)[node]["outcome"] == "wait"  # The power function has not seen it in Standby yet.
    scene.both(3)

    assert shown(group) == (8, 8, 0)
    assert node not in dict(group.nodes)
    assert calls == ["EnterStandby", "TerminateInstanceInAutoScalingGroup", "SetDesiredCapacity"]
    assert scene.subjects()[-1] == f"base-pod: {node} of workers was replaced"


def test_no_other_node_is_replaced_until_the_place_of_the_first_is_filled(
    scene: HealthScene, group: FakeGroup
) -> None:
    broken, group.capacity = ids(group)[:3], 0
    for node in broken:
        scene.fault(node, REPLACE)
    scene.both(25)
    assert {one["outcome"] for one in scene.summary.values()} == {"turn"}
    outcomes = [one["outcome"] for one in scene.both(65).values()]
    assert (outcomes, group.in_service, group.standby) == (["place"] * 2, 7, [])
    titles = [f"base-pod: {one} of workers is broken, and its node group lacks a node" for one in sorted(broken[1:])]
    assert scene.subjects()[-2:] == titles
    assert "terminate-instance-in-auto-scaling-group" in scene.summary[broken[1]]["undo"]
    group.capacity = 1000
    scene.both(90)
    assert shown(group) == (8, 8, 0)
    assert not set(broken) & dict(group.nodes).keys()


@pytest.mark.parametrize("ends", ["fails", "is broken again"])
def test_a_node_that_a_reboot_does_not_mend_is_replaced(scene: HealthScene, group: FakeGroup, ends: str) -> None:
    node = ids(group)[0]
    scene.fault(node)
    scene.drained(node)
    scene.both(2)
    if ends == "fails":
        scene.verified(node, FAILED, faults=(LOST,))
    else:
        scene.boots[node] = 1
        scene.fault(node)
    scene.both(20)
    assert node not in dict(group.nodes)
    assert shown(group) == (8, 8, 0)
    assert len(scene.nodes_ec2.rebooted) == 1


@pytest.mark.parametrize("rebooted", [True, False])
def test_a_node_that_fails_for_what_no_other_node_would_mend_waits_until_it_passes(
    scene: HealthScene, group: FakeGroup, *, rebooted: bool
) -> None:
    node, calls = ids(group)[0], scene.watch_repairs()
    if rebooted:
        scene.fault(node)
        scene.drained(node)
        scene.both(2)
    scene.verified(node, ReportedCheck("file_system", passed=False, found="/fsx does not answer"))
    assert scene.both(60)[node]["outcome"] == "held"
    assert "file_system: /fsx does not answer" in scene.summary[node]["reason"]
    assert "cluster-node verify" in scene.summary[node]["undo"]
    assert scene.subjects()[rebooted:] == [f"base-pod: {node} of workers is broken and waits for you"]
    assert (calls, shown(group)[2]) == (["EnterStandby", "RebootInstances"] * rebooted, int(rebooted))
    scene.report(node, ReportKind.VERIFIED, checks=(PASSED,))
    assert scene.both(3) == {}
    assert shown(group) == (8, 8, 0)


def test_a_job_that_does_not_end_has_its_time(scene: HealthScene, group: FakeGroup) -> None:
    node = ids(group)[0]
    scene.fault(node)
    assert scene.both(14)[node]["outcome"] == "wait"
    assert scene.both(1)[node]["outcome"] == "reboot"
    assert "did not end its job within 15 minutes" in scene.summary[node]["reason"]


def test_a_node_that_recovers_before_it_is_rebooted_returns(scene: HealthScene, group: FakeGroup) -> None:
    node = ids(group)[0]
    scene.fault(node)
    scene.both(2)
    scene.report(node, ReportKind.RECOVERED)
    scene.both(2)
    assert (shown(group), scene.nodes_ec2.rebooted) == ((8, 8, 0), [])


def test_a_node_that_breaks_again_after_a_reboot_is_replaced(scene: HealthScene, group: FakeGroup) -> None:
    node = ids(group)[0]
    scene.fault(node)
    scene.drained(node)
    scene.both(2)
    scene.verified(node)
    scene.both(5)
    scene.fault(node)
    scene.drained(node)
    assert scene.both()[node]["outcome"] == "replace"


def test_a_node_that_comes_with_the_accelerator_of_a_bad_one_is_replaced_when_that_breaks_again(
    scene: HealthScene, group: FakeGroup
) -> None:
    node, other = ids(group)[:2]
    scene.fault(node, dataclasses.replace(REPLACE, serial="s-1"), serials=("s-1", "s-2"))
    scene.drained(node)
    scene.both(3)
    assert scene.verified(other, serials=("s-2",)) == {}
    assert scene.verified(other, serials=("s-1",))[other]["outcome"] == "observed"
    said = f"has the accelerator s-1 of {node}, which was replaced"
    assert said in scene.summary[other]["reason"]

    found = scene.fault(other, dataclasses.replace(REBOOT, serial="s-1"))[other]

    assert (found["outcome"], said in found["reason"], "is replaced" in found["reason"]) == ("cordon", True, True)
    # It is remembered from then on as of the node that had it last.
    scene.drained(other)
    scene.both(3)
    third = ids(group)[2]
    assert (
        f"has the accelerator s-1 of {other}, which was replaced"
        in scene.verified(third, serials=("s-1",))[third]["reason"]
    )


def test_a_node_under_repair_goes_with_its_group_when_that_is_stopped(scene: HealthScene, group: FakeGroup) -> None:
    node = ids(group)[0]
    scene.fault(node)
    scene.both()
    scene.order("stop", by="ana", reason="weekend")
    assert scene.both()[node]["outcome"] == "release"
    scene.both(3)
    assert (group.alive, group.desired) == (0, 0)
    assert scene.subjects()[-1] == f"base-pod: {node} of workers is no longer under repair"


def test_an_impaired_node_that_says_nothing_is_replaced_when_its_job_has_had_its_time(
    scene: HealthScene, group: FakeGroup
) -> None:
    node, calls = ids(group)[0], scene.watch_repairs()
    scene.nodes_ec2.impaired[node] = scene.now
    assert scene.both(14) == {}
    assert scene.both(1)[node]["outcome"] == "cordon"
    assert scene.both(14)[node]["outcome"] == "wait"
    assert scene.both(1)[node]["outcome"] == "replace"
    scene.both(3)
    assert shown(group) == (8, 8, 0)
    assert calls == ["EnterStandby", "TerminateInstanceInAutoScalingGroup", "SetDesiredCapacity"]


def test_a_node_that_auto_scaling_calls_unhealthy_and_leaves_is_replaced(
    scene: HealthScene, group: FakeGroup
) -> None:
    group.unhealthy = {ids(group)[0]}
    scene.both(40)
    assert shown(group) == (8, 8, 0)
    assert not group.unhealthy & dict(group.nodes).keys()


@pytest.mark.parametrize("passes", [True, False])
def test_an_impaired_node_that_reports_returns_only_once_ec2_calls_it_healthy(
    scene: HealthScene, group: FakeGroup, *, passes: bool
) -> None:
    node = ids(group)[0]
    scene.nodes_ec2.impaired[node] = scene.now
    scene.both(5)
    scene.verified(node)
    assert scene.both(10)[node]["outcome"] == "cordon"
    scene.report(node, ReportKind.NOTICE, sentence="Standby")
    assert scene.both(5)[node]["outcome"] == "wait"
    if passes:
        scene.nodes_ec2.impaired.clear()
    scene.both(20)
    assert (shown(group), node in dict(group.nodes)) == ((8, 8, 0), passes)


@pytest.mark.parametrize("passes", [True, False])
def test_a_node_that_passes_its_verification_after_a_reboot_returns_only_once_ec2_calls_it_healthy(
    scene: HealthScene, group: FakeGroup, *, passes: bool
) -> None:
    node = ids(group)[0]
    scene.fault(node)
    scene.drained(node)
    scene.nodes_ec2.impaired[node] = scene.now
    scene.both(2)
    scene.verified(node)
    assert scene.both(5)[node]["outcome"] == "wait"
    if passes:
        scene.nodes_ec2.impaired.clear()
    scene.both(20)
    assert (shown(group), node in dict(group.nodes)) == ((8, 8, 0), passes)
