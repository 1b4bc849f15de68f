"""One start of a run at a time: two that write into one folder would delete each other's checkpoints.

Who trains a run says so in the table of runs every 15 seconds. Another start is refused while that goes on; one whose
processes were killed is over after a minute, so that a job that is started again waits for that long at most.

Clocks of two machines are not compared: a start is over where another one has read the same item for a minute of its
own clock. So it waits for a minute however long ago the first one was killed. What could not be read is no silence.

Each holder gets a token with a greater number, by which the folder of checkpoints tells it from those before it.

The same holds for the nodes of one start that torchrun joined: while some train, others that meet without them wait.
Nodes that follow them need not, since a node says that it has ended its processes before it joins others.
"""

import math
import os
import socket
import time
from collections.abc import Callable, Mapping
from secrets import token_hex
from typing import Any

from cluster_job.exits import Exit
from cluster_job.fencing import Token
from cluster_job.hang_watch import say
from cluster_job.records import decoded, encoded
from cluster_job.table import RunTable, Versioned

RENEW_SECONDS = 15.0
LEASE_SECONDS = 60.0

HELD = "TRAINING_CLUSTER_LEASE"
"""The variable with the name of the run whose lease `cluster-run` holds: the script may train another one."""

TOKEN = "TRAINING_CLUSTER_LEASE_TOKEN"  # noqa: S105 - no secret
"""The variable with the token of that lease, for the process of rank 0."""

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


class LeaseView:
    """One process's view of a run's lease.

    Args:
        table: The run's items.
        clock: Returns seconds that never go back.
        longest_gap: How many seconds between two readings count at most: a process that was stopped has read nothing.

    Attributes:
        silent: For how many seconds the lease has been the same.
    """

    def __init__(
        self,
        table: RunTable,
        *,
        clock: Callable[[], float] = time.monotonic,
        longest_gap: float = RENEW_SECONDS,
    ) -> None:
        self._table, self._clock, self._longest_gap = table, clock, longest_gap
        self._seen: Versioned | None = None
        self._looked = self.silent = 0.0

    def look(self) -> tuple[Versioned | None, Mapping[str, Any]]:
        """Read the lease; return the item, and what it says."""
        seen, self._seen = self._seen, None  # what is not read begins the count again
        began = self._clock()
        found = self._table.read(_KEY)
        same = found is not None and found == seen
        self.silent = self.silent + min(began - self._looked, self._longest_gap) if same else 0.0
        self._seen, self._looked = found, self._clock()
        return found, _said(found)

    def is_trained(self, patience: float = LEASE_SECONDS) -> bool:
        """Read the lease, and return whether any start trains the run: at first whether one did until it was killed.

        Args:
            patience: For how many seconds a holder may say nothing.
        """
        _, said = self.look()
        return bool(said.get("held")) and self.silent < patience


class Lease:
    """A start's right to train a run.

    Args:
        table: The run's items.
        run: The run's name.
        owner: The start's name: the same for its restarts, whose processes follow one another.
        node: The node's name.
        attempt: Which of its restarts this is, ending with its number; a later one ends this.
        clock: Returns seconds that never go back.
        sleep: Waits for some seconds.

    Attributes:
        owner: The start's name.
        token: The token of the holder. None: this start does not hold it.
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
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._table, self._run, self.owner, self._node = table, run, owner, node
        self._attempt, self.world = attempt, ""
        self._clock, self._sleep = clock, sleep
        self._view = LeaseView(table, clock=clock)
        self._renewed = -math.inf
        self.token: Token | None = None

    def check(self, meanwhile: Callable[[], None] = lambda: None) -> Versioned | None:
        """Wait until no other start and no other world of this one trains the run; return what lies in the table.

        Args:
            meanwhile: What is called before each pause of 5 seconds.

        Raises:
            Taken: Another one goes on.
        """
        before: Versioned | None = None
        while True:
            found, held = self._view.look()
            self._refuse_later(held)
            if not held.get("held") or self._view.silent >= LEASE_SECONDS:
                return found
            is_own = held["owner"] == self.owner
            if is_own and not self._is_other_world(held):
                return found
            if not is_own and before is not None and found != before:
                raise Taken(
                    f"{self._run} is being trained by {held['owner']} on {held['node']}: end that first, or give "
                    "this one a name of its own with cluster-run --run NAME"
                )
            if before is None and is_own:
                say(
                    f"{self._run} is trained by nodes that these did not meet, {held['node']} among them: these wait "
                    "until those have ended their processes, or have said nothing for a minute"
                )
            elif before is None:
                say(
                    f"{self._run} is held by {held['owner']} on {held['node']}: this start waits for a minute at "
                    "most to see whether that one goes on"
                )
            before = found
            meanwhile()
            self._sleep(RENEW_SECONDS / 3)

    def take(self, meanwhile: Callable[[], None] = lambda: None) -> None:
        """Take it under a new token.

        Args:
            meanwhile: What is called before each pause of 5 seconds.

        Raises:
            Taken: Another start trains the run.
        """
        self.token = None
        while self.token is None:
            found = self.check(meanwhile)
            before = _token(found)
            token = Token(1, token_hex(4)) if before is None else Token(before.number + 1, before.series)
            if self._put(token, found):
                self.token = token

    def renew(self) -> bool:
        """Say that this start goes on, if it is time to; return False if another world of it has taken over.

        Raises:
            Taken: Another start has taken over, since this one said nothing for a minute, or a later attempt of it.
        """
        if self._clock() - self._renewed < RENEW_SECONDS:
            return True
        if self.token is None:  # the table did not answer when the run began
            self.take()
            return True
        found = self._still_held()
        if found is not None and _token(found) != self.token:
            return False
        self._put(self.token, found)
        return True

    def follow(self, owner: str, token: Token) -> None:
        """Learn which start holds it: this process is another one of its.

        Args:
            owner: The start's name.
            token: Its token.
        """
        self.owner, self.token = owner, token

    def look(self) -> None:
        """Look whether this process's start still holds it.

        Raises:
            Taken: It does not.
        """
        self._still_held()

    def leave(self) -> None:
        """Say that this node has ended its processes: its world trains no more, which needs all of its nodes."""
        said = False
        while self.world and not said:
            found = self._table.read(_KEY)
            held = _said(found)
            if found is None or held.get("world") != self.world:
                break
            _, said = self._table.replace(_KEY, encoded({**held, "world": ""}), found.version)
        self.world = ""

    def is_fresh(self) -> bool:
        """Return whether any nodes train the run, or did until now: the next holder looks every 5 seconds."""
        return self._view.is_trained(LEASE_SECONDS + RENEW_SECONDS)

    def release(self) -> None:
        """Let another start begin at once."""
        found = self._table.read(_KEY)
        if self.token is not None and _token(found) == self.token:
            self._put(self.token, found, held=False)
        self.token = None

    def _still_held(self) -> Versioned | None:
        """Return the item, which another world of this start may hold, or nobody."""
        found = self._table.read(_KEY)
        held = _said(found)
        self._refuse_later(held)
        if found is None or _token(found) == self.token:
            return found
        if held["owner"] != self.owner:
            raise Taken(
                f"{self._run} was taken over by {held['owner']} on {held['node']}, since this start had said nothing "
                "for a minute: this start ends"
            )
        if not self.world:
            raise Taken(
                f"{self._run} was started again on {held['node']} meanwhile: these processes of {self.owner} end",
                Exit.AGAIN,
            )
        return found

    def _refuse_later(self, held: Mapping[str, Any]) -> None:
        """End an attempt that a later one of the same start has replaced.

        A node that its cluster has lost may still run: Kubernetes starts a job again whose pod's node is not ready.
        """
        if held.get("owner") == self.owner and _number(held.get("attempt", "")) > _number(self._attempt):
            raise Taken(
                f"{self._run} was started again on {held['node']} meanwhile: this attempt of {self.owner} ends",
                Exit.AGAIN,
            )

    def _is_other_world(self, held: Mapping[str, Any]) -> bool:
        same_attempt = held.get("attempt") == self._attempt
        return bool(self.world and same_attempt and held.get("world") not in ("", self.world))

    def _put(self, token: Token, found: Versioned | None, *, held: bool = True) -> bool:
        item = encoded(
            {
                "owner": self.owner,
                "node": self._node,
                "attempt": self._attempt,
                "world": self.world,
                "token": str(token),
                "held": held,
            }
        )
        began = self._clock()
        is_ours = self._table.replace(_KEY, item, None if found is None else found.version)[1]
        if is_ours:
            self._renewed = began
        return is_ours


def _said(found: Versioned | None) -> Mapping[str, Any]:
    return {} if found is None else decoded(found.value)


def _token(found: Versioned | None) -> Token | None:
    """Return the token of the last holder. None: there was none, or one of an earlier release."""
    text = _said(found).get("token")
    return None if text is None else Token.parse(text)


def _number(attempt: str) -> int:
    """Return which restart of a start an attempt is: Slurm, Kubernetes and AWS Batch count them."""
    number = attempt.rpartition("-")[2]
    return int(number) if number.isdecimal() else 0


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
