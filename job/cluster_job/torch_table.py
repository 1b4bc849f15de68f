"""What torch's rendezvous and its agents keep in the cluster's table of runs: their state, and what they say to each
other.
"""

import time
import zlib
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TypeVar

from torch.distributed import DistStoreError, Store
from torch.distributed.elastic.rendezvous import RendezvousConnectionError, RendezvousStateError
from torch.distributed.elastic.rendezvous.dynamic_rendezvous import RendezvousBackend

from cluster_job.rendezvous_state import ForeignStateError, checked
from cluster_job.table import RunTable, TableError, Versioned, keep_asking

NAME = "cluster-table"
"""What torchrun calls it."""

_POLL_SECONDS = 0.2
STORE_SECONDS = 120
"""For how long a node waits for what another one tells it in a round."""
_ASK_SECONDS = 60
"""For how long each of them asks a table that does not answer: others wait for it."""
_PAUSE_SECONDS = 5

_Answer = TypeVar("_Answer")


def ask(call: Callable[[], _Answer]) -> _Answer:
    """Ask the table.

    Args:
        call: What asks.

    Raises:
        RendezvousConnectionError: The table did not answer.
    """
    try:
        return call()
    except TableError as error:
        raise RendezvousConnectionError(str(error)) from error


def keep_asking_table(call: Callable[[], _Answer]) -> _Answer:
    """Ask the table for 10 minutes.

    Args:
        call: What asks.

    Raises:
        RendezvousConnectionError: The table did not answer.
    """
    return keep_asking(lambda: ask(call), (RendezvousConnectionError,))


class TableBackend(RendezvousBackend):  # type: ignore[misc] # torch has no types here
    """The rendezvous' state: one item, replaced by conditional puts.

    Args:
        table: The run's items.
        key: Where the state lies.
    """

    def __init__(self, table: RunTable, key: str) -> None:
        self._table = table
        self._key = key

    @property
    def name(self) -> str:
        """See base class."""
        return NAME

    def get_state(self) -> tuple[bytes, int] | None:
        """See base class."""
        found = ask(lambda: self._table.read(self._key))
        return None if found is None else (_state(found), found.version)

    def set_state(self, state: bytes, token: int | None = None) -> tuple[bytes, int, bool] | None:
        """See base class."""
        found, ours = ask(lambda: self._table.replace(self._key, zlib.compress(state), token))
        return None if found is None else (_state(found), found.version, ours)


def _state(found: Versioned) -> bytes:
    try:
        return checked(zlib.decompress(found.value))
    except (ForeignStateError, zlib.error) as error:
        raise RendezvousStateError(str(error)) from error


class TableStore(Store):  # type: ignore[misc]
    """What torchrun's agents tell one another: ranks, and where rank 0 listens. No collective goes over it.

    Args:
        table: The run's items.
        prefix: What its keys begin with.
        sleep: Waits for some seconds.
    """

    def __init__(self, table: RunTable, prefix: str, *, sleep: Callable[[float], None] = time.sleep) -> None:
        super().__init__()
        self._sleep = sleep
        self._table = table
        self._prefix = prefix
        self._timeout = timedelta(seconds=STORE_SECONDS)

    def set(self, key: str, value: bytes | str) -> None:
        """Put a value."""
        self._ask(lambda: self._table.put(self._prefix + key, value.encode() if isinstance(value, str) else value))

    def get(self, key: str) -> bytes:
        """Wait for a value, and return it."""
        self.wait([key])
        return self._read(key) or b""

    def add(self, key: str, amount: int) -> int:
        """Add to a counter."""
        return self._ask(lambda: self._table.add(f"{self._prefix}{key}/count", amount))

    def check(self, keys: Sequence[str]) -> bool:
        """Return whether all values are there."""
        return all(self._read(key) is not None for key in keys)

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        """Wait until all values are there."""
        limit = self._timeout if timeout is None else timeout
        end = time.monotonic() + limit.total_seconds()
        left = list(keys)
        while left := [key for key in left if not self.check([key])]:
            if time.monotonic() > end:
                # What torch's own stores raise: agents that wait at a barrier go on when they see it.
                raise DistStoreError(f"{', '.join(left)} did not come within {limit.total_seconds():.0f} s")
            self._sleep(_POLL_SECONDS)

    def _read(self, key: str) -> bytes | None:
        found = self._ask(lambda: self._table.read(self._prefix + key))
        return None if found is None else found.value

    def _ask(self, call: Callable[[], _Answer]) -> _Answer:
        errors = (RendezvousConnectionError,)
        return keep_asking(lambda: ask(call), errors, patience=_ASK_SECONDS, pause=_PAUSE_SECONDS, sleep=self._sleep)

    def set_timeout(self, timeout: timedelta) -> None:
        """Set how long `get` and `wait` wait."""
        self._timeout = timeout

    @property
    def timeout(self) -> timedelta:
        """How long `get` and `wait` wait."""
        return self._timeout
