"""IAM roles, policies and instance profiles."""

import json
from typing import Any

from local_aws.cloudformation.resources.base import (
    Attributes,
    Call,
    Handler,
    Properties,
    if_there,
    picked,
)
from local_aws.cloudformation.resources.tags import retag

_NAME_LIMIT = 64


class Role(Handler):
    """Carries out https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-iam-role.html."""

    type = "AWS::IAM::Role"
    carries_out = frozenset(
        {
            "AssumeRolePolicyDocument",
            "Description",
            "ManagedPolicyArns",
            "MaxSessionDuration",
            "Path",
            "PermissionsBoundary",
            "Policies",
            "RoleName",
            "Tags",
        }
    )

    def create(self, call: Call, properties: Properties) -> Attributes:
        name = properties.get("RoleName") or call.physical_name(_NAME_LIMIT)
        role = call.client("iam").create_role(
            RoleName=name,
            AssumeRolePolicyDocument=json.dumps(properties["AssumeRolePolicyDocument"]),
            **picked(properties, "Description", "MaxSessionDuration", "Path", "PermissionsBoundary", "Tags"),
        )["Role"]
        call.made(name)
        self._bring(call, properties, {})
        return {"Arn": role["Arn"], "RoleId": role["RoleId"]}

    def update(self, call: Call, properties: Properties, before: Properties) -> Attributes:
        names = self.only_changed(
            properties,
            before,
            "AssumeRolePolicyDocument",
            "Description",
            "ManagedPolicyArns",
            "MaxSessionDuration",
            "Policies",
            "Tags",
        )
        iam = call.client("iam")
        if "AssumeRolePolicyDocument" in names:
            iam.update_assume_role_policy(
                RoleName=call.physical_id, PolicyDocument=json.dumps(properties["AssumeRolePolicyDocument"])
            )
        if names & {"Description", "MaxSessionDuration"}:
            iam.update_role(
                RoleName=call.physical_id,
                Description=properties.get("Description", ""),
                MaxSessionDuration=properties.get("MaxSessionDuration", 3600),
            )
        retag(call, "iam", properties, before)
        self._bring(call, properties, before)
        return {}

    def delete(self, call: Call) -> None:
        iam, role = call.client("iam"), call.physical_id
        for arn in call.properties.get("ManagedPolicyArns") or []:
            if_there(iam.detach_role_policy, RoleName=role, PolicyArn=arn)
        for policy in call.properties.get("Policies") or []:
            if_there(iam.delete_role_policy, RoleName=role, PolicyName=policy["PolicyName"])
        iam.delete_role(RoleName=role)

    @staticmethod
    def _bring(call: Call, properties: Properties, before: Properties) -> None:
        """Attach and write what is new, detach and delete what is gone."""
        iam, role = call.client("iam"), call.physical_id
        old, new = set(before.get("ManagedPolicyArns") or []), set(properties.get("ManagedPolicyArns") or [])
        for arn in sorted(new - old):
            iam.attach_role_policy(RoleName=role, PolicyArn=arn)
        for arn in sorted(old - new):
            iam.detach_role_policy(RoleName=role, PolicyArn=arn)
        inline = {policy["PolicyName"]: policy["PolicyDocument"] for policy in properties.get("Policies") or []}
        for name, document in inline.items():
            iam.put_role_policy(RoleName=role, PolicyName=name, PolicyDocument=json.dumps(document))
        for policy in before.get("Policies") or []:
            if policy["PolicyName"] not in inline:
                iam.delete_role_policy(RoleName=role, PolicyName=policy["PolicyName"])


class Policy(Handler):
    """An inline policy written into roles.

    https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-iam-policy.html
    """

    type = "AWS::IAM::Policy"
    carries_out = frozenset({"PolicyDocument", "PolicyName", "Roles"})

    def create(self, call: Call, properties: Properties) -> Attributes:
        name = call.made(call.physical_name(_NAME_LIMIT))
        self._put(call, properties)
        return {"Id": name}

    def update(self, call: Call, properties: Properties, before: Properties) -> Attributes:
        self._put(call, properties)
        for role in set(before["Roles"]) - set(properties["Roles"]):
            call.client("iam").delete_role_policy(RoleName=role, PolicyName=before["PolicyName"])
        if before["PolicyName"] != properties["PolicyName"]:
            for role in set(before["Roles"]) & set(properties["Roles"]):
                call.client("iam").delete_role_policy(RoleName=role, PolicyName=before["PolicyName"])
        return {}

    def delete(self, call: Call) -> None:
        name, delete = call.properties["PolicyName"], call.client("iam").delete_role_policy
        for role in call.properties["Roles"]:
            if_there(delete, RoleName=role, PolicyName=name)

    @staticmethod
    def _put(call: Call, properties: Properties) -> None:
        for role in properties["Roles"]:
            call.client("iam").put_role_policy(
                RoleName=role,
                PolicyName=properties["PolicyName"],
                PolicyDocument=json.dumps(properties["PolicyDocument"]),
            )


class InstanceProfile(Handler):
    """Carries out https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-iam-instanceprofile.html."""

    type = "AWS::IAM::InstanceProfile"
    carries_out = frozenset({"InstanceProfileName", "Path", "Roles"})

    def create(self, call: Call, properties: Properties) -> Attributes:
        iam: Any = call.client("iam")
        name = properties.get("InstanceProfileName") or call.physical_name(128)
        profile = iam.create_instance_profile(InstanceProfileName=name, **picked(properties, "Path"))[
            "InstanceProfile"
        ]
        call.made(name)
        for role in properties["Roles"]:
            iam.add_role_to_instance_profile(InstanceProfileName=name, RoleName=role)
        return {"Arn": profile["Arn"]}

    def update(self, call: Call, properties: Properties, before: Properties) -> Attributes:
        self.only_changed(properties, before, "Roles")
        iam, name = call.client("iam"), call.physical_id
        for role in set(before["Roles"]) - set(properties["Roles"]):
            iam.remove_role_from_instance_profile(InstanceProfileName=name, RoleName=role)
        for role in set(properties["Roles"]) - set(before["Roles"]):
            iam.add_role_to_instance_profile(InstanceProfileName=name, RoleName=role)
        return {}

    def delete(self, call: Call) -> None:
        iam, name = call.client("iam"), call.physical_id
        for role in iam.get_instance_profile(InstanceProfileName=name)["InstanceProfile"]["Roles"]:
            iam.remove_role_from_instance_profile(InstanceProfileName=name, RoleName=role["RoleName"])
        iam.delete_instance_profile(InstanceProfileName=name)


HANDLERS: tuple[Handler, ...] = (Role(), Policy(), InstanceProfile())
