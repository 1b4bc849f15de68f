"""Compute environments, job queues, scheduling policies and job definitions of AWS Batch.

https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/AWS_Batch.html
"""

from collections.abc import Mapping
from typing import Any

from local_aws.cloudformation.resources.base import Attributes, Call, Handler, Properties, changed, tags_of
from local_aws.cloudformation.resources.tags import retag

_SPELT = {"MinvCpus": "minvCpus", "MaxvCpus": "maxvCpus", "DesiredvCpus": "desiredvCpus"}
# Keys that are the user's own.
_OWN = frozenset({"Tags", "Options", "Parameters"})


def _camel(value: Any) -> Any:
    """Return what a template says in the API's words, which begin with a small letter."""
    if isinstance(value, list):
        return [_camel(each) for each in value]
    if not isinstance(value, Mapping):
        return value
    return {
        _SPELT.get(name, name[:1].lower() + name[1:]): dict(each) if name in _OWN else _camel(each)
        for name, each in value.items()
    }


class _Environment(Handler):
    """A compute environment: replaced by each change that needs new nodes, unless the template says otherwise."""

    type = "AWS::Batch::ComputeEnvironment"
    supported = frozenset(
        {
            "ComputeEnvironmentName",
            "ComputeResources",
            "ReplaceComputeEnvironment",
            "ServiceRole",
            "State",
            "Tags",
            "Type",
            "UpdatePolicy",
        }
    )

    def create(self, call: Call, properties: Properties) -> Attributes:
        asked = {
            name: value for name, value in properties.items() if name not in {"ReplaceComputeEnvironment", "Tags"}
        }
        asked.pop("UpdatePolicy", None)
        name = asked.pop("ComputeEnvironmentName", None) or call.physical_name(128)
        client = call.client("batch")
        made = client.create_compute_environment(
            computeEnvironmentName=name, tags=dict(properties.get("Tags") or {}), **_created(_camel(asked))
        )
        arn = call.made(made["computeEnvironmentArn"])
        if "UpdatePolicy" in properties:
            client.update_compute_environment(computeEnvironment=arn, updatePolicy=_camel(properties["UpdatePolicy"]))
        return {"ComputeEnvironmentArn": arn}

    def update(self, call: Call, properties: Properties, before: Properties) -> Attributes:
        names = changed(properties, before) - {"ReplaceComputeEnvironment"}
        asked = _camel({name: properties[name] for name in names if name in properties})
        new, old = properties["ComputeResources"], before["ComputeResources"]
        if "computeResources" in asked:
            asked["computeResources"] = _camel({name: new[name] for name in changed(new, old) if name in new})
        # Written again with any change, whatever an operator has made of them since.
        asked.setdefault("computeResources", {})["maxvCpus"] = new["MaxvCpus"]
        asked["state"] = properties.get("State", "ENABLED")
        call.client("batch").update_compute_environment(computeEnvironment=call.physical_id, **asked)
        return {"ComputeEnvironmentArn": call.physical_id}

    def delete(self, call: Call) -> None:
        client = call.client("batch")
        if client.describe_compute_environments(computeEnvironments=[call.physical_id])["computeEnvironments"]:
            client.update_compute_environment(computeEnvironment=call.physical_id, state="DISABLED")
            client.delete_compute_environment(computeEnvironment=call.physical_id)


def _created(asked: dict[str, Any]) -> dict[str, Any]:
    """Return what CreateComputeEnvironment takes: what only an update takes is left out."""
    resources = {
        name: value for name, value in asked["computeResources"].items() if name != "updateToLatestImageVersion"
    }
    return {**asked, "type": asked["type"].upper(), "computeResources": resources}


class _Queue(Handler):
    """A job queue."""

    type = "AWS::Batch::JobQueue"
    supported = frozenset(
        {
            "ComputeEnvironmentOrder",
            "JobQueueName",
            "JobStateTimeLimitActions",
            "Priority",
            "SchedulingPolicyArn",
            "State",
            "Tags",
        }
    )

    def create(self, call: Call, properties: Properties) -> Attributes:
        asked = {name: value for name, value in properties.items() if name not in {"JobQueueName", "Tags"}}
        name = properties.get("JobQueueName") or call.physical_name(128)
        made = call.client("batch").create_job_queue(jobQueueName=name, tags=tags_of(properties), **_camel(asked))
        return {"JobQueueArn": call.made(made["jobQueueArn"])}

    def update(self, call: Call, properties: Properties, before: Properties) -> Attributes:
        names = changed(properties, before) - {"Tags"}
        asked = _camel({name: properties[name] for name in names if name in properties})
        call.client("batch").update_job_queue(jobQueue=call.physical_id, **asked)
        retag(call, "batch", properties, before)
        return {"JobQueueArn": call.physical_id}

    def delete(self, call: Call) -> None:
        client = call.client("batch")
        if client.describe_job_queues(jobQueues=[call.physical_id])["jobQueues"]:
            client.update_job_queue(jobQueue=call.physical_id, state="DISABLED")
            client.delete_job_queue(jobQueue=call.physical_id)


class _Policy(Handler):
    """A scheduling policy."""

    type = "AWS::Batch::SchedulingPolicy"
    supported = frozenset({"FairsharePolicy", "Name", "Tags"})

    def create(self, call: Call, properties: Properties) -> Attributes:
        name = properties.get("Name") or call.physical_name(128)
        made = call.client("batch").create_scheduling_policy(
            name=name, fairsharePolicy=_camel(properties.get("FairsharePolicy") or {}), tags=tags_of(properties)
        )
        return {"Arn": call.made(made["arn"])}

    def update(self, call: Call, properties: Properties, before: Properties) -> Attributes:
        if changed(properties, before) & {"FairsharePolicy"}:
            call.client("batch").update_scheduling_policy(
                arn=call.physical_id, fairsharePolicy=_camel(properties["FairsharePolicy"])
            )
        return {"Arn": call.physical_id}

    def delete(self, call: Call) -> None:
        call.client("batch").delete_scheduling_policy(arn=call.physical_id)


class _Definition(Handler):
    """A job definition; each change registers another revision."""

    type = "AWS::Batch::JobDefinition"
    supported = frozenset(
        {"JobDefinitionName", "NodeProperties", "PropagateTags", "RetryStrategy", "Tags", "Timeout", "Type"}
        | {"ContainerProperties", "PlatformCapabilities", "Parameters", "SchedulingPriority"}
    )

    def create(self, call: Call, properties: Properties) -> Attributes:
        name = properties.get("JobDefinitionName") or call.physical_name(128)
        made = self._register(call, name, properties)
        call.made(name)
        return {"JobDefinitionArn": made}

    def update(self, call: Call, properties: Properties, before: Properties) -> Attributes:  # noqa: ARG002 - the whole is registered again
        old = call.attributes["JobDefinitionArn"]
        made = self._register(call, call.physical_id, properties)
        call.client("batch").deregister_job_definition(jobDefinition=old)
        return {"JobDefinitionArn": made}

    def delete(self, call: Call) -> None:
        client = call.client("batch")
        active = client.describe_job_definitions(jobDefinitionName=call.physical_id, status="ACTIVE")
        for each in active["jobDefinitions"]:
            client.deregister_job_definition(jobDefinition=each["jobDefinitionArn"])

    @staticmethod
    def _register(call: Call, name: str, properties: Properties) -> str:
        asked = {key: value for key, value in properties.items() if key not in {"JobDefinitionName", "Tags"}}
        made = call.client("batch").register_job_definition(
            jobDefinitionName=name, tags=tags_of(properties), **_camel(asked)
        )
        return str(made["jobDefinitionArn"])


HANDLERS: tuple[Handler, ...] = (_Environment(), _Queue(), _Policy(), _Definition())
