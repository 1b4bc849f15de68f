"""Processes that do not run: what their groups leave undone, who suspended them, and what resuming them does."""

from typing import Any

import pytest
from botocore.exceptions import ClientError

from local_aws import LocalAws
from local_aws_scene import Stacks
from warm_scene import warm_nodes


@pytest.fixture
def group(stacks: Stacks) -> str:
    """The name of an empty group that may have four nodes, with a warm pool for two."""
    return stacks.physical_ids(stacks.create(warm_nodes()))["Nodes"]


def _described(aws: LocalAws, group: str) -> dict[str, Any]:
    answer = aws.client("autoscaling").describe_auto_scaling_groups(AutoScalingGroupNames=[group])
    described: dict[str, Any] = answer["AutoScalingGroups"][0]
    return described


def test_a_group_gets_no_node_while_launch_is_suspended_and_all_when_it_is_resumed(aws: LocalAws, group: str) -> None:
    scaling = aws.client("autoscaling")
    aws.suspend_launching(group)
    scaling.set_desired_capacity(AutoScalingGroupName=group, DesiredCapacity=3)
    (suspended,) = _described(aws, group)["SuspendedProcesses"]
    assert suspended["ProcessName"] == "Launch"
    assert not suspended["SuspensionReason"].startswith("User suspended at")
    assert _described(aws, group)["Instances"] == []
    scaling.resume_processes(AutoScalingGroupName=group, ScalingProcesses=["Launch"])
    assert len(_described(aws, group)["Instances"]) == 3
    assert _described(aws, group)["SuspendedProcesses"] == []


def test_what_a_user_suspends_says_so_and_a_group_loses_no_node_while_terminate_is(aws: LocalAws, group: str) -> None:
    scaling = aws.client("autoscaling")
    scaling.set_desired_capacity(AutoScalingGroupName=group, DesiredCapacity=1)
    scaling.suspend_processes(AutoScalingGroupName=group, ScalingProcesses=["Terminate"])
    scaling.set_desired_capacity(AutoScalingGroupName=group, DesiredCapacity=0)
    described = _described(aws, group)
    assert len(described["Instances"]) == 1
    assert described["SuspendedProcesses"][0]["SuspensionReason"].startswith("User suspended at 20")
    with pytest.raises(ClientError, match="Invalid process type"):
        scaling.suspend_processes(AutoScalingGroupName=group, ScalingProcesses=["launch"])


def test_the_newest_node_goes_first_where_the_group_says_so(aws: LocalAws, group: str) -> None:
    scaling = aws.client("autoscaling")
    scaling.update_auto_scaling_group(AutoScalingGroupName=group, TerminationPolicies=["NewestInstance"])
    scaling.set_desired_capacity(AutoScalingGroupName=group, DesiredCapacity=3)
    oldest = _described(aws, group)["Instances"][0]["InstanceId"]
    scaling.set_desired_capacity(AutoScalingGroupName=group, DesiredCapacity=1)
    assert [one["InstanceId"] for one in _described(aws, group)["Instances"]] == [oldest]


def test_a_warm_node_goes_by_ec2_alone_and_another_of_the_new_version_takes_its_place(
    aws: LocalAws, stacks: Stacks
) -> None:
    template = warm_nodes(size=1)
    name = stacks.create(template)
    group, scaling = stacks.physical_ids(name)["Nodes"], aws.client("autoscaling")
    data = template["Resources"]["Launch"]["Properties"]["LaunchTemplateData"]
    data["UserData"] = {"Fn::Base64": "#!/bin/sh"}
    stacks.update(name, template)

    def pool() -> list[tuple[str, str]]:
        instances = scaling.describe_warm_pool(AutoScalingGroupName=group)["Instances"]
        return [(one["InstanceId"], one["LaunchTemplate"]["Version"]) for one in instances]

    ((warm, version),) = pool()
    assert version == "1"
    with pytest.raises(ClientError, match="Instance Id not found"):
        scaling.terminate_instance_in_auto_scaling_group(InstanceId=warm, ShouldDecrementDesiredCapacity=True)
    aws.client("ec2").terminate_instances(InstanceIds=[warm])
    scaling.set_desired_capacity(AutoScalingGroupName=group, DesiredCapacity=1)
    (joined,) = _described(aws, group)["Instances"]
    assert (joined["InstanceId"] == warm, joined["LaunchTemplate"]["Version"]) == (False, "2")
