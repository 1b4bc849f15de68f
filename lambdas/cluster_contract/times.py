"""How a time is written between nodes, functions and operators: to the second, in UTC.

It runs on nodes too, with Python 3.9 and its standard library.
"""

from __future__ import annotations

from datetime import datetime, timezone

TIME_FORMAT = "%Y-%m-%dT%H:%M:%SZ"
"""The format, as `strftime` takes it."""


def time_text(moment: datetime) -> str:
    """Return a time as text.

    Args:
        moment: The time.
    """
    return moment.astimezone(timezone.utc).strftime(TIME_FORMAT)


def parse_time(text: str) -> datetime:
    """Read a time that `time_text` wrote.

    Args:
        text: The text.

    Raises:
        ValueError: It is not such a time.
    """
    return datetime.strptime(text, TIME_FORMAT).replace(tzinfo=timezone.utc)
