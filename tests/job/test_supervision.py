"""How a drain ends a job: it learns of the drain, has time, and gets SIGTERM when that is over."""

import os
import signal
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from cluster_job.drain import JOB_FOLDER, DrainRequest, drain_request, write_drain_request
from cluster_job.exits import Exit
from cluster_job.supervision import Limits, supervise

# A stand-in for torchrun with one process of a training, which has a handler for SIGUSR1.
TORCHRUN = """
import os, signal, subprocess, sys
assert signal.getsignal(signal.SIGUSR1) is signal.SIG_IGN
signal.signal(signal.SIGTERM, lambda *_: (worker.kill(), sys.exit(1)))
for _ in range(1 + int(sys.argv[1])):
    worker = subprocess.Popen([sys.executable, "-c", sys.argv[2]])
    code = worker.wait()
    if code == 0:
        break
sys.exit(code)
"""
SAVES = "import os, signal, sys; signal.signal(signal.SIGUSR1, lambda *_: sys.exit(3)); {}; signal.pause()"
SAVES_NOT = "import os, signal; {}; signal.pause()"
SIGNAL = "os.kill(int(os.environ['CLUSTER_RUN']), signal.{})"
# In one step, as `write_drain_request` does: a reader sees no request without its sentence.
DRAIN = (
    "folder = os.environ['TRAINING_CLUSTER_DRAIN']; new = open(folder + '/.spot.new', 'w'); "
    "new.write('EC2 takes it back'); new.close(); os.rename(folder + '/.spot.new', folder + '/spot')"
)


def run(folder: Path, worker: str, *, seconds: float, restarts: int = 0) -> int:
    variables = {**os.environ, JOB_FOLDER: str(folder), "CLUSTER_RUN": str(os.getpid())}
    limits = Limits(drain_seconds=seconds, term_seconds=seconds, shutdown_seconds=0)
    return supervise([sys.executable, "-c", TORCHRUN, str(restarts), worker], variables, folder, limits)


@pytest.mark.parametrize(
    ("worker", "seconds", "code", "sentence"),
    [
        # It saves, and ends by itself.
        (SAVES.format(SIGNAL.format("SIGUSR1")), 600, Exit.AGAIN, "cluster-run got SIGUSR1: the job saves and ends"),
        (SAVES.format(SIGNAL.format("SIGTERM")), 600, Exit.AGAIN, "cluster-run got SIGTERM: the job saves and ends"),
        (SAVES.format(DRAIN), 600, Exit.AGAIN, "EC2 takes it back: the job saves and ends"),
        # It does not hear, and is ended when its time is over.
        (SAVES_NOT.format(DRAIN), 0, Exit.AGAIN, "the time to save is over: the processes get SIGTERM, and 0 s"),
        # Nothing drains it.
        ("import sys; sys.exit(9)", 600, 9, ""),
        ("", 600, 0, ""),
    ],
)
def test_a_drain_gives_the_job_time_and_then_ends_it(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], *, worker: str, seconds: float, code: int, sentence: str
) -> None:
    before = signal.getsignal(signal.SIGTERM)
    assert run(tmp_path, worker, seconds=seconds) == code
    assert sentence in capfd.readouterr().err
    assert signal.getsignal(signal.SIGTERM) is before


def test_processes_that_ended_for_a_drain_are_not_started_again(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    again = "os.listdir(os.environ['TRAINING_CLUSTER_DRAIN']) and signal.pause()"
    worker = f"import os, signal; signal.alarm(60); {again}; {SAVES.format(DRAIN)}"
    assert run(tmp_path, worker, seconds=600, restarts=1) == Exit.AGAIN
    assert "the processes have ended, and torchrun ends too" in capfd.readouterr().err


_UNDRAINED = f"""
import os, signal, time
signal.alarm(60)
def request():
    {DRAIN}
folder = os.environ['TRAINING_CLUSTER_DRAIN']
def drained(*_):
    drains.append(1)
    if len(drains) == 1:
        os.remove(folder + '/spot')
        time.sleep(2)
        request()
    else:
        os._exit(3)
drains = []
signal.signal(signal.SIGUSR1, drained)
request()
while True:
    signal.pause()
"""


def test_a_drain_that_was_taken_back_leaves_the_next_one_its_time(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, _UNDRAINED, seconds=600) == Exit.AGAIN
    said = capfd.readouterr().err
    assert said.count("EC2 takes it back: the job saves and ends") == 2
    assert "the node is no longer drained, and the job goes on" in said


def test_a_failure_after_a_drain_that_was_taken_back_is_its_own(tmp_path: Path) -> None:
    undrain = "os.remove(os.environ['TRAINING_CLUSTER_DRAIN'] + '/spot')"
    deaf = "import os, signal, sys, time; signal.signal(signal.SIGUSR1, signal.SIG_IGN)"
    worker = f"{deaf}; {DRAIN}; time.sleep(1.5); {undrain}; time.sleep(1.5); sys.exit(9)"
    assert run(tmp_path, worker, seconds=600) == 9


def test_a_request_is_read_as_it_was_written(tmp_path: Path) -> None:
    request = DrainRequest(code="a", sentence="b", deadline=datetime.now(UTC) + timedelta(seconds=9))
    write_drain_request(tmp_path, request)
    assert drain_request(tmp_path) == request
