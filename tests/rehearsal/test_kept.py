"""What stacks have kept is deleted for good, whatever holds on to whatever."""

from typing import Any

import pytest

from local_aws import LocalAws
from rehearsal.kept import delete_file_systems, delete_network


def test_a_network_goes_with_all_that_is_in_it(aws: LocalAws) -> None:
    ec2 = aws.client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/24")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.0.0.0/25")["Subnet"]["SubnetId"]
    gateway = ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    ec2.attach_internet_gateway(InternetGatewayId=gateway, VpcId=vpc)
    table = ec2.create_route_table(VpcId=vpc)["RouteTable"]["RouteTableId"]
    ec2.create_route(RouteTableId=table, DestinationCidrBlock="0.0.0.0/0", GatewayId=gateway)
    ec2.associate_route_table(RouteTableId=table, SubnetId=subnet)
    ec2.create_vpc_endpoint(
        VpcId=vpc, ServiceName="com.amazonaws.us-east-1.s3", VpcEndpointType="Gateway", RouteTableIds=[table]
    )
    one, other = (
        ec2.create_security_group(GroupName=name, Description=name, VpcId=vpc)["GroupId"] for name in ("one", "other")
    )
    for group, peer in ((one, one), (one, other), (other, one)):
        rule: Any = {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": peer, "Description": "both ways"}]}
        ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=[rule])
        ec2.authorize_security_group_egress(GroupId=group, IpPermissions=[rule])
    delete_network(aws.client, vpc)
    assert vpc not in [each["VpcId"] for each in ec2.describe_vpcs()["Vpcs"]]


class _EndlessDeletion:
    """FSx, whose file system stays in its list."""

    def __call__(self, *_: str, **__: str) -> "_EndlessDeletion":
        return self

    delete_file_system = get_paginator = paginate = __call__

    def search(self, _: str) -> list[str]:
        return ["fs-0"]


def test_a_file_system_that_does_not_go_is_waited_for_for_half_an_hour() -> None:
    waited: list[float] = []
    with pytest.raises(TimeoutError, match="fs-0 is still there after 30 minutes"):
        delete_file_systems(_EndlessDeletion(), ["fs-0"], sleep=waited.append)
    assert sum(waited) == 30 * 60
