"""VPCs, subnets and routes, and how they reach the world: gateways, addresses, endpoints and flow logs."""

from local_aws.cloudformation.failures import HandlerError
from local_aws.cloudformation.resources.action import Action
from local_aws.cloudformation.resources.base import Call, Handler, Properties
from local_aws.cloudformation.resources.regular import Regular

_ROUTE = "RouteTableId DestinationCidrBlock"
_TARGETS = "GatewayId NatGatewayId"


def _nat_gateway(_: Call, properties: Properties) -> Properties:
    if "AllocationId" not in properties:
        raise HandlerError("The request must contain the parameter AllocationId")
    return properties


def _endpoint(call: Call, properties: Properties) -> Properties:
    services = call.client("ec2").describe_vpc_endpoint_services()["ServiceDetails"]
    if properties["ServiceName"] not in [service["ServiceName"] for service in services]:
        raise HandlerError(f"The Vpc Endpoint Service '{properties['ServiceName']}' does not exist")
    return properties


HANDLERS: tuple[Handler, ...] = (
    Regular(
        type="AWS::EC2::VPC",
        service="ec2",
        create_with=Action("create_vpc", "CidrBlock InstanceTenancy"),
        settings=(
            Action("modify_vpc_attribute", "EnableDnsSupport", id="VpcId"),
            Action("modify_vpc_attribute", "EnableDnsHostnames", id="VpcId"),
        ),
        delete_with=Action("delete_vpc", id="VpcId"),
        made="Vpc",
        id="VpcId",
        tag_kind="vpc",
    ),
    Regular(
        type="AWS::EC2::Subnet",
        service="ec2",
        create_with=Action("create_subnet", "VpcId CidrBlock AvailabilityZone AvailabilityZoneId"),
        settings=(
            Action(
                "modify_subnet_attribute",
                "MapPublicIpOnLaunch",
                id="SubnetId",
                absent={"MapPublicIpOnLaunch": False},
            ),
        ),
        delete_with=Action("delete_subnet", id="SubnetId"),
        made="Subnet",
        id="SubnetId",
        tag_kind="subnet",
    ),
    Regular(
        type="AWS::EC2::RouteTable",
        service="ec2",
        create_with=Action("create_route_table", "VpcId"),
        delete_with=Action("delete_route_table", id="RouteTableId"),
        made="RouteTable",
        id="RouteTableId",
        tag_kind="route-table",
    ),
    Regular(
        type="AWS::EC2::Route",
        service="ec2",
        create_with=Action("create_route", f"{_ROUTE} {_TARGETS}"),
        updates=(Action("replace_route", f"{_ROUTE} {_TARGETS}", whole=True),),
        delete_with=Action("delete_route", _ROUTE),
        id="{RouteTableId}|{DestinationCidrBlock}",
        attributes={"CidrBlock": "{DestinationCidrBlock}"},
        can_tag=False,
    ),
    Regular(
        type="AWS::EC2::SubnetRouteTableAssociation",
        service="ec2",
        create_with=Action("associate_route_table", "RouteTableId SubnetId"),
        delete_with=Action("disassociate_route_table", id="AssociationId"),
        id="AssociationId",
        attributes={"Id": "{id}"},
        can_tag=False,
    ),
    Regular(
        type="AWS::EC2::InternetGateway",
        service="ec2",
        create_with=Action("create_internet_gateway"),
        delete_with=Action("delete_internet_gateway", id="InternetGatewayId"),
        made="InternetGateway",
        id="InternetGatewayId",
        tag_kind="internet-gateway",
    ),
    Regular(
        type="AWS::EC2::VPCGatewayAttachment",
        service="ec2",
        create_with=Action("attach_internet_gateway", "InternetGatewayId VpcId"),
        delete_with=Action("detach_internet_gateway", "InternetGatewayId VpcId"),
        id="IGW|{VpcId}",
        can_tag=False,
    ),
    Regular(
        type="AWS::EC2::EIP",
        service="ec2",
        create_with=Action("allocate_address", "Domain", absent={"Domain": "vpc"}),
        delete_with=Action("release_address", id="AllocationId"),
        delete_by="AllocationId",
        id="PublicIp",
        tag_kind="elastic-ip",
        tag_by="AllocationId",
    ),
    Regular(
        type="AWS::EC2::NatGateway",
        service="ec2",
        create_with=Action("create_nat_gateway", "AllocationId SubnetId"),
        delete_with=Action("delete_nat_gateway", id="NatGatewayId"),
        made="NatGateway",
        id="NatGatewayId",
        tag_kind="natgateway",
        prepare=_nat_gateway,
    ),
    Regular(
        type="AWS::EC2::VPCEndpoint",
        service="ec2",
        create_with=Action(
            "create_vpc_endpoint",
            "RouteTableIds ServiceName VpcEndpointType VpcId",
            absent={"VpcEndpointType": "Gateway"},
        ),
        delete_with=Action("delete_vpc_endpoints", id="VpcEndpointIds"),
        made="VpcEndpoint",
        id="VpcEndpointId",
        attributes={"Id": "{id}"},
        tag_kind="vpc-endpoint",
        prepare=_endpoint,
    ),
    Regular(
        type="AWS::EC2::FlowLog",
        service="ec2",
        create_with=Action(
            "create_flow_logs",
            "DeliverLogsPermissionArn LogDestination LogDestinationType LogFormat LogGroupName "
            "MaxAggregationInterval ResourceId:ResourceIds ResourceType TrafficType",
        ),
        delete_with=Action("delete_flow_logs", id="FlowLogIds"),
        id="FlowLogIds[0]",
        attributes={"Id": "{id}"},
        tag_kind="vpc-flow-log",
    ),
)
