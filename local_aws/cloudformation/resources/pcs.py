"""Clusters of AWS PCS, with their compute node groups and queues.

An update of one property sends all properties: the sizes of a compute node group become those of the template again.
https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/AWS_PCS.html
"""

from collections.abc import Mapping
from typing import Any

from local_aws.cloudformation.resources.base import Attributes, Call, Handler, Properties, if_there, tags_of
from local_aws.cloudformation.resources.tags import retag


def _written(value: Any) -> Any:
    """Return properties as the service spells them; of maps of texts the keys stay as they are."""
    if isinstance(value, Mapping):
        return {f"{key[0].lower()}{key[1:]}": _written(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_written(each) for each in value]
    return value


class _Pcs(Handler):
    """A resource of PCS: the name of its actions, and the properties that they take."""

    action: str
    answer: str
    taken: frozenset[str]

    def __init__(self) -> None:
        above = set() if self.action == "cluster" else {"ClusterId"}
        self.supported = self.taken | {"Name", "Tags"} | above

    def create(self, call: Call, properties: Properties) -> Attributes:
        """Make the resource."""
        name = properties.get("Name") or call.physical_name(40).replace("_", "-")
        create = getattr(call.client("pcs"), f"create_{self.action}")
        made = create(
            **self._cluster(properties),
            **{f"{self.answer}Name": name},
            **self._request(properties),
            tags=tags_of(properties),
        )[self.answer]
        call.made(made["arn"])
        return {"Arn": made["arn"], "Id": made["id"]}

    def update(self, call: Call, properties: Properties, before: Properties) -> Attributes:
        """Send all properties but those that cannot change."""
        if self.only_changed(properties, before, *self.taken, "Tags") - {"Tags"}:
            request = self._request(properties)
            for name in ("instanceConfigs", "size", "networking"):
                request.pop(name, None)
            getattr(call.client("pcs"), f"update_{self.action}")(
                **self._cluster(properties), **{f"{self.answer}Identifier": call.attributes["Id"]}, **request
            )
        retag(call, "pcs", properties, before)
        return {}

    def delete(self, call: Call) -> None:
        """Delete the resource."""
        named = {f"{self.answer}Identifier": call.physical_id.rpartition("/")[2]}
        if_there(getattr(call.client("pcs"), f"delete_{self.action}"), **self._cluster(call.properties), **named)

    def _cluster(self, properties: Properties) -> dict[str, str]:
        return {"clusterIdentifier": properties["ClusterId"]} if "ClusterId" in properties else {}

    def _request(self, properties: Properties) -> dict[str, Any]:
        request: dict[str, Any] = _written({key: properties[key] for key in properties if key in self.taken})
        return request


class _Cluster(_Pcs):
    type = "AWS::PCS::Cluster"
    action, answer = "cluster", "cluster"
    taken = frozenset({"Networking", "Scheduler", "Size", "SlurmConfiguration"})


class _ComputeNodeGroup(_Pcs):
    type = "AWS::PCS::ComputeNodeGroup"
    action, answer = "compute_node_group", "computeNodeGroup"
    taken = frozenset(
        {
            *("AmiId", "CustomLaunchTemplate", "IamInstanceProfileArn", "InstanceConfigs", "PurchaseOption"),
            *("ScalingConfiguration", "SlurmConfiguration", "SpotOptions", "SubnetIds"),
        }
    )

    def _request(self, properties: Properties) -> dict[str, Any]:
        request = super()._request(properties)
        template = request.pop("customLaunchTemplate", {})
        request["customLaunchTemplate"] = {"id": template.get("templateId"), "version": str(template.get("version"))}
        records = (properties.get("SlurmConfiguration") or {}).get("GresCustomSettings")
        if records:
            request["slurmConfiguration"]["gresCustomSettings"] = [dict(each) for each in records]
        return request

    def update(self, call: Call, properties: Properties, before: Properties) -> Attributes:
        """Send all properties, and wait until the group is ACTIVE."""
        attributes = super().update(call, properties, before)
        named = {**self._cluster(properties), "computeNodeGroupIdentifier": call.attributes["Id"]}
        client = call.client("pcs")
        while client.get_compute_node_group(**named)["computeNodeGroup"]["status"] == "UPDATING":
            pass
        return attributes

    def delete(self, call: Call) -> None:
        """Delete the group, and wait until its instances are terminated, so that what they ran in can be deleted."""
        super().delete(call)
        filters = [{"Name": "tag:aws:pcs:compute-node-group-id", "Values": [call.attributes["Id"]]}]
        for _ in call.client("ec2").get_paginator("describe_instances").paginate(Filters=filters):
            pass


class _Queue(_Pcs):
    type = "AWS::PCS::Queue"
    action, answer = "queue", "queue"
    taken = frozenset({"ComputeNodeGroupConfigurations", "SlurmConfiguration"})


HANDLERS: tuple[Handler, ...] = (_Cluster(), _ComputeNodeGroup(), _Queue())
