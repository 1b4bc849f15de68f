"""Ranks that hang, and failures without progress, under real torchrun with gloo: `make test-torch`.

NCCL needs GPUs and is not run here: the collectives of its groups, which the same function reads, are not proven.
"""

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="torch is not installed: make test-torch")
pytest.importorskip("psutil", reason="psutil is not installed: make test-torch")

from cluster_job.exits import Exit
from cluster_job.hangs import STUCK_EXIT_CODE
from cluster_job.stuck import END_SHARE
from torchrun_job import TorchrunJob

pytestmark = pytest.mark.torch

_GRACE = 6.0
_SCRIPT = Path(__file__).parents[1] / "support/hanging_job_script.py"
_AT = 30  # the step at which something happens

Start = Callable[..., TorchrunJob]


@pytest.fixture
def start(endpoint: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Start]:
    run = re.sub(r"\W", "-", request.node.name)
    job = TorchrunJob(tmp_path, endpoint, run=run, nnodes="2:3", script=_SCRIPT)

    def started(*options: str, mode: str, seconds: float) -> TorchrunJob:
        for node in "abc":
            arguments = (mode, str(_AT), str(seconds))
            job.start(node, "--hang-seconds", str(_GRACE), *options, arguments=arguments)
        return job

    yield started
    job.stop()


@pytest.mark.parametrize("timeout", [0.0, 60.0], ids=["torchs-own-timeout", "timeout-of-the-script"])
def test_the_rank_that_hangs_is_named_and_ended_before_torch_does_and_its_node_is_blamed(
    start: Start, tmp_path: Path, timeout: float
) -> None:
    leaves = not timeout
    job = start(*(("--first-failures", "1") if leaves else ()), mode="hang", seconds=timeout)
    again = job.wait_for(lambda event: event["step"] > _AT + 5)
    logs = {node: job.log(node) for node in "abc"}
    culprit = (tmp_path / "hung").read_text()
    [first, *_] = re.findall(r"cluster_job: (rank .* hangs: .*)", "".join(logs.values()))
    assert first.startswith(
        f"rank 1 on {culprit} hangs: it has begun fewer collectives than others; its last step is "
    )
    assert re.search(
        r"where others wait in number \d+ \(gloo:\w+\); its main thread is at .*:\d+ in __getitem__", first
    )
    found = re.search(r" is (\d+), (\d+) s ago", first)
    assert found is not None
    step, silent = map(int, found.groups())
    sys.stdout.write(f"\nfound after {silent / _GRACE:.1f} graces, {silent} s: {first}\n")
    # One grace until the step is overdue, and a third until the rank has not moved; a slow machine looks later.
    assert 1 <= silent / _GRACE <= 2 + END_SHARE
    assert _AT - 2 <= step <= _AT
    assert f"rank 1 on {culprit} ends with status {STUCK_EXIT_CODE}" in logs[culprit]
    assert "Timed out" not in "".join(logs.values())
    if leaves:
        assert job.exit_code(culprit) == Exit.UNFIT
        assert again["world"] == 2


def test_an_evaluation_that_computes_longer_than_a_hang_is_let_go_on(start: Start, tmp_path: Path) -> None:
    job = start(mode="evaluate", seconds=5 * _GRACE)
    assert [job.exit_code(node) for node in "abc"] == [0, 0, 0]
    assert (tmp_path / "evaluated").exists()
    assert "hangs" not in "".join(map(job.log, "abc"))


def test_a_script_that_fails_at_the_same_step_again_and_again_ends_after_three_restarts(start: Start) -> None:
    job = start(mode="fail", seconds=0)
    assert {job.exit_code(node) for node in "abc"} == {Exit.BUDGET}
    said = "".join(map(job.log, "abc"))
    assert f"the run failed 3 times in a row without progress, after step {_AT}" in said
    assert len([event for event in job.events() if event["step"] == _AT]) == 4
