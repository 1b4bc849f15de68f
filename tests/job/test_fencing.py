"""Two starts of one run in one folder: the later one's checkpoints stay, whatever the earlier one is about to do."""

import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from cluster_job.checkpoints import LATEST, MARKER, Aside, Checkpoint, CheckpointFolder, read_checkpoint
from cluster_job.fencing import Superseded, Token
from cluster_job.lease import LEASE_SECONDS, Lease, Taken
from cluster_job.table import RunTable, TableError
from fake_runs_table import TABLE, FakeRunsTable

_CHANGES = {"open", "os.listdir", "os.scandir", "os.rename", "os.remove", "os.rmdir", "shutil.rmtree"}


class _Hook:
    """Does something before the n-th operation of a thread on files: Python tells of each of them."""

    def __init__(self) -> None:
        self._plans: dict[int, tuple[int, Callable[[], object]]] = {}
        sys.addaudithook(self._heard)

    def plan(self, number: int, act: Callable[[], object]) -> None:
        """Let this thread do something before its n-th operation from now on."""
        self._plans[threading.get_ident()] = number, act

    def forget(self) -> bool:
        """Return whether this thread has not come so far, and do nothing later."""
        return self._plans.pop(threading.get_ident(), None) is not None

    def _heard(self, event: str, _: object) -> None:
        left, act = self._plans.get(threading.get_ident(), (0, None))
        if act is None or event not in _CHANGES:
            return
        if left > 1:
            self._plans[threading.get_ident()] = left - 1, act
        else:
            self.forget()
            act()


_HOOK = _Hook()


def folder(root: Path, number: int, series: str = "s", *, keep: int = 2) -> CheckpointFolder:
    return CheckpointFolder(root, token=Token(number, series) if number else None, keep=keep)


def write(where: CheckpointFolder, step: int, attempt: str = "0" * 8) -> Checkpoint:
    path = where.path(step, attempt)
    path.mkdir(parents=True)
    (path / "__0_0.distcp").write_bytes(b"x")
    return Checkpoint(path=path, step=step)


def save(where: CheckpointFolder, step: int, attempt: str = "0" * 8) -> Checkpoint:
    checkpoint = write(where, step, attempt)
    where.commit(checkpoint, ["__0_0.distcp"])
    return checkpoint


def test_a_start_that_another_has_replaced_changes_no_checkpoint(tmp_path: Path) -> None:
    first, second = folder(tmp_path, 1, keep=1), folder(tmp_path, 2, keep=1)
    first.open()
    save(first, 1)
    second.open()
    late = write(first, 2)
    acts: list[Callable[[], object]] = [
        lambda: first.commit(late, ["__0_0.distcp"]),
        lambda: first.set_aside(tmp_path / "step-000000001-00000000", Aside.DAMAGED),
        lambda: first.roll_back(Checkpoint(path=tmp_path, step=0)),
        lambda: folder(tmp_path, 1).open(),
    ]
    for act in acts:
        with pytest.raises(Superseded, match=r"^another start of this run has opened .*, and ends$"):
            act()
    assert [one.step for one in second.all()] == [1]
    assert not (late.path / MARKER).exists()
    save(second, 3)
    assert {one.name for one in tmp_path.iterdir()} == {"step-000000003-00000000", ".token-2-s", "latest"}


def test_a_table_that_counts_anew_locks_no_start_out(tmp_path: Path) -> None:
    """The item of a run expires after two weeks, and folders are copied to other clusters."""
    first, second = folder(tmp_path, 70), folder(tmp_path, 1, "of another table")
    first.open()
    second.open()
    save(second, 1)
    with pytest.raises(Superseded):
        save(first, 2)


def test_runs_without_a_table_write_side_by_side_as_before(tmp_path: Path) -> None:
    first, second = folder(tmp_path, 0), folder(tmp_path, 0)
    folder(tmp_path, 7).open()
    half = write(first, 9)
    for one in (first, second):
        one.open()
    save(first, 1)
    save(second, 2)
    assert [one.step for one in first.all()] == [1, 2]
    assert half.path.exists()


def test_what_a_start_writes_itself_stays_when_its_script_opens_the_folder_again(tmp_path: Path) -> None:
    folder(tmp_path, 1).open()
    half = write(folder(tmp_path, 1), 5)
    folder(tmp_path, 1).open()
    assert half.path.exists()


def test_a_folder_that_its_user_deletes_ends_no_run(tmp_path: Path) -> None:
    first = folder(tmp_path / "run", 1)
    first.open()
    (tmp_path / "run" / ".token-1-s").unlink()
    (tmp_path / "run").rmdir()
    assert save(first, 1) == first.latest()


def test_a_full_disk_marks_no_checkpoint_without_a_token_and_ends_no_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder(tmp_path, 1).open()
    second = folder(tmp_path, 2)
    with monkeypatch.context() as patched:
        patched.setattr(Path, "touch", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
        second.open()
        with pytest.raises(OSError, match="No space left"):
            save(second, 1)
    assert second.latest() is None
    save(second, 2)
    with pytest.raises(Superseded):
        save(folder(tmp_path, 1), 3)


class _Race:
    """The earlier start commits until an operation; the later one opens the folder until one; then both go on."""

    def __init__(self, root: Path, commits: int, opens: int) -> None:
        self.root, self.opens = root, opens
        self.first, self.second = folder(root, 1, keep=1), folder(root, 2, keep=1)
        self.found: list[Checkpoint] = []
        self.stopped, self.goes_on = threading.Event(), threading.Event()
        self.is_short = False
        self.thread = threading.Thread(target=self._open)
        self.first.open()
        save(self.first, 1)
        late = write(self.first, 2)
        _HOOK.plan(commits, self._start)
        with suppress(Superseded, OSError):
            self.first.commit(late, ["__0_0.distcp"])
        self.is_over = _HOOK.forget()
        if self.is_over:
            self._start()
        self.goes_on.set()
        self.thread.join()

    def _start(self) -> None:
        self.thread.start()
        self.stopped.wait()

    def _stop(self) -> None:
        self.stopped.set()
        self.goes_on.wait()

    def _open(self) -> None:
        _HOOK.plan(self.opens, self._stop)
        self.second.open()
        self.second.set_damaged_aside()
        self.found = self.second.all()
        self.is_short = _HOOK.forget()
        self.stopped.set()


def test_whenever_a_later_start_opens_the_folder_what_it_finds_whole_stays_and_nothing_else_becomes_whole(
    tmp_path: Path,
) -> None:
    newest = set()
    races = 0
    for commits in range(1, 1000):
        for opens in range(1, 1000):
            race = _Race(tmp_path / f"{commits}-{opens}", commits, opens)
            where = f"operation {commits} of the commit, {opens} of the opening"
            assert race.found, where
            assert race.found[-1] == race.second.all()[-1], where
            assert set(race.second.all()) <= set(race.found), where
            assert (race.root / LATEST).resolve() in {one.path for one in race.found}, where
            assert not race.second.damaged(), where
            newest.add(race.found[-1].step)
            save(race.second, 3)
            assert [one.step for one in race.second.all()] == [3], where
            folder(race.root, 3).open()  # both may have deleted one directory, and left it to the next
            assert {one.name for one in race.root.iterdir()} == {"step-000000003-00000000", ".token-3-s", LATEST}
            races += 1
            if race.is_short:
                break
        if race.is_over:
            break
    assert races > 100
    assert newest == {1, 2}


class _Start:
    """One start of the run on a node of its own, with a clock of its own."""

    def __init__(self, machine: "TwoStarts", name: str, ahead: float, rate: float) -> None:
        self.machine, self.name, self.steps = machine, name, 0
        self.is_training = self.is_stopped = False
        self.silent_since: float | None = None
        self.lease = Lease(
            machine.table,
            run="llama",
            owner=name,
            node=name,
            clock=lambda: ahead + rate * machine.now,
            sleep=lambda seconds: machine.pass_(seconds / rate),
        )

    def begin(self) -> None:
        self.is_training = False
        try:
            self.lease.take()
            assert self.lease.token is not None
            self.folder = CheckpointFolder(self.machine.root, token=self.lease.token)
            self.folder.open()
        except (Taken, TableError, Superseded):
            return
        self.is_training = True
        self.machine.opened.append(self)
        self.machine.seen = self.folder.all()

    def look(self) -> None:
        if not self.is_training or self.is_stopped:
            return
        try:
            self.lease.renew()
        except Taken:
            self.is_training = False
        except TableError:
            pass


class TwoStarts(RuleBasedStateMachine):
    """Starts that begin, stop, go on, lose answers of the table and save: the last that opened the folder owns it."""

    @initialize(
        ahead=st.lists(st.floats(-1e5, 1e5), min_size=3, max_size=3),
        rates=st.lists(st.floats(0.99, 1.01), min_size=3, max_size=3),
        lost=st.sampled_from([0.0, 0.4]),
        unanswered=st.sampled_from([0.0, 0.3]),
    )
    def set_up(self, ahead: list[float], rates: list[float], lost: float, unanswered: float) -> None:
        self.root = Path(self._make_folder())
        self.client = FakeRunsTable(lost_answers=lost)
        self.client.unanswered = unanswered
        self.table = RunTable(self.client, TABLE, "llama")  # type: ignore[arg-type]
        self.now, self.step = 0.0, 0
        self.starts = [_Start(self, name, *clock) for name, *clock in zip("abc", ahead, rates, strict=True)]
        self.opened: list[_Start] = []
        self.seen: list[Checkpoint] = []

    def _make_folder(self) -> str:
        self._folder = tempfile.TemporaryDirectory()
        return self._folder.name

    def teardown(self) -> None:
        if hasattr(self, "_folder"):
            self._folder.cleanup()

    def pass_(self, seconds: float) -> None:
        for _ in range(max(1, round(seconds / 5))):
            self.now += 5
            for start in self.starts:
                start.look()

    @rule(who=st.integers(0, 2))
    def begin(self, who: int) -> None:
        start = self.starts[who]
        before = [one for one in self.starts if one.is_training and one is not start]
        well = [one for one in before if not one.is_stopped and self.is_holder(one)]
        is_up = not self.client.down
        start.is_stopped = False
        start.begin()
        if well and is_up:
            assert not start.is_training, "one that renews its lease was taken over"

    def is_holder(self, start: _Start) -> bool:
        found = self.table.read("lease") if not self.client.down else None
        return found is not None and f'"token":"{start.lease.token}"'.encode() in found.value

    @rule(who=st.integers(0, 2))
    def stop(self, who: int) -> None:
        self.starts[who].is_stopped = True

    @rule(who=st.integers(0, 2))
    def go_on(self, who: int) -> None:
        self.starts[who].is_stopped = False

    @rule(seconds=st.sampled_from([5, 15, 30, 60, 120]))
    def wait(self, seconds: float) -> None:
        self.pass_(seconds)

    @rule(is_down=st.booleans())
    def lose_the_table(self, is_down: bool) -> None:
        self.client.down = is_down

    @rule(who=st.integers(0, 2))
    @precondition(lambda self: self.opened)
    def save(self, who: int) -> None:
        """A start that has lost its lease may not know it yet."""
        start = self.starts[who]
        if not start.is_training:
            return
        self.step += 1
        checkpoint = write(start.folder, self.step)
        try:
            start.folder.commit(checkpoint, ["__0_0.distcp"])
        except Superseded:
            start.is_training = False
            assert self.opened[-1] is not start
        else:
            assert self.opened[-1] is start, "it marks a checkpoint after another start has opened the folder"
            self.seen = start.folder.all()

    @invariant()
    def keeps_what_the_last_one_has_seen(self) -> None:
        if getattr(self, "opened", None):
            assert [one for one in self.seen if read_checkpoint(one.path) != one] == []

    @rule()
    @precondition(lambda self: self.opened and not self.client.down)
    def all_learn_in_the_end(self) -> None:
        for start in self.starts:
            start.is_stopped = False
        self.pass_(LEASE_SECONDS)
        assert sum(start.is_training for start in self.starts) <= 1


TwoStarts.TestCase.settings = settings(max_examples=60, stateful_step_count=25, deadline=None)
test_two_starts = TwoStarts.TestCase
