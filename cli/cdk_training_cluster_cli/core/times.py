"""Times and spans of time that a user gives to the commands that act."""

import re
from datetime import UTC, datetime, timedelta

_SPAN = re.compile(r"([1-9][0-9]{0,4})([smhd])")
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def parse_span(option: str, text: str, *, most: timedelta) -> timedelta:
    """Read a span of time.

    Args:
        option: The option that it was given to.
        text: What was given.
        most: The longest that is allowed.

    Raises:
        ValueError: It is none, or too long.
    """
    found = _SPAN.fullmatch(text)
    span = timedelta(**{_UNITS[found[2]]: int(found[1])}) if found else None
    if span is None or span > most:
        raise ValueError(
            f"{option} must be a number of seconds, minutes, hours or days, such as 90s, 30m, 12h or 2d, and at most "
            f"{most.days} {'day' if most.days == 1 else 'days'}, got {text!r}"
        )
    return span


def parse_moment(option: str, text: str, now: datetime, *, most: timedelta) -> datetime:
    """Read a time ahead: a time with its zone, or a span from now on.

    Args:
        option: The option that it was given to.
        text: What was given.
        now: The time.
        most: How far ahead it may be.

    Raises:
        ValueError: It is none, past, or too far ahead.
    """
    span = _SPAN.fullmatch(text)
    try:
        found = now + timedelta(**{_UNITS[span[2]]: int(span[1])}) if span else datetime.fromisoformat(text)
    except ValueError:
        found = None
    if found is None or found.tzinfo is None or not now < found <= now + most:
        raise ValueError(
            f"{option} must be a time ahead with its zone, such as 2026-12-24T18:00Z, or a span such as 12h, at most "
            f"{most.days} days ahead, got {text!r}"
        )
    return found.astimezone(UTC)
