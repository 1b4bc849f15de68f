"""Repairs in which a report says less than it seems to, a step is refused, or an operator or a setting steps in."""

import dataclasses

import pytest

from cluster_common.errors import PartialFailureError
from cluster_contract.health import ReportKind
from fake_auto_scaling import FakeGroup
from health_scene import FAILED, LOST, PASSED, REPLACE, HealthScene, ids, minutes, shown


def test_what_is_over_does_not_end_the_faults_that_a_node_still_has(scene: HealthScene, group: FakeGroup) -> None:
    node, failed = ids(group)[:2]
    scene.fault(node, REPLACE)
    scene.verified(failed, FAILED, faults=(LOST,))
    for one, faults in ((node, (REPLACE,)), (failed, ())):
        scene.report(one, ReportKind.RECOVERED, faults=faults, sentence="over: maintenance")
        assert scene.node_record(one).draining_faults


@pytest.mark.parametrize("ends", [ReportKind.RECOVERED, ReportKind.VERIFIED])
def test_a_node_that_was_drained_long_ago_has_its_time(
    scene: HealthScene, group: FakeGroup, ends: ReportKind
) -> None:
    node = ids(group)[0]
    scene.report(node, ReportKind.DRAINED)
    if ends is ReportKind.VERIFIED:
        scene.report(node, ends)
    scene.minute(60)
    scene.fault(node)
    assert scene.both(14)[node]["outcome"] == "wait"
    assert scene.drained(node)[node]["outcome"] == "reboot"


def test_a_node_whose_clock_was_ahead_returns_once_it_is_verified(scene: HealthScene, group: FakeGroup) -> None:
    node = ids(group)[0]
    scene.fault(node, at=scene.now + minutes(40))
    scene.drained(node)
    scene.both(3)
    assert scene.verified(node)[node]["outcome"] == "return"


def test_a_node_that_goes_with_its_stopped_group_may_come_back(scene: HealthScene, group: FakeGroup) -> None:
    node = ids(group)[0]
    scene.fault(node, dataclasses.replace(REPLACE, serial="s-1"), serials=("s-1",))
    scene.order("stop", by="ana", reason="weekend")
    scene.both(3)
    scene.order("start", by="ana", reason="monday")
    scene.both(3)
    assert scene.verified(ids(group)[0], serials=("s-1",)) == {}


def test_a_node_that_waits_for_an_operator_stays_until_it_reports(scene: HealthScene, group: FakeGroup) -> None:
    node, calls = ids(group)[0], scene.watch_repairs()
    scene.fault(node)
    scene.drained(node)
    scene.boots[node] = 1
    scene.report(node, ReportKind.NOTICE)
    assert scene.both(60)[node]["outcome"] == "held"
    assert len(scene.group_record().past) == 1
    assert scene.subjects()[1:] == [f"base-pod: {node} of workers is broken and waits for you"]
    scene.report(node, ReportKind.VERIFIED, checks=(PASSED,))
    scene.both(2)
    assert (shown(group), calls) == ((8, 8, 0), ["EnterStandby", "RebootInstances", "ExitStandby"])


def test_a_node_that_was_left_out_of_service_is_forgotten_when_it_is_gone(
    scene: HealthScene, group: FakeGroup
) -> None:
    node = ids(group)[0]
    scene.keep(node)
    scene.fault(node)
    scene.drained(node)
    scene.both()
    assert scene.group_record().unfinished == {node}
    group.terminate(node, lowers=False)
    scene.both(3)
    record = scene.group_record()
    assert [one.end for one in record.past] == ["left"]
    assert not record.unfinished
    scene.now += minutes(24 * 60)
    scene.both()
    assert scene.group_record().past == ()


@pytest.mark.parametrize(
    ("stopped", "operation"), [(False, "RebootInstances"), (True, "TerminateInstanceInAutoScalingGroup")]
)
def test_what_aws_refuses_is_not_asked_for_ever(
    scene: HealthScene, group: FakeGroup, *, stopped: bool, operation: str
) -> None:
    node, other = ids(group)[:2]
    scene.fault(node)
    if stopped:
        scene.order("stop", by="ana", reason="weekend")
    for turn in range(21):
        for service in (scene.nodes_ec2, scene.auto_scaling):
            service.fail_next(operation, "UnauthorizedOperation")
        with pytest.raises(PartialFailureError, match="UnauthorizedOperation"):
            scene.both() if turn or stopped else scene.drained(node)
    calls = scene.watch_repairs()
    found = scene.both(60)[node]
    assert (found["outcome"], operation in calls) == ("held", False)
    assert "terminate-instance-in-auto-scaling-group" in found["undo"]
    about = [one for one in scene.subjects() if node in one]
    assert about[1:] == [f"base-pod: {node} of workers is broken and waits for you"]
    assert any(f"({operation}: UnauthorizedOperation" in one["Message"] for one in scene.sns.messages)
    if not stopped:
        assert scene.fault(other, REPLACE)[other]["outcome"] == "cordon"
        scene.auto_scaling.exit_standby(AutoScalingGroupName=group.name, InstanceIds=[node])
        scene.report(node, ReportKind.RECOVERED)
        assert node not in scene.both()


def test_a_group_that_is_busy_for_long_refuses_nothing_and_one_message_says_so(
    scene: HealthScene, group: FakeGroup
) -> None:
    node = ids(group)[0]
    for _ in range(60):
        scene.auto_scaling.fail_next("EnterStandby", "ResourceContention")
    scene.fault(node)
    scene.both(29)
    assert scene.subjects() == []
    scene.both(60)
    assert scene.subjects() == [f"base-pod: {node} of workers is broken, and its node group is busy"]
    command = f"cancel-instance-refresh --region us-east-1 --auto-scaling-group-name {group.name}"
    assert command in scene.sns.messages[0]["Message"]
    scene.auto_scaling.mend()
    scene.both(6)
    assert group.standby == [node]


def test_a_boot_before_the_reboot_is_no_reboot(scene: HealthScene, group: FakeGroup) -> None:
    node = ids(group)[0]
    scene.fault(node)
    scene.both(2)
    scene.boots[node] = 1
    scene.fault(node)
    assert scene.drained(node)[node]["outcome"] == "reboot"
    assert scene.both(3)[node]["outcome"] == "wait"
    scene.verified(node)
    scene.both(2)
    assert (shown(group), node in dict(group.nodes)) == ((8, 8, 0), True)


def test_a_node_that_auto_scaling_launches_before_it_terminates_another_takes_no_place(
    scene: HealthScene, group: FakeGroup
) -> None:
    node = ids(group)[0]
    scene.fault(node)
    scene.drained(node)
    scene.both(2)
    group.in_service += 1
    assert scene.verified(node)[node]["outcome"] == "return"


@pytest.mark.parametrize("known", ["impaired", "impaired before its report", "stopped", ""])
def test_a_node_that_says_nothing_after_its_reboot_is_replaced_only_if_ec2_says_that_it_is_broken(
    scene: HealthScene, group: FakeGroup, known: str
) -> None:
    node = ids(group)[0]
    if known == "impaired before its report":
        scene.nodes_ec2.impaired[node] = scene.now
        scene.both()
    scene.fault(node)
    scene.drained(node)
    scene.both(2)
    if known == "impaired":
        scene.nodes_ec2.impaired[node] = scene.now
    elif known == "stopped":
        scene.nodes_ec2.stopped = {node}
    scene.both(20)
    if known:
        scene.both(3)
        assert node not in dict(group.nodes)
    else:
        assert scene.both(60)[node]["outcome"] == "held"
        assert scene.subjects()[1:] == [f"base-pod: {node} of workers is broken and waits for you"]
        scene.verified(node)
        scene.both(3)
    assert shown(group) == (8, 8, 0)


def test_a_report_that_comes_after_the_end_of_its_repair_lets_the_node_go_on(
    scene: HealthScene, group: FakeGroup
) -> None:
    node = ids(group)[0]
    scene.fault(node)
    scene.drained(node)
    assert scene.both(30)[node]["outcome"] == "held"
    assert scene.verified(node, FAILED, faults=(LOST,), at=scene.now - minutes(20))[node]["outcome"] != "held"


@pytest.mark.parametrize("when", ["before the power function looks", "drains", "boots", "waits for an operator"])
def test_a_node_that_ec2_terminates_in_standby_gives_its_place_to_another(
    scene: HealthScene, group: FakeGroup, when: str
) -> None:
    node = ids(group)[0]
    scene.fault(node)
    if when == "drains":
        scene.both()
    elif when != "before the power function looks":
        scene.drained(node)
        scene.both(60 if when == "waits for an operator" else 2)
    group.dead = scene.nodes_ec2.terminated = {node}
    scene.health()
    scene.both(5)
    assert (shown(group), node in dict(group.nodes)) == ((8, 8, 0), False)
    assert scene.subjects()[-1] == f"base-pod: {node} of workers was replaced"


@pytest.mark.parametrize("drains", [True, False])
def test_a_node_that_an_operator_puts_back_is_left_alone(
    scene: HealthScene, group: FakeGroup, *, drains: bool
) -> None:
    node = ids(group)[0]
    scene.fault(node)
    if drains:
        scene.drained(node)
    calls = scene.watch_repairs()
    scene.auto_scaling.exit_standby(AutoScalingGroupName=group.name, InstanceIds=[node])
    scene.both(60)
    assert calls == ["ExitStandby"]
    assert scene.subjects()[1:] == [f"base-pod: {node} of workers is broken and waits for you"]


def test_a_node_whose_place_is_gone_is_terminated_instead_of_returned(scene: HealthScene, group: FakeGroup) -> None:
    node = ids(group)[0]
    scene.fault(node)
    scene.drained(node)
    scene.counts["workers"] = 7
    scene.both(3)
    assert scene.verified(node)[node]["outcome"] == "release"
    scene.both(5)
    assert shown(group) == (7, 7, 0)


def test_a_report_while_a_node_group_has_two_owners_is_kept(scene: HealthScene, group: FakeGroup) -> None:
    node = ids(group)[0]
    scene.add(name="workers-new", node_group="workers")
    scene.fault(node)
    scene.health()
    assert scene.node_record(node).draining_faults


def test_a_group_of_another_owner_with_the_tags_of_a_node_group_keeps_no_node_from_its_repair(
    scene: HealthScene, group: FakeGroup
) -> None:
    node = ids(group)[0]
    scene.add(name="other", node_group="workers", stack=None)
    scene.fault(node)
    assert scene.drained(node)[node]["outcome"] == "reboot"
