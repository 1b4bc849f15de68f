"""Notices that a world of nodes is over while its processes still wait for one another in a collective.

A node that loses its power or its network closes no connection: the processes of the others wait for it until torch's
own timeout, 10 minutes with NCCL and 30 with gloo. So each node's agent writes a sign of life every 15 seconds, and
reads that of the node whose rank is one below its own, rank 0 that of the last: of the nodes that are left one always
reads that of a silent one. It ends its processes, and the mark that it leaves ends those of the others within 15
seconds more.

With 256 nodes that is 17 writes and 34 reads a second, each of less than 1 KB, where a partition of DynamoDB takes
1,000 and 3,000; with on-demand prices of us-east-1 it costs 6 cents an hour.
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-partition-key-design.html
"""

import logging
import math
import threading
import time
from collections.abc import Callable

from cluster_job.records import decoded, encoded
from cluster_job.table import RunTable

SIGN_SECONDS = 15.0
SILENT_SIGNS = 3
"""A node is silent whose sign was the same in so many readings after the first: 45 seconds."""

_SLOW_SECONDS = 5.0
"""A table that takes longer for a round delays the signs of others too: the round says nothing about them."""

_log = logging.getLogger(__name__)


def over_key(world: str) -> str:
    """Return where the node is named whose processes failed first.

    Args:
        world: The world.
    """
    return f"over/{world}"


class WorldWatch:
    """One node's sign of life in a world, and its view of the node before it.

    Clocks of two machines are not compared, and what was not read is no silence. A round in which this node could not
    write either, or took long, starts the count again; a node that was paused itself counts one round for the pause.

    Args:
        table: The run's items.
        node: The node's name.
        world: The world.
        rank: The node's rank in it.
        nodes: How many nodes it has.
        clock: Returns seconds that never go back.

    Attributes:
        over: Why the processes are to end, as a sentence. Empty: they are not.
    """

    def __init__(
        self,
        table: RunTable,
        *,
        node: str,
        world: str,
        rank: int,
        nodes: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._table, self._node, self._world, self._clock = table, node, world, clock
        self._own = f"alive/{world}/{rank}"
        self._others = f"alive/{world}/{(rank - 1) % nodes}"
        self._count = self._same = 0
        self._seen: int | None = None
        self._asked = -math.inf
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="cluster-run-world-watch", daemon=True)
        self.over = ""

    def start(self) -> None:
        """Look every 15 seconds until the end of the process or of the watch."""
        self._thread.start()

    def end(self) -> None:
        """Look no more; the node takes part in another world."""
        self._ended.set()

    def leave(self) -> None:
        """Look no more, and say that the node's silence means nothing: its part of the job is done."""
        self.end()
        if self._thread.is_alive():
            self._thread.join()
        self._say(None)

    def look(self) -> None:
        """Write the node's sign, and look at the other node."""
        began = self._clock()
        other, count = "", None
        try:
            self._count += 1
            self._say(self._count)
            self._read_end()
            found = self._table.read(self._others)
            if found is not None and self._clock() - began <= _SLOW_SECONDS:
                sign = decoded(found.value)
                other, count = sign["node"], sign["count"]
        except Exception as error:
            # A thread that ended would look like a lost node.
            _log.warning("%s; the training goes on", error)
        self._same = self._same + 1 if count is not None and count == self._seen else 0
        self._seen = count
        if self._same >= SILENT_SIGNS:
            self.over = f"{other} has given no sign of life for {SIGN_SECONDS * SILENT_SIGNS:.0f} s"

    def look_for_end(self) -> None:
        """Look at once whether the processes of a node have failed, at most once a second."""
        if self._clock() - self._asked >= 1:
            self._asked = self._clock()
            self._read_end()

    def _read_end(self) -> None:
        ended = self._table.read(over_key(self._world))
        if ended is not None:
            self.over = f"the processes of {ended.value.decode()} have failed"

    def _say(self, count: int | None) -> None:
        self._table.put(self._own, encoded({"node": self._node, "count": count}))

    def _run(self) -> None:
        while True:
            self.look()
            if self._ended.wait(SIGN_SECONDS):
                return
