"""Times and spans of time as people read and write them."""

import re
from datetime import UTC, datetime, timedelta

from cluster_contract.codec import TIME_FORMAT

_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
_SINCE = re.compile(r"([1-9][0-9]{0,4})([mhd])")
_UNITS = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1)}


def span(time: timedelta) -> str:
    """Return a span of time for display: its two largest units."""
    seconds = max(int(time.total_seconds()), 0)
    if seconds < _MINUTE:
        return f"{seconds} s"
    if seconds < _HOUR:
        return f"{seconds // _MINUTE} min"
    if seconds < _DAY:
        return f"{seconds // _HOUR} h {seconds % _HOUR // _MINUTE} min"
    return f"{seconds // _DAY} d {seconds % _DAY // _HOUR} h"


def short_span(time: timedelta) -> str:
    """Return a span of time for a narrow column, such as `1h5m`."""
    return span(time).replace(" min", "m").replace(" ", "")


def moment(text: object) -> datetime | None:
    """Return a time that a function wrote. None: it wrote none."""
    try:
        return datetime.strptime(str(text), TIME_FORMAT).replace(tzinfo=UTC)
    except ValueError:
        return None


def moment_text(time: datetime) -> str:
    """Return a time for display: to the second, in UTC."""
    return time.astimezone(UTC).strftime(TIME_FORMAT)


def parse_since(text: str) -> timedelta:
    """Read how far a command looks back.

    Args:
        text: What was given to `--since`.

    Raises:
        ValueError: It is no number of minutes, hours or days.
    """
    found = _SINCE.fullmatch(text)
    if found is None:
        raise ValueError(f"--since must be a number of minutes, hours or days, such as 30m, 24h or 7d, got {text!r}")
    return int(found[1]) * _UNITS[found[2]]
