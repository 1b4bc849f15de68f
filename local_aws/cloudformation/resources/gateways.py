"""How a VPC reaches the world: gateways, addresses, endpoints and flow logs."""

import json
from typing import Any

from local_aws.cloudformation.failures import HandlerError
from local_aws.cloudformation.resources.base import Attributes, Call, Handler, Properties, picked
from local_aws.cloudformation.resources.network import TaggedHandler, retag, tag_specifications


class InternetGateway(TaggedHandler):
    """Carries out https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-ec2-internetgateway.html."""

    type = "AWS::EC2::InternetGateway"
    carries_out = frozenset({"Tags"})

    def create(self, call: Call, properties: Properties) -> Attributes:
        gateway = call.client("ec2").create_internet_gateway(**tag_specifications(properties, "internet-gateway"))[
            "InternetGateway"
        ]
        return {"InternetGatewayId": call.made(gateway["InternetGatewayId"])}

    def delete(self, call: Call) -> None:
        call.client("ec2").delete_internet_gateway(InternetGatewayId=call.physical_id)


class VpcGatewayAttachment(Handler):
    """Carries out https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-ec2-vpcgatewayattachment.html."""

    type = "AWS::EC2::VPCGatewayAttachment"
    carries_out = frozenset({"InternetGatewayId", "VpcId"})

    def create(self, call: Call, properties: Properties) -> Attributes:
        call.client("ec2").attach_internet_gateway(**properties)
        call.made(f"IGW|{properties['VpcId']}")
        return {"AttachmentType": "IGW"}

    def delete(self, call: Call) -> None:
        call.client("ec2").detach_internet_gateway(**call.properties)


class Eip(Handler):
    """Carries out https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-ec2-eip.html."""

    type = "AWS::EC2::EIP"
    carries_out = frozenset({"Domain", "Tags"})

    def create(self, call: Call, properties: Properties) -> Attributes:
        address = call.client("ec2").allocate_address(
            Domain=properties.get("Domain", "vpc"), **tag_specifications(properties, "elastic-ip")
        )
        call.made(address["PublicIp"])
        return {"AllocationId": address["AllocationId"], "PublicIp": address["PublicIp"]}

    def update(self, call: Call, properties: Properties, before: Properties) -> Attributes:
        self.only_changed(properties, before, "Tags")
        retag(call, properties, before, self._address(call)["AllocationId"])
        return {}

    def delete(self, call: Call) -> None:
        call.client("ec2").release_address(AllocationId=self._address(call)["AllocationId"])

    @staticmethod
    def _address(call: Call) -> Any:
        return call.client("ec2").describe_addresses(PublicIps=[call.physical_id])["Addresses"][0]


class NatGateway(TaggedHandler):
    """Carries out https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-ec2-natgateway.html."""

    type = "AWS::EC2::NatGateway"
    carries_out = frozenset({"AllocationId", "ConnectivityType", "SubnetId", "Tags"})

    def create(self, call: Call, properties: Properties) -> Attributes:
        public = properties.get("ConnectivityType", "public") == "public"
        if public and "AllocationId" not in properties:
            raise HandlerError("The request must contain the parameter AllocationId")
        gateway = call.client("ec2").create_nat_gateway(
            ConnectivityType="public" if public else "private",
            **picked(properties, "AllocationId", "SubnetId"),
            **tag_specifications(properties, "natgateway"),
        )["NatGateway"]
        call.made(gateway["NatGatewayId"])
        return {
            "NatGatewayId": gateway["NatGatewayId"],
            "EniId": gateway["NatGatewayAddresses"][0]["NetworkInterfaceId"],
        }

    def delete(self, call: Call) -> None:
        call.client("ec2").delete_nat_gateway(NatGatewayId=call.physical_id)


class VpcEndpoint(Handler):
    """Carries out https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-ec2-vpcendpoint.html."""

    type = "AWS::EC2::VPCEndpoint"
    carries_out = frozenset(
        {
            "PolicyDocument",
            "PrivateDnsEnabled",
            "RouteTableIds",
            "SecurityGroupIds",
            "ServiceName",
            "SubnetIds",
            "Tags",
            "VpcEndpointType",
            "VpcId",
        }
    )

    def create(self, call: Call, properties: Properties) -> Attributes:
        ec2 = call.client("ec2")
        names = [detail["ServiceName"] for detail in ec2.describe_vpc_endpoint_services()["ServiceDetails"]]
        if properties["ServiceName"] not in names:
            raise HandlerError(f"The Vpc Endpoint Service '{properties['ServiceName']}' does not exist")
        policy = properties.get("PolicyDocument")
        if policy is not None:
            policy = {"PolicyDocument": policy if isinstance(policy, str) else json.dumps(policy)}
        endpoint = ec2.create_vpc_endpoint(
            VpcEndpointType=properties.get("VpcEndpointType", "Gateway"),
            **picked(
                properties,
                "PrivateDnsEnabled",
                "RouteTableIds",
                "SecurityGroupIds",
                "ServiceName",
                "SubnetIds",
                "VpcId",
            ),
            **(policy or {}),
            **tag_specifications(properties, "vpc-endpoint"),
        )["VpcEndpoint"]
        return {"Id": call.made(endpoint["VpcEndpointId"])}

    def update(self, call: Call, properties: Properties, before: Properties) -> Attributes:
        self.only_changed(properties, before, "RouteTableIds", "Tags")
        old, new = set(before.get("RouteTableIds") or []), set(properties.get("RouteTableIds") or [])
        if old != new:
            call.client("ec2").modify_vpc_endpoint(
                VpcEndpointId=call.physical_id,
                AddRouteTableIds=sorted(new - old),
                RemoveRouteTableIds=sorted(old - new),
            )
        retag(call, properties, before)
        return {}

    def delete(self, call: Call) -> None:
        call.client("ec2").delete_vpc_endpoints(VpcEndpointIds=[call.physical_id])


class FlowLog(TaggedHandler):
    """Carries out https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-ec2-flowlog.html."""

    type = "AWS::EC2::FlowLog"
    carries_out = frozenset(
        {
            "DeliverLogsPermissionArn",
            "LogDestination",
            "LogDestinationType",
            "LogFormat",
            "LogGroupName",
            "MaxAggregationInterval",
            "ResourceId",
            "ResourceType",
            "Tags",
            "TrafficType",
        }
    )

    def create(self, call: Call, properties: Properties) -> Attributes:
        answer = call.client("ec2").create_flow_logs(
            ResourceIds=[properties["ResourceId"]],
            **picked(properties, *(self.carries_out - {"ResourceId", "Tags"})),
            **tag_specifications(properties, "vpc-flow-log"),
        )
        if answer.get("Unsuccessful"):
            raise HandlerError(answer["Unsuccessful"][0]["Error"]["Message"])
        return {"Id": call.made(answer["FlowLogIds"][0])}

    def delete(self, call: Call) -> None:
        call.client("ec2").delete_flow_logs(FlowLogIds=[call.physical_id])


HANDLERS: tuple[Handler, ...] = (
    InternetGateway(),
    VpcGatewayAttachment(),
    Eip(),
    NatGateway(),
    VpcEndpoint(),
    FlowLog(),
)
