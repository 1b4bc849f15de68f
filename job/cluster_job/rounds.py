"""A node's place in its round of torch's rendezvous, which an agent that is late for 3 seconds loses.

Who reads the rendezvous' state removes the nodes whose keep-alives are too old, its own node too, and a node that was
removed sends none any more: its processes train on, and a node that comes finds an empty rendezvous.
`_sanitize` and `_should_keep_alive` in torch/distributed/elastic/rendezvous/dynamic_rendezvous.py.
"""

import time
from datetime import datetime, timezone
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch.distributed.elastic.rendezvous.dynamic_rendezvous import DynamicRendezvousHandler


class Round:
    """The round that a node has joined.

    Args:
        handler: torch's dynamic rendezvous, whose round is complete.
        rank: The node's rank in it.
    """

    def __init__(self, handler: "DynamicRendezvousHandler", rank: int) -> None:
        self._handler = handler
        self._rank = rank
        self._number = handler._state_holder.state.round
        self._next = 0.0

    def is_over(self) -> bool:
        """Return whether other nodes have begun a later round; until then put the node back where it was removed."""
        holder, node = self._handler._state_holder, self._handler._this_node
        with self._handler._heartbeat_lock:
            state = holder.state
            if state.round == self._number and node in state.participants:
                return False
            # Without participants torch goes on to the next round, which nodes have joined, or may have left.
            if state.round != self._number and (state.participants or state.round > self._number + 1):
                return True
            # All nodes write one item, and may have been late together: once in an interval each, as a keep-alive.
            if time.monotonic() < self._next:
                return False
            self._next = time.monotonic() + self._handler._settings.keep_alive_interval.total_seconds()
            state.round, state.complete = self._number, True
            state.participants[node] = self._rank
            state.last_heartbeats[node] = datetime.now(timezone.utc)
            holder.mark_dirty()
        return False
