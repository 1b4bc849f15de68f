"""IAM roles, policies and instance profiles."""

import json

from local_aws.cloudformation.resources.action import Action
from local_aws.cloudformation.resources.base import Attributes, Call, Handler, Properties, if_there
from local_aws.cloudformation.resources.regular import Members, Regular

_NAME_LIMIT = 64


class Policy(Handler):
    """An inline policy written into roles.

    https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-iam-policy.html
    """

    type = "AWS::IAM::Policy"
    supported = frozenset({"PolicyDocument", "PolicyName", "Roles"})

    def create(self, call: Call, properties: Properties) -> Attributes:
        name = call.made(call.physical_name(_NAME_LIMIT))
        self._put(call, properties)
        return {"Id": name}

    def update(self, call: Call, properties: Properties, before: Properties) -> Attributes:
        self._put(call, properties)
        is_renamed = before["PolicyName"] != properties["PolicyName"]
        for role in before["Roles"]:
            if is_renamed or role not in properties["Roles"]:
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


HANDLERS: tuple[Handler, ...] = (
    Regular(
        type="AWS::IAM::Role",
        service="iam",
        create_with=Action(
            "create_role",
            "AssumeRolePolicyDocument Description MaxSessionDuration Path PermissionsBoundary",
        ),
        updates=(
            Action("update_assume_role_policy", "AssumeRolePolicyDocument:PolicyDocument", id="RoleName"),
            Action(
                "update_role",
                "Description MaxSessionDuration",
                id="RoleName",
                absent={"Description": "", "MaxSessionDuration": 3600},
            ),
        ),
        members=(
            Members(
                property="ManagedPolicyArns",
                put=Action("attach_role_policy", "Item:PolicyArn", id="RoleName"),
                remove=Action("detach_role_policy", "Item:PolicyArn", id="RoleName"),
                go_first=True,
            ),
            Members(
                property="Policies",
                put=Action("put_role_policy", "PolicyName PolicyDocument", id="RoleName"),
                remove=Action("delete_role_policy", "PolicyName", id="RoleName"),
                go_first=True,
            ),
        ),
        delete_with=Action("delete_role", id="RoleName"),
        named="RoleName:RoleName",
        name_limit=_NAME_LIMIT,
        made="Role",
    ),
    Policy(),
    Regular(
        type="AWS::IAM::InstanceProfile",
        service="iam",
        create_with=Action("create_instance_profile", "Path"),
        members=(
            Members(
                property="Roles",
                put=Action("add_role_to_instance_profile", "Item:RoleName", id="InstanceProfileName"),
                remove=Action("remove_role_from_instance_profile", "Item:RoleName", id="InstanceProfileName"),
                go_first=True,
            ),
        ),
        delete_with=Action("delete_instance_profile", id="InstanceProfileName"),
        named="InstanceProfileName:InstanceProfileName",
        name_limit=128,
        made="InstanceProfile",
        can_tag=False,
    ),
)
