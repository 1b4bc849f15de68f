"""Says in a sentence what pydantic found: the value that was given, what is allowed, and how to mend it."""

import json
import re
from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any, get_args

import yaml
from pydantic import BaseModel, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from cdk_training_cluster.validation.bounds import written
from cdk_training_cluster_file.capacity import EMPTY
from cdk_training_cluster_file.model import ClusterFile
from cdk_training_cluster_file.model_base import Because
from cdk_training_cluster_file.problems import Location

_LONGEST_SHOWN = 60


def explain(error: ValidationError, model: type[BaseModel] = ClusterFile) -> Iterator[tuple[Location, str]]:
    """Say what is wrong, each with its place.

    Args:
        error: What pydantic says about the values of a whole file.
        model: The model of that file. Default: `ClusterFile`
    """
    details = error.errors(include_url=False)
    meant = {
        (*_location(each)[:-1], _near(_location(each), model))
        for each in details
        if each["type"] == "extra_forbidden"
    }
    for each in details:
        where = _location(each)
        if each["type"] == "missing" and where in meant:
            continue  # it is there, under a name that is nearly right: that is the one mistake
        if each["type"] == "too_short" and each["input"]:
            continue  # pydantic counts only the entries that are right
        if each["type"] == EMPTY:
            continue  # reading the file reports any setting without a value
        for line in _sentence(each, where, model).splitlines():
            yield where, line


def shown(value: object) -> str:
    """Show a value as it stands in a file or, where that would be long, say what it is."""
    if isinstance(value, dict | list) and value:
        return "a list" if isinstance(value, list) else "settings"
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _LONGEST_SHOWN else f'{text[:_LONGEST_SHOWN]}…"'


def required_example(where: Location) -> str:
    """Show how a setting that no file can do without is written; empty: the file may leave it out.

    Args:
        where: The setting.
    """
    *parent, name = where
    setting = _fields(tuple(parent), ClusterFile).get(str(name))
    return _example(where, ClusterFile) if setting is not None and setting.is_required() else ""


def _sentence(details: ErrorDetails, where: Location, model: type[BaseModel]) -> str:
    given, kind, context = details["input"], details["type"], details.get("ctx", {})
    if kind == "missing":
        return f"is missing; add it{_example(where, model)}{_reason(where, model)}"
    if kind == "extra_forbidden":
        return f"unknown key; {_instead(where, model)}"
    if kind in _OUR_OWN_WORDS:
        return str(context["error"]) if kind == "value_error" else details["msg"]
    said = details["msg"]
    if kind in _MUST:
        example = _example(where, model) or (_example_of_settings(where, model) if kind == "model_type" else "")
        bounds = {name: written(each) if isinstance(each, int | float) else each for name, each in context.items()}
        said = f"must {_MUST[kind].format(**bounds, example=example)}".replace("'", "")
    got = str(len(given)) if kind == "too_long" else shown(given)
    return f"{said}, got {got}{_mend(kind, given, context)}"


_MUST = {
    "int_type": "be a whole number",
    "float_type": "be a number",
    "bool_type": "be true or false",
    "string_type": "be text",
    "string_too_short": "hold at least {min_length} character",
    "tuple_type": "be a list{example}",
    "model_type": "be a mapping (key: value){example}",
    "dict_type": "be a mapping (key: value){example}",
    "greater_than": "be above {gt}",
    "greater_than_equal": "be at least {ge}",
    "less_than_equal": "be at most {le}",
    "multiple_of": "be a multiple of {multiple_of}",
    "too_short": "hold at least {min_length}{example}",
    "too_long": "hold at most {max_length}",
    "literal_error": "be {expected}",
}
"""What each kind of mistake that pydantic knows is in our words."""

_OUR_OWN_WORDS = {"value_error", "too_long_text", "told"}
"""What is a whole sentence already: what constructs raise, texts that are too long, ways to buy."""


_NUMBER_PATTERNS = {"int_type": r"[-+]?[0-9]+", "float_type": r"[-+]?[0-9]*\.?[0-9]+"}
"""The texts that would be numbers without their quotes, by kind of mistake."""


def _mend(kind: str, given: object, context: dict[str, Any]) -> str:
    if kind in _NUMBER_PATTERNS and isinstance(given, str) and re.fullmatch(_NUMBER_PATTERNS[kind], given):
        return "; take the quotes away"
    if kind == "string_type" and isinstance(given, bool | int | float):
        return f'; put it in quotes: "{shown(given)}"'
    if kind == "literal_error":
        choices = re.findall(r"'([^']+)'", context["expected"])
        context = {"near": next(iter(get_close_matches(str(given), choices, n=1)), "")}
    near = context.get("near")
    return f"; did you mean {near}?" if near else ""


def _location(details: ErrorDetails) -> Location:
    # pydantic marks a mistake in a dictionary's key, as against its value, by one more step.
    return tuple(part for part in details["loc"] if part != "[key]")


def _instead(where: Location, model: type[BaseModel]) -> str:
    near, known = _near(where, model), ", ".join(_fields(where[:-1], model))
    if near:
        return f"did you mean {near}?"
    return f"known here: {known}" if known else "there is nothing to set here"


def _near(where: Location, model: type[BaseModel]) -> str:
    return next(iter(get_close_matches(str(where[-1]), _fields(where[:-1], model), n=1)), "")


def _example(where: Location, model: type[BaseModel]) -> str:
    """Show how a setting is written, from the examples in the model."""
    *parent, name = where
    setting = _fields(tuple(parent), model).get(str(name))
    examples = [_written(name, example) for example in (setting.examples if setting is not None else None) or ()]
    return f", such as {' or '.join(examples)}" if examples else ""


def _example_of_settings(where: Location, model: type[BaseModel]) -> str:
    """Show a part of the file by what it cannot do without or, if that is nothing, by the first setting of it."""
    shown_by = {name: setting.examples[0] for name, setting in _fields(where, model).items() if setting.examples}
    needed = {name: shown_by[name] for name in shown_by if _fields(where, model)[name].is_required()}
    example = needed or dict(list(shown_by.items())[:1])
    return f", such as {_written(where[-1], example)}" if example and isinstance(where[-1], str) else ""


def _written(name: str | int, value: object) -> str:
    return yaml.safe_dump({name: value}, default_flow_style=True, sort_keys=False, width=10_000).strip()[1:-1]


def _reason(where: Location, model: type[BaseModel]) -> str:
    """Say why a setting has no default, where the model does."""
    *parent, name = where
    setting = _fields(tuple(parent), model).get(str(name))
    reasons = [each.reason for each in (setting.metadata if setting else ()) if isinstance(each, Because)]
    return f"; {reasons[0]}" if reasons else ""


def _fields(where: Location, model: type[BaseModel]) -> dict[str, FieldInfo]:
    """Return the settings that a part of the file may have."""
    for part in where:
        if isinstance(part, str):
            inner = _model_in(model.model_fields[part].annotation) if part in model.model_fields else None
            if inner is None:
                return {}
            model = inner
    return model.model_fields


def _model_in(annotation: Any) -> type[BaseModel] | None:  # noqa: ANN401 - any type that may stand in a model
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((found for inner in get_args(annotation) if (found := _model_in(inner)) is not None), None)
