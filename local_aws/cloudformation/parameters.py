"""Parameter values: given, defaulted, read from Systems Manager, and checked as CloudFormation checks them.

https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/parameters-section-structure.html
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

from botocore.exceptions import ClientError

from local_aws.cloudformation.failures import ValidationError

_SSM_VALUE = re.compile(r"AWS::SSM::Parameter::Value<(.+)>")
_PLAIN = frozenset({"String", "Number", "AWS::SSM::Parameter::Name"})

_IMAGE = "AWS::EC2::Image::Id"


def resolve(
    definitions: Mapping[str, Mapping[str, Any]],
    given: Mapping[str, str],
    client: Callable[[str], Any],
) -> dict[str, Any]:
    """Return the value of every parameter.

    Args:
        definitions: The template's Parameters.
        given: What the request gives.
        client: Returns a client of a service, to read parameters and to look ids up.

    Raises:
        ValidationError: as CloudFormation answers, if a value is missing, unknown or not allowed.
    """
    strange = sorted(set(given) - set(definitions))
    if strange:
        raise ValidationError(f"Parameters: [{', '.join(strange)}] do not exist in the template")
    missing = sorted(
        name for name, definition in definitions.items() if name not in given and "Default" not in definition
    )
    if missing:
        raise ValidationError(f"Parameters: [{', '.join(missing)}] must have values")
    return {
        name: _value(name, definition, given.get(name, definition.get("Default")), client)
        for name, definition in definitions.items()
    }


def _value(name: str, definition: Mapping[str, Any], raw: Any, client: Callable[[str], Any]) -> Any:
    text = _text(raw)
    _check_constraints(name, definition, text)
    kind = definition.get("Type", "String")
    from_store = _SSM_VALUE.fullmatch(kind)
    if from_store:
        text, kind = _stored(text, client), from_store[1]
    if kind == "CommaDelimitedList":
        return [part.strip() for part in text.split(",")] if text else []
    _check_kind(name, kind, text, client)
    return text


def _text(raw: Any) -> str:
    if isinstance(raw, bool):
        return "true" if raw else "false"
    return ",".join(map(str, raw)) if isinstance(raw, list) else str(raw)


def _check_constraints(name: str, definition: Mapping[str, Any], text: str) -> None:
    said = definition.get("ConstraintDescription")
    allowed = definition.get("AllowedValues")
    if allowed and text not in [_text(value) for value in allowed]:
        raise ValidationError(said or f"Parameter '{name}' must be one of AllowedValues")
    pattern = definition.get("AllowedPattern")
    if pattern and not re.fullmatch(pattern, text):
        raise ValidationError(f"Parameter '{name}' must match pattern {said or pattern}")
    measures: dict[str, float] = {"Length": len(text)}
    if definition.get("Type") == "Number":
        measures["Value"] = float(text)
    for measure, size in measures.items():
        lowest, highest = definition.get(f"Min{measure}"), definition.get(f"Max{measure}")
        if (lowest is not None and size < float(lowest)) or (highest is not None and size > float(highest)):
            raise ValidationError(said or f"Parameter '{name}' is outside its Min{measure} or Max{measure}")


def _stored(parameter: str, client: Callable[[str], Any]) -> str:
    try:
        return str(client("ssm").get_parameter(Name=parameter)["Parameter"]["Value"])
    except ClientError as error:
        raise ValidationError(
            f"Unable to fetch parameters [{parameter}] from parameter store for this account."
        ) from error


def _check_kind(name: str, kind: str, value: str, client: Callable[[str], Any]) -> None:
    if kind == "Number":
        try:
            float(value)
        except ValueError as error:
            raise ValidationError(f"Parameter '{name}' must be a number.") from error
    elif kind == _IMAGE:
        try:
            client("ec2").describe_images(ImageIds=[value])
        except ClientError as error:
            raise ValidationError(
                f"Parameter validation failed: parameter value {value} for parameter name {name} does not exist"
            ) from error
    elif kind not in _PLAIN:
        raise ValidationError(f"Template format error: the local AWS has no parameter type {kind} ({name})")


def shown(definitions: Mapping[str, Mapping[str, Any]], values: Mapping[str, str]) -> list[dict[str, str]]:
    """Return parameters as DescribeStacks shows them: NoEcho ones masked."""
    return [
        {
            "ParameterKey": name,
            "ParameterValue": "****"
            if str(definitions.get(name, {}).get("NoEcho", False)).lower() == "true"
            else _text(value),
        }
        for name, value in values.items()
    ]
