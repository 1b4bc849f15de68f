"""When ranks save and end, with ranks that run in turns."""

from collections.abc import Callable, MutableMapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster_job.checkpoints import Checkpoint, CheckpointFolder
from cluster_job.digests import Unreadable
from cluster_job.handover import BEGIN_SECONDS, SEEN_SECONDS, WRITE_SECONDS, Handover
from cluster_job.intervals import History
from cluster_job.saving import Saver


class Job:
    """Ranks that run in turns; the wishes of one round are answered in the next, as on a network."""

    def __init__(self, root: Path, world_size: int) -> None:
        self.folder = CheckpointFolder(root)
        self.now = 0.0
        self.drained: set[int] = set()
        self.agents = [Handover(root / f"node-{rank}", clock=lambda: self.now) for rank in range(world_size)]
        self.saved: list[tuple[int, int, bool]] = []
        self.is_full = False
        self.unreadable: dict[int, Unreadable] = {}
        self.refused = 0
        self.made: Any = None
        self.wishes = [0] * world_size
        self.answer = 0
        self.savers = [self._saver(rank, world_size) for rank in range(world_size)]

    def _saver(self, rank: int, world_size: int) -> Saver:
        return Saver(
            self.folder,
            ranks=Ranks(self, rank, world_size),
            storage=Storage(self, rank),
            drained=lambda: rank in self.drained,
            handover=self.agents[rank],
            refused=self.refuse,
            clock=lambda: self.now + 1000 * rank,
        )

    def refuse(self) -> None:
        self.refused += 1

    def step(self, number: int, *, last: bool = False) -> set[bool]:
        """Let all ranks do a step; return their answers."""
        self.answer, self.wishes = max(self.wishes), [0] * len(self.wishes)
        answers = set()
        for saver in self.savers:
            answers.add(saver.should_checkpoint(last=last))
            if True in answers:
                saver.checkpoint({}, number, last=last)
        return answers


class Ranks:
    writes = True

    def __init__(self, job: Job, rank: int, world_size: int) -> None:
        self.job, self.rank, self.world_size = job, rank, world_size

    def leaves(self, _drained: bool) -> bool:
        return True

    def from_first(self, make: Callable[[], Any]) -> Any:
        if self.rank == 0:
            self.job.made = make()
        return self.job.made

    def all(self, value: bool) -> bool:
        return value

    def agree(self, wish: int) -> int:
        self.job.wishes[self.rank] = wish
        return self.job.answer


class Storage:
    def __init__(self, job: Job, rank: int) -> None:
        self.job, self.rank = job, rank

    def load(self, state: MutableMapping[str, Any], checkpoint: Checkpoint, **_: object) -> Unreadable | None:
        if checkpoint.step in self.job.unreadable:
            return self.job.unreadable[checkpoint.step]
        state["loaded"] = checkpoint.step
        return None

    def save(
        self, _state: MutableMapping[str, Any], checkpoint: Checkpoint, *, wait: bool, done: Callable[[bool], None]
    ) -> None:
        self.job.saved.append((self.rank, checkpoint.step, wait))
        if self.rank == len(self.job.savers) - 1:
            checkpoint.path.mkdir(parents=True)
            self.job.folder.commit(checkpoint, ())
        done(True)

    def wait(self) -> bool:
        return not self.job.is_full


@given(
    st.integers(1, 5),
    st.lists(st.tuples(st.floats(0, 90), st.sets(st.integers(0, 4), max_size=1)), min_size=1, max_size=20),
)
def test_all_ranks_give_the_same_answer(world_size: int, steps: list[tuple[float, set[int]]]) -> None:
    """Their clocks differ, and drains come to any of them at any time."""
    job = Job(Path("/nonexistent"), world_size)
    for saver in job.savers:
        saver._storage = NoStorage()
    for number, (seconds, drained) in enumerate(steps):
        job.now += seconds
        job.drained |= drained & set(range(world_size))
        asked = bool(job.drained)
        assert len(job.step(number)) == 1
        assert len({saver.draining for saver in job.savers}) == 1
        assert asked or not job.savers[0].draining


class NoStorage(Storage):
    def __init__(self) -> None:
        pass

    def save(self, *_: object, **__: object) -> None:
        pass


def test_a_periodic_checkpoint_comes_after_a_minute_and_one_only(tmp_path: Path) -> None:
    job = Job(tmp_path, 2)
    for number in range(1, 100):
        job.now += 1
        job.step(number)
    assert [step for rank, step, _ in job.saved if rank == 0] == [61]
    assert not job.savers[0].draining


def test_a_drained_node_saves_at_once_waits_until_it_is_durable_and_ends(tmp_path: Path) -> None:
    job = Job(tmp_path, 3)
    job.step(1)
    job.drained = {2}
    assert job.step(2) == {False}
    assert job.step(3) == {True}
    assert job.saved == [(0, 3, True), (1, 3, True), (2, 3, True)]
    assert all(saver.draining for saver in job.savers)


def test_a_step_that_is_saved_twice_is_not_written_over(tmp_path: Path) -> None:
    job = Job(tmp_path, 2)
    for _ in range(2):
        for saver in job.savers:
            saver.checkpoint({}, 7, last=False)
    assert [one.step for one in job.folder.all()] == [7, 7]
    assert {step for _, step, _ in job.saved} == {7}


def test_the_ranks_save_once_before_their_processes_end_for_a_node_that_joins(tmp_path: Path) -> None:
    for rank in range(2):
        (tmp_path / f"node-{rank}").mkdir()
    job = Job(tmp_path, 2)
    first, second = job.agents
    assert first.may_end(1), "a script that does not save is not waited for"
    job.step(1)
    assert not first.may_end(0)
    assert not first.may_end(1)
    assert job.step(2) == {False}
    assert not second.may_end(0), "it has not seen the newcomer yet"
    assert job.step(3) == {True}
    assert job.saved == [(0, 3, False), (1, 3, False)], "one that cannot be written is no error"
    assert not any(saver.draining for saver in job.savers)
    assert not second.may_end(0), "torch lets it see the newcomer a second later"
    job.now += 1
    assert (first.may_end(1), second.may_end(1)) == (True, True)
    assert Job(tmp_path, 1).savers[0]._cadence.history().failures == 0, "the restart that follows is no failure"
    assert job.step(4) | job.step(5) == {False}
    assert not first.may_end(0)
    job.now += SEEN_SECONDS
    assert not first.may_end(0), "the newcomer went away"
    assert not first.may_end(1), "another came"


def test_the_ranks_try_again_when_the_checkpoint_for_a_node_that_joins_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "node-0").mkdir()
    job = Job(tmp_path, 1)
    (agent,) = job.agents
    job.is_full = True
    job.step(1)
    assert not agent.may_end(1)
    assert [job.step(number) for number in (2, 3)] == [{False}, {True}]
    assert not agent.may_end(1)
    job.is_full = False
    assert [job.step(number) for number in (4, 5)] == [{False}, {True}]
    assert agent.may_end(1)


@pytest.mark.parametrize(("begun", "seconds"), [(False, BEGIN_SECONDS), (True, WRITE_SECONDS)])
def test_a_node_that_joins_waits_for_a_checkpoint_within_limits(tmp_path: Path, begun: bool, seconds: float) -> None:
    now = 0.0
    handover = Handover(tmp_path, clock=lambda: now)
    handover.answers()
    if begun:  # for the agent of another node, which saw the newcomer first
        handover.begun()
    assert not handover.may_end(0)
    assert not handover.may_end(1)
    now = seconds - 1
    assert not handover.may_end(1)
    now = seconds
    assert handover.may_end(1)
    handover.start()
    assert not handover.is_asked


@pytest.mark.parametrize(("last", "failures"), [(True, 0), (False, 1)])
def test_a_restart_goes_on_after_the_newest_checkpoint_and_counts_failures(
    tmp_path: Path, last: bool, failures: int
) -> None:
    first = Job(tmp_path, 1)
    assert not first.savers[0].restore({})
    first.now = 360.0
    first.step(6)
    first.step(7, last=last)
    second = Job(tmp_path, 1)
    state: dict[str, Any] = {}
    with pytest.raises(
        RuntimeError, match=r"holds the first 7 steps: call run.restore\(state\) before run.steps\(\)"
    ):
        second.savers[0].first_step()
    assert second.savers[0].restore(state)
    assert state == {"loaded": 7}
    assert second.savers[0].first_step() == 7
    assert second.savers[0]._cadence.history() == History(failures=failures, rank_hours=0.1)


DAMAGED = Unreadable(reason="__1_0.distcp does not hold what was written", damaged=True)
ELSEWHERE = Unreadable(reason="rank 3 cannot read it (Stale file handle)", damaged=False)


def trained(root: Path, *steps: int) -> Job:
    """Return a job that goes on after an earlier one has saved these steps."""
    first = Job(root, 1)
    first.folder = first.savers[0]._folder = CheckpointFolder(root, keep=9)
    for step in steps:
        first.savers[0].checkpoint({}, step, last=False)
    return Job(root, 1)


@pytest.mark.parametrize(("problem", "is_set_aside"), [(DAMAGED, True), (ELSEWHERE, False)])
def test_a_checkpoint_that_cannot_be_read_is_kept_and_the_next_older_one_is_loaded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], problem: Unreadable, is_set_aside: bool
) -> None:
    job = trained(tmp_path, 7, 14, 21)
    (saver,) = job.savers
    job.unreadable = {21: problem}
    state: dict[str, Any] = {}
    assert saver.restore(state)
    assert state == {"loaded": 14}
    assert saver.first_step() == 14
    (line,) = capsys.readouterr().err.splitlines()
    assert f"step 21 is not used, since {problem.reason}; the run falls back to step 14." in line
    assert line.endswith(".damaged") is is_set_aside
    assert [one.step for one in job.folder.all()] == ([7, 14] if is_set_aside else [7, 14, 21])


def test_a_run_does_not_start_again_from_its_beginning_because_no_checkpoint_can_be_read(tmp_path: Path) -> None:
    job = trained(tmp_path, 7, 14)
    job.unreadable = {7: ELSEWHERE, 14: ELSEWHERE}
    with pytest.raises(RuntimeError, match=r"none of the 2 checkpoints in .* can be read"):
        job.savers[0].restore({})
    with pytest.raises(RuntimeError, match=r"call run.restore\(state\)"):
        job.savers[0].first_step()


@pytest.mark.parametrize("kept", [(), (7,)])
def test_a_run_whose_checkpoints_are_all_damaged_never_starts_over_by_itself(
    tmp_path: Path, kept: tuple[int, ...]
) -> None:
    """Its launcher starts it again after the first error."""
    job = trained(tmp_path, *kept, 14)
    job.unreadable = {7: DAMAGED, 14: DAMAGED}
    with pytest.raises(RuntimeError, match=r"none of the \d checkpoints in .* can be read"):
        job.savers[0].restore({})
    (again,) = Job(tmp_path, 1).savers
    for start in (again.first_step, lambda: again.restore({})):
        with pytest.raises(RuntimeError, match=r"only damaged checkpoints .*\.damaged.* to start from step 0"):
            start()
    for path in tmp_path.glob("*.damaged"):
        path.rename(tmp_path / f"kept-{path.stem}")
    assert Job(tmp_path, 1).savers[0].first_step() == 0


def test_a_run_goes_back_to_a_step_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (saver,) = trained(tmp_path, 7, 14, 21).savers
    assert saver.restore({}, step=14)
    assert saver.first_step() == 14
    assert "The run goes back to step 14 and no longer uses step-000000021-" in capsys.readouterr().err
    assert [path.suffix for path in tmp_path.glob("step-000000021-*")] == [".abandoned"]
    saver.checkpoint({}, 16, last=False)
    (again,) = Job(tmp_path, 1).savers
    assert again.restore({}, step=14)
    assert again.first_step() == 16, "what was done since then is not lost"


def test_a_step_without_a_checkpoint_is_refused_with_those_that_there_are(tmp_path: Path) -> None:
    (saver,) = trained(tmp_path, 7, 14).savers
    with pytest.raises(ValueError, match="no whole checkpoint of step 8; it holds: 7, 14"):
        saver.restore({}, step=8)


@pytest.mark.parametrize("loss", [float("nan"), float("inf")])
def test_a_loss_that_is_no_finite_number_writes_no_checkpoint(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], loss: float
) -> None:
    job = Job(tmp_path, 1)
    (saver,) = job.savers
    saver.checkpoint({}, 7, last=False, loss=0.5)
    for step in (8, 9):
        saver.checkpoint({}, step, last=False, loss=loss)
    saver.checkpoint({}, 10, last=True, loss=loss)
    assert [one.step for one in job.folder.all()] == [7]
    assert job.refused == 3
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"The loss of step 8 is no finite number (it is {loss} here): no checkpoint is written")
    assert not job.step(11) - {False}
    job.now += 60
    job.step(12)
    assert job.step(13) == {True}, "it tries again a minute later"


def test_a_node_that_joins_does_not_wait_for_a_checkpoint_that_is_not_written(tmp_path: Path) -> None:
    (tmp_path / "node-0").mkdir()
    job = Job(tmp_path, 1)
    (agent,), (saver,) = job.agents, job.savers
    job.step(1)
    assert not agent.may_end(1)
    for number in (2, 3):
        job.answer, job.wishes = max(job.wishes), [0]
        if saver.should_checkpoint(last=False):
            saver.checkpoint({}, number, last=False, loss=float("nan"))
    assert agent.may_end(1)
