"""HyperPod clusters and their task governance.

https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-sagemaker-cluster.html
"""

from typing import Any

from local_aws.cloudformation.resources.base import (
    Attributes,
    Call,
    Handler,
    Properties,
    changed,
    if_there,
    picked,
    tags_of,
)
from local_aws.cloudformation.resources.tags import retag

_UPDATED = (
    "NodeRecovery",
    "NodeProvisioningMode",
    "Orchestrator",
    "TieredStorageConfig",
    "AutoScaling",
    "ClusterRole",
)


class _Cluster(Handler):
    """A cluster whose every update sends all its instance groups, with the counts of the template."""

    type = "AWS::SageMaker::Cluster"
    supported = frozenset({*_UPDATED, "ClusterName", "InstanceGroups", "Tags", "VpcConfig"})

    def create(self, call: Call, properties: Properties) -> Attributes:
        given = picked(properties, *_UPDATED, "InstanceGroups", "VpcConfig")
        name = properties.get("ClusterName") or call.physical_name(63)
        made = call.client("sagemaker").create_cluster(ClusterName=name, **_typed(given), Tags=_tags(properties))
        return {"ClusterArn": call.made(made["ClusterArn"])}

    def update(self, call: Call, properties: Properties, before: Properties) -> Attributes:
        if changed(properties, before) - {"Tags"}:
            names = {each["InstanceGroupName"] for each in properties["InstanceGroups"]}
            gone = [
                each["InstanceGroupName"]
                for each in before["InstanceGroups"]
                if each["InstanceGroupName"] not in names
            ]
            call.client("sagemaker").update_cluster(
                ClusterName=properties["ClusterName"],
                **_typed(picked(properties, *_UPDATED, "InstanceGroups")),
                **({"InstanceGroupsToDelete": gone} if gone else {}),
            )
        retag(call, "sagemaker", properties, before)
        return {}

    def delete(self, call: Call) -> None:
        if_there(call.client("sagemaker").delete_cluster, ClusterName=call.physical_id)


class _SchedulerConfig(Handler):
    """The policy of a cluster's task governance."""

    type = "AWS::SageMaker::ClusterSchedulerConfig"
    supported = frozenset({"ClusterArn", "Description", "Name", "SchedulerConfig", "Tags"})

    def create(self, call: Call, properties: Properties) -> Attributes:
        given = picked(properties, "ClusterArn", "Description", "Name", "SchedulerConfig")
        made = call.client("sagemaker").create_cluster_scheduler_config(**_typed(given), Tags=_tags(properties))
        call.made(made["ClusterSchedulerConfigArn"])
        return dict(made) | {"ClusterSchedulerConfigVersion": 1}

    def update(self, call: Call, properties: Properties, before: Properties) -> Attributes:
        if not self.only_changed(properties, before, "SchedulerConfig", "Tags") & {"SchedulerConfig"}:
            return {}
        client, own = call.client("sagemaker"), call.physical_id.rpartition("/")[2]
        described = client.describe_cluster_scheduler_config(ClusterSchedulerConfigId=own)
        answer = client.update_cluster_scheduler_config(
            ClusterSchedulerConfigId=own,
            TargetVersion=described["ClusterSchedulerConfigVersion"],
            SchedulerConfig=_typed(properties["SchedulerConfig"]),
        )
        return {"ClusterSchedulerConfigVersion": answer["ClusterSchedulerConfigVersion"]}

    def delete(self, call: Call) -> None:
        own = call.physical_id.rpartition("/")[2]
        if_there(call.client("sagemaker").delete_cluster_scheduler_config, ClusterSchedulerConfigId=own)


def _tags(properties: Properties) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in tags_of(properties).items()]


def _typed(value: Any) -> Any:
    """Return properties with numbers where templates write them as text."""
    numbers = {"InstanceCount", "MinInstanceCount", "ThreadsPerCore", "InstanceMemoryAllocationPercentage", "Weight"}
    if isinstance(value, dict):
        return {key: int(each) if key in numbers else _typed(each) for key, each in value.items()}
    return [_typed(each) for each in value] if isinstance(value, list) else value


HANDLERS: tuple[Handler, ...] = (_Cluster(), _SchedulerConfig())
