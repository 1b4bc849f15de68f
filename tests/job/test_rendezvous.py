"""What torchrun's agent is given by the rendezvous where nodes, tables and other starts of the run are in its way."""

import pickle
import zlib
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from threading import Lock
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("torch", reason="torch is not installed: make test-torch")

from torch.distributed import DistStoreError, PrefixStore
from torch.distributed.elastic.rendezvous import (
    RendezvousClosedError,
    RendezvousConnectionError,
    RendezvousInfo,
    RendezvousStateError,
)
from torch.distributed.elastic.rendezvous.dynamic_rendezvous import _NodeDescGenerator, _RendezvousState

from cluster_job.exits import Exit
from cluster_job.failures import RestartPolicy
from cluster_job.handover import Handover
from cluster_job.lease import Lease
from cluster_job.membership import Members
from cluster_job.rendezvous import TableRendezvous
from cluster_job.table import RunTable, keep_asking
from cluster_job.torch_table import TableBackend, TableStore
from cluster_job.world_watch import WorldWatch
from fake_runs_table import TABLE, FakeRunsTable

pytestmark = pytest.mark.torch


class _Store:
    """What the nodes of one round say to each other; a wait ends at once."""

    def __init__(self, scene: "_Scene", values: dict[str, str]) -> None:
        self._scene, self.values = scene, values

    def set(self, key: str, value: str) -> None:
        self.values[key] = value

    def get(self, key: str) -> bytes:
        return self.values[key].encode()

    def wait(self, keys: list[str], timeout: timedelta) -> None:
        self._scene.act()
        if missing := [key for key in keys if key not in self.values]:
            self._scene.now += timeout.total_seconds()
            raise DistStoreError(f"{missing[0]} did not come")


class _Scene:
    """Node a, whose torch has met others in rounds that the test describes; torch's handler as far as it is asked."""

    def __init__(self, folder: Path, rounds: list[tuple[int, dict[str, str]] | Exception]) -> None:
        self.now, self.closed, self.waiting = 1e9, False, 0
        self.act: Callable[[], object] = lambda: None
        self.client = FakeRunsTable()
        self.table = RunTable(self.client, TABLE, "llama")  # type: ignore[arg-type]
        self.rounds = rounds
        self.joined = 0
        self.state: Any = SimpleNamespace(round=0, complete=True, participants={"a": 0}, last_heartbeats={})
        self._this_node, self._state_holder, self._heartbeat_lock = "a", self, Lock()
        self.lease = self.lease_of("start 0")
        self.rendezvous = TableRendezvous(
            self,
            Members(self.table, node="a", policy=RestartPolicy(), drained=lambda: None, now=lambda: self.now),
            Handover(folder),
            self.lease,
            self._watch,
            clock=lambda: self.now,
        )

    def _watch(self, world: str, rank: int, nodes: int) -> WorldWatch:
        made = WorldWatch(self.table, node="a", world=world, rank=rank, nodes=nodes, clock=lambda: self.now)
        made.start = lambda: None  # type: ignore[method-assign] # no thread looks
        return made

    def lease_of(self, owner: str) -> Lease:
        return Lease(self.table, run="llama", owner=owner, node="b", clock=lambda: self.now, sleep=self._sleep)

    def _sleep(self, seconds: float) -> None:
        self.now += seconds
        self.act()

    def next_rendezvous(self) -> RendezvousInfo:
        self.joined += 1
        found = self.rounds.pop(0)
        if isinstance(found, Exception):
            raise found
        rank, values = found
        return RendezvousInfo(_Store(self, values), rank, 2, None)

    def num_nodes_waiting(self) -> int:
        return self.waiting

    def is_closed(self) -> bool:
        return self.closed

    def ends(self, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
        with pytest.raises(SystemExit) as end:
            self.rendezvous.next_rendezvous()
        assert isinstance(end.value.code, int)
        return end.value.code, capsys.readouterr().err


_NAMED = {"cluster/world": "w", "cluster/start": "now"}


@pytest.mark.parametrize(
    "lost",
    [
        (1, {}),  # rank 0 went before it named the world
        (1, {"cluster/world": "lost"}),  # or another one after it
        (0, {}),  # rank 0 learns of that itself
        DistStoreError("MASTER_ADDR did not come"),  # or before it said where it listens
    ],
)
def test_a_node_lost_between_meeting_and_start_lets_the_others_meet_again(
    tmp_path: Path, lost: tuple[int, dict[str, str]] | Exception
) -> None:
    scene = _Scene(tmp_path, [lost, (1, _NAMED)])
    assert scene.rendezvous.next_rendezvous().rank == 1
    assert scene.lease.world == "w"
    assert scene.now - 1e9 <= 130
    scene.lease_of("start 0").check()
    assert scene.now - 1e9 <= 130, "no lease of the lost world is in the way"


def test_rounds_that_lose_a_node_each_time_end_the_agent(tmp_path: Path) -> None:
    scene = _Scene(tmp_path, [DistStoreError("MASTER_ADDR did not come")] * 11)
    with pytest.raises(DistStoreError):
        scene.rendezvous.next_rendezvous()
    assert scene.joined == 10


@pytest.mark.parametrize("rank", [0, 1])
def test_the_other_nodes_of_a_start_that_is_refused_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], rank: int
) -> None:
    scene = _Scene(tmp_path, [(rank, {})])
    other = scene.lease_of("start 1")
    other.take()

    def act() -> None:
        other.renew()
        scene.closed = scene.now - 1e9 >= 300  # rank 0 of this start was refused

    scene.act = act
    code, said = scene.ends(capsys)
    if rank:
        assert (code, scene.closed) == (Exit.AGAIN, True)
        assert "the run has ended on its other nodes" in said
    else:
        assert code == Exit.USAGE
        assert "llama is being trained by start 1 on b" in said


def test_a_node_that_waits_joins_the_nodes_that_met_without_it(tmp_path: Path) -> None:
    scene = _Scene(tmp_path, [(1, {}), (1, _NAMED)])
    scene.act = lambda: scene.state.__dict__.update(round=scene.state.round + 1, participants={"b": 0})
    scene.rendezvous.next_rendezvous()
    assert scene.joined == 2


def test_a_closed_rendezvous_ends_the_agent(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _Scene(tmp_path, [RendezvousClosedError()]).ends(capsys)[0] == Exit.AGAIN


def test_a_state_that_another_job_wrote_runs_no_code_and_torchs_own_is_taken(tmp_path: Path) -> None:
    class Call:
        def __reduce__(self) -> Any:
            return Path.mkdir, (tmp_path / "made",)

    table = RunTable(FakeRunsTable(), TABLE, "llama")  # type: ignore[arg-type]
    backend, now = TableBackend(table, "1/state"), datetime.now(UTC)
    state, node = _RendezvousState(), _NodeDescGenerator().generate()
    state.deadline, state.participants, state.wait_list = now, {node: 0}, {node}
    state.redundancy_list, state.last_heartbeats = {node}, {node: now}
    found = backend.set_state(pickle.dumps(state))
    assert found is not None
    assert vars(pickle.loads(found[0])) == vars(state)  # noqa: S301
    table.put("1/state", zlib.compress(pickle.dumps(Call())))
    for ask in (backend.get_state, lambda: backend.set_state(pickle.dumps(state), 7)):
        with pytest.raises(RendezvousStateError, match=r"names pathlib.*Path"):
            ask()
    table.put("1/state", b"no pickle")
    with pytest.raises(RendezvousStateError):
        backend.get_state()
    assert not (tmp_path / "made").exists()


def test_the_others_do_not_wait_for_what_a_node_writes_of_itself(tmp_path: Path) -> None:
    scene = _Scene(tmp_path, [(1, _NAMED)])
    scene.act = lambda: setattr(scene.client, "down", True)
    assert scene.rendezvous.next_rendezvous().rank == 1


@pytest.mark.parametrize(("rank", "values"), [(0, {"cluster/arrived/1": "here"}), (1, _NAMED)])
def test_a_table_that_does_not_answer_for_minutes_ends_no_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rank: int, values: dict[str, str]
) -> None:
    scene, slept = _Scene(tmp_path, [(rank, dict(values))]), list[float]()

    def refusing(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any) -> Any:
            if len(slept) < 5:
                raise RendezvousConnectionError("DynamoDB does not answer")
            return real(*given)

        return call

    for name in ("set", "get", "wait"):
        monkeypatch.setattr(_Store, name, refusing(getattr(_Store, name)))
    defaults: Any = keep_asking.__kwdefaults__
    monkeypatch.setitem(defaults, "sleep", slept.append)
    assert scene.rendezvous.next_rendezvous().rank == rank
    assert len(slept) == 5


def test_what_agents_say_in_a_round_is_asked_again_while_the_table_does_not_answer() -> None:
    client, slept = FakeRunsTable(), list[float]()

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        client.down = len(slept) < 3

    own = TableStore(RunTable(client, TABLE, "llama"), "0/store/", sleep=sleep)  # type: ignore[arg-type]
    store = PrefixStore("round 1", own)  # as torch hands it to its agents
    calls: list[Callable[[], object]] = [
        lambda: store.set("rank", "1"),
        lambda: store.get("rank"),
        lambda: store.add("count", 1),
    ]
    for call in calls:
        slept.clear()
        client.down = True
        call()
        assert len(slept) == 3
        assert max(slept) <= 5
    with pytest.raises(DistStoreError):
        store.wait(["never"], timedelta(0))


@pytest.mark.parametrize(
    ("acts", "is_ended", "said"),
    [
        ([], False, ""),
        (["joins"], False, "a node joins: the job saves first"),
        (["is late"], False, "other nodes have met without this one: the job saves first"),
        (["fails", "joins"], True, "the processes of b have failed: the processes start again"),
        (["joins", "fails"], True, "the processes of b have failed: the processes start again"),
    ],
)
def test_the_processes_save_for_a_node_that_joins_and_end_at_once_after_one_whose_processes_failed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], acts: list[str], is_ended: bool, said: str
) -> None:
    scene = _Scene(tmp_path, [(1, _NAMED)])
    scene.rendezvous.next_rendezvous()
    Handover(tmp_path).answers()  # a script that saves, or hangs
    failed = Members(scene.table, node="b", policy=RestartPolicy(), drained=lambda: None, now=lambda: scene.now)
    failed.joined("w")
    waiting = 0
    for act in acts:
        if act == "fails":
            failed.before_join()
        elif act == "joins":
            scene.waiting = 1
        else:
            scene.state.__dict__.update(round=1, participants={"b": 0})
        scene.now += 1
        waiting = scene.rendezvous.num_nodes_waiting()
    assert bool(waiting) is is_ended
    err = capsys.readouterr().err
    assert said in err
    assert err.count("the job saves first") == ("joins" in acts[:1] or "is late" in acts)
