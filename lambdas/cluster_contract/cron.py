"""Cron expressions of five fields, as crontab(5) has them: minute, hour, day of month, month, day of week.

A time matches where all fields do; where day of month and day of week are both restricted, one of these is enough.
Source: https://pubs.opengroup.org/onlinepubs/9799919799/utilities/crontab.html
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, datetime, time

WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
"""The days of a week, as names and, by their places, as numbers; 7 is Sunday, too."""

_MONTHS = ("", "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_PART = re.compile(r"(?:\*|(?P<first>\w+)(?:-(?P<last>\w+))?)(?:/(?P<step>[1-9]\d*))?")


@dataclass(frozen=True)
class _Field:
    """One field of an expression: what it is called, its numbers, and names for these."""

    name: str
    least: int
    most: int
    names: tuple[str, ...] = ()


_FIELDS = (
    _Field("minute", 0, 59),
    _Field("hour", 0, 23),
    _Field("day of month", 1, 31),
    _Field("month", 1, 12, _MONTHS),
    _Field("day of week", 0, 7, WEEKDAYS),
)


@dataclass(frozen=True)
class Cron:
    """A cron expression of five fields.

    Attributes:
        text: The expression.
        times: The times of day that match.
        days: The days of a month that match.
        months: The months that match.
        weekdays: The days of a week that match, with Sunday as 0.
        either: Whether a day of month or a day of week is enough.
    """

    text: str
    times: tuple[time, ...]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    either: bool

    @classmethod
    def parse(cls, text: str) -> "Cron":
        """Read an expression.

        Raises:
            ValueError: It is none.
        """
        parts = text.lower().split()
        if len(parts) != len(_FIELDS):
            raise ValueError(f"a cron expression must have 5 fields, such as 0 8 * * 1-5, got {text!r}")
        minutes, hours, days, months, weekdays = map(_numbers, _FIELDS, parts)
        return cls(
            text=text,
            times=tuple(time(hour, minute) for hour in sorted(hours) for minute in sorted(minutes)),
            days=days,
            months=months,
            weekdays=frozenset(number % 7 for number in weekdays),
            either=not parts[2].startswith("*") and not parts[4].startswith("*"),
        )

    def on(self, day: date) -> Iterator[datetime]:
        """Yield the local times of a day that match."""
        in_month, in_week = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        if day.month in self.months and ((in_month or in_week) if self.either else (in_month and in_week)):
            yield from (datetime.combine(day, each) for each in self.times)


def _numbers(field: _Field, text: str) -> frozenset[int]:
    found = set[int]()
    for part in text.split(","):
        matched = _PART.fullmatch(part)
        first, last = (field.least, field.most) if matched is None or not matched["first"] else _ends(field, matched)
        if matched is None or not field.least <= first <= last <= field.most:
            raise ValueError(
                f"the {field.name} of a cron expression must be *, numbers from {field.least} to {field.most}, "
                f"ranges such as {field.least}-{field.most} and steps such as */2, with commas between, got {part!r}"
            )
        found.update(range(first, last + 1, int(matched["step"] or 1)))
    return frozenset(found)


def _ends(field: _Field, matched: re.Match[str]) -> tuple[int, int]:
    first = _number(field, matched["first"])
    # `5/15` counts from 5 to the end; Sunday may end a range.
    open_end = field.most if matched["step"] else first
    last = _number(field, matched["last"]) if matched["last"] else open_end
    return first, last or 7 if field.names is WEEKDAYS and first else last


def _number(field: _Field, text: str) -> int:
    if text in field.names:
        return field.names.index(text)
    return int(text) if text.isdecimal() else -1
