"""What a node writes of its part in a run, and when it may not take part again."""

import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timezone

from cluster_job.drain import DrainRequest, drain_request
from cluster_job.exits import Exit
from cluster_job.failures import Decision, Membership, RestartPolicy, Standing, decide, standing
from cluster_job.progress import StepFile
from cluster_job.records import decoded, encoded
from cluster_job.table import RunTable
from cluster_job.world_watch import over_key

_ATTEMPT = "attempt"
_CLOSED = "closed"
_HISTORY = "history/"
_CLOSED_SECONDS = 60
_DRAIN_POLL_SECONDS = 1
_DAY = 86_400
_HOUR = 3600
_EARLIER_SECONDS = 600
"""For how long before the window items are read: nodes go before their world breaks, and clocks differ."""

POLICY_VARIABLES = {
    "restarts": ("TRAINING_CLUSTER_RESTARTS", int),
    "window_seconds": ("TRAINING_CLUSTER_RESTART_WINDOW", float),
    "first_failures": ("TRAINING_CLUSTER_FIRST_FAILURES", int),
    "no_progress_restarts": ("TRAINING_CLUSTER_NO_PROGRESS_RESTARTS", int),
}
"""How `cluster-run` tells the rendezvous, which runs inside of torchrun, its restart policy."""

FIXED_SIZE = "TRAINING_CLUSTER_FIXED_SIZE"
"""The variable by which it says that the run needs all of its nodes, and that no others will come."""


class Left(Exception):  # noqa: N818 - it ends a node's part, as SystemExit ends a program
    """The node takes no part any more; the message is a sentence.

    Args:
        sentence: Why, and what to do.
        exit_code: How the agent ends.
        for_all: Whether the run ends on all nodes.
    """

    def __init__(self, sentence: str, exit_code: Exit, *, for_all: bool = False) -> None:
        super().__init__(sentence)
        self.exit_code = exit_code
        self.for_all = for_all


def policy_of(environ: Mapping[str, str]) -> RestartPolicy:
    """Return the restart policy that `cluster-run` set.

    Args:
        environ: The environment variables.
    """
    found = {field: kind(environ[name]) for field, (name, kind) in POLICY_VARIABLES.items() if environ.get(name)}
    return RestartPolicy(**found)


def new_world() -> str:
    """Return a name that no other world has."""
    return uuid.uuid4().hex


class Members:
    """A node's part in a run.

    Args:
        table: The run's items.
        node: The node's name.
        policy: How often the run may fail.
        fixed_size: Whether the run needs this node, and no other will come. Default: - the others go on without it.
        drained: Returns what drains the node.
        by_script: Returns whether the node's processes failed last with an exit status of their own.
        hung: Returns whether one of them ended last because the others waited for it.
        steps: Where they say how far they have trained. Default: - nowhere.
        now: Returns the time, in seconds since 1970.
    """

    def __init__(
        self,
        table: RunTable,
        *,
        node: str,
        policy: RestartPolicy,
        fixed_size: bool = False,
        drained: Callable[[], DrainRequest | None] = drain_request,
        by_script: Callable[[], bool] = lambda: False,
        hung: Callable[[], bool] = lambda: False,
        steps: StepFile | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._table = table
        self._node = node
        self._policy = policy
        self._fixed_size = fixed_size
        self._drained = drained
        self._by_script = by_script
        self._hung = hung
        self._steps = steps or StepFile()
        self._before = Standing()
        self._now = now
        self._attempt = ""
        self._own: Membership | None = None
        self._healthy = 0.0
        self._waited: float | None = None
        self._looked = self._kept = 0.0
        self._written = ""

    def open(self, attempt: str) -> str:
        """Return where the items of this attempt of the run lie.

        Slurm and Kubernetes name attempts. Elsewhere a run that ended is started again under its name: once it has
        been closed for a minute, the first node that comes opens the next attempt.

        Args:
            attempt: The attempt's name. Empty: the last one, or the next after it.

        Raises:
            Left: The last attempt was closed just now.
        """
        if not attempt:
            found = self._table.read(_ATTEMPT)
            number = 0 if found is None else int(found.value)
            closed = self._table.read(f"{number}/{_CLOSED}")
            if closed is not None:
                seconds = self._now() - decoded(closed.value)["at"]
                if seconds < _CLOSED_SECONDS:
                    wait = f"start it again in {_CLOSED_SECONDS - seconds:.0f} s"
                    raise Left(f"the run ended {seconds:.0f} s ago: {wait}, or under another --run", Exit.AGAIN)
                last, _ = self._table.replace(
                    _ATTEMPT, str(number + 1).encode(), None if found is None else found.version
                )
                number = int(last.value) if last else number + 1
            attempt = str(number)
        self._attempt = attempt
        return attempt

    def close(self, why: Left | None = None) -> None:
        """Write that this attempt has ended, unless another node has.

        Args:
            why: Why this node ends it. Default: - its job is over, or it does not know why.
        """
        if self._table.read(self._closed) is None:
            reason = {} if why is None else {"exit_code": int(why.exit_code), "sentence": str(why)}
            self._table.put(self._closed, encoded({"at": self._now(), **reason}))

    def closed(self) -> Left:
        """Return why a run has ended whose rendezvous another node closed: as that node said, whose own end it is."""
        found = self._table.read(self._closed)
        said = {} if found is None else decoded(found.value)
        if "sentence" in said:
            return Left(said["sentence"], Exit(said["exit_code"]))
        return Left("the run has ended on its other nodes", Exit.AGAIN)

    def joined(self, world: str) -> None:
        """Write that the node has joined a world.

        Args:
            world: The world.
        """
        self._steps.forget()
        self._own = Membership(world=world, node=self._node, joined=self._now(), before=self._before)
        self._healthy, self._waited, self._written = self._now(), None, ""
        self._write(self._own)

    def healthy(self, waiting: int) -> None:
        """Take note that the node's processes run. A drain is written at once: what then fails elsewhere is none.

        Args:
            waiting: How many nodes wait to join.
        """
        self._healthy = self._now()
        if waiting and self._waited is None:
            self._waited = self._healthy
        if self._healthy - self._looked >= _DRAIN_POLL_SECONDS:
            self._looked = self._healthy
            if self._own is not None and self._own.ended is None and self._drained() is not None:
                self._end(ended=self._healthy)
        if self._own is not None and self._written != _hour(self._healthy):
            self._write(self._own)
        if self._healthy - self._kept >= _DAY:
            self._kept = self._healthy
            self._keep_attempt()

    def _keep_attempt(self) -> None:
        """Write the attempt again: it is written once, and would expire while a run of many weeks goes on."""
        found = self._table.read(_ATTEMPT)
        if found is not None:
            self._table.replace(_ATTEMPT, found.value, found.version)

    def before_join(self) -> None:
        """Write how the last world ended for this node, and decide whether it joins another.

        Raises:
            Left: It does not.
        """
        drained = self._drained()
        if self._own is not None and self._own.ended is None and self._own.failed is None:
            if drained is not None or self._waited is not None:
                self._end(ended=self._waited or self._now())
            else:
                self._end(failed=self._healthy)
        if drained is not None:
            until = "" if drained.deadline is None else f" by {_minute(drained.deadline)}"
            rest = "the run needs it, and ends on all nodes" if self._fixed_size else "the others go on"
            raise Left(
                f"{self._node} is drained{until}: {drained.sentence}; {rest}", Exit.AGAIN, for_all=self._fixed_size
            )
        history = self._recent()
        self._before = standing(history)
        decision = decide(history, self._node, self._now(), self._policy)
        minutes = f"{self._policy.window_seconds / 60:.0f} minutes"
        if decision is Decision.END:
            raise Left(
                f"the run failed more than {self._policy.restarts} times within {minutes}: it ends; mend what "
                "fails, or allow more with --restarts",
                Exit.BUDGET,
                for_all=True,
            )
        if decision is Decision.REPEAT:
            raise Left(
                f"the run failed {self._before.fruitless} times in a row without progress, after step "
                f"{self._before.best}: it ends; mend what fails there, or allow more with --no-progress-restarts",
                Exit.BUDGET,
                for_all=True,
            )
        if decision is Decision.LEAVE:
            rest = "; the run needs it, and ends on all nodes" if self._fixed_size else ""
            raise Left(
                f"{self._node} is left out: its processes were the first to fail {self._policy.first_failures} times "
                f"within {minutes}; look at it with `cluster-node verify`{rest}",
                Exit.UNFIT,
                for_all=self._fixed_size,
            )

    @property
    def start(self) -> str:
        """The name of this start: that of a Slurm step or JobSet with its restarts, else of the attempt."""
        return self._attempt.rpartition("-")[0] or self._attempt

    @property
    def _closed(self) -> str:
        return f"{self._attempt}/{_CLOSED}"

    @property
    def _history(self) -> str:
        return f"{_HISTORY}{self.start}/"

    def _recent(self) -> Sequence[Membership]:
        now = self._now()
        found = self._table.list(self._history, since=_hour(now - self._policy.window_seconds - _EARLIER_SECONDS))
        # A node's later item about a world stands below a later hour.
        history = {(one.world, one.node): one for one in map(Membership.from_json, found.values())}
        return list(history.values())

    def _end(self, *, failed: float | None = None, ended: float | None = None) -> None:
        if self._own is not None:
            by_script = failed is not None and self._by_script()
            progress = self._steps.read()
            own = replace(
                self._own,
                failed=failed,
                ended=ended,
                by_script=by_script,
                hung=failed is not None and self._hung(),
                start=None if progress is None else progress.start,
                steps=None if progress is None else progress.steps,
            )
            self._write(own)
            if failed is not None:
                self._table.put(over_key(own.world), self._node.encode())
            self._own = own

    def _write(self, own: Membership) -> None:
        """Write it below the hour, and below each hour in which the world goes on: readers need no older ones."""
        hour = _hour(self._now())
        self._table.put(f"{self._history}{hour}/{own.world}/{own.node}", own.to_json())
        self._written = hour


def _hour(seconds: float) -> str:
    return f"{max(0, seconds) // _HOUR:07.0f}"


def _minute(time_: datetime) -> str:
    return time_.astimezone(timezone.utc).strftime("%H:%M UTC")
