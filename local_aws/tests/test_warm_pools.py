"""Warm pools: what is launched, stopped, started again and given back."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from local_aws import LocalAws
from local_aws_scene import Stacks
from warm_scene import warm_nodes, warm_pool

TYPE, ZONE = "p4de.24xlarge", "us-east-1b"


@pytest.fixture(autouse=True)
def as_before(aws: LocalAws) -> Iterator[None]:
    yield
    aws.set_capacity(TYPE, ZONE, available=None)


@pytest.fixture
def stack(stacks: Stacks) -> str:
    """A stack with an empty group and a warm pool for two."""
    name = stacks.create(warm_nodes())
    assert stacks.reasons(name) == {}
    return name


@pytest.fixture
def group(stacks: Stacks, stack: str) -> str:
    """The group's name."""
    return stacks.physical_ids(stack)["Nodes"]


def _pool(aws: LocalAws, group: str) -> dict[str, str]:
    """Return the lifecycle state of each instance in the warm pool."""
    answer = aws.client("autoscaling").describe_warm_pool(AutoScalingGroupName=group)
    return {instance["InstanceId"]: instance["LifecycleState"] for instance in answer["Instances"]}


def _described(aws: LocalAws, group: str) -> dict[str, Any]:
    answer = aws.client("autoscaling").describe_auto_scaling_groups(AutoScalingGroupNames=[group])
    described: dict[str, Any] = answer["AutoScalingGroups"][0]
    return described


def _members(aws: LocalAws, group: str) -> dict[str, str]:
    """Return the lifecycle state of each instance in the group."""
    return {each["InstanceId"]: each["LifecycleState"] for each in _described(aws, group)["Instances"]}


def _states(aws: LocalAws, group: str) -> Counter[str]:
    """Count EC2's states of all instances that were ever launched for the group."""
    tagged = [{"Name": "tag:aws:autoscaling:groupName", "Values": [group]}]
    reservations = aws.client("ec2").describe_instances(Filters=tagged)["Reservations"]
    return Counter(i["State"]["Name"] for r in reservations for i in r["Instances"])


def _scale(aws: LocalAws, group: str, size: int) -> None:
    aws.client("autoscaling").set_desired_capacity(AutoScalingGroupName=group, DesiredCapacity=size)


def test_a_warm_pool_is_launched_at_once_and_stopped(aws: LocalAws, group: str) -> None:
    assert sorted(_pool(aws, group).values()) == ["Warmed:Stopped"] * 2
    assert _states(aws, group) == {"stopped": 2}
    described = _described(aws, group)
    assert (described["DesiredCapacity"], described["Instances"], described["WarmPoolSize"]) == (0, [], 2)
    assert described["WarmPoolConfiguration"] == {
        "MaxGroupPreparedCapacity": 2,
        "MinSize": 0,
        "PoolState": "Stopped",
        "InstanceReusePolicy": {"ReuseOnScaleIn": True},
    }
    shown = aws.client("autoscaling").describe_auto_scaling_instances(InstanceIds=list(_pool(aws, group)))
    assert {instance["LifecycleState"] for instance in shown["AutoScalingInstances"]} == {"Warmed:Stopped"}


def test_growing_takes_warm_nodes_first_and_launches_the_rest(aws: LocalAws, group: str) -> None:
    warm = set(_pool(aws, group))
    _scale(aws, group, 3)
    members = _members(aws, group)
    assert warm < set(members)
    assert set(members.values()) == {"InService"}
    assert _pool(aws, group) == {}
    assert _states(aws, group) == {"running": 3}


def test_shrinking_returns_nodes_up_to_the_pools_size_and_terminates_the_rest(aws: LocalAws, group: str) -> None:
    _scale(aws, group, 4)
    members = set(_members(aws, group))
    _scale(aws, group, 0)
    assert _members(aws, group) == {}
    assert set(_pool(aws, group).values()) == {"Warmed:Stopped"}
    assert set(_pool(aws, group)) < members
    assert _states(aws, group) == {"stopped": 2, "terminated": 2}


def test_without_reuse_shrinking_terminates_and_the_pool_is_filled_anew(
    aws: LocalAws, stacks: Stacks, stack: str, group: str
) -> None:
    template = warm_nodes()
    del warm_pool(template)["InstanceReusePolicy"]
    stacks.update(stack, template)
    assert stacks.reasons(stack) == {}
    _scale(aws, group, 2)
    members = set(_members(aws, group))
    _scale(aws, group, 0)
    assert not set(_pool(aws, group)) & members
    assert _states(aws, group) == {"stopped": 2, "terminated": 2}


SIZES = [
    ("what is prepared at most, less what is desired", {"MaxGroupPreparedCapacity": 3}, 1, 2),
    ("nothing when as many are desired", {"MaxGroupPreparedCapacity": 2}, 2, 0),
    ("at least the minimum", {"MaxGroupPreparedCapacity": 2, "MinSize": 1}, 2, 1),
    ("the largest group without a limit", {"MaxGroupPreparedCapacity": -1}, 1, 3),
]


@pytest.mark.parametrize(("change", "desired", "size"), [row[1:] for row in SIZES], ids=[row[0] for row in SIZES])
def test_a_pools_size(aws: LocalAws, stacks: Stacks, change: dict[str, int], desired: int, size: int) -> None:
    template = warm_nodes()
    warm_pool(template).update(change)
    group = stacks.physical_ids(stacks.create(template))["Nodes"]
    _scale(aws, group, desired)
    assert len(_pool(aws, group)) == size
    assert len(_members(aws, group)) == desired


def test_a_smaller_pool_gives_nodes_up_and_a_deleted_one_all(
    aws: LocalAws, stacks: Stacks, stack: str, group: str
) -> None:
    stacks.update(stack, warm_nodes(size=1))
    assert _states(aws, group) == {"stopped": 1, "terminated": 1}
    scaling = aws.client("autoscaling")
    with pytest.raises(ClientError, match=r"\(ResourceInUse\)"):
        scaling.delete_warm_pool(AutoScalingGroupName=group)
    template = warm_nodes()
    del template["Resources"]["Warm"]
    stacks.update(stack, template)
    assert stacks.reasons(stack) == {}
    assert _states(aws, group) == {"terminated": 2}
    assert "WarmPoolConfiguration" not in _described(aws, group)


def test_a_deleted_stack_leaves_no_node_behind(aws: LocalAws, stacks: Stacks, stack: str, group: str) -> None:
    _scale(aws, group, 1)
    with pytest.raises(ClientError, match=r"\(ResourceInUse\)"):
        aws.client("autoscaling").delete_auto_scaling_group(AutoScalingGroupName=group)
    stacks.api.delete_stack(StackName=stack)
    assert _states(aws, group) == {"terminated": 2}


def test_a_stopped_node_needs_capacity_to_start_again(aws: LocalAws, group: str) -> None:
    aws.set_capacity(TYPE, ZONE, available=1)
    _scale(aws, group, 2)
    assert len(_members(aws, group)) == 1
    assert list(_pool(aws, group).values()) == ["Warmed:Stopped"]
    activities = aws.client("autoscaling").describe_scaling_activities(AutoScalingGroupName=group)["Activities"]
    failed = [activity["StatusMessage"] for activity in activities if activity["StatusCode"] == "Failed"]
    assert any(message.startswith("InsufficientInstanceCapacity - ") for message in failed)
    aws.set_capacity(TYPE, ZONE, available=None)
    assert len(_members(aws, group)) == 2
    assert _states(aws, group) == {"running": 2}


# Lifecycle hooks


@pytest.mark.parametrize("timeout", [29, 7201])
def test_a_timeout_out_of_range_is_refused(aws: LocalAws, group: str, timeout: int) -> None:
    with pytest.raises(ClientError, match="HeartbeatTimeout must be from 30 to 7200 seconds"):
        aws.client("autoscaling").put_lifecycle_hook(
            AutoScalingGroupName=group, LifecycleHookName="ready", HeartbeatTimeout=timeout
        )
