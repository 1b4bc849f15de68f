"""What differs from node to node, as a file of shell assignments inside the user data."""

from collections.abc import Mapping, Sequence


def quote(value: str) -> str:
    r"""Quote a string for the shell so that nothing in it is anything but text.

    The result has a single line even if the value has more, so that it can stand in a here-document whose end
    no value can forge. Tokens survive: what they become stands between the quotes.

    Args:
        value: Any text; it may hold tokens, which must not become text with a quote.
    """
    lines = value.replace("'", "'\\''").split("\n")
    return "'" + "'$'\\n''".join(lines) + "'"


def shell_assignments(settings: Mapping[str, str | Sequence[str]]) -> str:
    """Return shell assignments, a line each: text as a variable, a list as an array.

    Args:
        settings: The variables by name.
    """
    return "".join(
        f"{name}={quote(value)}\n"
        if isinstance(value, str)
        else f"{name}=({' '.join(quote(item) for item in value)})\n"
        for name, value in settings.items()
    )
