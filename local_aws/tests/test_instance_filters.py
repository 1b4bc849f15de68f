"""DescribeInstances by security group, as in EC2: the groups of the primary interface are those of the instance.

https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeInstances.html
"""

from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from local_aws import LocalAws
from local_aws_scene import X86_IMAGE


@pytest.fixture(scope="module")
def exports(aws: LocalAws) -> dict[str, str]:
    """Return the ids of the network that every test has."""
    found = aws.client("cloudformation").list_exports()["Exports"]
    return {each["Name"].removeprefix("test-"): each["Value"] for each in found}


@pytest.fixture(scope="module")
def instance(aws: LocalAws, exports: dict[str, str]) -> Iterator[str]:
    """Launch an instance with one group on each of two interfaces."""
    ec2 = aws.client("ec2")
    interfaces: Any = [
        {"DeviceIndex": index, "SubnetId": exports["Subnet"], "Groups": [exports[name]]}
        for index, name in enumerate(("Group", "Closed"))
    ]
    image = aws.client("ssm").get_parameter(Name=X86_IMAGE)["Parameter"]["Value"]
    (launched,) = ec2.run_instances(
        ImageId=image, InstanceType="g5.xlarge", NetworkInterfaces=interfaces, MinCount=1, MaxCount=1
    )["Instances"]
    yield launched["InstanceId"]
    ec2.terminate_instances(InstanceIds=[launched["InstanceId"]])


def _found(aws: LocalAws, instance: str, name: str, *values: str) -> bool:
    filters: Any = [{"Name": "instance-id", "Values": [instance]}, {"Name": name, "Values": list(values)}]
    return bool(aws.client("ec2").describe_instances(Filters=filters)["Reservations"])


def test_an_instance_has_the_groups_of_its_primary_interface(
    aws: LocalAws, exports: dict[str, str], instance: str
) -> None:
    own, other = exports["Group"], exports["Closed"]
    assert _found(aws, instance, "instance.group-id", own)
    assert _found(aws, instance, "instance.group-id", "sg-0123456789abcdef0", own)
    assert _found(aws, instance, "instance.group-id", f"{own[:-1]}?")
    assert not _found(aws, instance, "instance.group-id", other)
    assert not _found(aws, instance, "instance.group-id", own.removeprefix("sg-"))
    assert not _found(aws, instance, "tag:cdk-training-cluster:cluster", "pod")


def test_a_filter_that_ec2_does_not_know_is_refused(aws: LocalAws, exports: dict[str, str], instance: str) -> None:
    with pytest.raises(ClientError, match="The filter 'group-id' is invalid"):
        _found(aws, instance, "group-id", exports["Group"])


def test_an_instance_that_changes_its_groups_is_found_by_the_new_ones(
    aws: LocalAws, exports: dict[str, str], instance: str
) -> None:
    own, other = exports["Group"], exports["Closed"]
    ec2 = aws.client("ec2")
    ec2.modify_instance_attribute(InstanceId=instance, Groups=[other])
    assert (_found(aws, instance, "instance.group-id", own), _found(aws, instance, "instance.group-id", other)) == (
        False,
        True,
    )
    ec2.modify_instance_attribute(InstanceId=instance, Groups=[own])
