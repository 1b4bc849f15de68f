"""torchrun's rendezvous in the cluster's table of runs: there is no host whose loss ends the job.

`torchrun --rdzv-backend cluster-table --rdzv-endpoint TABLE --rdzv-id RUN@ATTEMPT`, which `cluster-run` says. Who
takes part is decided by torch's own dynamic rendezvous. This module gives it the table, and asks `membership` before
a node joins again.
https://docs.pytorch.org/docs/stable/elastic/rendezvous.html
"""

import logging
import os
import signal
import sys
import time
from collections.abc import Callable
from datetime import timedelta
from typing import NoReturn, TypeVar

from torch.distributed import DistStoreError, Store
from torch.distributed.elastic.rendezvous import (
    RendezvousClosedError,
    RendezvousConnectionError,
    RendezvousHandler,
    RendezvousInfo,
    RendezvousParameters,
    RendezvousTimeoutError,
)
from torch.distributed.elastic.rendezvous.dynamic_rendezvous import create_handler

from cluster_job.environment import read_environment
from cluster_job.exits import Exit
from cluster_job.handover import Handover
from cluster_job.hang_watch import say
from cluster_job.hangs import STUCK_EXIT_CODE
from cluster_job.lease import HELD, TOKEN, Lease, Taken
from cluster_job.membership import FIXED_SIZE, Left, Members, new_world, policy_of
from cluster_job.progress import StepFile
from cluster_job.rounds import Round
from cluster_job.table import open_table
from cluster_job.torch_table import NAME, STORE_SECONDS, TableBackend, TableStore, ask, keep_asking_table
from cluster_job.world_watch import WorldWatch

_log = logging.getLogger(__name__)

_LOOK_SECONDS = 5
"""How often a node that waits for the name of its world looks whether its round goes on."""
_ROUNDS = 10
"""How many rounds may lose a node between their meeting and their start, until the agent gives up."""
_REPAIR_SECONDS = 3600
"""For how long nodes wait for enough of them: a lost one is drained, verified and launched again in that time."""

_ARRIVED_SECONDS = 45
"""For how long the first node waits until each other one has read the name of the world: its lease lasts longer."""

_WORLD = "cluster/world"
_ARRIVED = "cluster/arrived"
_START = "cluster/start"
_Answer = TypeVar("_Answer")


def keep_alives(max_nodes: int) -> dict[str, int]:
    """Return the settings of the rendezvous, as measured: a node is lost that has not written three times.

    All nodes write the same item, once an interval each. DynamoDB takes 1,000 KB a second of one item, refused
    writes included, and the item has 20 to 30 bytes a node: beyond 32 nodes the interval grows with their number.
    https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-partition-key-design.html

    Args:
        max_nodes: How many nodes may take part.
    """
    interval = max(1, -(-max_nodes // 32))
    return {"keep_alive_interval": interval, "keep_alive_max_attempt": 3, "last_call_timeout": 2}


class ExitStatus(logging.Handler):
    """Remembers how a process of this node failed last: torch's agent logs it, and tells its rendezvous nothing."""

    LOGGER = "torch.distributed.elastic.multiprocessing.api"

    def __init__(self) -> None:
        super().__init__(level=logging.ERROR)
        self._status = 0

    def emit(self, record: logging.LogRecord) -> None:
        """See base class."""
        if str(record.msg).startswith("failed (exitcode:") and isinstance(record.args, tuple):
            status = record.args[0]
            self._status = status if isinstance(status, int) else 0

    def is_of_script(self) -> bool:
        """Return whether it ended by itself; a negative status is a signal's number.

        Not one that ended because the others waited for it: that is a failure of its node.

        SIGABRT is the process's own signal: with it torch's watchdog ends a collective that hangs, first on the rank
        that has waited longest. https://docs.pytorch.org/docs/stable/torch_nccl_environment_variables.html
        """
        return (self._status > 0 and not self.is_hung()) or self._status == -signal.SIGABRT

    def is_hung(self) -> bool:
        """Return whether it ended because the other ranks waited for it."""
        return self._status == STUCK_EXIT_CODE


class _OtherRound(Exception):  # noqa: N818
    """Other nodes have begun another round of the rendezvous, which this node joins."""


class TableRendezvous(RendezvousHandler):  # type: ignore[misc]
    """torch's dynamic rendezvous, and the run's own rules about who joins again.

    Where they say no, the agent ends with an exit code of `cluster_job.exits`: torchrun hands `SystemExit` on.

    Args:
        inner: torch's handler.
        members: What this node writes and reads of its run.
        handover: What it asks of its processes before it ends them for a node that joins.
        lease: This start's right to train the run, which rank 0's node holds.
        watch: Makes what looks at the other nodes of a world, from its name, this node's rank and their number.
        clock: Returns seconds that never go back.
    """

    def __init__(
        self,
        inner: RendezvousHandler,
        members: Members,
        handover: Handover,
        lease: Lease,
        watch: Callable[[str, int, int], WorldWatch],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._inner = inner
        self._members = members
        self._handover = handover
        self._lease = lease
        self._make_watch = watch
        self._clock = clock
        self._watch: WorldWatch | None = None
        self._round: Round | None = None
        self._is_first = self._left = False
        self._why: Left | None = None

    def get_backend(self) -> str:
        """See base class."""
        return NAME

    @property
    def use_agent_store(self) -> bool:
        """See base class."""
        return bool(self._inner.use_agent_store)

    def next_rendezvous(self) -> RendezvousInfo:
        """See base class."""
        try:
            keep_asking_table(self._lease.leave)
            keep_asking_table(self._members.before_join)
            world, info = self._meet()
        except RendezvousClosedError:
            self._end(ask(self._members.closed))
        except RendezvousTimeoutError:
            self._end(Left("too few nodes came to go on: start the job again when they are there", Exit.AGAIN))
        except Left as left:
            self._left = not left.for_all
            self._end(left)
        try:
            ask(lambda: self._members.joined(world))
        except RendezvousConnectionError as error:
            # `healthy` writes the membership again within the hour, and the others must not wait for it.
            _log.warning("%s", error)
        self._look_at(world, info)
        if self._lease.token is not None:
            os.environ[TOKEN] = str(self._lease.token)  # rank 0's process is on this node
        self._handover.start()
        return info

    def _meet(self) -> tuple[str, RendezvousInfo]:
        """Return the world that this node has joined, by its name and by torch's description."""
        left = _ROUNDS
        while True:
            try:
                info = keep_asking_table(self._inner.next_rendezvous)
                self._round = Round(self._inner, info.rank)
                self._is_first = info.rank == 0
                return self._world_of(info), info
            except _OtherRound:
                say("other nodes have met without this one, which joins them")
            except DistStoreError as error:
                left -= 1
                if not left:
                    raise
                say(f"a node of this round is lost: {error}; the others meet again")
            keep_asking_table(self._lease.leave)

    def _look_at(self, world: str, info: RendezvousInfo) -> None:
        if self._watch is not None:
            self._watch.end()
        self._watch = self._make_watch(world, info.rank, info.world_size)
        self._watch.start()

    def num_nodes_waiting(self) -> int:
        """Return how many nodes wait, once the processes have saved: they are ended for them.

        Where another node is lost or its processes have failed they cannot save, and are ended at once. A table that
        does not answer is no reason to stop a training.
        """
        if self._is_world_over():
            return 1
        try:
            # First, since another start waits for a minute only while the table is slow.
            if self._is_first and not self._hold(self._lease.renew):
                return 1
            waiting, why = int(self._inner.num_nodes_waiting()), "a node joins"
            if self._round is not None and self._round.is_over():
                waiting, why = max(waiting, 1), "other nodes have met without this one"
            if waiting and self._watch is not None:
                # A node whose processes have failed waits, too, and has written it before.
                ask(self._watch.look_for_end)
                if self._is_world_over():
                    return 1
            waiting = waiting if self._handover.may_end(waiting, why) else 0
            ask(lambda: self._members.healthy(waiting))
        except RendezvousConnectionError as error:
            _log.warning("%s; the training goes on", error)
            return 0
        return waiting

    def _is_world_over(self) -> bool:
        over = "" if self._watch is None else self._watch.over
        if over:
            say(f"{over}: the processes start again on the nodes that are left")
        return bool(over)

    def is_closed(self) -> bool:
        """See base class."""
        return bool(self._inner.is_closed())

    def set_closed(self) -> None:
        """See base class."""
        self._inner.set_closed()

    def get_run_id(self) -> str:
        """See base class."""
        return str(self._inner.get_run_id())

    def shutdown(self) -> bool:
        """Close the rendezvous for all nodes, unless this one leaves it to the others."""
        if self._left:
            return True
        try:
            if self._watch is not None:
                ask(self._watch.leave)
            ask(lambda: self._members.close(self._why))
            ask(self._lease.release)
        except RendezvousConnectionError as error:
            _log.warning("%s", error)
        return bool(self._inner.shutdown())

    def _world_of(self, info: RendezvousInfo) -> str:
        """Return the name that the first node gives to the nodes that have met, once no others train the run.

        The first node waits until each other one has read the name, and then writes `cluster/start`. A node that is
        lost before that lets the others meet again; one that is lost later ends all agents, since torch gives ranks
        to all nodes of a round or to none.

        Raises:
            DistStoreError: A node is lost.
        """
        store, others = info.store, [f"{_ARRIVED}/{rank}" for rank in range(1, info.world_size)]
        if self._is_first:
            self._lease.world = new_world()
            keep_asking_table(lambda: self._hold(lambda: self._lease.take(self._stay)))
            keep_asking_table(lambda: store.set(_WORLD, self._lease.world))
            self._wait(store, others, _ARRIVED_SECONDS)
            keep_asking_table(lambda: store.set(_START, "now"))
        else:
            # The first node may wait for others that train the run.
            self._wait(store, [_WORLD], STORE_SECONDS, extend_while=self._lease.is_fresh)
            self._lease.world = keep_asking_table(lambda: store.get(_WORLD)).decode()
            keep_asking_table(lambda: store.set(others[info.rank - 1], "here"))
            self._wait(store, [_START], STORE_SECONDS)
        return self._lease.world

    def _wait(
        self, store: Store, keys: list[str], seconds: float, *, extend_while: Callable[[], bool] = lambda: False
    ) -> None:
        """Wait until all keys are in the store of the round.

        Args:
            store: The store.
            keys: The keys, which other nodes of the round write.
            seconds: How long they may take.
            extend_while: Returns whether to wait longer. Default: - it never does.

        Raises:
            DistStoreError: A key is missing after that time.
            _OtherRound: Other nodes have begun another round.
        """
        end = self._clock() + seconds
        while True:
            try:
                keep_asking_table(lambda: store.wait(keys, timedelta(seconds=_LOOK_SECONDS)))
            except DistStoreError:
                keep_asking_table(self._stay)
                # Asked each time: whether another start is silent is seen over a minute.
                goes_on = keep_asking_table(extend_while)
                if self._clock() > end and not goes_on:
                    raise
            else:
                return

    def _stay(self) -> None:
        """Stay in the round while its first node waits for others that train the run."""
        if self._inner.is_closed():
            raise RendezvousClosedError
        if self._round is not None and self._round.is_over():
            raise _OtherRound

    def _hold(self, act: Callable[[], _Answer]) -> _Answer:
        try:
            return ask(act)
        except Taken as error:
            self._end(Left(str(error), error.exit_code, for_all=True))

    def _end(self, left: Left) -> NoReturn:
        self._why = left if left.for_all else None
        print(f"cluster-run: {left}", file=sys.stderr, flush=True)  # noqa: T201 - what a user reads in the job's output
        raise SystemExit(left.exit_code)


def _create(params: RendezvousParameters) -> RendezvousHandler:
    environment = read_environment()
    cluster = environment.cluster
    run, _, attempt = params.run_id.rpartition("@")
    name = run or attempt
    table = open_table(params.endpoint, name, region=None if cluster is None else cluster.region)
    fixed_size = bool(os.environ.get(FIXED_SIZE))
    status = ExitStatus()
    logging.getLogger(ExitStatus.LOGGER).addHandler(status)
    members = Members(
        table,
        node=environment.node,
        policy=policy_of(os.environ),
        fixed_size=fixed_size,
        by_script=status.is_of_script,
        hung=status.is_hung,
        steps=StepFile.of(os.environ),
    )
    try:
        attempt = ask(lambda: members.open(attempt if run else ""))
        lease = Lease(table, run=name, owner=f"start {members.start}", node=environment.node, attempt=attempt)
        ask(lease.check)
    except (Left, Taken) as error:
        print(f"cluster-run: {error}", file=sys.stderr, flush=True)  # noqa: T201
        raise SystemExit(error.exit_code) from error
    os.environ[HELD] = name
    # As `cluster-run` does, for who starts torchrun without it.
    os.environ["TORCH_DISABLE_SHARE_RDZV_TCP_STORE"] = "1"
    # A run that keeps its nodes waits for none: its job is started again as a whole.
    waits = {} if fixed_size else {"join_timeout": _REPAIR_SECONDS}
    for name, value in {**keep_alives(params.max_nodes), **waits}.items():
        params.config.setdefault(name, value)
    store = TableStore(table, f"{attempt}/store/")
    inner = create_handler(store, TableBackend(table, f"{attempt}/state"), params)

    def watch(world: str, rank: int, nodes: int) -> WorldWatch:
        return WorldWatch(table, node=environment.node, world=world, rank=rank, nodes=nodes)

    return TableRendezvous(inner, members, Handover.of(os.environ), lease, watch)


def plugin() -> Callable[[RendezvousParameters], RendezvousHandler]:
    """Return what makes the handler: the entry point of group `torchrun.handlers`."""
    return _create
