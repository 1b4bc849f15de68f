"""StopInstances as in EC2: all or nothing, with the messages that its users quote."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from local_aws import LocalAws
from local_aws_scene import X86_IMAGE, Stacks, Template

_UNKNOWN = "i-0123456789abcdef0"
_PERSISTENT = {"MarketType": "spot", "SpotOptions": {"SpotInstanceType": "persistent"}}
_INSTANCE_STORE = "ami-0instancestore00"
_FILTERS = [{"Name": "tag:stops", "Values": ["yes"]}, {"Name": "instance-state-name", "Values": ["running"]}]

Launch = Callable[..., list[str]]


@pytest.fixture(scope="module")
def image(aws: LocalAws) -> str:
    return str(aws.client("ssm").get_parameter(Name=X86_IMAGE)["Parameter"]["Value"])


@pytest.fixture(scope="module")
def instance_store(aws: LocalAws) -> str:
    aws.add_image(
        _INSTANCE_STORE, architecture="x86_64", root_device_name="/dev/sda1", root_device_type="instance-store"
    )
    return _INSTANCE_STORE


@pytest.fixture
def launch(aws: LocalAws, image: str) -> Iterator[Launch]:
    ec2, launched = aws.client("ec2"), list[str]()
    subnet = next(
        each["Value"]
        for each in aws.client("cloudformation").list_exports()["Exports"]
        if each["Name"] == "test-Subnet"
    )

    def run(count: int = 1, **data: Any) -> list[str]:
        tags = [{"ResourceType": "instance", "Tags": [{"Key": "stops", "Value": "yes"}]}]
        answer = ec2.run_instances(
            **{
                "ImageId": image,
                "InstanceType": "g5.xlarge",
                "SubnetId": subnet,
                "TagSpecifications": tags,
                "MinCount": count,
                "MaxCount": count,
                **data,
            }
        )
        ids = [instance["InstanceId"] for instance in answer["Instances"]]
        launched.extend(ids)
        return ids

    yield run
    for instance_id in launched:
        ec2.modify_instance_attribute(InstanceId=instance_id, DisableApiStop={"Value": False})
    if launched:
        ec2.terminate_instances(InstanceIds=launched)


def _refusal(aws: LocalAws, *ids: str, **words: Any) -> tuple[str, str]:
    with pytest.raises(ClientError) as error:
        aws.client("ec2").stop_instances(InstanceIds=list(ids), **words)
    said = error.value.response["Error"]
    return said["Code"], said["Message"]


def _instance(aws: LocalAws, instance_id: str) -> dict[str, Any]:
    answer = aws.client("ec2").describe_instances(InstanceIds=[instance_id])
    instance: dict[str, Any] = answer["Reservations"][0]["Instances"][0]
    return instance


def _state(aws: LocalAws, instance_id: str) -> str:
    return str(_instance(aws, instance_id)["State"]["Name"])


def test_an_instance_stops_and_stops_again(aws: LocalAws, launch: Launch) -> None:
    (one,) = launch()
    for before, now in (("running", "stopping"), ("stopped", "stopped")):
        (change,) = aws.client("ec2").stop_instances(InstanceIds=[one])["StoppingInstances"]
        assert (change["PreviousState"]["Name"], change["CurrentState"]["Name"]) == (before, now)
    assert _state(aws, one) == "stopped"
    assert _instance(aws, one)["StateTransitionReason"].startswith("User initiated (")


def test_unknown_ids_are_named(aws: LocalAws, launch: Launch) -> None:
    (one,) = launch()
    other = f"{_UNKNOWN[:-1]}1"
    code = "InvalidInstanceID.NotFound"
    assert _refusal(aws, _UNKNOWN, one, other) == (code, f"The instance IDs '{_UNKNOWN}, {other}' do not exist")
    assert _refusal(aws, "i-nothing") == ("InvalidInstanceID.Malformed", 'Invalid id: "i-nothing"')
    assert _state(aws, one) == "running"


# What is launched, and what StopInstances answers to it.
REFUSED: dict[str, tuple[dict[str, Any], str, str]] = {
    "one-time Spot": (
        {"InstanceMarketOptions": {"MarketType": "spot"}},
        "UnsupportedOperation",
        "You can't stop the Spot Instance '{}' because it is associated with a one-time Spot Instance request. You "
        "can only stop Spot Instances associated with persistent Spot Instance requests.",
    ),
    "an instance store root": (
        {"ImageId": _INSTANCE_STORE},
        "UnsupportedOperation",
        "The instance '{}' does not have an 'ebs' root device type and cannot be stopped.",
    ),
    "stop protection": (
        {"DisableApiStop": True},
        "OperationNotPermitted",
        "The instance '{}' may not be stopped. Modify its 'disableApiStop' instance attribute and try again.",
    ),
    "no hibernation": (
        {},
        "UnsupportedHibernationConfiguration",
        "The following instance is not configured for hibernation: {}",
    ),
}


@pytest.mark.usefixtures("instance_store")
@pytest.mark.parametrize("what", REFUSED)
def test_nothing_stops_where_one_cannot_be_stopped(aws: LocalAws, launch: Launch, what: str) -> None:
    data, code, message = REFUSED[what]
    (one,), (other,) = launch(HibernationOptions={"Configured": True}), launch(**data)
    assert _refusal(aws, one, other, Hibernate=what == "no hibernation") == (code, message.format(other))
    assert _state(aws, one) == "running"


def test_a_terminated_one_cannot_be_stopped(aws: LocalAws, launch: Launch) -> None:
    (gone,) = launch()
    aws.client("ec2").terminate_instances(InstanceIds=[gone])
    assert _refusal(aws, gone) == (
        "IncorrectInstanceState",
        f"This instance '{gone}' is not in a state from which it can be stopped.",
    )


def test_persistent_spot_stops_and_its_request_is_disabled(aws: LocalAws, launch: Launch) -> None:
    ec2, (one,) = aws.client("ec2"), launch(InstanceMarketOptions=_PERSISTENT)
    shown = _instance(aws, one)
    assert shown["InstanceLifecycle"] == "spot"
    ec2.stop_instances(InstanceIds=[one])
    ids = [shown["SpotInstanceRequestId"]]
    (request,) = ec2.describe_spot_instance_requests(SpotInstanceRequestIds=ids)["SpotInstanceRequests"]
    assert (request["State"], request["Status"]["Code"]) == ("disabled", "instance-stopped-by-user")


def test_instances_come_in_pages_with_what_was_asked_for(aws: LocalAws, launch: Launch) -> None:
    launched = set(launch(7))
    aws.client("ec2").stop_instances(InstanceIds=[launched.pop()])
    aws.forget_calls()
    pages = aws.client("ec2").get_paginator("describe_instances").paginate(Filters=_FILTERS, MaxResults=5)
    found = [[i["InstanceId"] for r in page["Reservations"] for i in r["Instances"]] for page in pages]
    assert [len(page) for page in found] == [5, 1]
    assert {each for page in found for each in page} == launched
    assert len(aws.calls("DescribeInstances")) == 2
    with pytest.raises(ClientError, match="Expecting a value between 5 and 1000"):
        aws.client("ec2").describe_instances(MaxResults=4)


# Members of Auto Scaling groups


def _members(aws: LocalAws, group: str) -> list[str]:
    answer = aws.client("autoscaling").describe_auto_scaling_groups(AutoScalingGroupNames=[group])
    return [instance["InstanceId"] for instance in answer["AutoScalingGroups"][0]["Instances"]]


@pytest.fixture
def group(aws: LocalAws, stacks: Stacks, nodes: Template) -> str:
    name = stacks.physical_ids(stacks.create(nodes))["Nodes"]
    aws.client("autoscaling").set_desired_capacity(AutoScalingGroupName=name, DesiredCapacity=2)
    return name


def test_a_group_replaces_a_stopped_member(aws: LocalAws, group: str) -> None:
    first, second = _members(aws, group)
    aws.client("ec2").stop_instances(InstanceIds=[first])
    assert _state(aws, first) == "terminated"
    members = _members(aws, group)
    assert (len(members), second in members, first in members) == (2, True, False)


def test_a_group_that_may_not_leaves_a_stopped_member_alone(aws: LocalAws, group: str) -> None:
    first, _ = _members(aws, group)
    aws.client("autoscaling").suspend_processes(AutoScalingGroupName=group, ScalingProcesses=["ReplaceUnhealthy"])
    aws.client("ec2").stop_instances(InstanceIds=[first])
    assert _state(aws, first) == "stopped"


def test_members_go_one_by_one_or_together(aws: LocalAws, group: str) -> None:
    scaling = aws.client("autoscaling")
    scaling.set_desired_capacity(AutoScalingGroupName=group, DesiredCapacity=4)
    first, second, third, fourth = _members(aws, group)
    scaling.terminate_instance_in_auto_scaling_group(InstanceId=first, ShouldDecrementDesiredCapacity=True)
    assert _members(aws, group) == [second, third, fourth]
    done = scaling.terminate_instance_in_auto_scaling_group(
        InstanceIds=[second, third], AutoScalingGroupName=group, ShouldDecrementDesiredCapacity=True
    )
    assert len(done["Activities"]) == 2
    assert _members(aws, group) == [fourth]
    assert {_state(aws, each) for each in (first, second, third)} == {"terminated"}
    with pytest.raises(ClientError, match="No managed instance found for instance ID"):
        scaling.terminate_instance_in_auto_scaling_group(InstanceId=first, ShouldDecrementDesiredCapacity=True)
    scaling.update_auto_scaling_group(AutoScalingGroupName=group, MinSize=1)
    with pytest.raises(ClientError, match=r"Currently, desiredSize equals minSize \(1\)"):
        scaling.terminate_instance_in_auto_scaling_group(InstanceId=fourth, ShouldDecrementDesiredCapacity=True)
    assert _members(aws, group) == [fourth]
