"""One start of a run at a time: two that write into one folder would delete each other's checkpoints.

Who trains a run says so in the table of runs every 15 seconds. Another start is refused while that goes on; one whose
processes were killed is over after a minute, so that a job that is started again waits for that long at most.

The same holds for the nodes of one start that torchrun joined: while some train, others that meet without them wait.
Nodes that follow them need not, since a node says that it has ended its processes before it joins others.
"""

import os
import socket
import time
from collections.abc import Callable, Mapping
from typing import Any

from cluster_job.exits import Exit
from cluster_job.hang_watch import say
from cluster_job.records import decoded, encoded
from cluster_job.table import RunTable, Versioned

RENEW_SECONDS = 15.0
LEASE_SECONDS = 60.0

HELD = "TRAINING_CLUSTER_LEASE"
"""The variable with the name of the run whose lease `cluster-run` holds: the script may train another one."""

_KEY = "lease"


class Taken(Exception):  # noqa: N818 - cluster-run prints the message as it is
    """Another start trains the run.

    Args:
        sentence: Which one, and what to do.
        exit_code: How this one ends.
    """

    def __init__(self, sentence: str, exit_code: Exit = Exit.USAGE) -> None:
        super().__init__(sentence)
        self.exit_code = exit_code


class Lease:
    """A start's right to train a run.

    Args:
        table: The run's items.
        run: The run's name.
        owner: The start's name: the same for its restarts, whose processes follow one another.
        node: The node's name.
        attempt: Which of its restarts this is, ending with its number; a later one ends this.
        now: Returns the time, in seconds since 1970.
        sleep: Waits for some seconds.

    Attributes:
        world: The nodes that this one has joined, by a name. Empty: none.
    """

    def __init__(
        self,
        table: RunTable,
        *,
        run: str,
        owner: str,
        node: str,
        attempt: str = "",
        now: Callable[[], float] = time.time,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._table, self._run, self._owner, self._node = table, run, owner, node
        self._attempt, self.world = attempt, ""
        self._now, self._sleep = now, sleep
        self._renewed = 0.0

    def check(self, meanwhile: Callable[[], None] = lambda: None) -> Versioned | None:
        """Wait until no other start and no other world of this one trains the run; return what lies in the table.

        Args:
            meanwhile: What is called before each pause of 5 seconds.

        Raises:
            Taken: Another one goes on.
        """
        seen: float | None = None
        while True:
            found = self._table.read(_KEY)
            held = None if found is None else decoded(found.value)
            self._refuse_later(held or {})
            if held is None or held["at"] <= self._now() - LEASE_SECONDS:
                return found
            is_own = held["owner"] == self._owner
            if is_own and not self._is_other_world(held):
                return found
            if not is_own and seen is not None and held["at"] != seen:
                raise Taken(
                    f"{self._run} is being trained by {held['owner']} on {held['node']}: end that first, or give "
                    "this one a name of its own with cluster-run --run NAME"
                )
            if seen is None and is_own:
                say(
                    f"{self._run} is trained by nodes that these did not meet, {held['node']} among them: these wait "
                    "until those have ended their processes, or have said nothing for a minute"
                )
            elif seen is None:
                say(
                    f"{self._run} was trained by {held['owner']} on {held['node']} until now: this start "
                    "waits for a minute at most to see whether that one goes on"
                )
            seen = held["at"]
            meanwhile()
            self._sleep(RENEW_SECONDS / 3)

    def take(self, meanwhile: Callable[[], None] = lambda: None) -> None:
        """Take it, and do so again every 15 seconds.

        Args:
            meanwhile: What is called before each pause of 5 seconds.

        Raises:
            Taken: Another start trains the run.
        """
        ours = False
        while not ours:
            found = self.check(meanwhile)
            ours = self._put(self._now(), found)

    def renew(self) -> bool:
        """Say that this start goes on, if it is time to; return False if another world of it has taken over.

        Raises:
            Taken: Another start has taken over, since this one said nothing for a minute, or a later attempt of it.
        """
        if self._now() - self._renewed < RENEW_SECONDS:
            return True
        found = self._table.read(_KEY)
        held = {} if found is None else decoded(found.value)
        self._refuse_later(held)
        if held.get("owner") != self._owner:
            self.take()
        elif self._is_other_world(held) and held["at"] > self._now() - LEASE_SECONDS:
            return False
        else:
            self._put(self._now(), found)
        return True

    def leave(self) -> None:
        """Say that this node has ended its processes: its world trains no more, which needs all of its nodes."""
        said = False
        while self.world and not said:
            found = self._table.read(_KEY)
            held = {} if found is None else decoded(found.value)
            if found is None or held.get("world") != self.world:
                break
            _, said = self._table.replace(_KEY, encoded({**held, "world": ""}), found.version)
        self.world = ""

    def is_fresh(self) -> bool:
        """Return whether any nodes train the run, or did until now: the next holder looks every 5 seconds."""
        return is_trained(self._table, self._now() - RENEW_SECONDS)

    def release(self) -> None:
        """Let another start begin at once."""
        found = self._table.read(_KEY)
        held = {} if found is None else decoded(found.value)
        if (held.get("owner"), held.get("attempt")) == (self._owner, self._attempt):
            self._put(0.0, found)

    def _refuse_later(self, held: Mapping[str, Any]) -> None:
        """End an attempt that a later one of the same start has replaced.

        A node that its cluster has lost may still run: Kubernetes starts a job again whose pod's node is not ready.
        """
        if held.get("owner") == self._owner and _number(held.get("attempt", "")) > _number(self._attempt):
            raise Taken(
                f"{self._run} was started again on {held['node']} meanwhile: this attempt of {self._owner} ends",
                Exit.AGAIN,
            )

    def _is_other_world(self, held: Mapping[str, Any]) -> bool:
        same_attempt = held.get("attempt") == self._attempt
        return bool(self.world and same_attempt and held.get("world") not in ("", self.world))

    def _put(self, at: float, found: Versioned | None) -> bool:
        self._renewed = self._now()
        item = encoded(
            {"owner": self._owner, "node": self._node, "at": at, "attempt": self._attempt, "world": self.world}
        )
        return self._table.replace(_KEY, item, None if found is None else found.version)[1]


def _number(attempt: str) -> int:
    """Return which restart of a start an attempt is: Slurm, Kubernetes and AWS Batch count them."""
    number = attempt.rpartition("-")[2]
    return int(number) if number.isdecimal() else 0


def is_trained(table: RunTable, now: float) -> bool:
    """Return whether any start trains the run.

    Args:
        table: The run's items.
        now: The time, in seconds since 1970.
    """
    found = table.read(_KEY)
    return found is not None and bool(decoded(found.value)["at"] > now - LEASE_SECONDS)


def owner_of(run: str, variables: Mapping[str, str] = os.environ) -> str | None:
    """Return the name of this start, which no other has; None: `cluster-run` holds the lease.

    Args:
        run: The run's name.
        variables: The environment variables.
    """
    if variables.get(HELD) == run:
        return None
    if variables.get("SLURM_JOB_ID"):
        return f"Slurm step {variables['SLURM_JOB_ID']}.{variables.get('SLURM_STEP_ID', '0')}"
    started = variables.get("TORCHELASTIC_RUN_ID")
    if started and started != "none":  # torchrun's default, which names no start
        return f"torchrun {started}"
    # torchrun's own process starts the others again.
    process = os.getppid() if started else os.getpid()
    return f"process {process} of {socket.gethostname()}"
