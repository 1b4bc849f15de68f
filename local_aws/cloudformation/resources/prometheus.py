"""Workspaces of Amazon Managed Service for Prometheus, and their rules.

https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/AWS_APS.html
"""

from typing import Any

from local_aws.cloudformation.resources.base import Attributes, Call, Handler, Properties, if_there, tags_of
from local_aws.cloudformation.resources.tags import retag


class _Workspace(Handler):
    """A workspace with its alert manager and its configuration."""

    type = "AWS::APS::Workspace"
    supported = frozenset({"Alias", "AlertManagerDefinition", "KmsKeyArn", "Tags", "WorkspaceConfiguration"})

    def create(self, call: Call, properties: Properties) -> Attributes:
        client = call.client("amp")
        given = {"alias": properties.get("Alias"), "kmsKeyArn": properties.get("KmsKeyArn")}
        known = {name: value for name, value in given.items() if value is not None}
        made = client.create_workspace(tags=tags_of(properties), **known)
        call.made(made["arn"])
        described = client.describe_workspace(workspaceId=made["workspaceId"])["workspace"]
        attributes = {
            "Arn": made["arn"],
            "WorkspaceId": made["workspaceId"],
            "PrometheusEndpoint": described["prometheusEndpoint"],
        }
        self._bring(client, made["workspaceId"], properties, {})
        return attributes

    def update(self, call: Call, properties: Properties, before: Properties) -> Attributes:
        client, workspace = call.client("amp"), call.attributes["WorkspaceId"]
        if self.only_changed(properties, before, *(self.supported - {"KmsKeyArn"})) & {"Alias"}:
            client.update_workspace_alias(workspaceId=workspace, alias=properties["Alias"])
        self._bring(client, workspace, properties, before)
        retag(call, "amp", properties, before)
        return {}

    def delete(self, call: Call) -> None:
        call.client("amp").delete_workspace(workspaceId=call.physical_id.rpartition("/")[2])

    @staticmethod
    def _bring(client: Any, workspace: str, properties: Properties, before: Properties) -> None:
        new, old = properties.get("AlertManagerDefinition"), before.get("AlertManagerDefinition")
        if new and new != old:
            put = client.put_alert_manager_definition if old else client.create_alert_manager_definition
            put(workspaceId=workspace, data=new.encode())
        elif old and not new:
            client.delete_alert_manager_definition(workspaceId=workspace)
        days = properties.get("WorkspaceConfiguration", {}).get("RetentionPeriodInDays")
        if days is not None:
            client.update_workspace_configuration(workspaceId=workspace, retentionPeriodInDays=int(days))


class _Rules(Handler):
    """A file of rules of a workspace."""

    type = "AWS::APS::RuleGroupsNamespace"
    supported = frozenset({"Data", "Name", "Tags", "Workspace"})

    def create(self, call: Call, properties: Properties) -> Attributes:
        made = call.client("amp").create_rule_groups_namespace(
            **_place(properties), data=properties["Data"].encode(), tags=tags_of(properties)
        )
        return {"Arn": call.made(made["arn"])}

    def update(self, call: Call, properties: Properties, before: Properties) -> Attributes:
        if self.only_changed(properties, before, "Data", "Tags") & {"Data"}:
            call.client("amp").put_rule_groups_namespace(**_place(properties), data=properties["Data"].encode())
        retag(call, "amp", properties, before)
        return {}

    def delete(self, call: Call) -> None:
        if_there(call.client("amp").delete_rule_groups_namespace, **_place(call.properties))


def _place(properties: Properties) -> dict[str, str]:
    return {"workspaceId": properties["Workspace"].rpartition("/")[2], "name": properties["Name"]}


HANDLERS: tuple[Handler, ...] = (_Workspace(), _Rules())
