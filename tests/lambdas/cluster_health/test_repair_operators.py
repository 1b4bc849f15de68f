"""Repairs beside what an operator, a setting or a reservation does to the node or its group."""

import pytest

from cluster_common.errors import PartialFailureError
from fake_auto_scaling import FakeGroup
from health_scene import FAILED, LOST, PASSED, REPLACE, HealthScene, ids, shown


def test_a_tag_that_comes_between_two_attempts_keeps_a_node(scene: HealthScene, group: FakeGroup) -> None:
    node = ids(group)[0]
    scene.nodes_ec2.stopped = {node}
    scene.fault(node)
    with pytest.raises(PartialFailureError):
        scene.drained(node)
    scene.nodes_ec2.stopped = set()
    scene.keep(node)
    assert scene.both(2)[node]["outcome"] == "kept"
    assert not scene.nodes_ec2.rebooted


@pytest.mark.parametrize("step", ["asked", "cordon", "reboot", "mended"])
@pytest.mark.parametrize("stopped", [True, False])
def test_what_the_function_took_out_of_service_comes_back_or_goes_once_the_policy_only_reports(
    scene: HealthScene, group: FakeGroup, *, step: str, stopped: bool
) -> None:
    node = ids(group)[0]
    if step == "asked":
        scene.auto_scaling.fail_next("EnterStandby", "ScalingActivityInProgress")
    scene.fault(node)
    if step in ("reboot", "mended"):
        scene.drained(node)
    scene.set_policy(act=False)
    if stopped:
        scene.order("stop", by="ana", reason="weekend")
    calls = scene.watch_repairs()
    scene.both(3)
    if step in ("reboot", "mended") and not stopped:
        scene.verified(node, FAILED if step == "reboot" else PASSED, faults=(LOST,) if step == "reboot" else ())
    scene.both(10)
    assert shown(group) == ((0, 0, 0) if stopped else (8, 8, 0))
    assert not {"EnterStandby", "RebootInstances"} & set(calls)
    if not stopped:
        titles = {one.removeprefix(f"base-pod: {node} of workers ") for one in scene.subjects()}
        off = {"is no longer under repair", "is broken; repairs are off (health: act)"}
        ends = {"is repaired"} if step == "mended" else off
        assert titles - {"is broken and is being repaired"} == ends


def test_a_node_in_standby_keeps_its_place_beside_one_that_a_command_terminates(
    scene: HealthScene, group: FakeGroup
) -> None:
    node, other = ids(group)[:2]
    scene.fault(node, REPLACE)
    scene.both()
    scene.order("terminate", node_groups=["workers"], instance_ids=[other], by="ana", reason="idle")
    scene.both(2)
    scene.drained(node)
    scene.both(3)
    assert (shown(group), group.alive) == ((7, 7, 0), 7)


def test_in_a_group_whose_size_an_operator_has_set_no_other_node_takes_a_place(
    scene: HealthScene, group: FakeGroup
) -> None:
    node = ids(group)[0]
    scene.fault(node, REPLACE)
    scene.auto_scaling.set_desired_capacity(AutoScalingGroupName=group.name, DesiredCapacity=5)
    scene.both(2)
    scene.drained(node)
    found = scene.both(15)[node]
    assert (shown(group), found["outcome"]) == ((5, 5, 1), "kept")
    assert f"the desired capacity of {group.name} (5) was set outside the power function" in found["reason"]
    assert found["undo"].endswith(f"--auto-scaling-group-name {group.name} --desired-capacity 6")
    scene.auto_scaling.set_desired_capacity(AutoScalingGroupName=group.name, DesiredCapacity=8)
    scene.both(5)
    assert shown(group) == (8, 8, 0)


@pytest.mark.parametrize("when", ["before its repair", "before it returns", "after it was held"])
def test_a_node_comes_back_only_where_that_does_not_undo_an_operators_size(
    scene: HealthScene, group: FakeGroup, when: str
) -> None:
    node = ids(group)[0]

    def resize() -> None:
        scene.auto_scaling.set_desired_capacity(AutoScalingGroupName=group.name, DesiredCapacity=5)
        scene.both(2)

    if when == "before its repair":
        resize()
        node = ids(group)[0]
    scene.fault(node)
    scene.drained(node)
    scene.both(40 if when == "after it was held" else 2)
    if when != "before its repair":
        resize()
    scene.verified(node)
    if when == "before its repair":
        scene.both(2)
    else:
        found = scene.both(15)[node]
        assert (shown(group), found["outcome"]) == ((5, 5, 1), "held")
        assert f"the desired capacity of {group.name} was set to 5 during its repair" in found["reason"]
        assert "exit-standby" in found["undo"]
        group.desired = 4
        scene.auto_scaling.exit_standby(AutoScalingGroupName=group.name, InstanceIds=[node])
        assert scene.both(3) == {}
    assert shown(group)[0] == 5


@pytest.mark.parametrize("held", [False, True])
def test_a_node_that_ec2_terminates_in_standby_gets_no_place_in_a_group_that_an_operator_has_made_smaller(
    scene: HealthScene, group: FakeGroup, *, held: bool
) -> None:
    node = ids(group)[0]
    scene.fault(node)
    scene.drained(node)
    scene.both(40 if held else 2)
    scene.auto_scaling.set_desired_capacity(AutoScalingGroupName=group.name, DesiredCapacity=5)
    scene.both(2)
    scene.nodes_ec2.terminated = {node}
    calls = scene.watch_repairs()
    scene.both(5)
    assert (shown(group), calls[:1]) == ((5, 5, 0), ["TerminateInstanceInAutoScalingGroup"])
    assert "ExitStandby" not in calls


def test_a_node_that_an_operator_keeps_now_and_then_spends_one_repair(scene: HealthScene, group: FakeGroup) -> None:
    node = ids(group)[0]
    for _ in range(3):
        scene.keep(node, "false")
        assert scene.fault(node)[node]["outcome"] == "cordon"
        scene.keep(node)
        scene.drained(node)
        assert scene.both(2)[node]["outcome"] == "kept"
    assert len(scene.group_record().past) == 1


def test_no_node_is_replaced_in_a_group_that_launches_none(scene: HealthScene, group: FakeGroup) -> None:
    node = ids(group)[0]
    group.suspended = "User suspended at 2026-03-02T10:00:00Z"
    scene.fault(node, REPLACE)
    found = scene.both(15)[node]
    assert (shown(group), found["outcome"]) == ((8, 8, 0), "place")
    assert "its process Launch is suspended (User suspended at" in found["reason"]


def test_a_node_that_an_operator_detaches_during_its_repair_takes_its_place_along_and_a_message_says_so(
    scene: HealthScene, group: FakeGroup
) -> None:
    node = ids(group)[0]
    scene.fault(node)
    group.terminate(node, lowers=False)
    scene.both(3)
    assert scene.subjects()[-1] == f"base-pod: {node} of workers is no longer under repair"
    assert f"--auto-scaling-group-name {group.name} --desired-capacity 8" in scene.sns.messages[-1]["Message"]


def test_in_a_full_reservation_a_node_that_goes_is_no_shortage(scene: HealthScene) -> None:
    group = scene.add()
    scene.add_reservation(group, release=False)
    scene.minute(3)
    node = ids(group)[0]
    group.hooked = True
    scene.fault(node, REPLACE)
    scene.both()
    scene.drained(node)
    scene.both(6)
    assert (shown(group), group.terminating) == ((8, 7, 0), [node])
    group.hooked = False
    scene.both(3)
    assert shown(group) == (8, 8, 0)
    assert not [one for one in scene.subjects() if node not in one]
