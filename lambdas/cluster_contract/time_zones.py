"""IANA time zones from a wheel of tzdata, so that they are the same at synthesis and in a function.

Lambda does not document that its runtime has time zones.
"""

from functools import cache
from pathlib import Path
from zipfile import ZipFile
from zoneinfo import ZoneInfo


@cache
def time_zone_names(wheel: Path) -> tuple[str, ...]:
    """Return the names of all time zones.

    Args:
        wheel: A wheel of the package tzdata.
    """
    with ZipFile(wheel) as archive:
        return tuple(archive.read("tzdata/zones").decode().split())


@cache
def time_zone(wheel: Path, name: str) -> ZoneInfo:
    """Return a time zone.

    Args:
        wheel: A wheel of the package tzdata.
        name: The time zone's name.

    Raises:
        KeyError: The wheel has none of that name.
    """
    if name not in time_zone_names(wheel):
        raise KeyError(name)
    with ZipFile(wheel) as archive, archive.open(f"tzdata/zoneinfo/{name}") as data:
        return ZoneInfo.from_file(data, key=name)
