"""What services refuse of the texts in a call; moto stores any.

A service's model states the pattern, the least and the greatest length of most members, as its API reference prints
them. The rows below hold what the models leave out, each with the address of the document that has it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import regex  # type: ignore[import-untyped] # it ships no types
from botocore.model import ListShape, MapShape, Shape, StringShape, StructureShape
from moto.core.utils import get_service_model

from rehearsal.local_aws.calls import Call

_READS = ("Describe", "Get", "Head", "List")
_EC2_API = "https://docs.aws.amazon.com/AWSEC2/latest/APIReference"


@dataclass(frozen=True, kw_only=True)
class Row:
    """What a service takes for a text, where its model does not say.

    Attributes:
        service: The service's name in boto3.
        places: The members, as `Shape.Member`; a map's value has its key behind another dot.
        pattern: A regular expression that the whole text matches.
        code: The error's code.
        message: The error's message.
        source: The address of the document.
    """

    service: str
    places: tuple[str, ...]
    pattern: str
    code: str
    message: str
    source: str


_GROUP_TEXT = r"[a-zA-Z0-9. _\-:/()#,@\[\]+=&;{}!$*]"

ROWS = (
    Row(
        service="ec2",
        places=tuple(f"{shape}.Description" for shape in ("IpRange", "Ipv6Range", "PrefixListId", "UserIdGroupPair")),
        pattern=_GROUP_TEXT + "{0,255}",
        code="InvalidParameterValue",
        message="Invalid rule description. Valid descriptions are strings less than 256 characters from the "
        "following set:  a-zA-Z0-9. _-:/()#,@[]+=&;{}!$*",
        source=f"{_EC2_API}/API_UserIdGroupPair.html",
    ),
    Row(
        service="ec2",
        places=("CreateSecurityGroupRequest.Description",),
        pattern=_GROUP_TEXT + "{1,255}",
        code="InvalidParameterValue",
        message="Invalid security group description. Valid descriptions are strings less than 256 characters from "
        "the following set:  a-zA-Z0-9. _-:/()#,@[]+=&;{}!$*",
        source=f"{_EC2_API}/API_CreateSecurityGroup.html",
    ),
)

_BY_PLACE = {(row.service, place): row for row in ROWS for place in row.places}

# EC2 does not check by its model: the pattern of a placement group's ARN has a stray `^`, and no ARN would match.
_OWN_VALIDATION = frozenset({"ec2"})

# What services answer whose validation has a code of its own.
_CODES = {
    "autoscaling": "ValidationError",
    "cloudformation": "ValidationError",
    "cloudwatch": "ValidationError",
    "iam": "ValidationError",
    "logs": "InvalidParameterException",
    "resource-groups": "BadRequestException",
    "sns": "InvalidParameter",
    "sqs": "InvalidParameterValue",
}


def refusal(call: Call) -> tuple[str, str] | None:
    """Return the error code and message with which the service refuses a text of a call, if it does."""
    if call.operation.startswith(_READS):
        return None
    try:
        shape = get_service_model(call.service).operation_model(call.operation).input_shape
    except Exception:  # an operation or a service without a model; moto says so
        return None
    return problem(call.service, shape, call.parameters())


def problem(service: str, shape: Shape | None, parameters: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the code and message for the first text of a request that breaks a limit.

    Args:
        service: The service's name in boto3.
        shape: The operation's input.
        parameters: The parameters, as boto3 spells them.
    """
    if not isinstance(shape, StructureShape):
        return None
    for place, path, member, value in _members(shape, parameters, ""):
        row = _BY_PLACE.get((service, place))
        if row is not None and not _compiled(row.pattern).fullmatch(value):
            return row.code, row.message
        broken = _broken_by_model(member, value)
        if broken is not None and service not in _OWN_VALIDATION:
            at = path[:1].lower() + path[1:]
            told = f"1 validation error detected: Value '{value}' at '{at}' failed to satisfy constraint: {broken}"
            return _CODES.get(service, "ValidationException"), told
    return None


def _members(shape: StructureShape, values: Mapping[str, Any], path: str) -> Iterator[tuple[str, str, Shape, Any]]:
    """Yield each given text, list and map of a structure: its place, its path, its shape and what it is."""
    for name, member in shape.members.items():
        if values.get(name) is not None:
            yield from _within(f"{shape.name}.{name}", f"{path}.{name}".lstrip("."), member, values[name])


def _within(place: str, path: str, shape: Shape, value: Any) -> Iterator[tuple[str, str, Shape, Any]]:
    if isinstance(shape, StructureShape) and isinstance(value, Mapping):
        yield from _members(shape, value, path)
    elif isinstance(shape, ListShape) and isinstance(value, Sequence):
        for number, item in enumerate(value, 1):
            yield from _within(place, f"{path}.{number}.member", shape.member, item)
    elif isinstance(shape, MapShape) and isinstance(value, Mapping):
        for key, item in value.items():
            yield f"{place}.*", path, shape.key, key
            yield from _within(f"{place}.{key}", path, shape.value, item)
    elif isinstance(shape, StringShape) and isinstance(value, str):
        yield place, path, shape, value


def _broken_by_model(shape: Shape, value: str) -> str | None:
    least, greatest, pattern = (shape.metadata.get(name) for name in ("min", "max", "pattern"))
    if least is not None and len(value) < least:
        return f"Member must have length greater than or equal to {least}"
    if greatest is not None and len(value) > greatest:
        return f"Member must have length less than or equal to {greatest}"
    if pattern is not None and not _compiled(pattern).fullmatch(value):
        return f"Member must satisfy regular expression pattern: {pattern}"
    return None


@cache
def _compiled(pattern: str) -> Any:
    """Compile a pattern as the services' Java reads it: pairs of surrogates are characters, and `\\w` is ASCII."""
    text = pattern.replace(r"\uD800\uDC00-\uDBFF\uDFFF", r"\U00010000-\U0010FFFF")
    return regex.compile(text.replace(r"\w", "_a-zA-Z0-9" if "[" in text else "[_a-zA-Z0-9]"))
