"""The cluster's network: one zone, written once, and what stays of it when data lives in it."""

import json
from pathlib import Path
from typing import Any

import pytest
from aws_cdk import App, CfnParameter, Environment, Stack
from aws_cdk import aws_ec2 as ec2
from aws_cdk.assertions import Match, Template

from cdk_training_cluster import ClusterNetwork, NodeGroup, TrainingCluster
from synthesis import ZONE, new_stack, only, resources, warnings


def _imported(stack: Stack, zone: str | None = ZONE) -> tuple[ec2.IVpc, ec2.ISubnet]:
    vpc = ec2.Vpc.from_vpc_attributes(stack, "Vpc", vpc_id="vpc-0a1b2c3d4e5f67890", availability_zones=[zone or ZONE])
    subnet = ec2.Subnet.from_subnet_attributes(
        stack, "Subnet", subnet_id="subnet-0a1b2c3d4e5f67890", availability_zone=zone
    )
    return vpc, subnet


def test_nodes_live_in_a_private_subnet_of_the_one_zone() -> None:
    stack = new_stack()
    network = ClusterNetwork(stack, "Network", availability_zone=ZONE)
    subnets = resources(stack, "AWS::EC2::Subnet")
    assert {subnet["Properties"]["AvailabilityZone"] for subnet in subnets.values()} == {ZONE}
    assert {subnet["Properties"]["CidrBlock"] for subnet in subnets.values()} == {
        "10.0.0.0/24",
        "10.0.128.0/17",
    }
    node_subnet = stack.resolve(network.node_subnet.subnet_id)["Ref"]
    assert subnets[node_subnet]["Properties"]["CidrBlock"] == "10.0.128.0/17"
    assert not any(subnet["Properties"].get("MapPublicIpOnLaunch") for subnet in subnets.values())


def test_nodes_reach_the_internet_through_the_nat_gateway_and_s3_through_its_endpoint() -> None:
    stack = new_stack()
    network = ClusterNetwork(stack, "Network", availability_zone=ZONE)
    table = stack.resolve(network.node_subnet.route_table.route_table_id)
    route = only(stack, "AWS::EC2::Route", {"RouteTableId": table})["Properties"]
    assert set(route["NatGatewayId"]) == {"Ref"}
    assert route["DestinationCidrBlock"] == "0.0.0.0/0"
    endpoint = only(stack, "AWS::EC2::VPCEndpoint")["Properties"]
    assert table in endpoint["RouteTableIds"]
    assert endpoint["VpcEndpointType"] == "Gateway"


def test_flow_logs_go_to_a_log_group_that_goes_with_the_network() -> None:
    stack = new_stack()
    ClusterNetwork(stack, "Network", availability_zone=ZONE)
    assert only(stack, "AWS::EC2::FlowLog")["Properties"]["TrafficType"] == "ALL"
    assert only(stack, "AWS::Logs::LogGroup")["DeletionPolicy"] == "Delete"


@pytest.mark.parametrize("account", [None, "111122223333"])
def test_synthesis_asks_aws_nothing_whatever_the_stack_names(account: str | None) -> None:
    app = App()
    stack = Stack(app, "Test", env=Environment(account=account, region="us-east-1"))
    ClusterNetwork(stack, "Network", availability_zone=ZONE)
    manifest = json.loads(Path(app.synth().directory, "manifest.json").read_text())
    assert "missing" not in manifest


@pytest.mark.parametrize("zone", ["us-east-1b", "us-gov-west-1a", "ap-southeast-7c", "us-east-1-bos-1a"])
def test_a_zones_name_is_taken(zone: str) -> None:
    stack = new_stack(region=None)
    assert ClusterNetwork(stack, "Network", availability_zone=zone).availability_zone == zone


@pytest.mark.parametrize(
    ("zone", "group"),
    [
        ("us-east-1-dfw-2a", "us-east-1-dfw-2"),
        ("us-west-2-lax-1b", "us-west-2-lax-1"),
        ("ap-southeast-1-mnl-1a", "ap-southeast-1-mnl-1"),
    ],
)
def test_in_a_local_zone_the_nat_gateway_s_address_is_of_that_zone_and_there_is_a_warning(
    zone: str, group: str
) -> None:
    stack = new_stack(region=None)
    ClusterNetwork(stack, "Network", availability_zone=zone)
    address = only(stack, "AWS::EC2::EIP")["Properties"]
    assert (address["Domain"], address["NetworkBorderGroup"]) == ("vpc", group)
    assert warnings(stack) == [
        f"{zone} is a Local Zone, which the account has to opt in to and which has a part of AWS's services only: "
        "see https://aws.amazon.com/about-aws/global-infrastructure/localzones/features/ for whether NAT gateways "
        "and FSx for Lustre are among them, or bring a network of your own. [ack: cdk-training-cluster:localZone]"
    ]


@pytest.mark.parametrize("zone", ["us-east-1b", "us-gov-west-1a", "ap-southeast-7c"])
def test_in_any_other_zone_the_address_is_of_the_region(zone: str) -> None:
    stack = new_stack(region=None)
    ClusterNetwork(stack, "Network", availability_zone=zone)
    assert "NetworkBorderGroup" not in only(stack, "AWS::EC2::EIP")["Properties"]
    assert warnings(stack) == []


def test_of_a_network_of_one_s_own_in_a_local_zone_nothing_is_said() -> None:
    stack = new_stack()
    vpc, subnet = _imported(stack, "us-east-1-dfw-2a")
    ClusterNetwork.from_subnet(stack, "Network", vpc=vpc, subnet=subnet)
    assert [warning for warning in warnings(stack) if "cdk-training-cluster:" in warning] == []


def test_a_zone_of_another_region_than_the_stack_s_is_refused() -> None:
    with pytest.raises(ValueError) as refused:  # noqa: PT011  # the whole text is compared
        ClusterNetwork(new_stack(region="us-east-1"), "Network", availability_zone="eu-west-1a")
    assert str(refused.value) == (
        "availability_zone must be a zone of us-east-1, the stack's region, got 'eu-west-1a': name one of its zones, "
        "or give the stack the zone's region"
    )


@pytest.mark.parametrize(
    ("zone", "message"),
    [
        (
            None,
            "availability_zone is required: name the zone that the nodes and the file system live in, such as "
            "availability_zone='us-east-1b'",
        ),
        ("us-east-1", "availability_zone must be the name of a zone, such as 'us-east-1b', got 'us-east-1'"),
        ("use1-az4", "availability_zone must be the name of a zone, such as 'us-east-1b', got 'use1-az4'"),
        ("", "availability_zone must be the name of a zone, such as 'us-east-1b', got ''"),
        (5, "availability_zone must be text, got 5"),
    ],
)
def test_what_is_no_name_of_a_zone_is_refused(zone: Any, message: str) -> None:
    with pytest.raises(ValueError) as refused:  # noqa: PT011  # the whole text is compared
        ClusterNetwork(new_stack(), "Network", availability_zone=zone)
    assert str(refused.value) == message


def test_a_zone_that_is_not_known_yet_is_not_checked() -> None:
    stack = new_stack()
    ClusterNetwork(stack, "Network", availability_zone=CfnParameter(stack, "Zone").value_as_string)
    assert "NetworkBorderGroup" not in only(stack, "AWS::EC2::EIP")["Properties"]
    assert warnings(stack) == []


@pytest.mark.parametrize("cidr", ["10.0.0.0/16", "172.31.0.0/20", "192.168.4.0/24"])
def test_a_range_is_halved_for_the_nodes(cidr: str) -> None:
    stack = new_stack()
    ClusterNetwork(stack, "Network", availability_zone=ZONE, cidr=cidr)
    assert only(stack, "AWS::EC2::VPC")["Properties"]["CidrBlock"] == cidr


_SIZES = "be an IPv4 range from /16 to /24, such as '10.0.0.0/16', got"


@pytest.mark.parametrize(
    ("cidr", "message"),
    [
        *((cidr, f"{_SIZES} {cidr!r}") for cidr in ("10.0.0.0/15", "10.0.0.0/25", "ten", "", "10.0.0.256/16")),
        ("10.0.0.1/16", "start with the first address of its range, got '10.0.0.1/16': write 10.0.0.0/16"),
    ],
)
def test_a_range_that_holds_no_cluster_is_refused(cidr: str, message: str) -> None:
    with pytest.raises(ValueError) as refused:  # noqa: PT011  # the whole text is compared
        ClusterNetwork(new_stack(), "Network", availability_zone=ZONE, cidr=cidr)
    assert str(refused.value) == f"cidr must {message}"


def test_an_existing_subnet_gets_a_security_group_and_nothing_else() -> None:
    stack = new_stack()
    vpc, subnet = _imported(stack)
    network = ClusterNetwork.from_subnet(stack, "Network", vpc=vpc, subnet=subnet)
    assert (network.availability_zone, network.node_subnet, network.vpc) == (ZONE, subnet, vpc)
    kinds = {resource["Type"] for resource in Template.from_stack(stack).to_json()["Resources"].values()}
    assert kinds == {
        "AWS::EC2::SecurityGroup",
        "AWS::EC2::SecurityGroupEgress",
        "AWS::EC2::SecurityGroupIngress",
    }


def test_a_subnet_in_another_zone_is_refused() -> None:
    stack = new_stack()
    vpc, subnet = _imported(stack, "us-east-1c")
    with pytest.raises(ValueError) as refused:  # noqa: PT011  # the whole text is compared
        ClusterNetwork.from_subnet(stack, "Network", vpc=vpc, subnet=subnet, availability_zone="us-east-1b")
    assert str(refused.value) == (
        "the subnet must lie in availability_zone 'us-east-1b', got one in 'us-east-1c': EFA traffic and the file "
        "system's clients do not leave a zone; name the subnet's zone or another subnet"
    )


def test_an_id_is_no_vpc_and_no_subnet() -> None:
    stack = new_stack()
    vpc, subnet = _imported(stack, ZONE)
    for given, message in (
        (("vpc-1", subnet), "vpc must be an IVpc, such as ec2.Vpc.from_vpc_attributes(…), got 'vpc-1'"),
        (
            (vpc, "subnet-1"),
            "subnet must be an ISubnet, such as ec2.Subnet.from_subnet_attributes(…), got 'subnet-1'",
        ),
    ):
        with pytest.raises(ValueError) as refused:  # noqa: PT011  # the whole text is compared
            ClusterNetwork.from_subnet(stack, message[:3], vpc=given[0], subnet=given[1])  # type: ignore[arg-type]
        assert str(refused.value) == message


def test_a_subnet_imported_without_its_zone_needs_it_said() -> None:
    stack = new_stack()
    vpc, subnet = _imported(stack, None)
    with pytest.raises(ValueError, match=r"^availability_zone is required for a subnet that was imported"):
        ClusterNetwork.from_subnet(stack, "Refused", vpc=vpc, subnet=subnet)
    said = ClusterNetwork.from_subnet(stack, "Network", vpc=vpc, subnet=subnet, availability_zone=ZONE)
    assert said.availability_zone == ZONE


@pytest.mark.parametrize(("name", "public"), [("Front", True), ("Nodes", False), ("Closed", False)])
def test_a_subnet_is_public_if_the_app_s_vpc_has_it_among_its_public_ones(name: str, public: bool) -> None:
    stack = new_stack()
    kinds = {
        "Front": ec2.SubnetType.PUBLIC,
        "Nodes": ec2.SubnetType.PRIVATE_WITH_EGRESS,
        "Closed": ec2.SubnetType.PRIVATE_ISOLATED,
    }
    vpc = ec2.Vpc(
        stack,
        "Vpc",
        availability_zones=[ZONE],
        subnet_configuration=[ec2.SubnetConfiguration(name=each, subnet_type=kind) for each, kind in kinds.items()],
    )
    (subnet,) = vpc.select_subnets(subnet_group_name=name).subnets
    assert ClusterNetwork.from_subnet(stack, "Network", vpc=vpc, subnet=subnet).is_public is public


def test_a_network_that_is_made_or_imported_is_not_known_to_be_public() -> None:
    stack = new_stack()
    vpc, subnet = _imported(stack)
    assert not ClusterNetwork.from_subnet(stack, "Imported", vpc=vpc, subnet=subnet).is_public
    assert not ClusterNetwork(stack, "Made", availability_zone=ZONE).is_public


def test_nodes_that_get_no_public_address_in_a_public_subnet_are_warned_of() -> None:
    stack = new_stack()
    vpc = ec2.Vpc(stack, "Vpc", availability_zones=[ZONE])
    network = ClusterNetwork.from_subnet(stack, "Network", vpc=vpc, subnet=vpc.public_subnets[0])
    group = NodeGroup("workers", instance_types=["p5.48xlarge"], count=1)
    TrainingCluster(stack, "Cluster", network=network, node_groups=[group])
    assert any("[ack: cdk-training-cluster:publicSubnet]" in warning for warning in warnings(stack))


@pytest.mark.parametrize("given", ["vpc", "subnet"])
def test_a_vpc_and_a_subnet_go_together(given: str) -> None:
    stack = new_stack()
    vpc, subnet = _imported(stack)
    with pytest.raises(ValueError, match=r"^vpc and subnet go together"):
        ClusterNetwork(
            stack,
            "Network",
            vpc=vpc if given == "vpc" else None,
            subnet=subnet if given == "subnet" else None,
        )


def test_what_data_lives_in_stays_and_what_bills_by_the_hour_goes() -> None:
    stack = new_stack()
    ClusterNetwork(stack, "Network", availability_zone=ZONE).retain()
    policies: dict[str, set[str | None]] = {}
    for resource in Template.from_stack(stack).to_json()["Resources"].values():
        policies.setdefault(resource["Type"], set()).add(resource.get("DeletionPolicy"))
    assert policies == {
        "AWS::EC2::VPC": {"RetainExceptOnCreate"},
        "AWS::EC2::InternetGateway": {"RetainExceptOnCreate"},
        "AWS::EC2::VPCGatewayAttachment": {"RetainExceptOnCreate"},
        "AWS::EC2::Subnet": {"RetainExceptOnCreate"},
        "AWS::EC2::RouteTable": {"RetainExceptOnCreate"},
        "AWS::EC2::SubnetRouteTableAssociation": {"RetainExceptOnCreate"},
        "AWS::EC2::VPCEndpoint": {"RetainExceptOnCreate"},
        "AWS::EC2::SecurityGroup": {"RetainExceptOnCreate"},
        "AWS::EC2::SecurityGroupIngress": {"RetainExceptOnCreate"},
        "AWS::EC2::SecurityGroupEgress": {"RetainExceptOnCreate"},
        "AWS::EC2::Route": {"RetainExceptOnCreate", None},
        "AWS::EC2::NatGateway": {None},
        "AWS::EC2::EIP": {None},
        "AWS::EC2::FlowLog": {None},
        "AWS::IAM::Role": {None},
        "AWS::IAM::Policy": {None},
        "AWS::Logs::LogGroup": {"RetainExceptOnCreate"},
    }
    gone = only(stack, "AWS::EC2::Route", {"NatGatewayId": Match.any_value()})
    assert "DeletionPolicy" not in gone
