"""Security groups and the rules that are resources of their own."""

from collections.abc import Mapping
from typing import Any

from local_aws.cloudformation.resources.action import Action
from local_aws.cloudformation.resources.base import Attributes, Call, Handler, Properties
from local_aws.cloudformation.resources.regular import Members, Regular

_RULE_PROPERTIES = frozenset({"CidrIp", "CidrIpv6", "Description", "FromPort", "GroupId", "IpProtocol", "ToPort"})


def permission(rule: Mapping[str, Any]) -> dict[str, Any]:
    """Return a rule of a template as the IpPermission that EC2's actions take."""
    result: dict[str, Any] = {"IpProtocol": rule["IpProtocol"]}
    if rule["IpProtocol"] != "-1":
        result |= {port: rule[port] for port in ("FromPort", "ToPort") if port in rule}
    described = {"Description": rule["Description"]} if rule.get("Description") else {}
    prefix_list = rule.get("SourcePrefixListId") or rule.get("DestinationPrefixListId")
    group = rule.get("SourceSecurityGroupId") or rule.get("DestinationSecurityGroupId")
    if rule.get("CidrIp"):
        result["IpRanges"] = [{"CidrIp": rule["CidrIp"], **described}]
    elif rule.get("CidrIpv6"):
        result["Ipv6Ranges"] = [{"CidrIpv6": rule["CidrIpv6"], **described}]
    elif prefix_list:
        result["PrefixListIds"] = [{"PrefixListId": prefix_list, **described}]
    elif group:
        result["UserIdGroupPairs"] = [{"GroupId": group, **described}]
    return result


class _SecurityGroup(Regular):
    """A group whose default egress rule goes when it has others.

    https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-ec2-securitygroup.html
    """

    def create(self, call: Call, properties: Properties) -> Attributes:
        none: dict[str, Any] = {"SecurityGroupIngress": [], "SecurityGroupEgress": []}
        attributes = super().create(call, {**properties, **none})
        if properties.get("SecurityGroupEgress"):
            ec2, group = call.client("ec2"), call.physical_id
            (made,) = ec2.describe_security_groups(GroupIds=[group])["SecurityGroups"]
            ec2.revoke_security_group_egress(GroupId=group, IpPermissions=made["IpPermissionsEgress"])
        for each in self.members:
            each.bring(call.client("ec2"), call.physical_id, _as_permissions(call, properties), {})
        return attributes


def _as_permissions(_: Call, properties: Properties) -> Properties:
    """Return a group's properties with its rules as EC2's actions take them."""
    rules = {
        name: [{"IpPermissions": [permission(rule)]} for rule in properties[name]]
        for name in ("SecurityGroupIngress", "SecurityGroupEgress")
        if name in properties
    }
    return {**properties, **rules}


class _Rule(Handler):
    """A rule of its own: everything but its description is create-only."""

    _direction = ""

    def create(self, call: Call, properties: Properties) -> Attributes:
        answer = self._act(call, "authorize", properties)
        return {"Id": call.made(answer["SecurityGroupRules"][0]["SecurityGroupRuleId"])}

    def delete(self, call: Call) -> None:
        self._act(call, "revoke", call.properties)

    def _act(self, call: Call, verb: str, properties: Properties) -> Any:
        action = getattr(call.client("ec2"), f"{verb}_security_group_{self._direction}")
        return action(GroupId=properties["GroupId"], IpPermissions=[permission(properties)])


class SecurityGroupIngress(_Rule):
    """Carries out https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-ec2-securitygroupingress.html."""

    type = "AWS::EC2::SecurityGroupIngress"
    supported = _RULE_PROPERTIES | {"SourcePrefixListId", "SourceSecurityGroupId"}
    _direction = "ingress"


class SecurityGroupEgress(_Rule):
    """Carries out https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-ec2-securitygroupegress.html."""

    type = "AWS::EC2::SecurityGroupEgress"
    supported = _RULE_PROPERTIES | {"DestinationPrefixListId", "DestinationSecurityGroupId"}
    _direction = "egress"


def _rules(direction: str) -> Members:
    return Members(
        property=f"SecurityGroup{direction.capitalize()}",
        put=Action(f"authorize_security_group_{direction}", "IpPermissions", id="GroupId"),
        remove=Action(f"revoke_security_group_{direction}", "IpPermissions", id="GroupId"),
    )


HANDLERS: tuple[Handler, ...] = (
    _SecurityGroup(
        type="AWS::EC2::SecurityGroup",
        service="ec2",
        create_with=Action("create_security_group", "GroupDescription:Description VpcId"),
        members=(_rules("ingress"), _rules("egress")),
        delete_with=Action("delete_security_group", id="GroupId"),
        named="GroupName:GroupName",
        id="GroupId",
        attributes={"Id": "{id}", "VpcId": "{VpcId}"},
        tag_kind="security-group",
        prepare=_as_permissions,
    ),
    SecurityGroupIngress(),
    SecurityGroupEgress(),
)
