"""What a node is asked to do, and what it answers: the fields of `cluster_contract.hydration`."""

from __future__ import annotations

import base64
import binascii
import json
import posixpath
import re
from typing import Any, NamedTuple

ACTIONS = ("begin", "restore", "finish", "fail")
_RUN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


class BadRequestError(Exception):
    """The request is not one that this program can read; the text says why."""


class Request(NamedTuple):
    """What a node is asked; `HydrationRequest` of the contract explains the fields."""

    action: str
    run: str
    directory: str
    mount_point: str
    shard: int = 0
    shards: int = 1
    seconds: int = 240
    patterns: tuple[str, ...] = ()
    max_bytes: int | None = None
    reason: str = ""

    @property
    def selection(self) -> dict[str, Any]:
        """What a walk's progress is only good for."""
        return {"shards": self.shards, "patterns": list(self.patterns), "max_bytes": self.max_bytes}


def parse(text: str) -> Request:
    """Read a request. What this version does not know is left out, since nodes may be older than the function.

    Args:
        text: JSON, in base64.

    Raises:
        BadRequestError: It is none.
    """
    try:
        given = json.loads(base64.b64decode(text, validate=True))
    except (binascii.Error, ValueError) as error:
        raise BadRequestError(f"the request must be a JSON object in base64: {error}") from None
    if not isinstance(given, dict):
        raise BadRequestError("the request must be a JSON object in base64")
    missing = [name for name in Request._fields if name not in Request._field_defaults and name not in given]
    if missing:
        raise BadRequestError(f"the request has no {', '.join(missing)}")
    request = Request(**{name: given[name] for name in Request._fields if name in given})
    _check(request)
    directory, mount_point = (posixpath.normpath(path) for path in (request.directory, request.mount_point))
    if posixpath.commonpath([directory, mount_point]) != mount_point:
        raise BadRequestError(f"directory must lie below the mount point {mount_point}, got {directory}")
    return request._replace(directory=directory, mount_point=mount_point, patterns=tuple(request.patterns))


def _check(request: Request) -> None:
    whole = (request.shard, request.shards, request.seconds)
    rules = (
        (request.action in ACTIONS, "action", f"one of {', '.join(ACTIONS)}"),
        (isinstance(request.run, str) and _RUN.fullmatch(request.run), "run", "letters, digits, '.', '_' and '-'"),
        (_is_path(request.directory), "directory", "an absolute path"),
        (_is_path(request.mount_point), "mount_point", "an absolute path"),
        (all(_is_whole(number) for number in whole), "shard, shards and seconds", "whole numbers"),
        (_is_whole(request.shards) and request.shards >= 1, "shards", "1 or more"),
        (_is_whole(request.shard) and 0 <= request.shard < request.shards, "shard", "from 0 to below shards"),
        (_is_whole(request.seconds) and request.seconds >= 1, "seconds", "1 or more"),
        (_are_texts(request.patterns), "patterns", "a list of texts"),
        (request.max_bytes is None or _is_whole(request.max_bytes), "max_bytes", "a whole number or null"),
        (isinstance(request.reason, str), "reason", "a text"),
    )
    for holds, name, allowed in rules:
        if not holds:
            given = getattr(request, name, whole)
            raise BadRequestError(f"{name} must be {allowed}, got {json.dumps(given, default=str)}")


def _is_path(value: object) -> bool:
    return isinstance(value, str) and value.startswith("/") and "\0" not in value


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _are_texts(value: object) -> bool:
    return isinstance(value, (list, tuple)) and all(isinstance(text, str) for text in value)
