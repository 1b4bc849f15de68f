"""A document's parameters: what StartAutomationExecution and SendCommand refuse, and what `{{ name }}` becomes.

The refusals are as users quote them, but for that of a pattern, which none does.
https://docs.aws.amazon.com/systems-manager/latest/userguide/documents-syntax-data-elements-parameters.html
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from local_aws.refusal import Refusal

_WHOLE = re.compile(r"\{\{\s*([A-Za-z0-9_.:-]+)\s*\}\}")
_LISTS = ("StringList", "List<")
_ONE: Mapping[str, Callable[[str], Any]] = {
    "Boolean": lambda text: text.lower() == "true",
    "Integer": int,
    "MapList": json.loads,
    "StringMap": json.loads,
}


def parameters_of(
    content: Mapping[str, Any],
    given: Mapping[str, Sequence[str]],
    code: str = "InvalidAutomationExecutionParametersException",
) -> dict[str, Any]:
    """Return the values of a document's parameters, given as both actions take them: lists of text.

    Raises:
        Refusal: With the code.
    """
    declared: Mapping[str, Mapping[str, Any]] = content.get("parameters") or {}
    unknown = sorted(set(given) - set(declared))
    if unknown:
        raise Refusal(code, f"Undefined execution inputs: [{', '.join(unknown)}]")
    missing = sorted(name for name in set(declared) - set(given) if "default" not in declared[name])
    if missing:
        raise Refusal(code, f"Missing required parameter: {', '.join(missing)} in user inputs.")
    return {
        name: _value(name, declaration, given[name], code) if name in given else declaration["default"]
        for name, declaration in declared.items()
    }


def _value(name: str, declaration: Mapping[str, Any], texts: Sequence[str], code: str) -> Any:
    kind = str(declaration["type"])
    if not kind.startswith(_LISTS) and len(texts) != 1:
        raise Refusal(code, f'Parameter "{name}" of type {kind} takes one value, got {len(texts)}.')
    allowed = declaration.get("allowedValues")
    for text in texts:
        if allowed is not None and text not in [str(each) for each in allowed]:
            raise Refusal(
                code,
                f'Parameter "{name}" has value "{text}" not found in [{", ".join(str(each) for each in allowed)}].',
            )
        if not re.search(declaration.get("allowedPattern", ""), text):
            raise Refusal(
                code, f'Parameter "{name}" has value "{text}" not matching {declaration["allowedPattern"]}.'
            )
    return list(texts) if kind.startswith(_LISTS) else _ONE.get(kind, str)(texts[0])


def filled(value: Any, known: Mapping[str, Any]) -> Any:
    """Return a step's input with its references filled in; one that is the whole text keeps its type.

    Args:
        value: The input, with text anywhere in it.
        known: What can be named: parameters, `automation:…`, and outputs of earlier steps.
    """
    if isinstance(value, Mapping):
        return {key: filled(each, known) for key, each in value.items()}
    if isinstance(value, list):
        return [filled(each, known) for each in value]
    if not isinstance(value, str):
        return value
    whole = _WHOLE.fullmatch(value)
    if whole:
        return _named(whole[1], known)
    return _WHOLE.sub(lambda found: _text(_named(found[1], known)), value)


def _named(name: str, known: Mapping[str, Any]) -> Any:
    if name not in known:
        raise Refusal("InvalidAutomationExecutionParametersException", f"Undefined reference: {name}")
    return known[name]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
