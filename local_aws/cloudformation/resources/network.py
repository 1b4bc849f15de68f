"""VPCs, subnets and routes."""

from typing import Any

from local_aws.cloudformation.resources.base import (
    Attributes,
    Call,
    Handler,
    Properties,
    as_tags,
    picked,
    tag_changes,
    tags_of,
)


def tag_specifications(properties: Properties, kind: str) -> dict[str, Any]:
    """Return the parameter that tags an EC2 resource of `kind` at its creation."""
    tags = tags_of(properties)
    return {"TagSpecifications": [{"ResourceType": kind, "Tags": as_tags(tags)}]} if tags else {}


def retag(call: Call, properties: Properties, before: Properties, resource_id: str | None = None) -> None:
    """Bring an EC2 resource's tags to those of the properties."""
    put, removed = tag_changes(properties, before)
    ids = [resource_id or call.physical_id]
    if put:
        call.client("ec2").create_tags(Resources=ids, Tags=as_tags(put))
    if removed:
        call.client("ec2").delete_tags(Resources=ids, Tags=[{"Key": key} for key in removed])


class TaggedHandler(Handler):
    """An EC2 resource of which only the tags change in place."""

    def update(self, call: Call, properties: Properties, before: Properties) -> Attributes:
        self.only_changed(properties, before, "Tags")
        retag(call, properties, before)
        return {}


class Vpc(Handler):
    """Carries out https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-ec2-vpc.html."""

    type = "AWS::EC2::VPC"
    carries_out = frozenset({"CidrBlock", "EnableDnsHostnames", "EnableDnsSupport", "InstanceTenancy", "Tags"})

    def create(self, call: Call, properties: Properties) -> Attributes:
        ec2 = call.client("ec2")
        vpc = ec2.create_vpc(
            **picked(properties, "CidrBlock", "InstanceTenancy"), **tag_specifications(properties, "vpc")
        )["Vpc"]
        vpc_id = call.made(vpc["VpcId"])
        self._set_dns(ec2, vpc_id, properties)
        groups = ec2.describe_security_groups(
            Filters=[{"Name": "vpc-id", "Values": [vpc_id]}, {"Name": "group-name", "Values": ["default"]}]
        )["SecurityGroups"]
        lists = ec2.describe_network_acls(
            Filters=[{"Name": "vpc-id", "Values": [vpc_id]}, {"Name": "default", "Values": ["true"]}]
        )["NetworkAcls"]
        return {
            "VpcId": vpc_id,
            "CidrBlock": vpc["CidrBlock"],
            "DefaultSecurityGroup": groups[0]["GroupId"],
            "DefaultNetworkAcl": lists[0]["NetworkAclId"],
            "CidrBlockAssociations": [a["AssociationId"] for a in vpc["CidrBlockAssociationSet"]],
            "Ipv6CidrBlocks": [],
        }

    def update(self, call: Call, properties: Properties, before: Properties) -> Attributes:
        self.only_changed(properties, before, "EnableDnsHostnames", "EnableDnsSupport", "Tags")
        self._set_dns(call.client("ec2"), call.physical_id, properties)
        retag(call, properties, before)
        return {}

    def delete(self, call: Call) -> None:
        call.client("ec2").delete_vpc(VpcId=call.physical_id)

    @staticmethod
    def _set_dns(ec2: Any, vpc_id: str, properties: Properties) -> None:
        for name in ("EnableDnsSupport", "EnableDnsHostnames"):
            if name in properties:
                ec2.modify_vpc_attribute(VpcId=vpc_id, **{name: {"Value": properties[name]}})


class Subnet(Handler):
    """Carries out https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-ec2-subnet.html."""

    type = "AWS::EC2::Subnet"
    carries_out = frozenset(
        {"AvailabilityZone", "AvailabilityZoneId", "CidrBlock", "MapPublicIpOnLaunch", "Tags", "VpcId"}
    )

    def create(self, call: Call, properties: Properties) -> Attributes:
        ec2 = call.client("ec2")
        subnet = ec2.create_subnet(
            **picked(properties, "VpcId", "CidrBlock", "AvailabilityZone", "AvailabilityZoneId"),
            **tag_specifications(properties, "subnet"),
        )["Subnet"]
        call.made(subnet["SubnetId"])
        self._set_public(call, properties)
        lists = ec2.describe_network_acls(Filters=[{"Name": "vpc-id", "Values": [properties["VpcId"]]}])[
            "NetworkAcls"
        ]
        associations = [a for acl in lists for a in acl["Associations"] if a["SubnetId"] == subnet["SubnetId"]]
        return {
            "SubnetId": subnet["SubnetId"],
            "VpcId": subnet["VpcId"],
            "AvailabilityZone": subnet["AvailabilityZone"],
            "AvailabilityZoneId": subnet["AvailabilityZoneId"],
            "CidrBlock": subnet["CidrBlock"],
            "Ipv6CidrBlocks": [],
            **({"NetworkAclAssociationId": associations[0]["NetworkAclAssociationId"]} if associations else {}),
        }

    def update(self, call: Call, properties: Properties, before: Properties) -> Attributes:
        self.only_changed(properties, before, "MapPublicIpOnLaunch", "Tags")
        self._set_public(call, properties)
        retag(call, properties, before)
        return {}

    def delete(self, call: Call) -> None:
        call.client("ec2").delete_subnet(SubnetId=call.physical_id)

    @staticmethod
    def _set_public(call: Call, properties: Properties) -> None:
        call.client("ec2").modify_subnet_attribute(
            SubnetId=call.physical_id,
            MapPublicIpOnLaunch={"Value": properties.get("MapPublicIpOnLaunch", False)},
        )


class RouteTable(TaggedHandler):
    """Carries out https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-ec2-routetable.html."""

    type = "AWS::EC2::RouteTable"
    carries_out = frozenset({"Tags", "VpcId"})

    def create(self, call: Call, properties: Properties) -> Attributes:
        table = call.client("ec2").create_route_table(
            VpcId=properties["VpcId"], **tag_specifications(properties, "route-table")
        )["RouteTable"]
        return {"RouteTableId": call.made(table["RouteTableId"])}

    def delete(self, call: Call) -> None:
        call.client("ec2").delete_route_table(RouteTableId=call.physical_id)


class Route(Handler):
    """Carries out https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-ec2-route.html."""

    type = "AWS::EC2::Route"
    _destinations = ("DestinationCidrBlock", "DestinationIpv6CidrBlock", "DestinationPrefixListId")
    _targets = ("GatewayId", "NatGatewayId", "NetworkInterfaceId", "InstanceId", "VpcEndpointId")
    carries_out = frozenset({"RouteTableId", *_destinations, *_targets})

    def create(self, call: Call, properties: Properties) -> Attributes:
        call.client("ec2").create_route(
            RouteTableId=properties["RouteTableId"], **picked(properties, *self._destinations, *self._targets)
        )
        destination = next(iter(picked(properties, *self._destinations).values()))
        call.made(f"{properties['RouteTableId']}|{destination}")
        return {"CidrBlock": destination}

    def update(self, call: Call, properties: Properties, before: Properties) -> Attributes:
        self.only_changed(properties, before, *self._targets)
        call.client("ec2").replace_route(
            RouteTableId=properties["RouteTableId"], **picked(properties, *self._destinations, *self._targets)
        )
        return {}

    def delete(self, call: Call) -> None:
        call.client("ec2").delete_route(
            RouteTableId=call.properties["RouteTableId"], **picked(call.properties, *self._destinations)
        )


class SubnetRouteTableAssociation(Handler):
    """Carries out https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-ec2-subnetroutetableassociation.html."""

    type = "AWS::EC2::SubnetRouteTableAssociation"
    carries_out = frozenset({"RouteTableId", "SubnetId"})

    def create(self, call: Call, properties: Properties) -> Attributes:
        answer = call.client("ec2").associate_route_table(**properties)
        return {"Id": call.made(answer["AssociationId"])}

    def delete(self, call: Call) -> None:
        call.client("ec2").disassociate_route_table(AssociationId=call.physical_id)


HANDLERS: tuple[Handler, ...] = (Vpc(), Subnet(), RouteTable(), Route(), SubnetRouteTableAssociation())
