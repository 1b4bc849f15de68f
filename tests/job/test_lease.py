"""Two starts of one run: the second is refused while the first goes on, and waits where the first was killed."""

import os
import socket
from collections.abc import Callable

import pytest

from cluster_job.exits import Exit
from cluster_job.fencing import Token
from cluster_job.lease import HELD, Lease, LeaseView, Taken, owner_of
from cluster_job.table import RunTable, TableError
from fake_runs_table import TABLE, FakeRunsTable


class _Scene:
    """Starts of one run on nodes with a clock each; what is done while one waits is up to the test."""

    def __init__(self) -> None:
        self.now, self.meanwhile = 0.0, list[Callable[[], object]]()
        self.client = FakeRunsTable()
        self.table = RunTable(self.client, TABLE, "llama")  # type: ignore[arg-type]

    def start(self, owner: str, *, attempt: str = "", ahead: float = 0, rate: float = 1) -> Lease:
        """Return a start on a node whose clock is ahead by some seconds, and runs at another rate."""
        return Lease(
            self.table,
            run="llama",
            owner=owner,
            node="i-1",
            attempt=attempt,
            clock=lambda: ahead + rate * self.now,
            sleep=lambda seconds: self.wait(seconds / rate),
        )

    def wait(self, seconds: float) -> None:
        self.now += seconds
        for act in self.meanwhile:
            act()


@pytest.mark.parametrize("ahead", [0, 61, -61, 7 * 3600, -7 * 3600])
@pytest.mark.parametrize("rate", [0.999, 1, 1.001])
def test_a_second_start_is_refused_in_one_sentence_whatever_its_clock_says(ahead: float, rate: float) -> None:
    scene = _Scene()
    first = scene.start("Slurm step 7.0")
    first.take()
    scene.meanwhile.append(first.renew)
    with pytest.raises(Taken, match=r"^llama is being trained by Slurm step 7\.0 on i-1: end that first, or give"):
        scene.start("Slurm step 7.1", ahead=ahead, rate=rate).take()
    assert scene.now <= 20.1
    began = scene.now
    scene.start("Slurm step 7.0", ahead=ahead, rate=rate).take()  # its processes start again
    assert scene.now == began


def test_a_start_that_was_killed_is_over_after_a_minute_and_one_that_ended_at_once() -> None:
    scene = _Scene()
    first = scene.start("a")
    first.take()
    scene.now += 3600  # however long ago: its clock may be that of another machine
    began = scene.now
    second = scene.start("b", ahead=1e6)
    second.take()
    assert scene.now - began == 60
    with pytest.raises(Taken, match=r"^llama was taken over by b on i-1, since this start had said nothing") as end:
        first.renew()  # it was only stopped: it finds out when it goes on
    assert end.value.exit_code is Exit.USAGE
    first.release()  # b's is not a's to end
    second.release()
    began = scene.now
    scene.start("c").take()
    assert scene.now == began
    second.release()  # c's is not b's to end
    assert LeaseView(scene.table).is_trained()


def test_who_has_waited_waits_no_second_time() -> None:
    """A node looks before it meets the others, and the first of them once more when they have met."""
    scene = _Scene()
    scene.start("a").take()
    second = scene.start("b")
    second.check()
    began = scene.now
    second.take()
    assert scene.now == began


def test_who_looks_every_few_minutes_sees_that_a_run_is_trained_no_more() -> None:
    scene = _Scene()
    first = scene.start("a")
    view = LeaseView(scene.table, clock=lambda: 1e6 + scene.now, longest_gap=240)
    assert not view.is_trained()
    first.take()
    for _ in range(3):
        assert view.is_trained()
        scene.now += 240
        first.renew()
    assert view.is_trained()
    scene.now += 240
    assert not view.is_trained()


@pytest.mark.parametrize("seconds", [50, 600])
def test_a_table_that_was_away_makes_no_start_silent(seconds: float) -> None:
    scene = _Scene()
    first, second = scene.start("a"), scene.start("b")
    first.take()
    scene.now += 15

    def fail() -> None:
        scene.client.down = True
        scene.now += seconds

    scene.meanwhile.append(fail)
    with pytest.raises(TableError):
        second.take()
    with pytest.raises(TableError):
        first.renew()
    scene.client.down = False
    scene.meanwhile[:] = [first.renew]
    with pytest.raises(Taken, match="is being trained by a"):
        second.take()
    assert first.renew()


def test_a_table_that_fails_again_and_again_makes_no_start_silent() -> None:
    scene = _Scene()
    scene.start("a").take()
    view = LeaseView(scene.table, clock=lambda: scene.now)
    for _ in range(20):
        assert view.is_trained()
        scene.now += 5
        scene.client.down = True
        with pytest.raises(TableError):
            view.is_trained()
        scene.now += 5
        scene.client.down = False


def test_a_start_that_was_stopped_itself_has_seen_no_silence() -> None:
    scene = _Scene()
    first, second = scene.start("a"), scene.start("b")
    first.take()
    stops = iter([600.0])

    def stop() -> None:
        scene.now += next(stops, 0)
        if scene.now > 610:
            first.renew()

    scene.meanwhile.append(stop)
    with pytest.raises(Taken):
        second.take()


def test_each_holder_has_a_later_token_and_a_table_that_forgot_them_begins_another_series() -> None:
    scene = _Scene()
    tokens = []
    for owner in ("a", "a", "b"):
        lease = scene.start(owner)
        lease.take()
        assert lease.token is not None
        tokens.append(lease.token)
    assert [one.number for one in tokens] == [1, 2, 3]
    assert tokens[0].is_before(tokens[2])
    assert Token.parse(str(tokens[2])) == tokens[2]
    scene.client.items.clear()
    assert lease.renew()
    scene.now += 15
    assert lease.renew(), "it puts its own back"
    assert lease.token == tokens[2]
    scene.client.items.clear()
    other = scene.start("c")
    other.take()
    assert other.token is not None
    assert other.token.series != tokens[2].series
    assert not tokens[2].is_before(other.token)


def test_the_lease_of_an_earlier_release_is_in_no_ones_way() -> None:
    scene = _Scene()
    scene.table.replace("lease", b'{"owner":"a","node":"i-1","at":0.0,"attempt":"","world":""}', None)
    lease = scene.start("b")
    lease.take()
    assert lease.token is not None


def test_an_attempt_ends_once_a_later_one_of_its_start_has_begun() -> None:
    scene = _Scene()
    cut_off, again = scene.start("JobSet 4f1c", attempt="4f1c-9"), scene.start("JobSet 4f1c", attempt="4f1c-10")
    cut_off.take()
    again.take()
    scene.now += 15
    for act in (cut_off.renew, cut_off.take):
        with pytest.raises(
            Taken, match=r"^llama was started again on i-1 meanwhile: this attempt of JobSet 4f1c"
        ) as end:
            act()
        assert end.value.exit_code is Exit.AGAIN
    cut_off.release()  # the later one's is not its to end
    assert again.is_fresh()
    assert again.renew()


def test_processes_end_that_their_launcher_has_started_again_elsewhere() -> None:
    scene = _Scene()
    cut_off, again, other_rank = (scene.start("torchrun 4f1c") for _ in range(3))
    cut_off.take()
    assert cut_off.token is not None
    other_rank.follow("torchrun 4f1c", cut_off.token)
    other_rank.look()
    again.take()
    scene.now += 15
    for act in (cut_off.renew, other_rank.look):
        with pytest.raises(Taken, match=r"meanwhile: these processes of torchrun 4f1c end$") as end:
            act()
        assert end.value.exit_code is Exit.AGAIN


def test_nodes_wait_until_the_next_holder_has_had_time_to_take_it() -> None:
    scene = _Scene()
    first = scene.start("a")
    first.take()
    waits = []
    scene.meanwhile.append(lambda: waits.append(first.is_fresh()))
    scene.start("b").take()
    assert waits
    assert all(waits), "who waits for b's world would give up"
    for _ in range(15):
        assert first.is_fresh()
        scene.now += 5
    assert not first.is_fresh()


def test_of_two_that_start_at_once_one_goes_on() -> None:
    scene = _Scene()
    first, second = scene.start("a"), scene.start("b")
    found = second.check()
    first.take()
    assert not second._put(Token(1, "x"), found)


def test_of_the_nodes_of_one_start_those_wait_that_meet_without_the_ones_that_train() -> None:
    scene = _Scene()
    a, b, c = (scene.start("start 0", ahead=ahead) for ahead in (0, 3600, -3600))
    requeued = scene.start("start 0", attempt="1")
    a.world = b.world = "a and b"
    a.take()
    c.world, requeued.world = "c", "a and b, started again"
    began, waits = scene.now, 7
    scene.meanwhile.extend([a.renew, lambda: b.leave() if scene.now - began >= waits * 5 else None])
    c.take()
    assert scene.now - began == waits * 5
    scene.now += 15
    assert (a.renew(), c.renew()) == (False, True)
    a.leave()  # c's is not a's to end
    began = scene.now
    a.world = "a, which does not see that c trains"
    scene.meanwhile.clear()
    a.take()
    assert scene.now - began == 60  # c was killed
    scene.now += 60
    assert not c.renew(), "c was only stopped: it joins the others, whose token is later, though they are silent too"
    requeued.take()
    assert scene.now - began == 120


@pytest.mark.parametrize(
    ("variables", "owner"),
    [
        ({HELD: "llama", "SLURM_JOB_ID": "7"}, None),
        ({HELD: "train-7", "SLURM_JOB_ID": "7"}, "Slurm step 7.0"),  # the script says Run(name="llama")
        ({"SLURM_JOB_ID": "7", "SLURM_STEP_ID": "1", "SLURM_RESTART_COUNT": "2"}, "Slurm step 7.1"),
        ({"TORCHELASTIC_RUN_ID": "4f1c"}, "torchrun 4f1c"),
    ],
)
def test_a_start_keeps_its_name_over_its_restarts(variables: dict[str, str], owner: str | None) -> None:
    assert owner_of("llama", variables) == owner
    assert owner_of("llama", {}) == f"process {os.getpid()} of {socket.gethostname()}"
    agent = f"process {os.getppid()} of {socket.gethostname()}"
    assert owner_of("llama", {"TORCHELASTIC_RUN_ID": "none"}) == agent, "torchrun starts its processes again"
