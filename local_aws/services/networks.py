"""What EC2 refuses where one thing depends on another; moto makes and deletes most of it all the same.

Each guard takes moto's EC2 backend and the arguments of the method that it stands before.
https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html (DependencyViolation)
"""

from collections.abc import Iterator
from typing import Any

from local_aws.refusal import Refusal


def _interfaces_in(ec2: Any, vpc_id: str) -> Iterator[Any]:
    return (interface for interface in ec2.enis.values() if interface.subnet.vpc_id == vpc_id)


def guard_vpc(ec2: Any, vpc_id: str) -> None:
    """Refuse to delete a VPC that still holds anything but its defaults."""
    gateways = (gateway for gateway in ec2.internet_gateways.values() if gateway.vpc)
    endpoints = (endpoint for endpoint in ec2.vpc_end_points.values() if endpoint.state != "deleted")
    groups = (group for group in ec2.groups[vpc_id].values() if group.name != "default")
    if (
        any(gateway.vpc.id == vpc_id for gateway in gateways)
        or any(endpoint.vpc_id == vpc_id for endpoint in endpoints)
        or any(groups)
        or any(_interfaces_in(ec2, vpc_id))
    ):
        raise Refusal("DependencyViolation", f"The vpc '{vpc_id}' has dependencies and cannot be deleted.")


def guard_group_creation(
    ec2: Any, name: str, description: str, vpc_id: str | None = None, *_more: Any, **_named: Any
) -> None:
    """Refuse to make a security group in a VPC that is not there."""
    del name, description
    if vpc_id is not None and vpc_id not in ec2.vpcs:
        raise Refusal("InvalidVpcID.NotFound", f"The vpc ID '{vpc_id}' does not exist")


def guard_endpoint(ec2: Any, vpc_id: str, service_name: str, *_more: Any, **_named: Any) -> None:
    """Let S3 Express have AWS's list of its prefixes, to which a gateway endpoint routes; moto has others' alone."""
    del vpc_id
    names = {each.prefix_list_name for each in ec2.managed_prefix_lists.values()}
    if service_name.endswith(".s3express") and service_name not in names:
        ec2.create_managed_prefix_list(
            address_family="IPv4",
            entry=[{"Cidr": "3.5.4.0/22", "Description": "default"}],
            prefix_list_name=service_name,
            owner_id="aws",
        )


def guard_subnet(ec2: Any, subnet_id: str) -> None:
    """Refuse to delete a subnet with network interfaces in it."""
    if any(interface.subnet.id == subnet_id for interface in ec2.enis.values()):
        raise Refusal("DependencyViolation", f"The subnet '{subnet_id}' has dependencies and cannot be deleted.")


def guard_security_group(ec2: Any, name: str | None = None, group_id: str | None = None) -> None:
    """Refuse to delete a security group that an interface uses or another group's rule names."""
    del name
    if group_id is None:
        return
    used = any(group.id == group_id for interface in ec2.enis.values() for group in interface.group_set)
    named = any(
        rule.source_group.get("GroupId") == group_id
        for groups in ec2.groups.values()
        for group in groups.values()
        if group.id != group_id
        for rule in [*group.ingress_rules, *group.egress_rules]
    )
    if used or named:
        raise Refusal("DependencyViolation", f"resource {group_id} has a dependent object")


def guard_gateway_detachment(ec2: Any, internet_gateway_id: str, vpc_id: str) -> None:
    """Refuse to detach an internet gateway while public addresses are mapped in the VPC."""
    del internet_gateway_id
    if any(interface.public_ip for interface in _interfaces_in(ec2, vpc_id)):
        raise Refusal(
            "DependencyViolation",
            f"Network {vpc_id} has some mapped public address(es). Please unmap those public address(es) before "
            "detaching the gateway.",
        )


def guard_address(ec2: Any, address: str | None = None, allocation_id: str | None = None) -> None:
    """Refuse to release an Elastic IP address that is in use."""
    for known in ec2.addresses:
        if known.eni and (known.allocation_id == allocation_id or known.public_ip == address):
            raise Refusal("InvalidIPAddress.InUse", f"Address {known.public_ip} is in use.")


def after_nat_gateway(ec2: Any, nat_gateway_id: str) -> None:
    """Give back the interface and the address of a NAT gateway that was deleted."""
    interface = ec2.nat_gateways[nat_gateway_id]._eni
    for address in ec2.addresses:
        if address.eni is interface:
            ec2.disassociate_address(address=address.public_ip)
    ec2.enis.pop(interface.id, None)
