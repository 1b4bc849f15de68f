"""Tags of what exists, in the words of each service's own actions."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from local_aws.cloudformation.resources.action import Action
from local_aws.cloudformation.resources.base import Call, Properties, tags_of


@dataclass(frozen=True)
class _Tagging:
    """The actions that put tags on a resource and take them away.

    Attributes:
        put: The action that puts them on it.
        remove: The action that takes them away.
        resource: The parameter of both that names the resource.
        keys: The parameter of the second that has the keys.
        tags: The parameter of the first that has the tags.
    """

    put: str
    remove: str
    resource: str
    keys: str = "TagKeys"
    tags: str = "Tags"


_TAGGING: Mapping[str, _Tagging] = {
    "amp": _Tagging("tag_resource", "untag_resource", "resourceArn", keys="tagKeys", tags="tags"),
    "batch": _Tagging("tag_resource", "untag_resource", "resourceArn", keys="tagKeys", tags="tags"),
    "cloudwatch": _Tagging("tag_resource", "untag_resource", "ResourceARN"),
    "dynamodb": _Tagging("tag_resource", "untag_resource", "ResourceArn"),
    "ec2": _Tagging("create_tags", "delete_tags", "Resources", keys="Tags"),
    "events": _Tagging("tag_resource", "untag_resource", "ResourceARN"),
    "fsx": _Tagging("tag_resource", "untag_resource", "ResourceARN"),
    "iam": _Tagging("tag_role", "untag_role", "RoleName"),
    "lambda": _Tagging("tag_resource", "untag_resource", "Resource"),
    "logs": _Tagging("tag_resource", "untag_resource", "resourceArn", keys="tagKeys", tags="tags"),
    "pcs": _Tagging("tag_resource", "untag_resource", "resourceArn", keys="tagKeys", tags="tags"),
    "resource-groups": _Tagging("tag", "untag", "Arn", keys="Keys"),
    "sagemaker": _Tagging("add_tags", "delete_tags", "ResourceArn"),
    "sns": _Tagging("tag_resource", "untag_resource", "ResourceArn"),
    "sqs": _Tagging("tag_queue", "untag_queue", "QueueUrl"),
    "ssm": _Tagging("add_tags_to_resource", "remove_tags_from_resource", "ResourceId"),
}


def tag_specifications(properties: Properties, kind: str) -> dict[str, list[Any]]:
    """Return the parameter that tags an EC2 resource of `kind` at its creation."""
    tags = [{"Key": key, "Value": value} for key, value in tags_of(properties).items()]
    return {"TagSpecifications": [{"ResourceType": kind, "Tags": tags}]} if tags else {}


def retag(
    call: Call,
    service: str,
    properties: Properties,
    before: Properties,
    resource: str | None = None,
    **more: str,
) -> None:
    """Bring a resource's tags to those of the properties; tags that the template never set are left alone.

    Args:
        call: The updating call.
        service: The service's name in boto3.
        properties: The properties with the tags that shall be there.
        before: The properties as they were.
        resource: What the service calls the resource. Default: - its physical id.
        **more: More parameters of the actions.
    """
    tagging, client = _TAGGING[service], call.client(service)
    new, old = tags_of(properties), tags_of(before)
    changed = {key: value for key, value in new.items() if old.get(key) != value}
    for action, parameter, value in (
        (tagging.put, tagging.tags, changed),
        (tagging.remove, tagging.keys, sorted(old.keys() - new.keys())),
    ):
        if value:
            words = {tagging.resource: resource or call.physical_id, parameter: value, **more}
            Action(action, " ".join(words)).call(client, words, "")
