"""What a synthesized cloud assembly says, with the ids of what was deployed from it."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rehearsal.readback import Client, stack_resources


@dataclass(frozen=True)
class Resource:
    """A resource as its template has it.

    Attributes:
        stack: The name of its stack.
        type: Its type.
        id: The physical id of what was made from it.
        properties: Its properties, with physical ids for references, and `<id>.<attribute>` for attributes.
    """

    stack: str
    type: str
    id: str
    properties: Mapping[str, Any]

    @property
    def tags(self) -> dict[str, str]:
        """Its tags, and those that it puts on itself as EC2's resources do."""
        request = self.properties.get("SpotFleetRequestConfigData", {})
        specifications = (*self.properties.get("TagSpecifications", ()), *request.get("TagSpecifications", ()))
        tags = self.properties.get("Tags", ())
        if isinstance(tags, Mapping):
            return dict(tags)
        listed = [*tags, *(tag for each in specifications for tag in each["Tags"])]
        return {tag["Key"]: tag["Value"] for tag in listed}


def templates(assembly: Path) -> dict[str, dict[str, Any]]:
    """Return the templates of an assembly by their stacks' names.

    Args:
        assembly: The directory that `cdk synth` wrote.
    """
    manifest = json.loads((assembly / "manifest.json").read_text(encoding="utf-8"))
    return {
        artifact["properties"].get("stackName", name): json.loads(
            (assembly / artifact["properties"]["templateFile"]).read_text(encoding="utf-8")
        )
        for name, artifact in manifest["artifacts"].items()
        if artifact["type"] == "aws:cloudformation:stack"
    }


def deployed_resources(assembly: Path, client: Client, pseudo: Mapping[str, str]) -> Iterator[Resource]:
    """Yield what the templates of an assembly say of each resource.

    Args:
        assembly: The directory that `cdk synth` wrote.
        client: Makes clients of the account that it was deployed to.
        pseudo: The pseudo parameters' values.
    """
    for stack, template in templates(assembly).items():
        ids = {one["LogicalResourceId"]: one["PhysicalResourceId"] for one in stack_resources(client, stack)}
        for name, resource in template["Resources"].items():
            properties = resolved(resource.get("Properties", {}), {**pseudo, **ids})
            yield Resource(stack, resource["Type"], ids.get(name, "absent"), properties)


def resolved(value: Any, ids: Mapping[str, str]) -> Any:
    """Return a value of a template with its references resolved; those of other stacks stay as they are.

    Args:
        value: The value.
        ids: Physical ids by logical id, and the pseudo parameters' values.
    """
    match value:
        case {"Ref": name}:
            value = ids.get(name, name)
        case {"Fn::GetAtt": [name, attribute]}:
            value = f"{ids.get(name, name)}.{attribute}"
        case {"Fn::Join": [separator, parts]}:
            value = separator.join(map(str, resolved(parts, ids)))
        case {"Fn::Sub": [text, own]}:
            value = _substituted(text, {**ids, **resolved(own, ids)})
        case {"Fn::Sub": str() as text}:
            value = _substituted(text, ids)
        case dict():
            value = {key: resolved(item, ids) for key, item in value.items()}
        case list():
            value = [resolved(item, ids) for item in value]
    return value


def _substituted(text: str, ids: Mapping[str, str]) -> str:
    return re.sub(r"\$\{([^}]+)\}", lambda found: str(ids.get(found[1], found[0])), text)


def of_type(resources: Iterable[Resource], *types: str) -> list[Resource]:
    """Return the resources of some types.

    Args:
        resources: All resources.
        *types: The types.
    """
    return [resource for resource in resources if resource.type in types]
