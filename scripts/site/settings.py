"""The page of every setting of a cluster file, from its JSON Schema."""

import json
from collections.abc import Iterable
from typing import Any

_LARGEST = 2**31 - 1  # stands for no limit


def page(schema: dict[str, Any]) -> str:
    """Return the page.

    Args:
        schema: The JSON Schema of a cluster file.
    """
    parts = [
        "# Every setting of a cluster file",
        "Made from the file's JSON Schema, which `training-cluster schema` writes: editors that know YAML complete "
        "and check with it. A setting without a default may be left out unless it is required.",
        _section("The file", schema),
    ]
    parts += [_section(name, definition) for name, definition in schema["$defs"].items()]
    return "\n\n".join(parts) + "\n"


def _section(name: str, definition: dict[str, Any]) -> str:
    required = definition.get("required", [])
    items = [
        _setting(name, key, facts, required=key in required)
        for key, facts in definition.get("properties", {}).items()
    ]
    return f"## {_title(name)}\n\n{definition.get('description', '')}\n\n" + "\n".join(items)


def _setting(section: str, key: str, facts: dict[str, Any], *, required: bool) -> str:
    kind = _kind(facts)
    limits = [kind, *_limits(facts)]
    if required:
        limits.append("**required**")
    elif facts.get("default") is not None:
        limits.append(f"default `{json.dumps(facts['default'])}`")
    example = f" Example: `{json.dumps(facts['examples'][0])}`." if facts.get("examples") else ""
    return (
        f"- **`{key}`**{{ #{_anchor(section)}-{key} }} ({', '.join(limits)}): {facts.get('description', '')}{example}"
    )


def _kind(facts: dict[str, Any]) -> str:
    match facts:
        case {"$ref": reference}:
            name = reference.rsplit("/", 1)[-1]
            said = f"[{_title(name)}](#{_anchor(name)})"
        case {"anyOf": choices} | {"oneOf": choices}:
            said = _either(map(_kind, choices))
        case {"enum": values}:
            said = _either(f"`{json.dumps(value)}`" for value in values)
        case {"const": value}:
            said = f"`{json.dumps(value)}`"
        case {"type": "array"}:
            said = f"list of {_kind(facts.get('items', {}))}"
        case {"type": "object", "additionalProperties": dict(values)}:
            said = f"keys with {_kind(values)}"
        case _:
            kinds = facts.get("type", "any value")
            said = _either(kinds if isinstance(kinds, list) else [kinds])
    return said


def _either(choices: Iterable[str]) -> str:
    return " or ".join(dict.fromkeys(choices))


def _limits(facts: dict[str, Any]) -> list[str]:
    limits = []
    if "minimum" in facts:
        limits.append(f"at least {facts['minimum']}")
    if "exclusiveMinimum" in facts:
        limits.append(f"above {facts['exclusiveMinimum']}")
    if facts.get("maximum", _LARGEST) != _LARGEST:
        limits.append(f"at most {facts['maximum']}")
    if "minItems" in facts or "maxItems" in facts:
        limits.append(f"{facts.get('minItems', 0)} to {facts.get('maxItems', 'any number of')} items")
    return limits


def _title(name: str) -> str:
    return name.removesuffix("Settings")


def _anchor(name: str) -> str:
    return _title(name).lower().replace(" ", "-")
