"""What services refuse of the texts and numbers in a call; moto stores any.

A service's model states the pattern, the least and the greatest length of most members, their values where there are
few, and how large a number can be, as its API reference prints them. The rows of `texts.toml` hold what the models
leave out, each with the address of the document that has it.
"""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import regex  # type: ignore[import-untyped] # it ships no types
from botocore.model import ListShape, MapShape, Shape, StringShape, StructureShape
from moto.core.utils import get_service_model

from local_aws.calls import Call

_READS = ("Describe", "Get", "Head", "List")


@dataclass(frozen=True, kw_only=True)
class Row:
    """What a service takes for a text or a number, where its model does not say: a row of `texts.toml`."""

    source: str
    places: Sequence[str]
    message: str
    pattern: str = ""
    range: Sequence[int] = ()
    most: int | None = None
    most_bytes: int | None = None
    code: str = ""
    unless: Mapping[str, Any] = field(default_factory=dict)

    def refuses(self, value: Any) -> bool:
        """Tell whether a text does not match, a number is out of range, or whether there are too many."""
        if isinstance(value, int):
            return not self.range[0] <= value <= self.range[1]
        if isinstance(value, str):
            return bool(self.pattern) and not _compiled(self.pattern).fullmatch(value)
        if self.most_bytes is not None:
            return sum(len(f"{name}{text}".encode()) for name, text in value.items()) > self.most_bytes
        return self.most is not None and len(value) > self.most

    def holds(self, parameters: Mapping[str, Any]) -> bool:
        """Tell whether it holds for a call with such parameters."""
        return not self.unless or parameters.get(self.unless["parameter"]) not in self.unless["is"]


# EC2 does not check by its model: the pattern of a placement group's ARN has a stray `^`, and no ARN would match.
_OWN_VALIDATION = frozenset({"ec2"})

# Where its documents say so EC2 refuses what is not in a list, but for instance types, of which it knows more.
_CHOOSING = frozenset(
    {"CreateCapacityReservation", "CreatePlacementGroup", "ModifyCapacityReservation", "RequestSpotFleet"}
)

# XML has no such characters.
_UNPRINTABLE = regex.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")

# The code of a service's validation.
_CODES = {
    "autoscaling": "ValidationError",
    "cloudformation": "ValidationError",
    "cloudwatch": "ValidationError",
    "ec2": "InvalidParameterValue",
    "iam": "ValidationError",
    "logs": "InvalidParameterException",
    "resource-groups": "BadRequestException",
    "s3": "InvalidTag",
    "sns": "InvalidParameter",
    "sqs": "InvalidParameterValue",
}


def refusal(call: Call) -> tuple[str, str] | None:
    """Return the error code and message with which the service refuses a text of a call, if it does."""
    if call.operation.startswith(_READS):
        return None
    return refusal_of(call.service, call.operation, call.parameters())


def refusal_of(service: str, operation: str, parameters: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the code and message for the first text of a request that breaks a limit.

    Args:
        service: The service's name in boto3.
        operation: The operation's name.
        parameters: The parameters, as boto3 spells them.
    """
    try:
        shape = get_service_model(service).operation_model(operation).input_shape
    except Exception:  # an operation or a service without a model; moto says so
        return None
    if not isinstance(shape, StructureShape):
        return None
    for place, path, member, value in _members(shape, parameters, ""):
        code, shown = _CODES.get(service, "ValidationException"), _UNPRINTABLE.sub("?", str(value))
        if service in _OWN_VALIDATION:
            broken = None
            if operation in _CHOOSING and _is_no_choice(member, value) and member.name != "InstanceType":
                return code, f"Value ({shown}) for parameter {path.rpartition('.')[2]} is invalid."
        else:
            broken = _broken_by_model(member, value)
        if broken is not None:
            told = f"1 validation error detected: Value '{shown}' at '{path[:1].lower()}{path[1:]}'"
            return code, f"{told} failed to satisfy constraint: {broken}"
        rows = _rows_by_place()
        for row in rows.get(f"{service} {place}") or rows.get(f"{service} {place.rpartition('.')[0]}.$", ()):
            if row.holds(parameters) and row.refuses(value):
                return row.code or code, row.message.replace("{value}", shown)
    return None


@cache
def _rows_by_place() -> Mapping[str, Sequence[Row]]:
    found = tomllib.loads((Path(__file__).parent / "texts.toml").read_text(encoding="utf-8"))
    rows = [Row(**row) for row in found["rows"]]
    return {place: [row for row in rows if place in row.places] for each in rows for place in each.places}


def _members(shape: StructureShape, values: Mapping[str, Any], path: str) -> Iterator[tuple[str, str, Shape, Any]]:
    """Yield each given text, number, list and map of a structure: its place, its path, its shape and what it is."""
    for name, member in shape.members.items():
        if values.get(name) is not None:
            yield from _within(f"{shape.name}.{name}", f"{path}.{name}".lstrip("."), member, values[name])


def _within(place: str, path: str, shape: Shape, value: Any) -> Iterator[tuple[str, str, Shape, Any]]:
    if isinstance(shape, StructureShape) and isinstance(value, Mapping):
        yield from _members(shape, value, path)
    elif isinstance(shape, ListShape) and isinstance(value, Sequence):
        yield place, path, shape, value
        for number, item in enumerate(value, 1):
            yield from _within(place, f"{path}.{number}.member", shape.member, item)
    elif isinstance(shape, MapShape) and isinstance(value, Mapping):
        yield place, path, shape, value
        for key, item in value.items():
            yield f"{place}.*", path, shape.key, key
            yield from _within(f"{place}.{key}", path, shape.value, item)
    elif (isinstance(shape, StringShape) and isinstance(value, str)) or type(value) in {int, float}:
        yield place, path, shape, value


def _broken_by_model(shape: Shape, value: Any) -> str | None:
    least, greatest, pattern = (shape.metadata.get(name) for name in ("min", "max", "pattern"))
    is_number = isinstance(value, int | float)
    size, measure = (value, "value") if is_number else (len(value), "length")
    if least is not None and size < least and (is_number or isinstance(value, str)):
        return f"Member must have {measure} greater than or equal to {least}"
    if greatest is not None and size > greatest:
        return f"Member must have {measure} less than or equal to {greatest}"
    if pattern is not None and not _compiled(pattern).fullmatch(value):
        return f"Member must satisfy regular expression pattern: {pattern}"
    if _is_no_choice(shape, value):
        return f"Member must satisfy enum value set: [{', '.join(shape.metadata['enum'])}]"
    return None


def _is_no_choice(shape: Shape, value: Any) -> bool:
    return isinstance(value, str) and value not in shape.metadata.get("enum", (value,))


@cache
def _compiled(pattern: str) -> Any:
    """Compile a pattern as the services' Java reads it: pairs of surrogates are characters, and `\\w` is ASCII."""
    text = pattern.replace(r"\uD800\uDC00-\uDBFF\uDFFF", r"\U00010000-\U0010FFFF")
    return regex.compile(text.replace(r"\w", "_a-zA-Z0-9" if "[" in text else "[_a-zA-Z0-9]"), regex.DOTALL)
