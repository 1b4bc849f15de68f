"""A run's own lease: every rank ends once another start has it, and no rank while the table is away."""

from collections.abc import Callable
from typing import Any

import pytest

from cluster_job.environment import read_environment
from cluster_job.exits import Exit
from cluster_job.fencing import Token
from cluster_job.holding import Hold
from cluster_job.lease import HELD, TOKEN, Lease
from cluster_job.sending import make_hold
from cluster_job.table import RunTable
from fake_runs_table import TABLE, FakeRunsTable


class _Scene:
    """The ranks of one start of a run, and other starts; no thread runs."""

    def __init__(self, ranks: int = 3) -> None:
        self.now, self.ends = 0.0, list[tuple[int, int]]()
        self.client = FakeRunsTable()
        self.table = RunTable(self.client, TABLE, "llama")  # type: ignore[arg-type]
        self.ranks = [self._hold(rank) for rank in range(ranks)]
        self.made: Any = None

    def lease(self, owner: str) -> Lease:
        return Lease(
            self.table, run="llama", owner=owner, node=f"node of {owner}", clock=lambda: self.now, sleep=self._sleep
        )

    def _sleep(self, seconds: float) -> None:
        self.now += seconds

    def _hold(self, rank: int) -> Hold:
        made = Hold(
            self.lease(f"process 7 of rank {rank}'s node"),
            is_first=rank == 0,
            end=lambda code: self.ends.append((rank, code)),
        )
        made._thread.start = lambda: None  # type: ignore[method-assign]
        return made

    def begin(self) -> list[Token | None]:
        return [rank.begin(self._from_first) for rank in self.ranks]

    def _from_first(self, make: Callable[[], Any]) -> Any:
        self.made = self.made or make()
        return self.made

    def look(self) -> None:
        self.now += 15
        for rank in self.ranks:
            rank.look()


@pytest.mark.parametrize(
    ("owner", "code", "sentence"),
    [
        (
            "Slurm step 8.0",
            Exit.USAGE,
            "llama was taken over by Slurm step 8.0 on node of Slurm step 8.0",
        ),
        ("process 7 of rank 0's node", Exit.AGAIN, "llama was started again on node of process 7 of rank 0's node"),
    ],
)
def test_all_ranks_end_with_one_sentence_once_another_start_has_the_lease(
    capsys: pytest.CaptureFixture[str], owner: str, code: Exit, sentence: str
) -> None:
    scene = _Scene()
    tokens = scene.begin()
    assert len(set(tokens)) == 1
    scene.look()
    assert not scene.ends
    scene.now += 100  # its node was cut off, and comes back
    other = scene.lease(owner)
    other.take()
    capsys.readouterr()
    scene.look()
    assert scene.ends == [(0, code), (1, code), (2, code)]
    (said,) = capsys.readouterr().err.splitlines()
    assert sentence in said
    scene.ranks[0].finish()
    assert other.renew(), "its end ends no other's lease"


def test_a_table_that_is_away_for_minutes_ends_no_rank(capsys: pytest.CaptureFixture[str]) -> None:
    scene = _Scene()
    scene.begin()
    scene.client.down = True
    for _ in range(40):
        scene.look()
    scene.client.down = False
    scene.look()
    assert not scene.ends
    assert capsys.readouterr().err.count("the lease of this run failed, and training goes on") == 3
    scene.ranks[0].finish()
    began = scene.now
    scene.lease("another").take()
    assert scene.now == began


def test_a_start_that_does_not_reach_the_table_takes_the_lease_later_and_ends_where_another_has_it() -> None:
    scene = _Scene()
    scene.client.down = True
    assert scene.begin() == [None] * 3
    scene.look()
    scene.client.down = False
    scene.look()
    assert not scene.ends
    scene.now += 100
    scene.lease("another").take()
    scene.look()
    assert scene.ends == [(0, Exit.USAGE)]


def test_a_second_start_is_refused_on_all_ranks() -> None:
    scene = _Scene()
    first = scene.lease("Slurm step 7.0")
    first.take()

    def sleep(seconds: float) -> None:
        scene.now += seconds
        first.renew()

    scene._sleep = sleep  # type: ignore[method-assign]
    scene.ranks = [scene._hold(rank) for rank in range(2)]
    for rank in scene.ranks:
        with pytest.raises(SystemExit) as end:
            rank.begin(scene._from_first)
        assert end.value.code == Exit.USAGE
        rank.finish()
    assert first.renew()


def test_rank_0_has_the_token_of_cluster_runs_lease(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(HELD, "llama")
    monkeypatch.setenv(TOKEN, "7-1f3c9a2b")
    environment = read_environment({"RANK": "0"})
    assert make_hold("llama", environment, is_alone=True).begin(lambda take: take()) == Token(7, "1f3c9a2b")
    assert make_hold("another", environment, is_alone=True).begin(lambda take: take()) is None
    assert make_hold("llama", environment, is_alone=False).begin(lambda take: take()) is None, "replicas share it"
