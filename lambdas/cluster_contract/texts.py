"""How texts of unknown writers are shown. Nodes run this module, with Python 3.9 and its standard library."""

from __future__ import annotations

_ELLIPSIS = "..."


def printable(text: str, most: int = 100) -> str:
    """Turn text of an unknown writer, such as a tag's, into a line that hides nothing.

    Args:
        text: The text.
        most: How many characters are kept; what is cut is shown by `...`.

    Returns:
        The text, with line breaks and control characters escaped.
    """
    # Of what is cut, nothing is escaped: a text may be long.
    line = "".join(one if one.isprintable() else ascii(one)[1:-1] for one in text[: most + 1])
    return line if len(line) <= most else line[: most - len(_ELLIPSIS)] + _ELLIPSIS
