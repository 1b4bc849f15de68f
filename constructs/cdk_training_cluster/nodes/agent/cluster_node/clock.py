"""How long things may take, and when to stop."""

from __future__ import annotations

import os
import threading
import time

_SCALE = float(os.environ.get("CLUSTER_NODE_TIME_SCALE", "1"))
"""By what every pause is multiplied; tests make it small."""

_CALL_SECONDS = float(os.environ.get("CLUSTER_NODE_CALL_SECONDS", "10"))
_CALL_SECONDS_A_FILE = 0.05

FIRST_POLL_SECONDS, LAST_POLL_SECONDS = 0.1 * _SCALE, 2 * _SCALE
"""How long to wait before files are looked at again: at first, and at most."""

FIRST_PATIENCE_SECONDS, LAST_PATIENCE_SECONDS = 10 * _SCALE, 60 * _SCALE
"""After how long without a restored file Lustre is asked whether it still restores: at first, and at most."""


def call_seconds(files: int) -> float:
    """Return how long one call of `lfs` may take, by how many files it has."""
    return _CALL_SECONDS + files * _CALL_SECONDS_A_FILE


class Deadline:
    """The time that a request has, which a signal ends early."""

    def __init__(self, seconds: float) -> None:
        """Begin.

        Args:
            seconds: How long.
        """
        self._end = time.monotonic() + seconds
        self._ended = threading.Event()

    def end(self) -> None:
        """End it now."""
        self._ended.set()

    @property
    def has_passed(self) -> bool:
        """Whether it is time to stop."""
        return self._ended.is_set() or time.monotonic() >= self._end

    def sleep(self, seconds: float) -> None:
        """Wait, but not beyond the end."""
        self._ended.wait(max(0.0, min(seconds, self._end - time.monotonic())))
