"""Security groups and the rules that are resources of their own."""

from collections.abc import Mapping
from typing import Any

from local_aws.cloudformation.resources.base import Attributes, Call, Handler, Properties
from local_aws.cloudformation.resources.tags import retag, tag_specifications

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


class SecurityGroup(Handler):
    """A group and its inline rules; with SecurityGroupEgress given, EC2's default egress rule goes.

    https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-ec2-securitygroup.html
    """

    type = "AWS::EC2::SecurityGroup"
    carries_out = frozenset(
        {"GroupDescription", "GroupName", "SecurityGroupEgress", "SecurityGroupIngress", "Tags", "VpcId"}
    )

    def create(self, call: Call, properties: Properties) -> Attributes:
        ec2 = call.client("ec2")
        group_id = ec2.create_security_group(
            GroupName=properties.get("GroupName") or call.physical_name(),
            Description=properties["GroupDescription"],
            VpcId=properties["VpcId"],
            **tag_specifications(properties, "security-group"),
        )["GroupId"]
        call.made(group_id)
        if properties.get("SecurityGroupEgress"):
            group = ec2.describe_security_groups(GroupIds=[group_id])["SecurityGroups"][0]
            ec2.revoke_security_group_egress(GroupId=group_id, IpPermissions=group["IpPermissionsEgress"])
        self._bring(call, properties, {})
        return {"GroupId": group_id, "Id": group_id, "VpcId": properties["VpcId"]}

    def update(self, call: Call, properties: Properties, before: Properties) -> Attributes:
        self.only_changed(properties, before, "SecurityGroupEgress", "SecurityGroupIngress", "Tags")
        self._bring(call, properties, before)
        retag(call, "ec2", properties, before)
        return {}

    def delete(self, call: Call) -> None:
        call.client("ec2").delete_security_group(GroupId=call.physical_id)

    @staticmethod
    def _bring(call: Call, properties: Properties, before: Properties) -> None:
        ec2 = call.client("ec2")
        for name, authorize, revoke in (
            (
                "SecurityGroupIngress",
                ec2.authorize_security_group_ingress,
                ec2.revoke_security_group_ingress,
            ),
            ("SecurityGroupEgress", ec2.authorize_security_group_egress, ec2.revoke_security_group_egress),
        ):
            old = [permission(rule) for rule in before.get(name) or []]
            new = [permission(rule) for rule in properties.get(name) or []]
            for rule in old:
                if rule not in new:
                    revoke(GroupId=call.physical_id, IpPermissions=[rule])
            for rule in new:
                if rule not in old:
                    authorize(GroupId=call.physical_id, IpPermissions=[rule])


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
    carries_out = _RULE_PROPERTIES | {"SourcePrefixListId", "SourceSecurityGroupId"}
    _direction = "ingress"


class SecurityGroupEgress(_Rule):
    """Carries out https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-ec2-securitygroupegress.html."""

    type = "AWS::EC2::SecurityGroupEgress"
    carries_out = _RULE_PROPERTIES | {"DestinationPrefixListId", "DestinationSecurityGroupId"}
    _direction = "egress"


HANDLERS: tuple[Handler, ...] = (SecurityGroup(), SecurityGroupIngress(), SecurityGroupEgress())
