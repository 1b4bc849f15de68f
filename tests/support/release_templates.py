"""What a change of the templates would replace upstream of data: told from a release's kept templates.

CloudFormation replaces a resource when a create-only property of it changes, and then whatever names it in a
create-only property of its own, up to the file system. A name that is gone counts as changed too.
https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/using-cfn-updating-stacks-update-behaviors.html
"""

import json
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from examples import PROJECT
from local_aws.cloudformation import schemas
from local_aws.cloudformation.templates import references

RELEASES = PROJECT / "releases"
VERSION: str = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["version"]

DATA = ("AWS::FSx::FileSystem", "AWS::S3::Bucket", "AWS::EC2::PlacementGroup")
"""What must not be replaced: it holds data, or running nodes."""

Templates = Mapping[str, Mapping[str, Any]]
"""The templates of a cloud assembly, by stack."""


@dataclass(frozen=True)
class Resource:
    """A resource of one of an assembly's stacks."""

    stack: str
    logical_id: str


def kept_clusters() -> list[Path]:
    """Return the folders of all releases' clusters, each with its cluster file and its templates."""
    return sorted(path for path in RELEASES.glob("*/*") if path.is_dir())


def data_in(templates: Templates) -> list[Resource]:
    """Return the resources that must not be replaced.

    Args:
        templates: The templates by stack.
    """
    return [
        Resource(stack, logical_id)
        for stack, template in templates.items()
        for logical_id, definition in template["Resources"].items()
        if definition["Type"] in DATA
    ]


def replacements(kept: Templates, now: Templates) -> list[str]:
    """Tell what would be replaced, or lost, upstream of data; a sentence for each property.

    Args:
        kept: The templates of a release, by stack.
        now: Those of the same cluster file now.
    """
    hanging: dict[Resource, list[Resource]] = {}
    for data in data_in(kept):
        for resource in upstream(kept, data):
            hanging.setdefault(resource, []).append(data)
    return [
        f"{resource.stack}: {change}; on it hangs {', '.join(_named(kept, data) for data in datas)}"
        for resource, datas in hanging.items()
        for change in _changes(kept, now, resource)
    ]


def upstream(templates: Templates, start: Resource) -> list[Resource]:
    """Return a resource and all that it refers to, directly or not, in its own stack and in others.

    Args:
        templates: The templates by stack.
        start: Where to start.
    """
    found: list[Resource] = []
    waiting = [start]
    while waiting:
        resource = waiting.pop(0)
        if resource not in found:
            found.append(resource)
            # Without DependsOn: it orders a deployment, and replaces nothing.
            properties = templates[resource.stack]["Resources"][resource.logical_id].get("Properties", {})
            waiting += _referred(templates, resource.stack, properties)
    return found


def _referred(templates: Templates, stack: str, value: Any) -> Iterator[Resource]:
    resources = templates[stack]["Resources"]
    yield from (Resource(stack, name) for name in references(value) if name in resources)
    for name in _imports(value):
        exporter, exported = _export(templates, name)
        if exporter is not None:
            yield from _referred(templates, exporter, exported)


def _imports(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, item in value.items():
            if key == "Fn::ImportValue" and isinstance(item, str):
                yield item
            else:
                yield from _imports(item)
    elif isinstance(value, list):
        for item in value:
            yield from _imports(item)


def _export(templates: Templates, name: str) -> tuple[str | None, Any]:
    for stack, template in templates.items():
        for output in template.get("Outputs", {}).values():
            if output.get("Export", {}).get("Name") == name:
                return stack, output["Value"]
    return None, name


def _changes(kept: Templates, now: Templates, resource: Resource) -> Iterator[str]:
    if resource.stack not in now:
        yield f"the stack is gone, and {resource.logical_id} with it"
        return
    was = kept[resource.stack]["Resources"][resource.logical_id]
    will_be = now[resource.stack]["Resources"].get(resource.logical_id)
    what = f"{resource.logical_id} ({was['Type']})"
    if will_be is None:
        yield f"{what} is gone"
    elif will_be["Type"] != was["Type"]:
        yield f"{what} is of the type {will_be['Type']} now"
    else:
        for path in schemas.create_only(was["Type"]):
            before = _meaning(kept, resource.stack, _value(was, path))
            after = _meaning(now, resource.stack, _value(will_be, path))
            if before != after:
                yield f"{what}: create-only {'.'.join(path)} was {_text(before)} and is {_text(after)}"


def _value(definition: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    """Return the value at a path, or the function above it, which gives it."""
    properties = definition.get("Properties", {})
    for length in range(1, len(path)):
        above = schemas.value_at(properties, path[:length])
        if isinstance(above, dict) and any(key == "Ref" or key.startswith("Fn::") for key in above):
            return above
    return schemas.value_at(properties, path)


def _meaning(templates: Templates, stack: str, value: Any) -> Any:
    """Put in for imports and parameters what they stand for: their names may change, and that may not."""
    if isinstance(value, list):
        return [_meaning(templates, stack, item) for item in value]
    if not isinstance(value, dict):
        return value
    if isinstance(value.get("Fn::ImportValue"), str):
        exporter, exported = _export(templates, value["Fn::ImportValue"])
        return {"stack": exporter, "exports": exported}
    if value.get("Ref") in templates[stack].get("Parameters", {}):
        return {"parameter": templates[stack]["Parameters"][value["Ref"]]}
    return {key: _meaning(templates, stack, item) for key, item in value.items()}


def _text(value: Any) -> str:
    return "absent" if value is None else json.dumps(value)


def _named(templates: Templates, resource: Resource) -> str:
    kind = templates[resource.stack]["Resources"][resource.logical_id]["Type"]
    return f"{resource.logical_id} ({kind}) of {resource.stack}"
