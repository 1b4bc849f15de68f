"""Reads values of a template, of which some are known only when it is deployed."""

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Final, TypeGuard


class Unknown(Enum):
    """What stands for a value that only the deployment knows to be there."""

    UNKNOWN = "unknown"


UNKNOWN: Final = Unknown.UNKNOWN

_ABSENT = {"Ref": "AWS::NoValue"}


def value_at(properties: object, path: str) -> object:
    """Return what a template has at a path, intrinsic functions as they stand there.

    Args:
        properties: Where the path begins.
        path: Keys, and places in lists, with dots between them: `NetworkInterfaces.0.SubnetId`.

    Returns:
        None if there is nothing, and `UNKNOWN` if a condition or a function above decides.
    """
    value = properties
    for key in path.split("."):
        if is_intrinsic(value):
            return UNKNOWN
        value = _child(value, key)
    if value == _ABSENT:
        return None
    return UNKNOWN if isinstance(value, Mapping) and "Fn::If" in value else value


def _child(value: object, key: str) -> object:
    if isinstance(value, Mapping):
        return value.get(key)
    if isinstance(value, Sequence) and not isinstance(value, str) and key.isdigit() and int(key) < len(value):
        return value[int(key)]
    return None


def is_intrinsic(value: object) -> TypeGuard[Mapping[str, object]]:
    """Tell whether a value is a function that CloudFormation carries out."""
    if not isinstance(value, Mapping) or len(value) != 1:
        return False
    (name,) = value
    return name in {"Ref", "Condition"} or str(name).startswith("Fn::")


def is_given(value: object) -> bool:
    """Tell whether a value is certainly there, whatever it is."""
    return value is not None and value is not UNKNOWN


def text(value: object) -> str | None:
    """Return a text that is known, or None."""
    return value if isinstance(value, str) else None


def number(value: object) -> int | None:
    """Return a whole number that is known, or None; templates spell some as text."""
    if isinstance(value, bool):
        return None
    try:
        return int(value) if isinstance(value, str | int | float) else None
    except (ValueError, OverflowError):
        return None


def flag(value: object) -> bool | None:
    """Return a yes or no that is known, or None; templates spell some as text."""
    if isinstance(value, bool):
        return value
    return {"true": True, "false": False}.get(value.lower()) if isinstance(value, str) else None


def items(value: object) -> Sequence[object]:
    """Return a list that is known, or an empty one."""
    return value if isinstance(value, list) else ()


def target_of(value: object) -> str | None:
    """Return the logical id that `Ref` or `Fn::GetAtt` names, or None."""
    if not is_intrinsic(value):
        return None
    ((name, argument),) = value.items()
    if name == "Ref":
        return text(argument)
    if name == "Fn::GetAtt":
        first = argument.partition(".")[0] if isinstance(argument, str) else next(iter(items(argument)), None)
        return text(first)
    return None


def last_of_arn(value: object, kind: str) -> object:
    """Return what an ARN names last: a text, a function that makes one, or None if that cannot be told.

    Args:
        value: A text, `Fn::Join` or `Fn::Sub`.
        kind: What comes before the name, such as `placement-group/`.
    """
    if isinstance(value, str):
        _, found, name = value.rpartition(kind)
        return name if found else None
    if not is_intrinsic(value):
        return None
    ((function, argument),) = value.items()
    if function == "Fn::Join":
        return _last_joined(value_at(argument, "1"), kind) if value_at(argument, "0") == "" else None
    return _last_substituted(argument, kind) if function == "Fn::Sub" else None


def _last_joined(parts: object, kind: str) -> object:
    *before, last = items(parts) or [None]
    if isinstance(last, str):
        return last_of_arn(last, kind)
    return last if before and isinstance(before[-1], str) and before[-1].endswith(kind) else None


def _last_substituted(argument: object, kind: str) -> object:
    pattern = argument if isinstance(argument, str) else text(value_at(argument, "0"))
    name = last_of_arn(pattern, kind)
    if not isinstance(name, str) or "${" not in name:
        return name
    variable = name[2:-1]
    if name != f"${{{variable}}}" or "{" in variable:
        return None
    own = value_at(argument, "1")
    return own[variable] if isinstance(own, Mapping) and variable in own else {"Ref": variable}
