"""What every resource handler has: create, update, delete, and the call that it answers."""

import secrets
import string
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError
from moto.utilities.utils import get_partition

from local_aws.cloudformation.failures import CannotChangeError, is_absent

Properties = Mapping[str, Any]
Attributes = dict[str, Any]

_SUFFIX_LENGTH = 12


@dataclass
class Call:
    """One call of a handler.

    Attributes:
        client: Returns a boto3 client of a service of this AWS.
        region: The stack's region.
        account: The stack's account.
        stack_name: The stack's name.
        logical_id: The resource's name in the template.
        definition: The resource's definition in the template, for its policies.
        properties: The resource's properties.
        attributes: Its attributes, as far as they are known.
        physical_id: The physical resource; a creating handler sets it with `made`.
        rolling_back: Whether the update undoes another.
        stack_id: The stack's id.
    """

    client: Callable[[str], Any]
    region: str
    account: str
    stack_name: str
    logical_id: str
    definition: Mapping[str, Any]
    properties: Mapping[str, Any]
    attributes: Mapping[str, Any]
    physical_id: str = ""
    rolling_back: bool = False
    stack_id: str = ""

    @property
    def partition(self) -> str:
        """The partition that the region is in: aws, aws-us-gov or aws-cn."""
        return str(get_partition(self.region))

    @property
    def stack_tags(self) -> dict[str, str]:
        """The tags by which CloudFormation itself names the stack of a resource.

        https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-properties-resource-tags.html
        """
        own = {"stack-id": self.stack_id, "stack-name": self.stack_name, "logical-id": self.logical_id}
        return {f"aws:cloudformation:{key}": value for key, value in own.items()}

    def made(self, physical_id: str) -> str:
        """Note that the physical resource exists from now on: whatever fails later, it is deleted again."""
        self.physical_id = physical_id
        return physical_id

    def physical_name(self, limit: int = 255, *, lower: bool = False) -> str:
        """Return a name as CloudFormation makes one: stack, logical id and a random suffix."""
        letters = string.ascii_letters + string.digits
        suffix = "".join(secrets.choice(letters) for _ in range(_SUFFIX_LENGTH))
        name = f"{self.stack_name}-{self.logical_id}"[: limit - _SUFFIX_LENGTH - 1].rstrip("-") + f"-{suffix}"
        return name.lower() if lower else name


class Handler:
    """Creates, changes and deletes resources of one type by calling its service.

    Subclasses name their type, and every property that they support: the engine refuses a template that
    gives another one, rather than leave it out.
    """

    type: str
    supported: frozenset[str]
    may_answer_another_id = False
    """Whether an update may end with another physical id, which replaces the resource."""
    takes_any_property = False
    """Whether the resource takes other properties too, which only its owner knows."""

    def create(self, call: Call, properties: Properties) -> Attributes:
        """Make the resource, tell `call.made` its physical id, and return its attributes for Fn::GetAtt."""
        raise NotImplementedError

    def touches(self, call: Call, properties: Properties) -> frozenset[str]:  # noqa: ARG002 - for those that do
        """Return what the creation changes beside the resource: two may not change one thing at the same time."""
        return frozenset()

    def update(self, call: Call, properties: Properties, before: Properties) -> Attributes:
        """Change the resource in place from `before` to `properties` and return attributes that changed."""
        del call
        raise self.cannot_change(changed(properties, before))

    def cannot_change(self, names: Iterable[str]) -> CannotChangeError:
        """Return the error for a change that AWS may support, and the local AWS does not."""
        return CannotChangeError(f"the local AWS cannot change {', '.join(sorted(names))} of {self.type} in place")

    def only_changed(self, properties: Properties, before: Properties, *allowed: str) -> set[str]:
        """Return the names of the properties that differ; refuse a change of any but the allowed ones."""
        names = changed(properties, before)
        if names - set(allowed):
            raise self.cannot_change(names - set(allowed))
        return names

    def delete(self, call: Call) -> None:
        """Delete the physical resource."""
        raise NotImplementedError


def changed(properties: Properties, before: Properties) -> set[str]:
    """Return the names of the properties that differ."""
    return {name for name in {*properties, *before} if properties.get(name) != before.get(name)}


def picked(properties: Properties, *names: str) -> dict[str, Any]:
    """Return those of the properties that are given."""
    return {name: properties[name] for name in names if name in properties}


def tags_of(properties: Properties) -> dict[str, str]:
    """Return the Tags property as a mapping."""
    tags = properties.get("Tags") or []
    return dict(tags) if isinstance(tags, Mapping) else {tag["Key"]: tag["Value"] for tag in tags}


def wait_for_termination(call: Call, owner_tag: str) -> None:
    """Wait until the instances of what has been deleted are terminated, so that what they ran in can be deleted.

    Args:
        call: The deleting call.
        owner_tag: The tag by which instances name what owns them.
    """
    pages = call.client("ec2").get_paginator("describe_instances")
    for _ in pages.paginate(Filters=[{"Name": f"tag:{owner_tag}", "Values": [call.physical_id]}]):
        pass


def if_there(action: Callable[..., object], *arguments: Any, **named: Any) -> None:
    """Carry an action out, unless what it is about is gone already."""
    try:
        action(*arguments, **named)
    except ClientError as error:
        if not is_absent(error):
            raise
