from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, cast

import botocore.session
import pytest

from cluster_common.owners.auto_scaling_groups import AutoScalingGroups
from cluster_common.owners.groups import OwnedGroup, OwnedNode
from fake_auto_scaling import FakeAutoScaling
from fake_service import STACK

if TYPE_CHECKING:
    from botocore.model import StringShape
    from mypy_boto3_autoscaling.client import AutoScalingClient
    from mypy_boto3_ec2.client import EC2Client


def no_ec2() -> "EC2Client":
    raise AssertionError


def owner(fake: FakeAutoScaling, stack_id: str = STACK) -> AutoScalingGroups:
    client = cast("AutoScalingClient", fake)
    return AutoScalingGroups(client, lambda: client, no_ec2, "base-pod", ["workers"], stack_id=stack_id)


def read(fake: FakeAutoScaling) -> list[OwnedGroup]:
    reading = owner(fake).read()
    assert reading.unread == {}
    return reading.groups


def test_a_group_is_read_as_auto_scaling_describes_it() -> None:
    fake = FakeAutoScaling()
    fake.add("asg", cluster="base-pod", node_group="workers", desired=4, in_service=2, launching=1, suspended="why")

    [group] = read(fake)

    assert (group.name, group.node_group, group.minimum, group.desired, group.maximum) == (
        "asg",
        "workers",
        0,
        4,
        8,
    )
    assert (group.in_service, group.zones, group.instance_types) == (2, ("us-east-1b",), ("p4de.24xlarge",))
    assert (group.launching_suspended, group.terminating_suspended, group.deleting) == ("why", None, False)
    assert (group.out_of_service, group.alive, group.protected) == (("Pending",), 3, 0)


def test_a_group_that_loses_no_nodes_is_read_with_the_reasons() -> None:
    fake = FakeAutoScaling()
    fake.add(
        "asg", cluster="base-pod", node_group="workers", in_service=3, protected=2, terminating_suspended="debugging"
    )

    [group] = read(fake)

    assert (group.protected, group.terminating_suspended, group.launching_suspended) == (2, "debugging", None)


_STATES = cast(
    "StringShape", botocore.session.get_session().get_service_model("autoscaling").shape_for("LifecycleState")
).enum
_GONE = {"Terminated", "Warmed:Terminated", "Warmed:Stopped", "Warmed:Hibernated"}


@pytest.mark.parametrize("state", [*_STATES, "A state of the future"])
def test_every_instance_that_is_billed_is_alive(state: str) -> None:
    fake = FakeAutoScaling()
    fake.add("asg", cluster="base-pod", node_group="workers", others=[state])

    [group] = read(fake)

    assert group.alive == (state not in _GONE)
    assert group.in_service == (state == "InService")


def test_one_group_is_read_again_by_its_name_and_only_if_it_is_still_the_clusters() -> None:
    fake = FakeAutoScaling()
    raw = fake.add("asg", cluster="base-pod", node_group="workers", desired=3)
    [group] = read(fake)
    fake.requests.clear()

    assert owner(fake).describe(group) == group
    assert fake.requests == [("DescribeAutoScalingGroups", {"AutoScalingGroupNames": ["asg"]})]

    raw.tags["cdk-training-cluster:cluster"] = "other-pod"
    assert owner(fake).describe(group) is None


@pytest.mark.parametrize("stack", [None, STACK.replace("/1", "/2")], ids=["no stack", "another stack"])
@pytest.mark.parametrize("node_group", [None, "workers"])
def test_a_group_with_the_tags_of_the_cluster_that_is_not_of_its_stack_is_not_the_clusters(
    stack: str | None, node_group: str | None
) -> None:
    fake = FakeAutoScaling()
    fake.add("asg", cluster="base-pod", node_group="workers")
    [own] = read(fake)
    fake.add("foreign", cluster="base-pod", node_group="workers", stack=stack)

    assert owner(fake).read(node_group).groups == [own]
    assert owner(fake).describe(replace(own, name="foreign")) is None


@pytest.mark.parametrize(("end", "is_own"), [("/1", True), ("/2", False), ("", False)])
def test_the_end_of_its_stacks_id_names_a_group(end: str, is_own: bool) -> None:
    fake = FakeAutoScaling()
    fake.add("asg", cluster="base-pod", node_group="workers")
    assert bool(owner(fake, end).read().groups) is is_own


def test_each_node_is_read_with_its_state() -> None:
    fake = FakeAutoScaling()
    raw = fake.add("asg", cluster="base-pod", node_group="workers", in_service=1, protected=1, others=["Terminated"])

    [group] = read(fake)

    (working, _), (gone, _) = raw.nodes
    assert group.nodes == {working: OwnedNode(state="InService", protected=True), gone: OwnedNode(state="Terminated")}


def test_a_termination_is_requested_by_the_client_that_sends_a_request_once() -> None:
    usual, once = FakeAutoScaling(), FakeAutoScaling()
    raw = once.add("asg", cluster="base-pod", node_group="workers", desired=2, in_service=2)
    name = raw.nodes[0][0]
    groups = AutoScalingGroups(
        cast("AutoScalingClient", usual),
        lambda: cast("AutoScalingClient", once),
        no_ec2,
        "base-pod",
        ["workers"],
        stack_id=STACK,
    )

    group = owner(once).read().groups[0]
    once.requests.clear()
    groups.terminate(group, name)

    assert once.requests == [
        ("TerminateInstanceInAutoScalingGroup", {"InstanceId": name, "ShouldDecrementDesiredCapacity": True})
    ]
    assert usual.requests == []


def test_activities_are_read_newest_first_with_their_words_on_one_line() -> None:
    fake = FakeAutoScaling()
    raw = fake.add("asg", cluster="base-pod", node_group="workers")
    raw.activities = [
        {
            "Description": "Launching a new EC2 instance.",
            "StatusCode": "Failed",
            "StatusMessage": "No\n  capacity",
            "StartTime": datetime(2026, 1, 1, 8, tzinfo=UTC),
        },
        {
            "Description": "Terminating EC2 instance: i-1",
            "StatusCode": "InProgress",
            "StartTime": datetime(2026, 1, 1, 9, tzinfo=UTC),
        },
        {
            "Description": "Launching a new EC2 instance: i-2",
            "StatusCode": "Cancelled",
            "StartTime": datetime(2026, 1, 1, 7, tzinfo=UTC),
        },
        {
            "Description": "Launching a new EC2 instance into warm pool: i-3",
            "StatusCode": "Successful",
            "StartTime": datetime(2026, 1, 1, 6, tzinfo=UTC),
        },
    ]
    [group] = read(fake)

    activities = owner(fake).read_activities(group, None)

    assert [(one.launch, one.failed, one.finished, one.message) for one in activities] == [
        (False, False, False, "Terminating EC2 instance: i-1"),
        (True, True, True, "No capacity"),
        (True, True, True, "Launching a new EC2 instance: i-2"),
        (False, False, True, "Launching a new EC2 instance into warm pool: i-3"),
    ]
