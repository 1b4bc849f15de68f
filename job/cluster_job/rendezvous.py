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
import zlib
from collections.abc import Callable, Sequence
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
from torch.distributed.elastic.rendezvous.dynamic_rendezvous import RendezvousBackend, create_handler

from cluster_job.environment import read_environment
from cluster_job.exits import Exit
from cluster_job.handover import Handover
from cluster_job.hang_watch import say
from cluster_job.lease import HELD, Lease, Taken
from cluster_job.membership import FIXED_SIZE, Left, Members, new_world, policy_of
from cluster_job.rounds import Round
from cluster_job.table import RunTable, TableError, keep_asking, open_table
from cluster_job.world_watch import WorldWatch

NAME = "cluster-table"
"""What torchrun calls it."""

_log = logging.getLogger(__name__)

_POLL_SECONDS = 0.2
_STORE_SECONDS = 60
_REPAIR_SECONDS = 3600
"""For how long nodes wait for enough of them: a lost one is drained, verified and launched again in that time."""

_WORLD = "cluster/world"
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
        found = _ask(lambda: self._table.read(self._key))
        return None if found is None else (zlib.decompress(found.value), found.version)

    def set_state(self, state: bytes, token: int | None = None) -> tuple[bytes, int, bool] | None:
        """See base class."""
        found, ours = _ask(lambda: self._table.replace(self._key, zlib.compress(state), token))
        return None if found is None else (zlib.decompress(found.value), found.version, ours)


class TableStore(Store):  # type: ignore[misc]
    """What torchrun's agents tell one another: ranks, and where rank 0 listens. No collective goes over it.

    Args:
        table: The run's items.
        prefix: What its keys begin with.
    """

    def __init__(self, table: RunTable, prefix: str) -> None:
        super().__init__()
        self._table = table
        self._prefix = prefix
        self._timeout = timedelta(seconds=_STORE_SECONDS)

    def set(self, key: str, value: bytes | str) -> None:
        """Put a value."""
        _ask(lambda: self._table.put(self._prefix + key, value.encode() if isinstance(value, str) else value))

    def get(self, key: str) -> bytes:
        """Wait for a value, and return it."""
        self.wait([key])
        return self._read(key) or b""

    def add(self, key: str, amount: int) -> int:
        """Add to a counter."""
        return _ask(lambda: self._table.add(f"{self._prefix}{key}/count", amount))

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
            time.sleep(_POLL_SECONDS)

    def _read(self, key: str) -> bytes | None:
        found = _ask(lambda: self._table.read(self._prefix + key))
        return None if found is None else found.value

    def set_timeout(self, timeout: timedelta) -> None:
        """Set how long `get` and `wait` wait."""
        self._timeout = timeout

    @property
    def timeout(self) -> timedelta:
        """How long `get` and `wait` wait."""
        return self._timeout


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

        SIGABRT is the process's own signal: with it torch's watchdog ends a collective that hangs, first on the rank
        that has waited longest. https://docs.pytorch.org/docs/stable/torch_nccl_environment_variables.html
        """
        return self._status > 0 or self._status == -signal.SIGABRT


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
    """

    def __init__(
        self,
        inner: RendezvousHandler,
        members: Members,
        handover: Handover,
        lease: Lease,
        watch: Callable[[str, int, int], WorldWatch],
    ) -> None:
        self._inner = inner
        self._members = members
        self._handover = handover
        self._lease = lease
        self._make_watch = watch
        self._watch: WorldWatch | None = None
        self._round: Round | None = None
        self._is_first = self._left = False

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
            _keep_asking(self._lease.leave)
            _keep_asking(self._members.before_join)
            info = _keep_asking(self._inner.next_rendezvous)
        except RendezvousClosedError:
            self._end(_ask(self._members.closed))
        except RendezvousTimeoutError:
            self._end(Left("too few nodes came to go on: start the job again when they are there", Exit.AGAIN))
        except Left as left:
            self._left = not left.for_all
            self._end(left)
        self._round = Round(self._inner, info.rank)
        self._is_first = info.rank == 0
        try:
            world = self._world_of(info.store)
        except _OtherRound:
            return self.next_rendezvous()
        _keep_asking(lambda: self._members.joined(world))
        self._look_at(world, info)
        self._handover.start()
        return info

    def _look_at(self, world: str, info: RendezvousInfo) -> None:
        if self._watch is not None:
            self._watch.end()
        self._watch = self._make_watch(world, info.rank, info.world_size)
        self._watch.start()

    def num_nodes_waiting(self) -> int:
        """Return how many nodes wait, once the processes have saved: they are ended for them.

        Where another node is lost they cannot save, and are ended at once. A table that does not answer is no reason
        to stop a training.
        """
        if self._watch is not None and self._watch.over:
            say(f"{self._watch.over}: the processes start again on the nodes that are left")
            return 1
        try:
            waiting = int(self._inner.num_nodes_waiting())
            if self._round is not None and self._round.is_over():
                waiting = max(waiting, 1)
            waiting = waiting if self._handover.may_end(waiting) else 0
            _ask(lambda: self._members.healthy(waiting))
            if self._is_first and not self._hold(self._lease.renew):
                return 1
        except RendezvousConnectionError as error:
            _log.warning("%s; the training goes on", error)
            return 0
        return waiting

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
                _ask(self._watch.leave)
            _ask(self._members.close)
            _ask(self._lease.release)
        except RendezvousConnectionError as error:
            _log.warning("%s", error)
        return bool(self._inner.shutdown())

    def _world_of(self, store: Store) -> str:
        """Return the name that the first node gives to the nodes that have met, once no others train the run."""
        if self._is_first:
            self._lease.world = new_world()
            _keep_asking(lambda: self._hold(lambda: self._lease.take(self._stay)))
            _keep_asking(lambda: store.set(_WORLD, self._lease.world))
        while True:
            try:
                self._lease.world = _keep_asking(lambda: store.get(_WORLD)).decode()
            except DistStoreError:
                if not _keep_asking(self._lease.is_fresh):
                    raise
                _keep_asking(self._stay)
            else:
                return self._lease.world

    def _stay(self) -> None:
        """Stay in the round while its first node waits for others that train the run."""
        self._inner.num_nodes_waiting()
        if self._round is not None and self._round.is_over():
            raise _OtherRound

    def _hold(self, act: Callable[[], _Answer]) -> _Answer:
        try:
            return _ask(act)
        except Taken as error:
            self._end(Left(str(error), Exit.USAGE, for_all=True))

    def _end(self, left: Left) -> NoReturn:
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
    )
    try:
        attempt = _ask(lambda: members.open(attempt if run else ""))
        lease = Lease(table, run=name, owner=f"start {members.start}", node=environment.node, attempt=attempt)
        _ask(lease.check)
    except (Left, Taken) as error:
        print(f"cluster-run: {error}", file=sys.stderr, flush=True)  # noqa: T201
        raise SystemExit(error.exit_code if isinstance(error, Left) else Exit.USAGE) from error
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


def _ask(call: Callable[[], _Answer]) -> _Answer:
    try:
        return call()
    except TableError as error:
        raise RendezvousConnectionError(str(error)) from error


def _keep_asking(call: Callable[[], _Answer]) -> _Answer:
    return keep_asking(lambda: _ask(call), (RendezvousConnectionError,))
