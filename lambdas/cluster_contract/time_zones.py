"""IANA time zones from a file of the library's, so that they are the same at synthesis and in a function."""

import json
from base64 import b64decode
from collections.abc import Mapping
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import cast
from zoneinfo import ZoneInfo


@cache
def read_time_zones(file: Path) -> Mapping[str, str]:
    """Return what a file has of each time zone: its data in base64, or `=` and the name of one that has the same.

    Args:
        file: A JSON file.
    """
    return cast(dict[str, str], json.loads(file.read_text(encoding="utf-8")))


@cache
def time_zone(file: Path, name: str) -> ZoneInfo:
    """Return a time zone.

    Args:
        file: The file.
        name: The time zone's name.

    Raises:
        KeyError: The file has none of that name.
    """
    data = read_time_zones(file)[name]
    if data.startswith("="):
        data = read_time_zones(file)[data[1:]]
    return ZoneInfo.from_file(BytesIO(b64decode(data)), key=name)
