"""Two starts of one run: the second is refused while the first goes on, and waits where the first was killed."""

import os
import socket
from collections.abc import Callable

import pytest

from cluster_job.exits import Exit
from cluster_job.lease import HELD, Lease, Taken, owner_of
from cluster_job.table import RunTable
from fake_runs_table import TABLE, FakeRunsTable


class _Scene:
    """Starts of one run, with one clock; what is done while one waits is up to the test."""

    def __init__(self) -> None:
        self.now, self.meanwhile = 1e9, list[Callable[[], object]]()
        self.table = RunTable(FakeRunsTable(), TABLE, "llama")  # type: ignore[arg-type]

    def start(self, owner: str) -> Lease:
        return Lease(self.table, run="llama", owner=owner, node="i-1", now=lambda: self.now, sleep=self._sleep)

    def _sleep(self, seconds: float) -> None:
        self.now += seconds
        for act in self.meanwhile:
            act()


def test_a_second_start_is_refused_in_one_sentence_while_the_first_goes_on() -> None:
    scene = _Scene()
    first = scene.start("Slurm step 7.0")
    first.take()
    scene.meanwhile.append(first.renew)
    began = scene.now
    with pytest.raises(Taken, match=r"^llama is being trained by Slurm step 7\.0 on i-1: end that first, or give"):
        scene.start("Slurm step 7.1").take()
    assert scene.now - began <= 20
    scene.start("Slurm step 7.0").take()  # its processes start again


def test_a_start_that_was_killed_is_over_after_a_minute_and_one_that_ended_at_once() -> None:
    scene = _Scene()
    scene.start("a").take()
    began = scene.now
    second = scene.start("b")
    second.take()
    assert scene.now - began == 60
    scene.meanwhile.append(second.renew)
    with pytest.raises(Taken):  # a was only stopped: it finds out when it goes on
        scene.start("a").renew()
    second.release()
    scene.meanwhile.clear()
    began = scene.now
    scene.start("c").take()
    assert scene.now == began
    second.release()  # c's is not b's to end
    assert scene.start("c").check() is not None


def test_an_attempt_ends_once_a_later_one_of_its_start_has_begun() -> None:
    scene = _Scene()
    cut_off, again = scene.start("JobSet 4f1c"), scene.start("JobSet 4f1c")
    cut_off._attempt, again._attempt = "4f1c-9", "4f1c-10"
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


def test_nodes_wait_until_the_next_holder_has_had_time_to_take_it() -> None:
    scene = _Scene()
    first = scene.start("a")
    first.take()
    waits = []
    scene.meanwhile.append(lambda: waits.append(first.is_fresh()))
    scene.start("b").take()
    assert waits
    assert all(waits), "who waits for b's world would give up"
    scene.now += 75
    assert not first.is_fresh()


def test_of_two_that_start_at_once_one_goes_on() -> None:
    scene = _Scene()
    first, second = scene.start("a"), scene.start("b")
    found = second.check()
    first.take()
    assert not second._put(scene.now, found)


def test_of_the_nodes_of_one_start_those_wait_that_meet_without_the_ones_that_train() -> None:
    scene = _Scene()
    a, b, c, requeued = (scene.start("start 0") for _ in range(4))
    requeued._attempt = "1"
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
    requeued.take()
    assert scene.now - began == 60


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
