"""The network of a training cluster: one Availability Zone, because EFA does not leave it."""

import ipaddress
import re
from collections.abc import Iterator
from typing import Annotated, Self, TypeAlias

import jsii
from aws_cdk import CfnResource, RemovalPolicy, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_kms as kms
from aws_cdk import aws_logs as logs
from constructs import Construct, IDependable

from cdk_training_cluster.core.acknowledgements import acknowledge, default_child, ignore_lint, warn
from cdk_training_cluster.core.conditions import HERE
from cdk_training_cluster.core.encryption import KeyUser, allow
from cdk_training_cluster.core.retention import keep, keep_unless_replaced
from cdk_training_cluster.network.security_group import EfaSecurityGroup
from cdk_training_cluster.validation.checks import is_unknown, shown
from cdk_training_cluster.validation.kinds import checked

# A zone's name is its region's name and a letter; a Local Zone's has a place and a number before the letter.
# https://docs.aws.amazon.com/global-infrastructure/latest/regions/aws-availability-zones.html
_ZONE_NAME = re.compile(r"[a-z]{2,}(-[a-z]+)+-\d+(-[a-z]+-\d+)?[a-z]")
# us-east-1-dfw-2a is a zone of the group us-east-1-dfw-2.
_LOCAL_ZONE_NAME = re.compile(r"([a-z]{2,}(?:-[a-z]+)+-\d+-[a-z]+-\d+)[a-z]")

_SMALLEST_PREFIX, _LARGEST_PREFIX = 16, 24


def _ip_range(setting: str, value: object) -> Iterator[str]:
    # EC2 refuses more than a /16: https://docs.aws.amazon.com/vpc/latest/userguide/vpc-cidr-blocks.html
    try:
        given = ipaddress.IPv4Interface(str(value))
    except ValueError:
        given = ipaddress.IPv4Interface("0.0.0.0/0")
    network = given.network
    if not _SMALLEST_PREFIX <= network.prefixlen <= _LARGEST_PREFIX:
        sizes = f"/{_SMALLEST_PREFIX} to /{_LARGEST_PREFIX}"
        yield f"{setting} must be an IPv4 range from {sizes}, such as '10.0.0.0/16', got {shown(value)}"
    elif given.ip != network.network_address:
        yield f"{setting} must start with the first address of its range, got {shown(value)}: write {network}"


IpRange: TypeAlias = Annotated[str, _ip_range]
"""The IPv4 range of a VPC that holds a cluster."""

DEFAULT_CIDR = "10.0.0.0/16"
"""The IPv4 range of a VPC that is made, where the user gives none."""


def node_range_of(cidr: str) -> str:
    """Return the IPv4 range of the nodes' subnet: the upper half of its VPC.

    Args:
        cidr: The VPC's IPv4 range.
    """
    _, upper = ipaddress.IPv4Network(cidr).subnets(prefixlen_diff=1)
    return str(upper)


_ONE_ZONE = (
    "A training cluster lives in the one zone that its user names: EFA traffic and a file system's clients do "
    "not leave it, and reserved accelerators are in one zone."
)


@jsii.implements(ec2.IConnectable)
class ClusterNetwork(Construct):
    """Make the network of a training cluster in one Availability Zone.

    A VPC with a public subnet that holds the NAT gateway and a private one for the nodes, an S3 gateway endpoint
    (so that data sets and scripts do not pay NAT prices), flow logs to CloudWatch Logs, and the nodes' EFA
    security group. `ClusterNetwork.from_subnet` uses an existing VPC and subnet instead.

    Resources: `AWS::EC2::VPC`, `InternetGateway`, two `Subnet`s with their route tables, `NatGateway`, `EIP`,
    `VPCEndpoint`, `FlowLog`, `AWS::Logs::LogGroup`, `AWS::IAM::Role`, and what `EfaSecurityGroup` makes.

    Attributes:
        spare_range: An IPv4 range of the VPC in which there is no subnet, for what needs a second zone. None: the VPC
            was there before.
        node_range: The IPv4 range of the nodes' subnet. None: the subnet was there before.

    Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa.html (EFA traffic stays in one zone and VPC)
    """

    vpc: ec2.IVpc
    node_subnet: ec2.ISubnet
    availability_zone: str
    security_group: EfaSecurityGroup

    @checked
    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        availability_zone: str | None = None,
        cidr: IpRange = DEFAULT_CIDR,
        vpc: ec2.IVpc | None = None,
        subnet: ec2.ISubnet | None = None,
        encryption_key: kms.IKey | None = None,
    ) -> None:
        """Make the network, or take an existing one (see `from_subnet`).

        Args:
            scope: The parent construct.
            id: The construct's id.
            availability_zone: The zone's name, such as `us-east-1b`. It is written once, here: everything else
                takes it from the subnet. Required unless `subnet` is given.
            cidr: The VPC's IPv4 range, a /16 to a /24. Half of it is for the nodes. Default: - `10.0.0.0/16`.
            vpc: An existing VPC; give `subnet` too. Default: - a VPC is made.
            subnet: An existing subnet of that VPC, with a way out to the AWS APIs. Default: - subnets are made.
            encryption_key: The KMS key that encrypts the flow log. Default: - a key that AWS owns.

        Raises:
            ValueError: There is no zone, it is not a zone's name, the subnet lies in another zone, or the range
                is not one that a VPC can have.
        """
        super().__init__(scope, id)
        self._kept: list[CfnResource] = []
        self._kept_unless_replaced: list[CfnResource] = []
        self._way_out: list[IDependable] = []
        self.spare_range: str | None = None
        self.node_range: str | None = None
        if subnet is not None and vpc is not None:
            self.availability_zone = _zone_of(subnet, availability_zone)
            self.vpc, self.node_subnet = vpc, subnet
        elif subnet is not None or vpc is not None:
            raise ValueError("vpc and subnet go together: give both to use an existing network, or neither")
        else:
            self.availability_zone = _checked_zone(availability_zone, Stack.of(self).region)
            self._build(ipaddress.IPv4Network(cidr), encryption_key)
        self.security_group = EfaSecurityGroup(self, "SecurityGroup", vpc=self.vpc)
        group, *rules = self.security_group.resources
        self._kept.append(group)
        self._kept_unless_replaced += rules
        self._way_out += rules
        self._connections = self.security_group.connections

    @classmethod
    @checked
    def from_subnet(
        cls,
        scope: Construct,
        id: str,
        *,
        vpc: ec2.IVpc,
        subnet: ec2.ISubnet,
        availability_zone: str | None = None,
    ) -> Self:
        """Use an existing VPC and subnet; only the EFA security group is made.

        The subnet needs a way out to the AWS APIs (a NAT gateway or VPC endpoints). Nodes with more than one
        interface get no public address, even where the subnet maps one on launch.

        Args:
            scope: The parent construct.
            id: The construct's id.
            vpc: The VPC.
            subnet: The subnet the nodes and the file system go to.
            availability_zone: The zone the subnet is expected in. Default: - the subnet's own.

        Raises:
            ValueError: The subnet lies in another zone than `availability_zone`, or an id stands for a VPC or subnet.

        Source: https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/using-instance-addressing.html
        """
        return cls(scope, id, vpc=vpc, subnet=subnet, availability_zone=availability_zone)

    @property
    def connections(self) -> ec2.Connections:
        """What the nodes let in and out: the security group's."""
        return self._connections

    @property
    def is_public(self) -> bool:
        """Whether the nodes' subnet is known to be public: one of the public subnets of a VPC that the app makes."""
        vpc, path = self.vpc, self.node_subnet.node.path
        return isinstance(vpc, ec2.Vpc) and any(public.node.path == path for public in vpc.public_subnets)

    @property
    def way_out(self) -> tuple[IDependable, ...]:
        """What must be there before a node can talk to its peers and to AWS: nodes that start depend on it."""
        return tuple(self._way_out)

    def retain(self) -> None:
        """Keep the network when its stack is deleted, because something that keeps data lives in it.

        All that is free of charge stays whole (VPC, subnets, routes, endpoint, security groups and their rules);
        what bills by the hour goes: the NAT gateway with its address and route, and the flow log.
        """
        for resource in self._kept:
            keep(resource)
        for resource in self._kept_unless_replaced:
            keep_unless_replaced(resource)

    def _build(self, network: ipaddress.IPv4Network, encryption_key: kms.IKey | None) -> None:
        # Of L2 subnets: `ec2.Vpc` would ask AWS for the account's zones where the stack names its region.
        lower, _ = network.subnets(prefixlen_diff=1)
        self.node_range = node_range_of(str(network))
        public_range, spare_range, *_ = lower.subnets(new_prefix=max(24, network.prefixlen + 3))
        self.spare_range = str(spare_range)
        vpc = ec2.CfnVPC(self, "Vpc", cidr_block=str(network), enable_dns_hostnames=True, enable_dns_support=True)
        vpc_id = vpc.ref
        gateway = ec2.CfnInternetGateway(self, "InternetGateway")
        gateway_id = gateway.ref
        attachment = ec2.CfnVPCGatewayAttachment(
            self, "InternetGatewayAttachment", vpc_id=vpc_id, internet_gateway_id=gateway_id
        )
        public = ec2.PublicSubnet(
            self,
            "PublicSubnet",
            availability_zone=self.availability_zone,
            cidr_block=str(public_range),
            map_public_ip_on_launch=False,
            vpc_id=vpc_id,
        )
        public.add_default_internet_route(gateway_id, attachment)
        nodes = ec2.PrivateSubnet(
            self,
            "NodeSubnet",
            availability_zone=self.availability_zone,
            cidr_block=self.node_range,
            vpc_id=vpc_id,
        )
        nat_gateway = public.add_nat_gateway()
        self._fit_address_to_the_zone(public)
        nodes.add_default_nat_route(nat_gateway.ref)
        # The route to the internet must be there before the NAT gateway is, and must outlive it.
        nat_gateway.node.add_dependency(public.internet_connectivity_established)
        public_table, nodes_table = (subnet.route_table.route_table_id for subnet in (public, nodes))
        self.vpc = ec2.Vpc.from_vpc_attributes(
            self,
            "Network",
            vpc_id=vpc_id,
            vpc_cidr_block=str(network),
            availability_zones=[self.availability_zone],
            public_subnet_ids=[public.subnet_id],
            public_subnet_route_table_ids=[public_table],
            private_subnet_ids=[nodes.subnet_id],
            private_subnet_route_table_ids=[nodes_table],
        )
        self.node_subnet = nodes
        self._way_out.append(nodes.internet_connectivity_established)
        endpoint = ec2.CfnVPCEndpoint(
            Construct(self, "S3Endpoint"),
            "Resource",
            vpc_id=vpc_id,
            service_name=f"com.amazonaws.{HERE.region}.s3",
            vpc_endpoint_type="Gateway",
            route_table_ids=[nodes_table, public_table],
        )
        self._way_out.append(endpoint)
        self._log_flows(encryption_key)
        for subnet in (public, nodes):
            resource = default_child(subnet)
            ignore_lint(resource, "W3010")  # see _ONE_ZONE
            acknowledge(resource, "CloudFormation-Validate::W3010", _ONE_ZONE)
            self._kept.append(resource)
        self._kept += [vpc, gateway, endpoint]
        self._kept_unless_replaced.append(attachment)
        tables = (ec2.CfnRouteTable, ec2.CfnSubnetRouteTableAssociation)
        # The nodes' own route leads to the NAT gateway, and goes with it.
        self._kept_unless_replaced += [
            child
            for subnet, kinds in ((public, (*tables, ec2.CfnRoute)), (nodes, tables))
            for child in subnet.node.find_all()
            if isinstance(child, kinds)
        ]

    def _fit_address_to_the_zone(self, public: ec2.PublicSubnet) -> None:
        """Take the NAT gateway's address from the Local Zone's own, without which it cannot be associated.

        https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_AssociateNatGatewayAddress.html
        """
        local = _LOCAL_ZONE_NAME.fullmatch(self.availability_zone)
        if local is None:
            return
        address = public.node.find_child("EIP")
        if isinstance(address, ec2.CfnEIP):
            address.network_border_group = local[1]
        warn(
            self,
            "localZone",
            f"{self.availability_zone} is a Local Zone, which the account has to opt in to and which has a part of "
            "AWS's services only: see https://aws.amazon.com/about-aws/global-infrastructure/localzones/features/ "
            "for whether NAT gateways and FSx for Lustre are among them, or bring a network of your own.",
        )

    def _log_flows(self, encryption_key: kms.IKey | None) -> None:
        allow(self, encryption_key, KeyUser.LOGS)
        group = logs.LogGroup(
            self,
            "FlowLogs",
            retention=logs.RetentionDays.THREE_MONTHS,
            removal_policy=RemovalPolicy.DESTROY,
            encryption_key=encryption_key,
        )
        self._kept.append(default_child(group))
        ec2.FlowLog(
            self,
            "FlowLog",
            resource_type=ec2.FlowLogResourceType.from_vpc(self.vpc),
            destination=ec2.FlowLogDestination.to_cloud_watch_logs(group),
        )


def _checked_zone(zone: str | None, region: str) -> str:
    if zone is None:
        raise ValueError(
            "availability_zone is required: name the zone that the nodes and the file system live in, such as "
            "availability_zone='us-east-1b'"
        )
    if not _ZONE_NAME.fullmatch(zone) and not is_unknown(zone):
        raise ValueError(f"availability_zone must be the name of a zone, such as 'us-east-1b', got {shown(zone)}")
    if not zone.startswith(region) and not is_unknown(zone) and not is_unknown(region):
        raise ValueError(
            f"availability_zone must be a zone of {region}, the stack's region, got {zone!r}: name one of its zones, "
            "or give the stack the zone's region"
        )
    return zone


def _zone_of(subnet: ec2.ISubnet, expected: str | None) -> str:
    try:
        actual = subnet.availability_zone
    except RuntimeError as error:  # CDK's way of saying that the import did not give the zone
        if expected is None:
            raise ValueError(
                "availability_zone is required for a subnet that was imported without its zone: give it here or "
                "to ec2.Subnet.from_subnet_attributes"
            ) from error
        return _checked_zone(expected, Stack.of(subnet).region)
    if expected is None or is_unknown(expected) or is_unknown(actual):
        return actual if expected is None else expected
    if actual != expected:
        raise ValueError(
            f"the subnet must lie in availability_zone {shown(expected)}, got one in {actual!r}: EFA traffic and the "
            "file system's clients do not leave a zone; name the subnet's zone or another subnet"
        )
    return actual
