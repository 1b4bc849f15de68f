"""What cannot be stopped, read or written keeps running, is reported, and keeps no other node waiting."""

from datetime import timedelta
from typing import Any

import pytest

from cluster_common.errors import PartialFailureError
from cluster_contract.idle import IdleScope, Policy
from cluster_contract.owners import OwnerSettings
from fake_instances import FakeNode
from idle_function_settings import Group
from idle_scene import CLUSTER, NODE_GROUP_TAG, IdleScene, last_metrics, verdicts


def tick(scene: IdleScene, minutes: int = 5) -> dict[str, dict[str, Any]]:
    """Let time pass and run the function, whether it fails or not."""
    try:
        return scene.tick(minutes)
    except PartialFailureError:
        return {}


def two_owners(scene: IdleScene) -> dict[str, list[FakeNode]]:
    """Deploy a node group of which a deployment replaces the owner, with nodes in both; one is in a reservation."""
    scene.groups["workers"] = Group(policy=scene.policy)
    nodes: dict[str, list[FakeNode]] = {}
    for group, raw in (("workers-a", {"CapacityReservationId": "cr-1"}), ("workers-b", {})):
        scene.auto_scaling.add(group, cluster=CLUSTER, node_group="workers", desired=2)
        tags = {NODE_GROUP_TAG: "workers", "aws:autoscaling:groupName": group}
        nodes[group] = [scene.add(tags=dict(tags), raw=dict(raw)) for _ in range(2)]
        scene.auto_scaling.members[group] = [node.id for node in nodes[group]]
    return nodes


def test_a_stop_that_the_power_function_does_not_apply_is_reported_as_none() -> None:
    scene = IdleScene()
    scene.add_group()
    scene.lambda_.blocked = "its minimum is 4"
    scene.tick()
    scene.ticks(25)

    with pytest.raises(PartialFailureError, match="the power function did not stop it: its minimum is 4"):
        scene.tick()
    assert scene.lambda_.orders[0]["all_or_nothing"] is True
    assert (len(scene.subjects()), scene.stopped) == (1, set())


def test_single_nodes_that_are_terminated_are_reported_though_another_stays() -> None:
    scene = IdleScene(policy=Policy(scope=IdleScope.NODE))
    *_, stays = scene.add_group("lab", count=3)
    scene.lambda_.keeps = {stays.id}
    scene.tick()
    for _ in range(6):
        tick(scene)

    assert len(scene.stopped) == 2
    assert scene.subjects()[1:] == ["base-pod: 2 nodes terminated: idle"]


STANDBY = "is in Standby: Auto Scaling does not end it; terminate it or return it to service"


def test_a_node_in_standby_is_not_ordered_to_go_by_itself() -> None:
    scene = IdleScene(policy=Policy(scope=IdleScope.NODE))
    first, second = scene.add_group("lab", count=2)
    scene.auto_scaling.states[first.id] = "Standby"

    found = scene.tick()
    assert verdicts(found) == ["unstoppable", "warn"]
    assert found[first.id]["reason"] == f"{first.id} of lab is idle, and {STANDBY}"
    scene.ticks(30)
    assert [order["instance_ids"] for order in scene.lambda_.orders] == [[second.id]]


@pytest.mark.parametrize("state", ["Standby", "EnteringStandby", "Warmed:Running", "Detaching", "Detached"])
def test_a_node_that_leaves_service_between_two_looks_and_runs_on_is_not_reported_as_terminated(
    state: str, capsys: pytest.CaptureFixture[str]
) -> None:
    scene = IdleScene(policy=Policy(scope=IdleScope.NODE))
    first, second = scene.add_group("lab", count=2)
    scene.ticks(30)
    scene.lambda_.keeps = {first.id}

    def leave(_: str) -> None:
        if state == "Detached":
            scene.auto_scaling.members["lab-asg"].remove(first.id)
        else:
            scene.auto_scaling.states[first.id] = state

    scene.lambda_.on_call = leave
    with pytest.raises(PartialFailureError):
        scene.tick()

    assert (first.state, second.state) == ("running", "shutting-down")
    assert last_metrics(capsys)["IdleStoppedNodes"] == 1
    [_, told] = scene.texts()
    assert second.id in told
    assert f"{first.id} " not in told.split("not stopped", maxsplit=1)[0]
    assert first.id in scene.warnings


def test_a_node_in_standby_is_not_reported_as_terminated_with_its_group() -> None:
    scene = IdleScene()
    first, *others = scene.add_group()
    scene.auto_scaling.states[first.id] = "Standby"

    found = scene.ticks(35)
    assert found[first.id]["reason"] == f"{first.id} of workers is idle, and {STANDBY}"
    assert [one for one, node in found.items() if node["stopped"]] == [node.id for node in others]
    assert scene.subjects()[1:] == ["base-pod: 3 nodes terminated: idle"]


def test_a_member_in_standby_that_was_stopped_by_hand_keeps_no_other() -> None:
    scene = IdleScene()
    first, *_ = scene.add_group()
    first.state = "stopped"
    scene.auto_scaling.states[first.id] = "Standby"

    assert verdicts(scene.tick()) == ["warn"] * 3


def test_a_group_that_terminates_nothing_is_not_ordered_to_go() -> None:
    scene = IdleScene()
    scene.add_group(count=2)
    scene.auto_scaling.groups["workers-asg"].terminating_suspended = "User suspended at 2026-11-02T08:00:00Z"

    found = scene.ticks(120)
    assert verdicts(found) == ["unstoppable"] * 2
    assert scene.lambda_.orders == []
    assert "has its process Terminate suspended: resume it" in next(iter(found.values()))["reason"]


def test_a_group_with_a_protected_node_is_left_alone_and_said() -> None:
    scene = IdleScene()
    first, *_ = scene.add_group(count=2)
    scene.auto_scaling.protected.add(first.id)

    found = scene.ticks(120)
    assert verdicts(found) == ["unstoppable"] * 2
    assert f"does not terminate {first.id}: it is protected from scale-in" in found[first.id]["reason"]


def test_what_ec2_refuses_to_stop_fails_one_run_and_keeps_no_other_waiting() -> None:
    scene = IdleScene(max_stops=1)
    node, other = scene.add(stop_refusal=("OperationNotPermitted", "The instance may not be stopped.")), scene.add()
    failed = 0
    for _ in range(12 * 20):
        failed += tick(scene) == {}

    assert other.state == "stopped"
    assert scene.warnings[node.id]["refusals"] == {
        node.id: {"at": "2026-11-02T08:37:00Z", "code": "OperationNotPermitted"}
    }
    assert (failed, len(scene.subjects())) == (1, 2)
    found = scene.tick()[node.id]
    assert found["verdict"] == "unstoppable"
    assert found["reason"] == (
        f"{node.id} is idle, but EC2 refused to stop it (OperationNotPermitted): the function tries again at "
        "2026-11-03T08:37:00Z"
    )


def test_a_large_gang_that_cannot_be_stopped_keeps_no_other_waiting() -> None:
    scene = IdleScene(max_stops=2)
    scene.add_group("a-gang", count=3)
    other = scene.add()
    scene.lambda_.refusal = "Task timed out after 50.00 seconds"
    for _ in range(12):
        tick(scene)

    assert other.state == "stopped"


def test_where_one_of_two_owners_is_in_a_reservation_both_are_warned_of_and_go() -> None:
    scene = IdleScene()
    two_owners(scene)

    assert verdicts(scene.tick()) == ["warn"] * 4
    assert len(scene.warnings["workers"]["owners"]) == 2
    assert scene.subjects() == ["base-pod: 4 nodes idle, terminated in 30 minutes"]
    assert verdicts(scene.ticks(30)) == ["stop"] * 4


def test_what_keeps_one_of_two_owners_keeps_the_other() -> None:
    scene = IdleScene()
    nodes = two_owners(scene)
    scene.auto_scaling.protected.add(nodes["workers-a"][0].id)

    assert verdicts(scene.ticks(60)) == ["unstoppable"] * 4
    assert scene.lambda_.orders == []


def test_a_message_says_for_each_owner_what_becomes_of_its_nodes() -> None:
    scene = IdleScene()
    scene.groups["workers"] = Group(policy=scene.policy)
    alone = scene.add(tags={NODE_GROUP_TAG: "workers"})
    scene.add_group(count=2)
    scene.tick()

    assert scene.subjects() == ["base-pod: 3 nodes idle, stopped or terminated in 30 minutes"]
    assert f"{alone.id}: will be stopped at 2026-11-02T08:37:00Z. EBS volumes stay" in scene.texts()[0]
    assert "will be terminated at 2026-11-02T08:37:00Z. The Auto Scaling group workers-asg is" in scene.texts()[0]


def test_a_dry_run_of_many_is_one_message() -> None:
    scene = IdleScene(policy=Policy(dry_run=True))
    for _ in range(60):
        scene.add()
    scene.ticks(6 * 60)

    assert scene.subjects() == [
        "[dry run] base-pod: 60 nodes idle, stopped in 30 minutes",
        "[dry run] base-pod: 60 nodes would be stopped now: idle",
    ]


def test_a_silent_node_of_another_service_is_counted_as_unknown(capsys: pytest.CaptureFixture[str]) -> None:
    scene = IdleScene()
    scene.add_group(count=3)
    scene.add(load=None, tags={NODE_GROUP_TAG: "workers", "aws:ec2:fleet-id": "fleet-1"})
    found = scene.ticks(120)

    assert verdicts(found) == ["unknown", "unknown", "unknown", "managed"]
    assert last_metrics(capsys)["IdleUnknownNodes"] == 1


def test_a_machine_without_accelerators_rings_no_alarm(capsys: pytest.CaptureFixture[str]) -> None:
    scene = IdleScene()
    node = scene.add(load=None, instance_type="m7i.large")
    found = scene.ticks(120)

    assert found[node.id]["reason"] == (
        f"{node.id} is never stopped: it has no GPU or NeuronCore whose use is reported"
    )
    assert last_metrics(capsys)["IdleUnknownNodes"] == 0


def test_a_spot_fleet_that_is_gone_keeps_no_other() -> None:
    scene = IdleScene()
    scene.add_fleet("extras")
    scene.groups["old"] = Group(policy=scene.policy, owner=OwnerSettings.spot_fleet("sfr-old"))

    assert verdicts(scene.tick()) == ["warn", "warn"]


def test_a_node_of_a_spot_fleet_that_lost_the_clusters_tag_keeps_the_others() -> None:
    scene = IdleScene()
    _, working = scene.add_fleet()
    del working.tags["cdk-training-cluster:cluster"]
    working.load = 90

    found = scene.ticks(60)
    assert verdicts(found) == ["unknown"]
    assert "has nodes that DescribeInstances did not return" in next(iter(found.values()))["reason"]
    assert scene.lambda_.orders == []


def test_the_breaker_holds_though_a_run_failed_in_between() -> None:
    scene = IdleScene()
    idle = scene.add()
    others = [scene.add(load=80) for _ in range(3)]
    scene.ticks(30)
    for node in others:
        node.load = None
    scene.pass_time(timedelta(minutes=5))

    assert verdicts(scene.tick(10)) == ["deferred", "unknown", "unknown", "unknown"]
    assert idle.state == "running"


def test_a_second_page_that_cannot_be_read_stops_nothing() -> None:
    scene = IdleScene()
    scene.ec2.page_size = 2
    for _ in range(4):
        scene.add()
    scene.ticks(30)
    scene.ec2.fail_page = 2

    with pytest.raises(PartialFailureError, match="its instances could not be read: nothing is stopped"):
        scene.tick()
    assert scene.stopped == set()


@pytest.mark.parametrize(
    ("raw", "spot", "verdict", "words"),
    [
        ({"RootDeviceType": "instance-store"}, {}, "unstoppable", "its root volume is instance store"),
        ({"InstanceLifecycle": "spot"}, {"Type": "one-time"}, "unstoppable", "sir-1 is one-time"),
        (
            {"InstanceLifecycle": "spot"},
            {"Type": "persistent", "LaunchGroup": "together"},
            "unstoppable",
            "sir-1 has a launch group",
        ),
        ({"InstanceLifecycle": "spot"}, {"Type": "persistent"}, "warn", "its warning is due now"),
        ({"CapacityReservationId": "cr-1"}, {}, "reserved", "in the capacity reservation cr-1, which is billed"),
        ({"InstanceLifecycle": "capacity-block"}, {}, "reserved", "in a Capacity Block, which is billed"),
        ({"Operator": {"Managed": True}}, {}, "managed", "belongs to another service, which alone may stop it"),
    ],
)
def test_what_ec2_cannot_stop_or_what_saves_nothing_is_said(
    raw: dict[str, Any], spot: dict[str, str], verdict: str, words: str
) -> None:
    scene = IdleScene()
    scene.ec2.spot_requests["sir-1"] = spot
    node = scene.add(raw={**raw, **({"SpotInstanceRequestId": "sir-1"} if spot else {})})

    found = scene.tick()[node.id]
    assert found["verdict"] == verdict
    assert words in found["reason"]


@pytest.mark.parametrize("obstacle", ["standby", "size of zero", "one-time Spot"])
def test_what_nodes_cannot_be_stopped_for_says_nothing_of_those_that_came_lately(obstacle: str) -> None:
    scene = IdleScene()
    newcomer = timedelta(minutes=50)
    if obstacle in ("standby", "size of zero"):
        stuck = scene.add_group(count=3)
        scene.auto_scaling.states |= {one.id: "Standby" for one in stuck if obstacle == "standby"}
        scene.auto_scaling.groups["workers-asg"].desired = 0 if obstacle == "size of zero" else 2
    else:
        scene.groups["workers"] = Group(policy=scene.policy)
        spot = {"InstanceLifecycle": "spot", "SpotInstanceRequestId": "sir-1"}
        scene.ec2.spot_requests["sir-1"] = {"Type": "one-time"}
        for _ in range(3):
            scene.add(tags={NODE_GROUP_TAG: "workers"}, raw=dict(spot))
    for _ in range(2):
        if obstacle == "standby":
            scene.join("workers", age=newcomer)
        else:
            scene.add(tags={NODE_GROUP_TAG: "workers"}, age=newcomer)
    other = scene.add()

    found = scene.tick()
    assert (len(found), found[other.id]["verdict"]) == (6, "warn")


def test_a_cancelled_fleet_whose_nodes_run_on_is_not_ordered_to_stop() -> None:
    scene = IdleScene()
    scene.add_fleet()
    scene.ec2.fleets["sfr-extras"].state = "cancelled_running"

    found = scene.ticks(60)
    assert verdicts(found) == ["unstoppable"] * 2
    assert "the Spot Fleet request sfr-extras is cancelled or being deleted" in next(iter(found.values()))["reason"]
    assert (scene.lambda_.orders, scene.subjects()) == ([], [])
