"""One action of a service that sets properties, written as botocore's model of the service has it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import jmespath  # type: ignore[import-untyped]

from local_aws.cloudformation import schemas
from local_aws.cloudformation.failures import HandlerError

# Where answers to several things at once say which of them failed, and why.
_FAILURE = jmespath.compile(
    "Unsuccessful[0].Error.Message || FailedEntries[0].ErrorMessage || Failed[0].ErrorMessage"
)


@dataclass(frozen=True)
class Action:
    """An action of a service.

    Attributes:
        operation: Its name in boto3.
        takes: The properties that it takes, as `Property`, or as `Property.Inner:Parameter` where the parameter has
            another name.
        id: The parameter that takes the physical id. Default: - none does.
        into: The parameter that takes all properties, as a mapping of texts. Default: - each has its own.
        also: Parameters that it always gets.
        absent: What it gets in place of properties that are not given.
        without: The action that takes the place of this one where none of its properties is given. Default: - none.
        whole: Whether what is not given is taken away. Default: - it stays as it was.
    """

    operation: str
    takes: str = ""
    id: str = ""
    into: str = ""
    also: Mapping[str, Any] = field(default_factory=dict)
    absent: Mapping[str, Any] = field(default_factory=dict)
    without: str = ""
    whole: bool = False

    @property
    def properties(self) -> frozenset[str]:
        """The properties that it takes."""
        return frozenset(taken.partition(":")[0].partition(".")[0] for taken in self.takes.split())

    def can_drop(self, name: str) -> bool:
        """Tell whether it can take a property away that is given no longer."""
        return self.whole or bool(self.without) or name in self.absent

    def call(self, client: Any, properties: Mapping[str, Any], physical_id: str, **more: Any) -> Any:
        """Call the action.

        Args:
            client: The service's client.
            properties: The resource's properties.
            physical_id: The physical resource.
            **more: More parameters.

        Raises:
            HandlerError: The answer says that what was asked for failed.
        """
        operation, given = self.operation, [name for name in self.properties if name in properties]
        if self.without and not given:
            return getattr(client, self.without)(**{self.id: physical_id})
        members = client.meta.service_model.operation_model(
            client.meta.method_to_api_mapping[operation]
        ).input_shape.members
        request: dict[str, Any] = {}
        for taken in self.takes.split():
            path, _, parameter = taken.partition(":")
            parameter = parameter or path
            value = schemas.value_at(properties, tuple(path.split(".")))
            if value is None:
                value = self.absent.get(path)
            if value is not None and self.into:
                request.setdefault(self.into, {})[path] = _text(value)
            elif value is not None:
                parameter = parameter if parameter in members else parameter[0].lower() + parameter[1:]
                request[parameter] = _written(value, members[parameter])
        if self.id:
            request[self.id] = _written(physical_id, members[self.id])
        answer = getattr(client, operation)(**{**request, **self.also, **more})
        failure = _FAILURE.search(answer)
        if failure:
            raise HandlerError(failure, "NotFound" if "not exist" in failure else "InvalidRequest")
        return answer


def tags_parameter(client: Any, operation: str, tags: Mapping[str, str]) -> dict[str, Any]:
    """Return the parameter that tags a resource at its creation, as the action has it; none for no tags."""
    members = client.meta.service_model.operation_model(
        client.meta.method_to_api_mapping[operation]
    ).input_shape.members
    name = "Tags" if "Tags" in members else "tags"
    return {name: _written(dict(tags), members[name])} if tags else {}


def _written(value: Any, shape: Any) -> Any:
    """Return a property's value in the form that a service's model gives the parameter."""
    match shape.type_name, value:
        case "string", dict() | bool() | int():
            value = _text(value)
        case "integer" | "long", str():
            value = int(value)
        case "list", str():
            value = [value]
        case "list", dict():
            key, tagged = shape.member.members
            value = [{key: name, tagged: text} for name, text in value.items()]
        case "list", [str(), *_] if shape.member.type_name == "structure":
            value = [{"Key": key} for key in value]
        case "map", list():
            value = {tag["Key"]: tag["Value"] for tag in value}
        case "structure", bool():
            value = {"Value": value}
    return value


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value) if isinstance(value, dict | list) else str(value)
