"""Reading a template, JSON or YAML without CloudFormation's short forms, and its format's rules.

https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/template-anatomy.html
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from local_aws.cloudformation.failures import ValidationError

_COMES_LAST = "AWS::AutoScaling::LifecycleHook"
_SECTIONS = frozenset(
    {
        "AWSTemplateFormatVersion",
        "Conditions",
        "Description",
        "Mappings",
        "Metadata",
        "Outputs",
        "Parameters",
        "Resources",
        "Rules",
    }
)
_RESOURCE_ATTRIBUTES = frozenset(
    {
        "Condition",
        "CreationPolicy",
        "DeletionPolicy",
        "DependsOn",
        "Metadata",
        "Properties",
        "Type",
        "UpdatePolicy",
        "UpdateReplacePolicy",
    }
)
_DELETION_POLICIES = frozenset({"Delete", "Retain", "RetainExceptOnCreate", "Snapshot"})
_MOST_RESOURCES = 500
_MOST_BYTES = 1_000_000
# https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/cloudformation-limits.html
_LONGEST_NAME = 255
_MOST_DESCRIPTION_BYTES = 1024
_LONGEST_DESCRIPTION = {"Parameters": 4000, "Outputs": 1024}

PSEUDO_PARAMETERS = frozenset(
    f"AWS::{name}"
    for name in (
        "AccountId",
        "NoValue",
        "NotificationARNs",
        "Partition",
        "Region",
        "StackId",
        "StackName",
        "URLSuffix",
    )
)

SUBSTITUTION = re.compile(r"\$\{([^!{}][^{}]*)\}")


def parse(text: str) -> dict[str, Any]:
    """Return the template that `text` holds, checked against the format.

    Raises:
        ValidationError: as CloudFormation answers, if it is no template.
    """
    if len(text.encode()) > _MOST_BYTES:
        raise ValidationError(f"Template may not exceed {_MOST_BYTES} bytes in size.")
    try:
        template = json.loads(text) if text.lstrip().startswith("{") else yaml.safe_load(text)
    except (ValueError, yaml.YAMLError) as error:
        raise ValidationError(f"Template format error: {error}") from error
    if not isinstance(template, dict):
        raise ValidationError("Template format error: unsupported structure.")
    _check_format(template)
    return template


def _check_format(template: Mapping[str, Any]) -> None:
    unknown = sorted(set(template) - _SECTIONS)
    if unknown:
        raise ValidationError(f"Invalid template property or properties [{', '.join(unknown)}]")
    resources = template.get("Resources")
    if not isinstance(resources, dict) or not resources:
        raise ValidationError("Template format error: At least one Resources member must be defined.")
    if len(resources) > _MOST_RESOURCES:
        raise ValidationError(
            f"Template format error: Number of resources, {len(resources)}, is greater than maximum allowed, "
            f"{_MOST_RESOURCES}"
        )
    _check_texts(template)
    for logical_id, resource in resources.items():
        if not isinstance(resource, dict) or not isinstance(resource.get("Type"), str):
            raise ValidationError(
                f"Template format error: [/Resources/{logical_id}] Every Resources object must contain a Type member."
            )
        strange = sorted(set(resource) - _RESOURCE_ATTRIBUTES)
        if strange:
            raise ValidationError(f"Invalid template resource property '{strange[0]}' (Resources/{logical_id})")
        for policy in ("DeletionPolicy", "UpdateReplacePolicy"):
            if resource.get(policy, "Delete") not in _DELETION_POLICIES:
                raise ValidationError(f"Template error: {policy} {resource[policy]!r} of {logical_id} is unknown.")
    _check_references(template)


def _check_texts(template: Mapping[str, Any]) -> None:
    """Refuse names and descriptions of the template's own sections that CloudFormation does not take.

    Sources: https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/outputs-section-structure.html and
    https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/using-cfn-stack-exports.html
    """
    described = template.get("Description", "")
    if not isinstance(described, str):
        raise ValidationError("Template format error: Description must be a string.")
    if len(described.encode()) > _MOST_DESCRIPTION_BYTES:
        raise ValidationError(
            f"Template format error: 'Description' length is greater than {_MOST_DESCRIPTION_BYTES} bytes."
        )
    for section, word in (("Resources", "Resource"), ("Parameters", "Parameter"), ("Outputs", "Output")):
        for name, definition in (template.get(section) or {}).items():
            if not re.fullmatch("[A-Za-z0-9]+", name):
                raise ValidationError(f"Template format error: {word} name {name} is non alphanumeric.")
            if len(name) > _LONGEST_NAME:
                raise ValidationError(
                    f"Template format error: {word} name {name} must not be longer than {_LONGEST_NAME} characters."
                )
            if section != "Resources":
                _check_definition(section, name, definition)


def _check_definition(section: str, name: str, definition: Mapping[str, Any]) -> None:
    described, longest = definition.get("Description", ""), _LONGEST_DESCRIPTION[section]
    if not isinstance(described, str) or len(described.encode()) > longest:
        raise ValidationError(
            f"Template format error: Every Description of {section} must be a string of at most {longest} bytes "
            f"({name})."
        )


def check_export(output: str, name: object) -> None:
    """Refuse the name of an output's export, once it is known: it may have functions in it.

    The message is as https://github.com/aws/aws-cdk/issues/28563 quotes it.
    """
    if not isinstance(name, str) or not re.fullmatch("[A-Za-z0-9:-]{1,255}", name):
        raise ValidationError(
            f"Template format error: Output {output} is malformed. The Name field of every Export member must be "
            "specified and consist only of alphanumeric characters, colons, or hyphens."
        )


def _check_references(template: Mapping[str, Any]) -> None:
    """Refuse references to what the template does not define, as CloudFormation does before it starts."""
    resources = template["Resources"]
    known = set(resources) | set(template.get("Parameters") or {}) | PSEUDO_PARAMETERS
    for section in ("Resources", "Outputs"):
        missing = sorted(
            {
                name
                for definition in (template.get(section) or {}).values()
                for name in references(definition)
                if name not in known
            }
        )
        if missing:
            raise ValidationError(
                f"Template format error: Unresolved resource dependencies [{', '.join(missing)}] in the {section} "
                "block of the template"
            )


def references(node: Any) -> Iterator[str]:
    """Yield the names that a part of a template refers to: by Ref, Fn::GetAtt, Fn::Sub or DependsOn."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key == "Ref" and len(node) == 1:
                yield value
            elif key == "Fn::GetAtt" and len(node) == 1:
                yield (value.split(".", 1) if isinstance(value, str) else value)[0]
            elif key == "Fn::Sub" and len(node) == 1:
                yield from _substitutions(value)
            elif key == "DependsOn" and "Type" in node:
                yield from [value] if isinstance(value, str) else value
            elif not (key in {"Metadata", "Condition"} and "Type" in node):
                yield from references(value)
    elif isinstance(node, list):
        for item in node:
            yield from references(item)


def _substitutions(value: Any) -> Iterator[str]:
    text, own = (value[0], value[1]) if isinstance(value, list) else (value, {})
    for name in SUBSTITUTION.findall(text):
        if name not in own:
            yield name.split(".", 1)[0]
    yield from references(own)


def depends_on(template: Mapping[str, Any], logical_id: str, other: str) -> bool:
    """Say whether a resource depends on another, by itself or by what it depends on."""
    resources, seen, ahead = template["Resources"], set[str](), [logical_id]
    while ahead:
        found = {name for name in references(resources[ahead.pop()]) if name in resources} - seen
        seen |= found
        ahead += found
    return other in seen


def dependency_order(template: Mapping[str, Any], active: set[str]) -> list[str]:
    """Return the logical ids of the active resources, each after all that it depends on.

    CloudFormation makes resources at the same time where it can, so that one may come long after another that does
    not depend on it. Lifecycle hooks, and what depends on them, come last: what is launched before is not held.
    https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/aws-attribute-dependson.html and
    https://docs.aws.amazon.com/autoscaling/ec2/userguide/lifecycle-hooks-overview.html

    Raises:
        ValidationError: if they depend on each other in a circle.
    """
    needs = {
        logical_id: [name for name in references(template["Resources"][logical_id]) if name in active]
        for logical_id in template["Resources"]
        if logical_id in active
    }
    order: list[str] = []
    done: set[str] = set()

    def visit(logical_id: str, path: tuple[str, ...]) -> None:
        if logical_id in done:
            return
        if logical_id in path:
            circle = path[path.index(logical_id) :]
            raise ValidationError(f"Circular dependency between resources: [{', '.join(circle)}]")
        for needed in needs[logical_id]:
            visit(needed, (*path, logical_id))
        done.add(logical_id)
        order.append(logical_id)

    for logical_id in needs:
        visit(logical_id, ())
    late: set[str] = set()
    for logical_id in order:
        if template["Resources"][logical_id]["Type"] == _COMES_LAST or late.intersection(needs[logical_id]):
            late.add(logical_id)
    return sorted(order, key=late.__contains__)
