"""What a file of progress holds, by the names of its entries: one with an entry of another kind is damaged.

Any node that mounts the file system can write these files.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_MOST, _LATEST = 2**63, 2**40


def is_sound(content: dict[str, Any]) -> bool:
    """Say whether each entry of a file is of its kind; entries that are left out have their defaults.

    Args:
        content: What the file holds.
    """
    return _fits(content, _FILE)


def _is_whole(value: object, most: int = _MOST) -> bool:
    return type(value) is int and 0 <= value < most


def _is_time(value: object) -> bool:
    return type(value) in (int, float) and 0 <= value < _LATEST  # type: ignore[operator]


def _is_flag(value: object) -> bool:
    return type(value) is bool


def _is_text(value: object) -> bool:
    """Say whether it is a text that names a file, or could: JSON has surrogates that stand for no byte."""
    try:
        return isinstance(value, str) and value.encode("utf-8", "surrogateescape") is not None
    except UnicodeEncodeError:
        return False


def _is_shard(value: object) -> bool:
    # Requests have at most a few hundred, and each is looked for.
    return _is_whole(value, 10_000)


_ANY_NAME = "*"
_WALK = {"cursor": _is_text, "selected_bytes": _is_whole, "links": [_is_whole]}
_COUNTS = {
    "restored_files": _is_whole,
    "restored_bytes": _is_whole,
    "failed_files": _is_whole,
    "failures": [{"path": _is_text, "error": _is_text}],
}
_FILE = {
    **_COUNTS,
    **dict.fromkeys(("run", "directory", "host", "reason"), _is_text),
    **dict.fromkeys(("shard", "shards"), _is_shard),
    **dict.fromkeys(("files", "bytes"), _is_whole),
    **dict.fromkeys(("copying", "counted", "finished"), _is_flag),
    **dict.fromkeys(("moved", "updated"), _is_time),
    "settled": _COUNTS,
    "walk": _WALK,
    "count": {"files": _is_whole, "bytes": _is_whole, "is_complete": _is_flag, "walk": _WALK},
    "attempts": {_ANY_NAME: _is_whole},
}


def _fits(value: object, kind: dict[str, Any] | list[Any] | Callable[[object], bool]) -> bool:
    if isinstance(kind, dict):
        every = kind.get(_ANY_NAME)
        return isinstance(value, dict) and all(
            _fits(each, every or kind[name]) for name, each in value.items() if every or name in kind
        )
    if isinstance(kind, list):
        return isinstance(value, list) and all(_fits(each, kind[0]) for each in value)
    return kind(value)
