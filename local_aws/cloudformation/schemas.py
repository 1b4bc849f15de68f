"""Checking properties against CloudFormation's own provider schemas, in CloudFormation's own words.

The schemas are those that cfn-lint brings along. They are read from its package's files: never from its cache, which
may be newer on one machine than on another, and without importing it, which takes seconds.
https://docs.aws.amazon.com/cloudformation-cli/latest/userguide/resource-type-schema.html
"""

import json
from collections.abc import Callable, Iterator, Mapping
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import regex  # type: ignore[import-untyped] # it ships no types
from jsonschema import Draft7Validator, ValidationError
from jsonschema.validators import extend

from local_aws.defaults import REGION

Schema = Mapping[str, Any]


def _patch_file_system(schema: dict[str, Any]) -> None:
    # The schema names five create-only properties; the resource's documentation says "Replacement" for more:
    # https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-fsx-filesystem.html
    # https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-properties-fsx-filesystem-lustreconfiguration.html
    schema["createOnlyProperties"] = [
        *schema.get("createOnlyProperties", []),
        "/properties/StorageType",
        "/properties/FileSystemTypeVersion",
        *(
            f"/properties/LustreConfiguration/{name}"
            for name in (
                "CopyTagsToBackups",
                "DeploymentType",
                "DriveCacheType",
                "ExportPath",
                "ImportPath",
                "ImportedFileChunkSize",
            )
        ),
    ]


def _patch_table(schema: dict[str, Any]) -> None:
    # The schema calls these create-only on conditions that it does not name; the documentation says "Replacement":
    # https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-dynamodb-table.html
    schema["createOnlyProperties"] = [*schema.get("createOnlyProperties", []), "/properties/KeySchema"]


def _patch_custom_resource(schema: dict[str, Any]) -> None:
    # It is not replaced with a new token: the update is refused. Its name is what the function answers.
    # https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-resource-cloudformation-customresource.html
    schema["createOnlyProperties"] = []


_PATCHES: Mapping[str, Callable[[dict[str, Any]], None]] = {
    "AWS::CloudFormation::CustomResource": _patch_custom_resource,
    "AWS::DynamoDB::Table": _patch_table,
    "AWS::FSx::FileSystem": _patch_file_system,
}


@cache
def directory() -> Path:
    """Return where the schemas are."""
    package = find_spec("cfnlint")
    if package is None or package.origin is None:
        raise ModuleNotFoundError("cfn-lint, which brings CloudFormation's schemas along, is not installed")
    return Path(package.origin).parent / "data" / "schemas"


@cache
def _files(region: str = REGION) -> Mapping[str, str]:
    """Return the names of the schemas' files, without their ending, by resource type."""
    file = directory() / "providers" / f"{region}.json"
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}


def is_in(resource_type: str, region: str) -> bool:
    """Tell whether CloudFormation has a type in a region; of regions and types that are not known it is taken so."""
    there = _files(region)
    return not there or resource_type in there or resource_type not in _files()


@lru_cache
def schema_of(resource_type: str) -> Schema | None:
    """Return the provider schema of a resource type, or None if AWS has no such type."""
    if resource_type.startswith("Custom::"):
        resource_type = "AWS::CloudFormation::CustomResource"
    if resource_type not in _files():
        return None
    file = directory() / "resources" / f"{_files()[resource_type]}.json"
    schema: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    if resource_type in _PATCHES:
        _PATCHES[resource_type](schema)
    return schema


def create_only(resource_type: str) -> list[tuple[str, ...]]:
    """Return the paths of the properties whose change needs a new physical resource."""
    schema = schema_of(resource_type) or {}
    return [tuple(path.split("/")[2:]) for path in schema.get("createOnlyProperties", [])]


def value_at(properties: Any, path: tuple[str, ...]) -> Any:
    """Return the value at a path of properties, or None; `*` in the path stands for every item of a list."""
    if not path:
        return properties
    part, rest = path[0], path[1:]
    if part == "*":
        return [value_at(item, rest) for item in properties] if isinstance(properties, list) else None
    return value_at(properties[part], rest) if isinstance(properties, Mapping) and part in properties else None


def identifier(resource_type: str) -> set[str]:
    """Return the properties that together tell a resource from others of its type."""
    schema = schema_of(resource_type) or {}
    return {path.removeprefix("/properties/") for path in schema.get("primaryIdentifier", [])}


def name_property(resource_type: str) -> str | None:
    """Return the property that names a resource physically, if its user may choose the name."""
    schema = schema_of(resource_type) or {}
    identifiers = schema.get("primaryIdentifier", [])
    if len(identifiers) != 1 or identifiers[0] in schema.get("readOnlyProperties", []):
        return None
    return str(identifiers[0].rsplit("/", 1)[1])


def tag_property(resource_type: str) -> str | None:
    """Return the property that stack-level tags are added to, if CloudFormation tags the type."""
    schema = schema_of(resource_type) or {}
    tagging = schema.get("tagging", {"tagProperty": "/properties/Tags"})
    name = str(tagging.get("tagProperty", "")).rsplit("/", 1)[-1]
    return name if tagging.get("taggable", True) and name in schema.get("properties", {}) else None


def is_mapping(resource_type: str, name: str) -> bool:
    """Tell whether a property of a type is an object rather than a list."""
    schema = schema_of(resource_type) or {}
    return _followed(schema["properties"][name], schema).get("type") == "object"


def attributes_of(resource_type: str) -> set[str]:
    """Return the names of the attributes that Fn::GetAtt may ask a resource of the type for."""
    schema = schema_of(resource_type) or {}
    read_only = {path.removeprefix("/properties/").replace("/", ".") for path in schema.get("readOnlyProperties", [])}
    return read_only | set(schema.get("properties", {}))


def check(resource_type: str, logical_id: str, properties: Mapping[str, Any]) -> tuple[dict[str, Any], str | None]:
    """Check properties as CloudFormation does before it calls a resource's handler.

    Returns:
        The properties with strings, numbers and booleans converted to the schema's types, and the reason for
        a refusal, or None.
    """
    schema = schema_of(resource_type) or {}
    converted: dict[str, Any] = _converted(properties, schema, schema)
    problems = sorted(_problems(resource_type, converted))
    for path in schema.get("readOnlyProperties", []):
        name = path.removeprefix("/properties/")
        if "/" not in name and name in converted:
            problems.append(f"#: extraneous key [{name}] is not permitted: it is read-only")
    if not problems:
        return converted, None
    return converted, f"Properties validation failed for resource {logical_id} with message:\n" + "\n".join(problems)


def _converted(value: Any, schema: Any, root: Schema) -> Any:
    """Convert scalars as CloudFormation does: "5" to 5, 5 to "5", "true" to true, where the schema wants it."""
    schema = _followed(schema, root)
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if isinstance(value, dict):
        own, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
        return {
            key: _converted(item, own.get(key, next(iter(patterns.values()), {})), root)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [_converted(item, schema.get("items", {}), root) for item in value]
    if not kinds or any(_is_kind(value, kind) for kind in kinds):
        return value
    for kind in kinds:
        converted = _as_kind(value, kind)
        if converted is not None:
            return converted
    return value


def _followed(schema: Any, root: Schema) -> Mapping[str, Any]:
    while isinstance(schema, dict) and "$ref" in schema:
        found: Any = root
        for part in schema["$ref"].removeprefix("#/").split("/"):
            found = found[part]
        schema = found
    return schema if isinstance(schema, dict) else {}


def _is_kind(value: Any, kind: str) -> bool:
    if kind in {"integer", "number"}:
        return isinstance(value, int if kind == "integer" else int | float) and not isinstance(value, bool)
    return isinstance(value, {"string": str, "boolean": bool}.get(kind, ()))


def _as_kind(value: Any, kind: str) -> Any:
    if kind == "string" and isinstance(value, bool):
        return "true" if value else "false"
    if kind == "string" and isinstance(value, int | float):
        return str(value)
    if kind == "boolean" and isinstance(value, str) and value.lower() in {"true", "false"}:
        return value.lower() == "true"
    if kind in {"integer", "number"} and isinstance(value, str):
        try:
            return int(value) if kind == "integer" else float(value)
        except ValueError:
            return None
    return None


def _pattern(_validator: Any, pattern: str, instance: Any, _schema: Any) -> Iterator[ValidationError]:
    if isinstance(instance, str) and not regex.search(pattern, instance):
        yield ValidationError(f"string [{instance}] does not match pattern {pattern}")


# jsonschema looks keys up with Python's own `re`, which does not know AWS's Unicode classes such as `\p{L}`.
def _pattern_properties(validator: Any, patterns: Any, instance: Any, _schema: Any) -> Iterator[ValidationError]:
    for pattern, wanted in patterns.items():
        for key in _keys(instance):
            if regex.search(pattern, key):
                yield from validator.descend(instance[key], wanted, path=key, schema_path=pattern)


def _additional_properties(validator: Any, wanted: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    for key in _keys(instance):
        patterns = schema.get("patternProperties", {})
        if key in schema.get("properties", {}) or any(regex.search(pattern, key) for pattern in patterns):
            continue
        if wanted is False:
            yield ValidationError(f"extraneous key [{key}] is not permitted")
        else:
            yield from validator.descend(instance[key], wanted, path=key)


def _keys(instance: Any) -> list[str]:
    return sorted(instance) if isinstance(instance, dict) else []


def _required_xor(_validator: Any, names: list[str], instance: Any, _schema: Any) -> Iterator[ValidationError]:
    present = [name for name in names if isinstance(instance, dict) and name in instance]
    if isinstance(instance, dict) and len(present) != 1:
        yield ValidationError(f"exactly one of {', '.join(names)} is required, found {', '.join(present) or 'none'}")


def _required_or(_validator: Any, names: list[str], instance: Any, _schema: Any) -> Iterator[ValidationError]:
    if isinstance(instance, dict) and not any(name in instance for name in names):
        yield ValidationError(f"at least one of {', '.join(names)} is required")


def _excluded(_validator: Any, rules: Any, instance: Any, _schema: Any) -> Iterator[ValidationError]:
    for name, others in rules.items():
        both = [other for other in others if isinstance(instance, dict) and name in instance and other in instance]
        if both:
            yield ValidationError(f"{name} cannot be given with {', '.join(both)}")


def _dependent(_validator: Any, rules: Any, instance: Any, _schema: Any) -> Iterator[ValidationError]:
    for name, others in rules.items():
        missing = [o for o in others if isinstance(instance, dict) and name in instance and o not in instance]
        if missing:
            yield ValidationError(f"{name} needs {', '.join(missing)}")


_Validator = extend(  # type: ignore[no-untyped-call] # jsonschema's stubs leave it untyped
    Draft7Validator,
    {
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "additionalProperties": _additional_properties,
        "requiredXor": _required_xor,
        "requiredOr": _required_or,
        "dependentExcluded": _excluded,
        "dependentRequired": _dependent,
    },
)


@lru_cache
def _validator(resource_type: str) -> Any:
    return _Validator({**(schema_of(resource_type) or {}), "type": "object"})


def _problems(resource_type: str, properties: Mapping[str, Any]) -> Iterator[str]:
    for error in _validator(resource_type).iter_errors(properties):
        path = "".join(f"/{part}" for part in error.absolute_path)
        for text in _worded(error):
            yield f"#{path}: {text}"


def _worded(error: Any) -> Iterator[str]:
    """Word a violation as CloudFormation's validator does."""
    rule, wanted, found = error.validator, error.validator_value, error.instance
    if rule == "required":
        yield f"required key [{next(name for name in wanted if repr(name) in error.message)}] not found"
    elif rule == "type":
        yield f"expected type: {_type_word(wanted)}, found: {_FOUND_WORDS.get(type(found), 'Null')}"
    elif rule == "enum":
        yield f"{found} is not a valid enum value"
    elif rule in {"minLength", "maxLength"}:
        yield f"expected {rule}: {wanted}, actual: {len(found)}"
    elif rule == "minimum":
        yield f"{found} is not greater or equal to {wanted}"
    elif rule == "maximum":
        yield f"{found} is not less or equal to {wanted}"
    elif rule in {"minItems", "maxItems"}:
        yield f"expected {rule[:3]}imum item count: {wanted}, found: {len(found)}"
    elif rule == "uniqueItems":
        yield "array items are not unique"
    else:
        yield error.message


_FOUND_WORDS: Mapping[type, str] = {
    bool: "Boolean",
    dict: "JSONObject",
    float: "Number",
    int: "Integer",
    list: "JSONArray",
    str: "String",
}


def _type_word(wanted: Any) -> str:
    words = {"object": "JSONObject", "array": "JSONArray"}
    kinds = [wanted] if isinstance(wanted, str) else wanted
    return " or ".join(words.get(kind, kind.capitalize()) for kind in kinds)
