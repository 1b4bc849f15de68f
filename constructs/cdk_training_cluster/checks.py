"""Checks that many settings share, each one sentence where it fails; what is not known yet is not checked."""

import math
from collections.abc import Sequence
from enum import Enum

from aws_cdk import Token


def is_unknown(value: object) -> bool:
    """Tell whether a value is a token, which the deployment puts something in the place of.

    Args:
        value: What was given. Anything: what no text or number of CDK's own can be is not handed to CDK, which
            would end the process over a number such as `nan`.
    """
    if isinstance(value, float) and not math.isfinite(value):
        return False
    known_to_cdk = isinstance(value, str | int | float) or hasattr(type(value), "__jsii_type__")
    return known_to_cdk and Token.is_unresolved(value)


def whole_number_problems(setting: str, value: object, *, minimum: int, advice: str = "") -> list[str]:
    """Say why a value is not a whole number of at least some size; nothing if it is.

    Args:
        setting: The setting as the user spelled it.
        value: What was given.
        minimum: The smallest that is allowed.
        advice: How to mend it, if that is not plain. Default: - nothing.
    """
    whole = isinstance(value, int) and not isinstance(value, bool)
    if whole and value >= minimum:  # type: ignore[operator]  # a whole number here
        return []
    if is_unknown(value):
        return []
    kind = "" if whole else "a whole number of "
    return [f"{setting} must be {kind}at least {minimum}, got {value!r}{advice}"]


def choice_problems(setting: str, value: object, kind: type[Enum]) -> list[str]:
    """Say why a value is none of an enum's members; nothing if it is one.

    Args:
        setting: The setting as the user spelled it.
        value: What was given.
        kind: The enum.
    """
    if isinstance(value, kind):
        return []
    members = [f"{kind.__name__}.{member.name}" for member in kind]
    return [f"{setting} must be {' or '.join(members)}, got {value!r}"]


def list_problems(setting: str, value: object, example: str) -> list[str]:
    """Say why a value is not a list of texts with something in it; nothing if it is.

    Args:
        setting: The setting as the user spelled it.
        value: What was given.
        example: What one looks like.
    """
    is_list = isinstance(value, Sequence) and not isinstance(value, str) and len(value) > 0
    if is_list and all(isinstance(item, str) for item in value):  # type: ignore[attr-defined]  # a list here
        return []
    return [f"{setting} must be a list of {example}, got {value!r}"]
