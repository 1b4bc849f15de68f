"""A run's lease while its own processes train: taken before its checkpoints are read, and renewed in a thread.

Rank 0 takes and renews it, and every rank ends once another start has it: a collective would wait for the others.
"""

import atexit
import multiprocessing
import os
import sys
import threading
from collections.abc import Callable
from typing import Any

from cluster_job.exits import Exit
from cluster_job.fencing import Token
from cluster_job.hang_watch import say
from cluster_job.lease import RENEW_SECONDS, Lease, Taken

_Start = tuple[str, Token | None, Exit | None]
"""The start's name, its token, and with which status it ends instead."""


def end_process(code: int) -> None:
    """End this process and the one that writes checkpoints at once, from any thread.

    Args:
        code: The exit status.
    """
    for process in multiprocessing.active_children():
        process.kill()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


class Hold:
    """One rank's part in the lease of its run.

    Args:
        lease: The lease. None: the run has no table, other jobs train it too, or `cluster-run` holds it.
        is_first: Whether this is rank 0.
        given: The token of `cluster-run`'s lease.
        end: Ends the process.
    """

    def __init__(
        self,
        lease: Lease | None,
        *,
        is_first: bool,
        given: Token | None = None,
        end: Callable[[int], Any] = end_process,
    ) -> None:
        self._lease, self._is_first, self._given, self._end = lease, is_first, given, end
        self._has_begun = False
        self._process = os.getpid()
        self._failed: set[str] = set()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="cluster-job-lease", daemon=True)

    def begin(self, from_first: Callable[[Callable[[], _Start]], _Start]) -> Token | None:
        """Take the lease on rank 0; return its token. None: checkpoints are kept from no other start.

        Args:
            from_first: Returns on every rank what rank 0 makes.

        Raises:
            SystemExit: Another start trains the run.
        """
        if self._lease is None or self._has_begun:
            return self._given
        self._has_begun = True
        owner, token, code = from_first(self._take)
        if code is not None:
            raise SystemExit(code)
        self._given = token
        if token is not None and not self._is_first:
            self._lease.follow(owner, token)
        atexit.register(self.finish)
        self._thread.start()
        return token

    @property
    def has_ended(self) -> bool:
        """Whether another start may begin."""
        return self._ended.is_set()

    def finish(self) -> None:
        """Let another start begin at once."""
        if self._has_begun and not self._ended.is_set() and self._process == os.getpid():
            self._ended.set()
            if self._lease is not None and self._is_first:
                self._attempt("ending the lease", self._lease.release)

    def look(self) -> None:
        """Renew the lease, or look whether this start still holds it; end the process where it does not."""
        if self._lease is not None and self._is_first:
            self._attempt("the lease", self._lease.renew)
        elif self._lease is not None and self._lease.token is not None:
            self._attempt("the lease", self._lease.look)

    def _take(self) -> _Start:
        lease = self._lease
        if lease is None or not self._is_first:  # without torch no rank tells another
            return "", None, None
        try:
            lease.take()
        except Taken as error:
            say(str(error))
            return "", None, error.exit_code
        except Exception as error:
            self._say("taking the lease", error)
        return lease.owner, lease.token, None

    def _attempt(self, what: str, act: Callable[[], object]) -> None:
        """Do something; a table that does not answer ends no training, and is said once for each kind of error."""
        try:
            act()
        except Taken as error:
            if self._is_first:
                say(str(error))
            self._end(error.exit_code)
        except Exception as error:
            self._say(what, error)

    def _say(self, what: str, error: Exception) -> None:
        kind = f"{what} {type(error).__name__}"
        if kind not in self._failed:
            self._failed.add(kind)
            say(f"{what} of this run failed, and training goes on: {error}")

    def _loop(self) -> None:
        # More often than it renews: what failed is tried again while others still wait.
        while not self._ended.wait(RENEW_SECONDS / 3 if self._is_first else RENEW_SECONDS):
            self.look()
