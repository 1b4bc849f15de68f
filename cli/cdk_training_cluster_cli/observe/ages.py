"""Times and spans of time as people read them."""

from datetime import UTC, datetime, timedelta

from cluster_contract.times import TIME_FORMAT

_MINUTE, _HOUR, _DAY = 60, 3600, 86_400

LONGEST = timedelta(days=42)
"""How far back commands look: as long as Auto Scaling remembers."""


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


def clock(time: datetime) -> str:
    """Return a time for the beginning of a line: in UTC, without the year."""
    return time.astimezone(UTC).strftime("%m-%d %H:%M:%S")
