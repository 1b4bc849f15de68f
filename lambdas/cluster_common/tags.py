"""What a tag's value may hold."""

import re

# Letters, numbers, spaces and + - = . _ : / @ are what every service takes; a value has at most 256
# characters and does not start with `aws:`.
# https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/Using_Tags.html#tag-restrictions
_MAXIMUM_LENGTH = 256
_NOT_ALLOWED = re.compile(r"[^\w\s+\-=.:/@]")
_ELLIPSIS = "..."


def tag_value(text: str) -> str:
    """Turn any text into one that a tag can hold: other characters become spaces, too much is cut.

    Args:
        text: What a person or another program wrote.

    Returns:
        A value of at most 256 characters; it can be empty.
    """
    value = _tidy(_NOT_ALLOWED.sub(" ", text))
    if value.lower().startswith("aws:"):
        value = _tidy(f"aws {value[4:]}")
    if len(value) > _MAXIMUM_LENGTH:
        value = value[: _MAXIMUM_LENGTH - len(_ELLIPSIS)] + _ELLIPSIS
    return value


def _tidy(text: str) -> str:
    return " ".join(text.split())
