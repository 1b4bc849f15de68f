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


def kind_problems(setting: str, value: object, kind: type, example: str) -> list[str]:
    """Say why a value is not of a class; nothing if it is.

    Args:
        setting: The setting as the user spelled it.
        value: What was given.
        kind: The class.
        example: What one looks like.
    """
    if isinstance(value, kind):
        return []
    return [f"{setting} must be {_article(kind.__name__)}, such as {example}, got {_shown(value)}"]


def kinds_problems(setting: str, value: object, kind: type, example: str) -> list[str]:
    """Say why a value is not a list of what is of a class; nothing if it is, or if the list is empty.

    Args:
        setting: The setting as the user spelled it.
        value: What was given.
        kind: The class.
        example: What one of them looks like.
    """
    wanted = f"{setting} must be a list of {kind.__name__} objects, such as [{example}]"
    if isinstance(value, str) or not isinstance(value, Sequence):
        return [f"{wanted}, got {_shown(value)}"]
    return [f"{wanted}, got {_shown(item)} in it" for item in value if not isinstance(item, kind)]


def interface_problems(setting: str, value: object, member: str, wanted: str) -> list[str]:
    """Say why a value is of none of the classes with a member; nothing if it is of one.

    That is how to ask for an interface of CDK's, of which `isinstance` can tell nothing.

    Args:
        setting: The setting as the user spelled it.
        value: What was given.
        member: What every object that suits has, such as `vpc_id`.
        wanted: What is wanted, with an example.
    """
    return [] if hasattr(value, member) else [f"{setting} must be {wanted}, got {_shown(value)}"]


_LONGEST_SHOWN = 60


def _shown(value: object) -> str:
    """Show a value or, where that would be long, say what it is."""
    text = repr(value)
    return text if len(text) <= _LONGEST_SHOWN else _article(type(value).__name__)


def _article(name: str) -> str:
    return f"{'an' if name[0] in 'AEIOUaeiou' else 'a'} {name}"
