"""Delete for good what stacks have kept: file systems and the network they live in."""

import time
from collections.abc import Callable, Iterable
from typing import Any

from rehearsal.readback import Client

_SECONDS_BETWEEN_LOOKS = 15
_MAX_MINUTES = 30


def delete_file_systems(client: Client, ids: Iterable[str], *, sleep: Callable[[float], None] = time.sleep) -> None:
    """Delete file systems with all that is in them, and wait until they are gone.

    https://docs.aws.amazon.com/fsx/latest/APIReference/API_DeleteFileSystem.html

    Args:
        client: Makes clients.
        ids: The file systems.
        sleep: Waits between two looks.

    Raises:
        TimeoutError: One is still there after half an hour.
    """
    fsx, left = client("fsx"), list(ids)
    for one in left:
        fsx.delete_file_system(FileSystemId=one)
    for _ in range(_MAX_MINUTES * 60 // _SECONDS_BETWEEN_LOOKS):
        found = fsx.get_paginator("describe_file_systems").paginate().search("FileSystems[].FileSystemId")
        left = sorted(set(left) & set(found))
        if not left:
            return
        sleep(_SECONDS_BETWEEN_LOOKS)
    raise TimeoutError(f"{', '.join(left)} is still there after {_MAX_MINUTES} minutes")


def delete_security_groups(client: Client, ids: Iterable[str]) -> None:
    """Delete security groups; first the rules between them and any other of their VPC's, which would hold them.

    https://docs.aws.amazon.com/vpc/latest/userguide/deleting-security-groups.html

    Args:
        client: Makes clients.
        ids: The groups.
    """
    ec2, doomed = client("ec2"), set(ids)
    rules = ec2.get_paginator("describe_security_group_rules").paginate().search("SecurityGroupRules[]")
    for rule in list(rules):
        if rule.get("ReferencedGroupInfo", {}).get("GroupId") in doomed:
            revoke = ec2.revoke_security_group_egress if rule["IsEgress"] else ec2.revoke_security_group_ingress
            revoke(GroupId=rule["GroupId"], SecurityGroupRuleIds=[rule["SecurityGroupRuleId"]])
    for one in sorted(doomed):
        ec2.delete_security_group(GroupId=one)


def delete_network(client: Client, vpc_id: str) -> None:
    """Delete a VPC with what is free of charge in it: endpoints, routes, subnets, gateway and security groups.

    https://docs.aws.amazon.com/vpc/latest/userguide/delete-vpc.html

    Args:
        client: Makes clients.
        vpc_id: The VPC.
    """
    ec2 = client("ec2")
    in_vpc = [{"Name": "vpc-id", "Values": [vpc_id]}]

    def found(operation: str, query: str, name: str = "vpc-id") -> list[Any]:
        filters = [{"Name": name, "Values": [vpc_id]}]
        return list(ec2.get_paginator(operation).paginate(Filters=filters).search(query))

    endpoints = found("describe_vpc_endpoints", "VpcEndpoints[?State!='deleted'].VpcEndpointId")
    if endpoints:
        ec2.delete_vpc_endpoints(VpcEndpointIds=endpoints)
    groups = ec2.describe_security_groups(Filters=in_vpc)["SecurityGroups"]
    delete_security_groups(client, [group["GroupId"] for group in groups if group["GroupName"] != "default"])
    for table in found("describe_route_tables", "RouteTables[]"):
        for association in table["Associations"]:
            if not association.get("Main"):
                ec2.disassociate_route_table(AssociationId=association["RouteTableAssociationId"])
        if not any(association.get("Main") for association in table["Associations"]):
            ec2.delete_route_table(RouteTableId=table["RouteTableId"])
    for subnet in found("describe_subnets", "Subnets[].SubnetId"):
        ec2.delete_subnet(SubnetId=subnet)
    for gateway in found("describe_internet_gateways", "InternetGateways[].InternetGatewayId", "attachment.vpc-id"):
        ec2.detach_internet_gateway(InternetGatewayId=gateway, VpcId=vpc_id)
        ec2.delete_internet_gateway(InternetGatewayId=gateway)
    ec2.delete_vpc(VpcId=vpc_id)
