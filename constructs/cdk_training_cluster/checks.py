"""Checks that many settings share, each one sentence where it fails; what is not known yet is not checked."""

import math
from collections.abc import Sequence
from enum import Enum
from functools import cache

from aws_cdk import Duration, Token

_TOKENS_BELOW = -1e280


def is_unknown(value: object) -> bool:
    """Tell whether a value is a token, which the deployment puts something in the place of.

    Args:
        value: What was given, of any kind. Only what a token can look like is sent to CDK, since each question costs
            a call to Node.js and a number such as `nan` would end that process.
    """
    if isinstance(value, str):
        return "${Token[" in value and Token.is_unresolved(value)
    if isinstance(value, int | float):
        # CDK encodes tokens as numbers far below any that is given.
        return isinstance(value, float) and -math.inf < value < _TOKENS_BELOW and Token.is_unresolved(value)
    return hasattr(type(value), "__jsii_type__") and Token.is_unresolved(value)


MAX_INTEGER = 2**31 - 1
"""The greatest whole number in AWS's APIs and CloudFormation's templates: Integer has 32 bits."""


def is_finite(value: object) -> bool:
    """Tell whether a value is a number that can be computed with: no flag, no infinity, and none beyond floats.

    Args:
        value: What was given, of any kind.
    """
    try:
        return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    except OverflowError:
        return False


def whole_number_problems(
    setting: str, value: object, *, minimum: int, maximum: int = MAX_INTEGER, advice: str = ""
) -> list[str]:
    """Say why a value is not a whole number of at least some size; nothing if it is.

    Args:
        setting: The setting as the user spelled it.
        value: What was given.
        minimum: The smallest that is allowed.
        maximum: The greatest that is allowed. Default: - the greatest that AWS knows.
        advice: How to mend it, if that is not plain. Default: - nothing.
    """
    whole = isinstance(value, int) and not isinstance(value, bool)
    if is_unknown(value) or (whole and minimum <= value <= maximum):  # type: ignore[operator]  # a number here
        return []
    if whole and value > maximum:  # type: ignore[operator]
        return [f"{setting} must be at most {maximum}, got {shown(value)}"]
    kind = "" if whole else "a whole number of "
    return [f"{setting} must be {kind}at least {minimum}, got {shown(value)}{advice}"]


def number_problems(
    setting: str,
    value: object,
    *,
    above: float | None = None,
    minimum: float | None = None,
    maximum: float | None = None,
    advice: str = "",
) -> list[str]:
    """Say why a value is not a number within bounds; nothing if it is.

    Args:
        setting: The setting as the user spelled it.
        value: What was given.
        above: What it must be greater than. Default: - nothing.
        minimum: The smallest that is allowed. Default: - what is above `above`.
        maximum: The greatest that is allowed. Default: - any.
        advice: How to mend it, if that is not plain. Default: - nothing.
    """
    is_number = is_finite(value)
    if is_unknown(value) or (
        is_number
        and (above is None or value > above)  # type: ignore[operator]  # a number here
        and (minimum is None or value >= minimum)  # type: ignore[operator]
        and (maximum is None or value <= maximum)  # type: ignore[operator]
    ):
        return []
    if minimum is not None and maximum is not None:
        bounds = f"from {minimum:.15g} to {maximum:.15g}"
    else:
        lower = f"above {above:.15g}" if minimum is None else f"at least {minimum:.15g}"
        bounds = lower if maximum is None else f"{lower} and at most {maximum:.15g}"
    return [f"{setting} must be {'' if is_number else 'a number '}{bounds}, got {shown(value)}{advice}"]


@cache
def milliseconds(duration: Duration) -> float | None:
    """Return how long a duration is, asking Node.js once; None: it is known at deployment only.

    Args:
        duration: The duration.
    """
    return None if duration.is_unresolved() else duration.to_milliseconds()


def duration_problems(
    setting: str, value: object, *, minimum_minutes: int, maximum_minutes: int, step_minutes: int | None = None
) -> list[str]:
    """Say why a value is not a duration within bounds; nothing if it is.

    Args:
        setting: The setting as the user spelled it.
        value: What was given.
        minimum_minutes: The shortest that is allowed.
        maximum_minutes: The longest that is allowed.
        step_minutes: What it must be a multiple of. Default: - whole seconds.
    """
    if not isinstance(value, Duration):
        return kind_problems(setting, value, Duration, "Duration.minutes(60)")
    given = milliseconds(value)
    if given is None:
        if value.unit_label() == "seconds":
            return []
        return [
            f"{setting} must be in seconds where it is known at deployment only, got {value.unit_label()}: use "
            "Duration.seconds()"
        ]
    step = 1 if step_minutes is None else step_minutes * 60
    if minimum_minutes * 60_000 <= given <= maximum_minutes * 60_000 and given % (step * 1000) == 0:
        return []
    least, most = (Duration.minutes(each).to_human_string() for each in (minimum_minutes, maximum_minutes))
    steps = "in whole seconds" if step_minutes is None else f"in steps of {step_minutes} minutes"
    return [f"{setting} must be from {least} to {most}, {steps}, got {value.to_human_string()}"]


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
    return [f"{setting} must be {' or '.join(members)}, got {shown(value)}"]


def flag_problems(setting: str, value: object) -> list[str]:
    """Say why a value is neither True nor False; nothing if it is one.

    Args:
        setting: The setting as the user spelled it.
        value: What was given.
    """
    return [] if isinstance(value, bool) else [f"{setting} must be True or False, got {shown(value)}"]


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
    return [f"{setting} must be a list of {example}, got {shown(value)}"]


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
    return [f"{setting} must be {_article(kind.__name__)}, such as {example}, got {shown(value)}"]


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
        return [f"{wanted}, got {shown(value)}"]
    return [f"{wanted}, got {shown(item)} in it" for item in value if not isinstance(item, kind)]


def interface_problems(setting: str, value: object, member: str, wanted: str) -> list[str]:
    """Say why a value is of none of the classes with a member; nothing if it is of one.

    That is how to ask for an interface of CDK's, of which `isinstance` can tell nothing.

    Args:
        setting: The setting as the user spelled it.
        value: What was given.
        member: What every object that suits has, such as `vpc_id`.
        wanted: What is wanted, with an example.
    """
    return [] if hasattr(value, member) else [f"{setting} must be {wanted}, got {shown(value)}"]


_LONGEST_SHOWN = 120


def shown(value: object) -> str:
    """Show a value or, where that would be long, its beginning or what it is.

    Args:
        value: What was given, of any kind.
    """
    try:
        text = repr(value)
    except Exception:  # a value of any class may raise anything here, and the refusal must still be a sentence
        return _article(type(value).__name__)
    if len(text) <= _LONGEST_SHOWN:
        return text
    if isinstance(value, str):
        return f"{value[:_LONGEST_SHOWN]!r}… ({len(value)} characters)"
    return _article(type(value).__name__)


def _article(name: str) -> str:
    return f"{'an' if name[0] in 'AEIOUaeiou' else 'a'} {name}"
