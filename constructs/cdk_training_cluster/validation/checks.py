"""What checks of settings share: whether a value is known yet, whether it is a number, and how to show it."""

import math
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


@cache
def milliseconds(duration: Duration) -> float | None:
    """Return how long a duration is, asking Node.js once; None: it is known at deployment only.

    Args:
        duration: The duration.
    """
    return None if duration.is_unresolved() else duration.to_milliseconds()


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
