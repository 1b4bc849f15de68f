"""Amounts of data as people write and read them."""

import re
from decimal import ROUND_CEILING, Decimal

_GIB = 2**30
_UNITS = {"GiB": _GIB, "TiB": 2**40, "PiB": 2**50, "GB": 10**9, "TB": 10**12, "PB": 10**15}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z]+)")
_STEP = 1024


def gib_of(option: str, text: str) -> int:
    """Read an amount of data, rounded up to whole GiB.

    Args:
        option: The option it was given to.
        text: What was written, such as `40TiB`.

    Raises:
        ValueError: It is no number with a unit, or nothing.
    """
    found = _SIZE.fullmatch(text.strip())
    unit = _UNITS.get(found[2]) if found else None
    if found is None or unit is None or not Decimal(found[1]):
        *units, last = _UNITS
        raise ValueError(
            f"{option} must be a number above 0 and {', '.join(units)} or {last}, such as 40TiB, got {text!r}"
        )
    return int((Decimal(found[1]) * unit / _GIB).to_integral_value(ROUND_CEILING))


def size_text(count: int) -> str:
    """Return an amount of data in the unit that is read best.

    Args:
        count: Bytes.
    """
    if count < _STEP:
        return f"{count} B"
    value, names = Decimal(count), iter(("KiB", "MiB", "GiB", "TiB", "PiB"))
    name = ""
    while value >= _STEP and (following := next(names, None)):
        value, name = value / _STEP, following
    return f"{value:.1f} {name}"
